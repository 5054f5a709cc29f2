// The kinds of findings of a data check, and their collection with a few places each.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/data/check.h"

namespace phalanx::engine::data {

struct FindingKind {
  std::string_view code;
  Severity severity;
  std::string_view what;
};

inline constexpr FindingKind kBadFile{"bad_file", Severity::kError, "a file does not have the expected format"};
inline constexpr FindingKind kUnreadable{"unreadable", Severity::kError, "the data cannot be read to its end"};
inline constexpr FindingKind kBadItem{"bad_item", Severity::kError, "an item cannot be read"};
inline constexpr FindingKind kUnsteady{"unsteady_item", Severity::kError, "an item differs when it is read again"};
inline constexpr FindingKind kRacy{"racy_item", Severity::kError, "an item differs when several threads read"};
inline constexpr FindingKind kUnlike{"unlike_items", Severity::kError, "items cannot be combined into one batch"};
inline constexpr FindingKind kOutside{"outside_vocabulary", Severity::kError, "tokens are outside the vocabulary"};
inline constexpr FindingKind kTooFew{"too_few_items", Severity::kError, "an epoch has no steps"};
inline constexpr FindingKind kNoThreads{"no_threads", Severity::kWarning, "several threads did not read any items"};
inline constexpr FindingKind kNotShared{"batch_not_shared", Severity::kWarning, "the batch cannot be divided among a number of ranks"};
inline constexpr FindingKind kEmpty{"empty_item", Severity::kWarning, "an item has no tokens"};
inline constexpr FindingKind kNothingAsked{"no_targets", Severity::kWarning,
                                           "an item does not contribute to the loss: all targets are masked"};
inline constexpr FindingKind kDuplicate{"duplicate_file", Severity::kWarning, "two files have the same content"};
inline constexpr FindingKind kRagged{"ragged", Severity::kNote, "items differ in length"};
inline constexpr FindingKind kFull{"full_context", Severity::kNote, "items are as long as the context; longer ones were cut"};

class Findings {
 public:
  // `place` is called for the first few of a kind only: to find a line's number can take long.
  void add(const FindingKind& kind, const std::function<std::string()>& place);
  int64_t problems() const;                 // errors and warnings
  std::vector<DataFinding> sorted() const;  // errors first, then by first sight

 private:
  std::vector<DataFinding> list_;
};

}  // namespace phalanx::engine::data
