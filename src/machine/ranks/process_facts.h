// Ports that are taken, and what earlier jobs left running.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/fields.h"

namespace phalanx::machine {

// A listening TCP socket on a port the job wants.
struct PortOwner {
  int64_t port = 0;
  std::string address;  // "0.0.0.0", "::"
  int64_t pid = 0;      // 0: not to be seen (another user, another namespace)
  std::string command;  // its arguments, cut at 200 bytes; secrets are not shown: values of --*key*, --*token*, --*password* are cut
  std::string user;
  int64_t parent = 0, age_s = 0;
};
PHALANX_FIELDS(PortOwner, port, address, pid, command, user, parent, age_s);

// A training process whose launcher is gone: parent 1 or a subreaper that is no launcher, and torchrun's variables or a GPU.
struct Leftover {
  int64_t pid = 0, parent = 0, age_s = 0;
  std::string command, user;
  std::string why;  // "RANK=3 WORLD_SIZE=8, parent is gone"
};
PHALANX_FIELDS(Leftover, pid, parent, age_s, command, user, why);

struct ProcessFacts {
  std::vector<PortOwner> ports;
  std::vector<Leftover> leftovers;  // at most 64
};
PHALANX_FIELDS(ProcessFacts, ports, leftovers);

}  // namespace phalanx::machine
