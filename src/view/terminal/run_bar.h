// The one progress bar of a run, made of what its ranks report. Pure; the clock is given.
//
//   step 120/1000 ▕███▍                ▏ 12% loss 2.31 15.3k tok/s ranks 118–121 ETA 3:20
//
// The figures are those of the lowest rank that reports: from its progress events (wire::RankProgress), else from its own
// bar (tqdm). "ranks" is the lowest and the highest count over all ranks, shown when they differ.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "logs/progress_bar.h"
#include "os/clock.h"
#include "view/speech.h"
#include "wire/rank_event.h"

namespace phalanx::view {

class RunBar {
 public:
  explicit RunBar(int ranks = 0) : ranks_(static_cast<size_t>(ranks)) {}

  void progress(int rank, const wire::RankProgress& progress, os::Mono now);
  void bar(int rank, logs::Bar bar);
  // What a line of `rank` is to the bar it shows: nothing, its end, or its end where a lower rank has shown the same bar and so
  // speaks for all. The bar is gone after its end, and when it was complete and text follows.
  enum class End { kNone, kOwn, kSpokenFor };
  End ends_bar(int rank, std::string_view line);

  bool known() const { return leader() != nullptr; }
  bool from_events() const;
  bool has_bar(int rank) const { return at(rank).bar.has_value(); }
  // The bar in at most `columns` columns; "" when nothing is known. With gauge false: words and numbers only.
  std::string text(size_t columns, bool utf8, bool gauge, const Speech& speech) const;

 private:
  struct Rank {
    std::optional<wire::RankProgress> event;
    std::optional<logs::Bar> bar;
    os::Mono step_at;                                                    // when event->step last grew
    double seconds_per_step = 0;                                         // smoothed; 0: unknown
    bool shows_event() const { return event && (event->step || !bar); }  // a phase alone says less than a bar
  };
  struct Speaker {
    logs::Bar bar;
    int rank;
  };
  struct Figures;
  const Rank& at(int rank) const { return ranks_[static_cast<size_t>(rank)]; }
  const Rank* leader() const;
  Figures figures(const Rank& rank, const Speech& speech) const;
  std::string spread(const Rank& lead, bool utf8, const Speech& speech) const;

  static constexpr size_t kMaxSpeakers = 16;
  std::vector<Rank> ranks_;
  std::vector<Speaker> speakers_;  // of bars seen, oldest first
};

// "3:20", "1:02:03", "2d 3:04:05".
std::string format_clock(double seconds);
// "15.3k", "999", "1.2M".
std::string format_count(double value);
// `fraction` of `columns` columns, its frame included: "▕███▍  ▏" or "[###   ]". Needs at least 4 columns.
std::string draw_gauge(double fraction, size_t columns, bool utf8);

}  // namespace phalanx::view
