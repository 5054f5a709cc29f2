// /dev/shm: its size, what dead jobs left in it, and whether logind clears it away.
#pragma once

#include <optional>
#include <string>

#include "machine/storage/facts.h"

namespace phalanx::machine {

// Fills the shm_ fields and remove_ipc.
void look_at_shared_memory(const std::string& root, StorageFacts& facts);

// Whether a name in /dev/shm is one that NCCL, PyTorch or Python's multiprocessing make.
bool is_segment_of_a_job(std::string_view name);

// RemoveIPC= as the last of these texts says that says it: nothing if none does (logind.conf(5)).
std::optional<bool> remove_ipc_in(std::string_view text);

}  // namespace phalanx::machine
