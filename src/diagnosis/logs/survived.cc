#include "diagnosis/logs/survived.h"

#include <algorithm>
#include <map>

namespace phalanx::diagnosis {
namespace {

constexpr size_t kOwnSteps = 2;    // of the event's writer
constexpr size_t kMixedSteps = 3;  // where lines of several writers cannot be told apart
constexpr size_t kOtherSteps = 4;  // of another rank: none is that far ahead in a job that synchronises

// What stays although the steps go on.
bool persists(const LogEvent& event) { return event.signature->code == "RUN-NAN"; }

bool about_connecting(const LogEvent& event) {
  std::string_view code = event.signature->code;
  return code.starts_with("NET-") || code.starts_with("RDZV-") || code == "NCCL-PLUGIN" || code.starts_with("LOG-");
}

bool is_work(const ProgressMark& mark) {
  return mark.progress.kind == ProgressKind::kWork || mark.progress.kind == ProgressKind::kPreparing;
}

}  // namespace

bool Survival::survived(const LogEvent& event) const {
  if (persists(event)) return false;
  std::map<std::string_view, size_t> steps;
  for (const ProgressMark& mark : facts_.marks) {
    if (mark.file != event.file || mark.line <= event.line) continue;
    bool own = mark.source == event.source;
    if (mark.progress.kind == ProgressKind::kFinished) return true;
    if (mark.progress.kind == ProgressKind::kConnected && own && about_connecting(event)) return true;
    if (is_work(mark) && (own || mark.progress.kind == ProgressKind::kWork)) ++steps[mark.source];
  }
  bool alone = !event.source.empty() || facts_.files[event.file].rank >= 0;
  return std::any_of(steps.begin(), steps.end(), [&](const auto& counted) {
    bool own = counted.first == event.source;
    return counted.second >= (!own ? kOtherSteps : alone ? kOwnSteps : kMixedSteps);
  });
}

bool Survival::after_the_end(const LogEvent& event) const {
  return std::any_of(facts_.marks.begin(), facts_.marks.end(), [&](const ProgressMark& mark) {
    return mark.file == event.file && mark.line < event.line && mark.progress.kind == ProgressKind::kFinished;
  });
}

uint64_t Survival::last_work(size_t file) const {
  uint64_t last = 0;
  for (const ProgressMark& mark : facts_.marks) {
    bool counts = mark.progress.kind == ProgressKind::kWork || mark.progress.kind == ProgressKind::kFinished;
    if (mark.file == file && counts) last = std::max(last, mark.line);
  }
  return last;
}

}  // namespace phalanx::diagnosis
