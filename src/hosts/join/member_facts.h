// What a node says of itself when it joins, and whether it fits the line that node 0 was started with.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace phalanx::hosts {

struct MemberFacts {
  uint32_t node_rank = 0;
  uint32_t nodes = 0;
  std::string build;     // of the agent's program
  std::string hostname;  // letters, digits, '.', '-', '_'
  std::string ranks;     // --nproc-per-node as it was given; empty: not given
  std::vector<std::string> command;
};

std::string encode(const MemberFacts& facts);
// Error kUsage: the command is longer than what one record carries.
base::Status fits_a_record(const MemberFacts& facts);
// Error kInternal: cut off, too long, or with characters that do not belong there.
base::Result<MemberFacts> decode_member_facts(std::string_view payload);

// Why this node cannot be part of the run, in words for both machines; empty: it can. `other` has proved that it holds the token.
std::string disagreement(const MemberFacts& node0, const MemberFacts& other);

}  // namespace phalanx::hosts
