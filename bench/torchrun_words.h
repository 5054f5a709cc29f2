// What torchrun says of a failure: the block "Root Cause (first observed failure)" that every host's torchrun prints for itself.
// The format is that of torch.distributed.elastic.multiprocessing.errors (torch 1.10 to 2.x).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace phalanx::bench {

struct Blame {
  int rank = -1;
  std::string how;  // "exit code 1", "SIGSEGV"
};

// Of one host's stderr; nothing: there is no such block, or it names no rank.
std::optional<Blame> root_cause(std::string_view text);

// What a user learns who reads all hosts' terminals.
enum class Named {
  kRight,      // at least one names the rank that went wrong, and nobody names another
  kDisagreed,  // the terminal of its own host names it, another host's names another rank
  kWrong,      // only other ranks are named
  kNone,
};
Named judge(const std::vector<std::optional<Blame>>& by_host, int right_rank);
// "h1: rank 0, exit code 1; h2: rank 1, SIGSEGV".
std::string describe(const std::vector<std::optional<Blame>>& by_host);

}  // namespace phalanx::bench
