// Walks a whole set before a training does: once in the caller, once more, and once by several threads, and tells what would go
// wrong or is odd. Memory does not grow with the set.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/data/dataset.h"

namespace phalanx::engine::data {

enum class Severity { kError, kWarning, kNote };  // kError: a training with this data would end or learn from broken items

struct DataFinding {
  std::string code;  // "bad_item", "racy_item", …: docs/guides/data.md
  Severity severity = Severity::kError;
  std::string what;                 // in one sentence
  int64_t count = 0;                // items or files
  std::vector<std::string> places;  // the first kPlaces: "b.jsonl:17: it is not UTF-8"
  static constexpr size_t kPlaces = 5;
};

struct WalkOptions {
  int workers = 2;                                                // of the walk by threads; at least 1
  uint64_t seed = 0;                                              // of the items' random numbers
  uint64_t vocabulary = 0;                                        // tokens and targets must be below it; 0: not known
  int64_t context = 0;                                            // items of this length may have been cut; 0: not said
  int64_t pad_multiple = 1;                                       // of collate
  std::chrono::milliseconds every{10'000};                        // between two calls of progress
  std::function<void(int64_t items, int64_t problems)> progress;  // may be empty
};

struct WalkReport {
  int64_t items = 0;
  int64_t tokens = 0, targets = 0;    // of fields `tokens` and `targets`
  int64_t largest_token = -1;         //
  int64_t shortest = 0, longest = 0;  // of the first field with one dimension
  std::array<int64_t, 40> lengths{};  // [0]: length 0; [k]: 2^(k-1) to 2^k - 1
  std::vector<DataFinding> findings;  // errors first
};

// Every item of the set; of a stream, of its epoch 0. A stream that cannot go on is a finding.
WalkReport walk(std::shared_ptr<const Dataset> set, const WalkOptions& options);
WalkReport walk(std::shared_ptr<Stream> stream, const WalkOptions& options);

}  // namespace phalanx::engine::data
