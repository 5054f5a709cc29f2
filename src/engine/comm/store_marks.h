// What ranks leave in the store to tell each other where they are.
#pragma once

#include <string>
#include <vector>

#include "engine/comm/make_group.h"

namespace phalanx::engine::comm {

// Marks of the n-th meeting of a kind: who came.
class StoreMarks {
 public:
  StoreMarks(c10d::Store& store, std::string_view kind, uint64_t number);
  void come(int rank);
  std::vector<int> absent(int world);  // ranks without a mark; empty also if the store does not answer
  void forget_before(int rank);        // removes this rank's mark of the meeting before; call it when this one is over

 private:
  std::string key(uint64_t number, int rank) const;
  c10d::Store& store_;
  std::string kind_;
  uint64_t number_;
};

// "ranks 2, 5 never came within 30 s"
std::string never_came(const std::vector<int>& ranks, std::chrono::milliseconds deadline);

// After a barrier of all ranks: from here on the others only touch the store to say that they are gone; its host waits for that.
void leave_store(const StoreHandle& store, int world, std::chrono::milliseconds timeout);

}  // namespace phalanx::engine::comm
