// Sockets between the ranks of one host, through which they hand each other descriptors of memory: a star around the first rank.
//
// The first rank listens under an abstract name (unix(7)) with a random token in it, which only the run's ranks learn; both sides take only
// processes of their own user (SO_PEERCRED).
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "os/fd.h"

namespace phalanx::engine::comm {

class HostLink {
 public:
  // Rank 0 of the host: listens. The token goes to the others, by whatever way there is.
  static base::Result<HostLink> listen();
  const std::string& token() const { return token_; }
  // Rank 0: until all of ranks 1 … count-1 have come. give_up is asked a few times a second.
  base::Status accept_all(int count, std::chrono::milliseconds limit, const std::function<bool()>& give_up);
  // The others.
  static base::Result<HostLink> dial(const std::string& token, int index);

  // Hands rank 0's descriptor, of a segment of that many bytes, to all the others; an invalid one says that there is none. Rank 0 gives,
  // the others get.
  base::Status give(const os::Fd& fd, uint64_t bytes);
  struct Given {
    os::Fd fd;  // invalid: there is none
    uint64_t bytes = 0;
  };
  base::Result<Given> get(std::chrono::milliseconds limit);

 private:
  std::string token_;
  os::Fd listener_;
  std::vector<os::Fd> peers_;  // of rank 0: to rank i at i - 1; of the others: to rank 0
};

}  // namespace phalanx::engine::comm
