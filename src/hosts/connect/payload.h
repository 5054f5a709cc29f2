// What deployment sends: a header line and the agent's program, compressed, or for a host without gzip as it is.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace phalanx::hosts {

enum class Encoding { kRaw, kGzip };

// The program that runs on hosts.
struct AgentProgram {
  std::string build;      // its build id, hex: names its folder on hosts, and what it says of itself
  std::string sha256;     // of the program as it is, hex
  size_t bytes = 0;       // its length
  std::string_view gzip;  // the program, compressed; outlives the payload
};

class Payload {
 public:
  explicit Payload(AgentProgram program) : program_(std::move(program)) {}

  // The header line (deploy.h) and the bytes; valid as long as the payload is. Made when first asked for. Error kInternal: the program is
  // damaged, or there is no memory.
  base::Result<std::string_view> message(Encoding encoding);

 private:
  AgentProgram program_;
  std::string raw_, packed_;  // empty: not made
};

}  // namespace phalanx::hosts
