// Ports that are taken, and what earlier jobs left running.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

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
template <typename V>
void fields(V& v, PortOwner& f) {
  v("port", f.port);
  v("address", f.address);
  v("pid", f.pid);
  v("command", f.command);
  v("user", f.user);
  v("parent", f.parent);
  v("age_s", f.age_s);
}

// A training process whose launcher is gone: parent 1 or a subreaper that is no launcher, and torchrun's variables or a GPU.
struct Leftover {
  int64_t pid = 0, parent = 0, age_s = 0;
  std::string command, user;
  std::string why;  // "RANK=3 WORLD_SIZE=8, parent is gone"
};
template <typename V>
void fields(V& v, Leftover& f) {
  v("pid", f.pid);
  v("parent", f.parent);
  v("age_s", f.age_s);
  v("command", f.command);
  v("user", f.user);
  v("why", f.why);
}

struct ProcessFacts {
  std::vector<PortOwner> ports;
  std::vector<Leftover> leftovers;  // at most 64
};
template <typename V>
void fields(V& v, ProcessFacts& f) {
  v("ports", f.ports);
  v("leftovers", f.leftovers);
}

}  // namespace phalanx::machine
