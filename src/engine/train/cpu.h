// The host's side of a rank's speed: threads, memory allocator, and which BLAS does the matrix products.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "engine/comm/env.h"

namespace phalanx::engine::train {

// OMP_NUM_THREADS decides; without it a rank that shares its host with others takes one thread (they would fight for the
// cores), a lone rank all cores. Sets torch's and OpenBLAS's threads; returns their number.
int use_threads(const comm::RankEnv& env);

// Lets malloc keep what was freed: a training step asks for the same large blocks again and again, and giving them back
// to the kernel costs page faults (measured: 4 to 16 % of a step). Call it before the first tensor is made.
void keep_freed_memory();

// The opposite: large blocks go back to the kernel when they are freed. For stage 3, whose buffers come and go and would leave a heap of
// holes.
void return_freed_memory();

// Debian's default BLAS is the unoptimised reference: some 20 times slower than OpenBLAS. If it is the one in use, what to
// tell the user; nullopt when the BLAS is a fast one.
std::optional<std::string> slow_blas_warning();

// Bytes of this process in memory, and the most it ever had there; 0 where the system does not say.
int64_t resident_bytes();
int64_t resident_peak_bytes();

}  // namespace phalanx::engine::train
