// A run's record, events and progress, read back and told: what `why` and `report` show (view/story/story.h).
#pragma once

#include "base/json.h"
#include "cli/records/run_events.h"
#include "logs/runs/progress_log.h"
#include "logs/runs/run_list.h"
#include "view/story/story.h"

namespace phalanx::cli {

// status: what its launcher says now (job::ask_status), or null. points: of progress.jsonl; may be empty.
view::Story story_of(const logs::Run& run, const base::Json& status, const std::vector<RunEvent>& events,
                     const std::vector<logs::ProgressPoint>& points, base::Language language);

// In words; nothing for an event that says nothing to people. The number of equal events in a row that it stands for is added.
std::string event_text(const RunEvent& event, size_t times, base::Language language);

// progress.jsonl of a run; empty if there is none.
base::Result<std::vector<logs::ProgressPoint>> progress_of(const logs::Run& run);

}  // namespace phalanx::cli
