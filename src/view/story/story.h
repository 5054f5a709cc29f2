// A run told after the fact, or while it goes on: what `phalanx why` prints and the page of `phalanx report` shows. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/language.h"
#include "base/result.h"

namespace phalanx::view {

struct StoryEvent {
  std::string time;  // ISO, UTC
  std::string text;  // in the reader's language
  bool bad = false;
};

struct StoryRank {
  int rank = 0;
  std::string host;
  std::string end;  // "exited with code 1", "still running"; in the reader's language
  std::string step, loss, speed;
  std::optional<double> seconds_per_step;  // median
  bool bad = false;
};

// A value over time or over steps: of one rank, or of all.
struct Curve {
  std::string name;
  std::vector<std::pair<double, double>> points;  // by x
};

struct Story {
  std::string id, state, command, workdir;
  bool bad = false;  // it ended otherwise than it should
  std::string began, ended;
  std::vector<std::string> hosts;
  int64_t ranks = 0;
  std::string code;                  // of the verdict's cause, for phalanx explain; may be empty
  std::vector<base::Error> verdict;  // as it was shown when the run ended
  std::vector<std::string> advice;   // on the message that it ended with, where that is known; in the reader's language
  std::vector<std::string> now;      // what it is doing; of a run that goes on
  std::vector<StoryEvent> timeline;  // oldest first
  std::vector<StoryRank> table;
  std::vector<Curve> losses, step_times;  // over steps
};

// most_events: the last so many.
std::string story_text(const Story& story, base::Language language, size_t most_events);
// One HTML page that loads nothing from anywhere. redacted: how many secrets were taken out of what it shows.
std::string story_page(const Story& story, base::Language language, size_t redacted);

// Whether the verdict itself does not yet say how to look up the run's code.
bool wants_code(const Story& story);

// What an event says, safe to show: its lines stay lines, and what is very long is cut.
std::string shown_lines(std::string_view text);

// `text` inside an HTML element or a quoted attribute.
std::string html(std::string_view text);

}  // namespace phalanx::view
