// What the first thread of every rank is found at, many times over some seconds, at moments of chance: how often it computes, waits for
// other ranks, for data or for storage. What a look needs more than once (maps, symbols, the interpreter) is found out once, so a look
// costs a tenth of a millisecond for each rank.
#pragma once

#include <vector>

#include "machine/ranks/sample.h"

namespace phalanx::machine {

// Within `budget`, the looks spread over it. What is found at the same place is counted together. Run it in a child, as sample_ranks.
std::vector<RankProfile> profile_ranks(const std::vector<RankProcess>& ranks, uint32_t looks, os::milliseconds budget,
                                       const OpenedMemories& opened = {});

}  // namespace phalanx::machine
