// torchrun's --redirects, --tee and --local-ranks-filter: which output goes to files, and which to the terminal
// (torch/distributed/elastic/multiprocessing/api.py, DefaultLogsSpecs.reify).
#include <map>
#include <set>

#include <fmt/format.h>

#include "base/text.h"
#include "base/try.h"
#include "base/unicode.h"
#include "frontdoor/door.h"

namespace phalanx::frontdoor {
namespace {

using words::tr;

constexpr int kMostLocalRanks = 4'096;

using base::usage;

// "3" for all local ranks, or "0:3,1:1", where the others have 0.
struct Streams {
  int others = 0;
  std::map<int, int> of;
  int at(int rank) const {
    auto found = of.find(rank);
    return found == of.end() ? others : found->second;
  }
  bool any() const {
    for (const auto& [rank, streams] : of)
      if (streams != 0) return true;
    return others != 0;
  }
};

base::Result<Streams> streams_of(const GivenFlag* given) {
  Streams out;
  if (!given || !given->known) return out;
  const std::vector<std::string_view> words = base::split(given->value, ',');
  for (std::string_view one : words) {
    const size_t colon = one.find(':');
    const bool all = colon == std::string_view::npos;
    const base::Result<int64_t> streams = base::parse_int(all ? one : one.substr(colon + 1), 0, 3);
    const base::Result<int64_t> rank = all ? base::Result<int64_t>(0) : base::parse_int(one.substr(0, colon), 0, kMostLocalRanks - 1);
    if (!streams.ok() || !rank.ok() || (all && words.size() > 1))
      return usage(fmt::format("{} {}: neither 0, 1, 2 or 3 nor RANK:STREAMS", given->typed, base::quote(given->value)),
                   fmt::format("write {} 3 for standard output and standard error of all ranks", given->typed));
    if (all) out.others = static_cast<int>(*streams);
    else out.of[static_cast<int>(*rank)] = static_cast<int>(*streams);
  }
  return out;
}

base::Result<std::set<int>> filter_of(const GivenFlag* given) {
  std::set<int> out;
  if (!given || !given->known) return out;
  for (std::string_view one : base::split(given->value, ',')) {
    const base::Result<int64_t> rank = base::parse_int(base::trim(one), 0, kMostLocalRanks - 1);
    if (!rank.ok())
      return usage(fmt::format("{} {}: not a list of local ranks", given->typed, base::quote(given->value)), "write numbers, as in 0,1");
    out.insert(static_cast<int>(*rank));
  }
  return out;
}

}  // namespace

base::Status take_streams(Door& door, const GivenFlag* redirects, const GivenFlag* tee, const GivenFlag* filter) {
  TRY_ASSIGN(const Streams to_files, streams_of(redirects));
  TRY_ASSIGN(const Streams to_both, streams_of(tee));
  TRY_ASSIGN(const std::set<int> shown, filter_of(filter));
  auto on_terminal = [&](int rank, bool named) {
    if (!shown.empty() && (!named || shown.count(rank) == 0)) return 0;
    return (named ? (3 & ~to_files.at(rank)) | to_both.at(rank) : (3 & ~to_files.others) | to_both.others);
  };
  const int others = on_terminal(0, false);
  std::set<int> ranks = shown;
  for (const Streams* one : {&to_files, &to_both})
    for (const auto& [rank, streams] : one->of) ranks.insert(rank);
  std::string show = std::to_string(others);
  for (int rank : ranks)
    if (const int streams = on_terminal(rank, true); streams != others) show += fmt::format(",{}:{}", rank, streams);
  if (show != "3") door.out.shown = show;
  if (to_files.any() || to_both.any()) door.out.split_logs = true;
  const std::string terminal = door.out.shown.empty() ? "" : "--show " + show;
  for (const auto& [given, streams] : {std::pair(redirects, &to_files), std::pair(tee, &to_both)}) {
    if (!given || !given->known) continue;
    const bool files = streams->any();
    door.decide(typed_text(*given),
                files && !terminal.empty() ? "--split-logs " + terminal
                : files                    ? "--split-logs"
                                           : terminal,
                files ? words::Message{} : tr("no files"));
  }
  if (filter && filter->known) door.decide(typed_text(*filter), terminal.empty() ? "--show 3" : terminal);
  return base::ok();
}

void take_log_folder(Door& door, const GivenFlag* given) {
  if (!given || !given->known) return;
  door.out.log_folder = given->value;
  door.out.split_logs = true;
  door.decide(typed_text(*given), fmt::format("--log-dir {} --split-logs", given->value),
              tr("beside Phalanx's own files of each run, on this machine: attempt_N/RANK/stdout.log, stderr.log and error.json"));
}

}  // namespace phalanx::frontdoor
