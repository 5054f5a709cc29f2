// What a scan looks for in a log besides the signatures' literals: tracebacks, ranks, NCCL's lines, errors that the catalogue may know, and
// the words of known bugs.
#pragma once

#include <array>
#include <string_view>
#include <vector>

#include "diagnosis/logs/bug_watch.h"
#include "diagnosis/logs/signature_matcher.h"
#include "diagnosis/logs/traceback.h"

namespace phalanx::diagnosis {

inline constexpr std::array<std::string_view, 11> kExtra = {
    kTracebackHead, kDirectCause, kWhileHandling, kFrameMark,   "[rank",        "ERROR",
    "rror: ",       ".cpp:",      "NCCL INFO ",   "NCCL WARN ", "NCCL version "};
// Positions in kExtra. From kTrouble to kTroubleEnd: a line that reports an error; from kNccl on: a line of NCCL.
enum Extra : uint32_t { kHead, kCause, kHandling, kFrame, kRankTag, kTrouble, kTroubleEnd = kTrouble + 3, kNccl = kTroubleEnd, kNcclWarn };

class ScanMatcher : public SignatureMatcher {
 public:
  ScanMatcher() : SignatureMatcher(codes::signatures(), words()) {}
  // Ids from here on are positions in bug_literals().
  uint32_t first_bug() const { return first_extra() + static_cast<uint32_t>(kExtra.size()); }
  bool reports_trouble(uint32_t id) const { return id >= first_extra() + kTrouble && id < first_extra() + kTroubleEnd; }

 private:
  static std::vector<std::string_view> words() {
    std::vector<std::string_view> all(kExtra.begin(), kExtra.end());
    all.insert(all.end(), bug_literals().begin(), bug_literals().end());
    return all;
  }
};

}  // namespace phalanx::diagnosis
