#include "diagnosis/logs/progress.h"

#include <algorithm>
#include <array>
#include <deque>
#include <map>
#include <utility>

#include "base/text.h"
#include "diagnosis/logs/line.h"

namespace phalanx::diagnosis {
namespace {

constexpr size_t kMostLine = 2000;  // bytes of a line
constexpr size_t kMostRead = 400;   // of what is left of it without its tags

// Counters of loops, in small letters.
constexpr std::array<std::string_view, 8> kCounters = {"step", "steps", "iter", "iters", "iteration", "epoch", "batch", "update"};
// A line with one of these is about a failure or another attempt, not about a step that was done.
constexpr std::array<std::string_view, 15> kNone = {"error",   "exception", "fail", "timeout", "timed out", "traceback", "retr", "attempt",
                                                    "warning", "abort",     "nan",  "file \"", "hang",      "stuck",     "resum"};
// Bars of what comes before the training.
constexpr std::array<std::string_view, 14> kPreparations = {"load",   "download", "fetch",     "map",  "tokeniz", "generat", "convert",
                                                            "filter", "resolv",   "preparing", "pack", "format",  "pars",    "group"};
constexpr std::array<std::string_view, 14> kFinishes = {
    "training completed",     "training complete.",  "training finished",          "finished training",  "training is finished",
    "training done",          "done training",       "'train_runtime':",           "\"train_runtime\":", "end of training",
    "training run completed", "training successful", "job completed successfully", "` reached."};

bool digit(char c) { return c >= '0' && c <= '9'; }
bool letter(char c) { return c >= 'a' && c <= 'z'; }

template <size_t kSize>
bool has_any(std::string_view text, const std::array<std::string_view, kSize>& words) {
  return std::any_of(words.begin(), words.end(), [&](std::string_view word) { return text.find(word) != text.npos; });
}

uint64_t number_at(std::string_view text, size_t& at) {
  uint64_t number = 0;
  for (int digits = 0; at < text.size() && (digit(text[at]) || text[at] == '.') && digits < 15; ++at, ++digits)
    if (digit(text[at])) number = number * 10 + static_cast<uint64_t>(text[at] - '0');
  return number;
}

// "step 12", "Step: [12/500]", "'epoch': 0.31", "iteration      100/ 5000": all numbers that follow a counter's word, as one.
std::optional<uint64_t> counters_of(std::string_view text) {
  std::optional<uint64_t> all;
  for (size_t at = 0; at < text.size();) {
    if (!letter(text[at])) {
      ++at;
      continue;
    }
    size_t end = at;
    while (end < text.size() && letter(text[end])) ++end;
    std::string_view word = text.substr(at, end - at);
    at = end;
    if (std::find(kCounters.begin(), kCounters.end(), word) == kCounters.end()) continue;
    size_t number = end;
    while (number < text.size() && number < end + 12 && std::string_view(" =:#[('\"").find(text[number]) != text.npos) ++number;
    if (number == end || number >= text.size() || !digit(text[number])) continue;
    at = number;
    all = all.value_or(7) * 1'000'003 + number_at(text, at) + word.size();
    // "Epoch: [0][100/5004]": the second counts too.
    if (text.substr(at).starts_with("][")) {
      at += 2;
      all = *all * 1'000'003 + number_at(text, at);
    }
  }
  return all;
}

// tqdm's "label:  12%|###   | 120/1000 [00:12<…": the number before the slash.
std::optional<Progress> bar_of(std::string_view text) {
  size_t percent = text.find("%|");
  if (percent == text.npos || percent == 0 || percent > 120) return std::nullopt;
  size_t bracket = text.find(" [", percent), slash = text.rfind('/', bracket);
  if (bracket == text.npos || slash == text.npos || slash < percent) return std::nullopt;
  size_t begin = slash;
  while (begin > percent && (digit(text[begin - 1]) || text[begin - 1] == '.')) --begin;
  if (begin == slash) return std::nullopt;
  Progress out;
  out.number = number_at(text, begin);
  std::string_view label = text.substr(0, percent);
  if (has_any(label, kPreparations)) out.kind = ProgressKind::kPreparing;
  return out;
}

}  // namespace

std::optional<Progress> read_progress(std::string_view text) {
  std::string lower = base::to_lower(text.substr(0, kMostRead));
  if (has_any(lower, kFinishes)) return Progress{ProgressKind::kFinished, 1};
  if (lower.find("- init complete") != lower.npos || lower.find("rendezvous complete") != lower.npos)
    return Progress{ProgressKind::kConnected, 1};
  if (has_any(lower, kNone)) return std::nullopt;
  if (auto bar = bar_of(lower)) return bar;
  if (lower.find("saving model checkpoint to") != lower.npos || lower.find("saved checkpoint") != lower.npos ||
      lower.find("saving checkpoint") != lower.npos) {
    uint64_t number = 0;
    for (char c : lower)
      if (digit(c)) number = number * 10 + static_cast<uint64_t>(c - '0');
    return Progress{ProgressKind::kWork, number};
  }
  if (auto number = counters_of(lower)) return Progress{ProgressKind::kWork, *number};
  return std::nullopt;
}

std::vector<ProgressMark> marks_in(std::string_view tail, size_t file, uint64_t first_line) {
  std::map<std::pair<std::string, ProgressKind>, std::deque<ProgressMark>> kept;
  uint64_t line = first_line;
  while (!tail.empty()) {
    size_t end = std::min(tail.find_first_of("\r\n"), tail.size());
    LogLine read = read_log_line(tail.substr(0, std::min(end, kMostLine)));
    if (auto progress = read_progress(read.text)) {
      std::deque<ProgressMark>& marks = kept[{read.source(), progress->kind}];
      bool again =
          std::any_of(marks.begin(), marks.end(), [&](const ProgressMark& mark) { return mark.progress.number == progress->number; });
      if (!again) marks.push_back({*progress, file, line, read.source()});
      if (marks.size() > kMarksEach) marks.pop_front();
    }
    if (end < tail.size() && tail[end] == '\n') ++line;
    tail.remove_prefix(std::min(end + 1, tail.size()));
  }
  std::vector<ProgressMark> out;
  for (auto& [writer, marks] : kept) out.insert(out.end(), marks.begin(), marks.end());
  return out;
}

}  // namespace phalanx::diagnosis
