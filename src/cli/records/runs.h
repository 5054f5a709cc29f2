// What the verbs share that speak of runs which are there: ps, logs, attach, stop, why, report.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/language.h"
#include "cli/flags/command_line.h"
#include "logs/runs/run_list.h"
#include "view/terminal/capabilities.h"
#include "words/message.h"

namespace phalanx::cli {

base::Result<std::string> runs_folder(const Invocation& invocation);
// The run that the one operand names. Error kUsage: more operands, or no such run.
base::Result<logs::Run> run_named(const Invocation& invocation);

// On standard error, and the verb goes on without it: "warning: cannot read the run …: open …: Input/output error".
void warn_of(const base::Error& error);

base::Language language_here();
view::TerminalCapabilities surroundings_here(const Invocation& invocation);  // --color counts

// In one word, as JSON has it: starting, running, stopping, restarting, done, failed, refused, interrupted, lost, unknown. ps says
// "silent" of a run whose launcher lives and gives no answer.
// status: what its launcher says (job::ask_status), or null.
std::string state_of(const logs::Run& run, const base::Json& status);
words::Text state_word(std::string_view state);

// Seconds since the run began; since it ended if it has. Nothing where run.json does not say.
std::optional<int64_t> age_s(const logs::Run& run, int64_t wall_now_ns);

// The host of every rank, as run.json says. At most 1,048,576.
std::vector<std::string> host_of_rank(const base::Json& record);
// --rank and --host: true for each of `hosts` (per rank) that is wanted. Error kUsage: malformed, or names none of them.
base::Result<std::vector<bool>> wanted_ranks(const Invocation& invocation, const std::vector<std::string>& hosts);

}  // namespace phalanx::cli
