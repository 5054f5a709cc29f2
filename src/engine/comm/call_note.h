// What a rank calls, as the other ranks see it.
#pragma once

#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include "engine/comm/operation.h"

namespace phalanx::engine::comm {

// In a form that goes through shared memory and messages.
struct CallNote {
  uint64_t sequence = 0;
  int64_t elements = 0;
  int32_t root = -1;
  uint8_t kind = 0, dtype = 0, reduction = 0;
  uint8_t in_tray = 0;  // engine/comm/shm/barrier.h: all that this rank puts in lies in its tray
  uint64_t window = 0;  // windows.h: the window in which its tensor lies, above 0, and where in there
  uint64_t offset = 0;
  char label[80] = {};

  std::string say() const;  // "all_reduce 17 (grads unit 3) of 1024 Float"
};
static_assert(sizeof(CallNote) % 8 == 0 && std::is_trivially_copyable_v<CallNote>);

// The call alone: nothing about trays and windows.
CallNote note_of(const Operation& operation);

// Throws the first rank whose call differs from rank 0's, and both calls. All ranks that have the same notes throw the same.
void check_equal(const std::vector<CallNote>& notes, bool with_label);

}  // namespace phalanx::engine::comm
