#include "engine/comm/store_marks.h"

#include <fmt/format.h>

#include "base/text.h"

namespace phalanx::engine::comm {

StoreMarks::StoreMarks(c10d::Store& store, std::string_view kind, uint64_t number) : store_(store), kind_(kind), number_(number) {}

std::string StoreMarks::key(uint64_t number, int rank) const { return fmt::format("{}/{}/{}", kind_, number, rank); }

void StoreMarks::come(int rank) { store_.set(key(number_, rank), std::vector<uint8_t>{1}); }

std::vector<int> StoreMarks::absent(int world) {
  std::vector<int> ranks;
  try {
    for (int rank = 0; rank < world; ++rank)
      if (!store_.check({key(number_, rank)})) ranks.push_back(rank);
  } catch (const std::exception&) { ranks.clear(); }
  return ranks;
}

void StoreMarks::forget_before(int rank) {
  if (number_ > 1) store_.deleteKey(key(number_ - 1, rank));
}

std::string never_came(const std::vector<int>& ranks, std::chrono::milliseconds deadline) {
  return fmt::format("rank{} {} did not arrive within {:.3g} s", ranks.size() > 1 ? "s" : "", base::format_ranges(ranks),
                     static_cast<double>(deadline.count()) / 1e3);
}

void leave_store(const StoreHandle& store, int world, std::chrono::milliseconds timeout) {
  if (store.borrowed) return;
  const int64_t others = world - 1;
  if (!store.hosting) {
    if (store.store->add("left", 1) == others) store.store->set("all_left", std::vector<uint8_t>{1});
  } else if (others > 0) {
    store.store->wait({"all_left"}, timeout);
  }
}

}  // namespace phalanx::engine::comm
