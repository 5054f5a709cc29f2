// The words of --show: which output of the ranks the terminal gets. "STREAMS[,LOCAL:STREAMS…]" as torchrun writes them: 0 nothing, 1
// standard output, 2 standard error, 3 both; LOCAL is a rank's number on its host. "0,0:3": only the first rank of each host.
#pragma once

#include <map>
#include <string_view>

#include "base/result.h"
#include "wire/messages.h"

namespace phalanx::cli {

struct ShownStreams {
  int others = 3;         // of local ranks that are not named
  std::map<int, int> of;  // by local rank
  bool all() const { return others == 3 && of.empty(); }
  bool shows(int local_rank, wire::Stream stream) const {
    auto found = of.find(local_rank);
    return ((found == of.end() ? others : found->second) & (stream == wire::Stream::kStderr ? 2 : 1)) != 0;
  }
};

// Error kUsage, without the flag's name.
base::Result<ShownStreams> parse_shown_streams(std::string_view text);

}  // namespace phalanx::cli
