// The asking half of the mesh test: dials several hosts side by side and says of each what became of it, in the words of
// hosts/mesh.h. One dial: connect, prove the key, then what was asked for: small echoes, a payload there and back, a burst.
//
// How failures are told apart:
//   the network says so by ICMP (IP_RECVERR): port unreachable → rejected; administratively prohibited → prohibited; host unreachable
//     → unreachable; network unreachable → no-route
//   a reset → refused. Nothing at all within the timeout → unreachable when neighbour discovery is unanswered, else timeout
//   connected, and then of the payload nothing passes for the timeout → stalled; a payload that is slow but moves is waited for (kSlowest)
//   connected, and no answer at all → silent (its agent stands still); another answer than ours → stranger
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "os/loop.h"
#include "os/net.h"
#include "wire/check_messages.h"

namespace phalanx::agent {

class MeshDial;

class MeshDialer {
 public:
  static constexpr os::milliseconds kSlowest{8000};  // for the payload, while it moves
  static constexpr size_t kMostTargets = 256;
  static constexpr uint32_t kMostEchoes = 64;

  // done: called once per dial(), from the loop.
  MeshDialer(os::Loop& loop, std::function<void(wire::Dialed)> done);
  ~MeshDialer();
  MeshDialer(const MeshDialer&) = delete;
  MeshDialer& operator=(const MeshDialer&) = delete;

  // A round still under way is given up and not answered.
  void dial(wire::Dial request);
  void stop();

 private:
  void one_done();

  os::Loop& loop_;
  std::function<void(wire::Dialed)> done_;
  wire::Dial request_;
  std::vector<std::unique_ptr<MeshDial>> tries_;
  size_t left_ = 0;
  os::TimerId answer_ = 0;
};

}  // namespace phalanx::agent
