// The answering half of the mesh test: listens on the addresses it was given, for who holds the mesh's key, until it is told to stop.
//
// A connection:  dialer → kMeshHello, nonce                   else: closed
//                ← kMeshHello, nonce, proof of the listener   (wire/challenge.h)
//                dialer → proof of the dialer                 else: closed
//                dialer → 'E' u32 n, n bytes     ← the same n bytes      (any number of times)
//                dialer → 'B', bytes until the end of the stream        (thrown away)
// Limits: kMostSessions at a time, kMostEcho bytes per echo, kLongest per session and for the listeners as a whole. A session that has not
// proved the key within kUnproven of its start, or moves no byte for kIdle, is closed; one of another user of this machine, at once. Where
// all places are taken, the oldest session that has proved nothing makes room.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "os/listener_pause.h"
#include "os/loop.h"
#include "os/net.h"
#include "os/socket_owner.h"
#include "wire/challenge.h"
#include "wire/check_messages.h"

namespace phalanx::agent {

inline constexpr std::string_view kMeshHello{"PHLXMESH"};
inline constexpr size_t kMeshAnswerBytes = kMeshHello.size() + wire::kNonceBytes + wire::kProofBytes;
inline constexpr uint32_t kMostEcho = 4 << 20;

class MeshListener {
 public:
  static constexpr size_t kMostSessions = 512;
  static constexpr size_t kMostPlaces = 16;
  static constexpr os::milliseconds kLongest{600'000};
  static constexpr os::milliseconds kUnproven{5000};
  static constexpr os::milliseconds kIdle{30'000};  // three times what a dialer waits for a payload that moves

  explicit MeshListener(os::Loop& loop, os::milliseconds unproven = kUnproven, os::milliseconds idle = kIdle,
                        size_t most_sessions = kMostSessions);
  ~MeshListener();
  MeshListener(const MeshListener&) = delete;
  MeshListener& operator=(const MeshListener&) = delete;

  // Replaces what it listened on before.
  wire::Listening listen(const wire::Listen& request);
  void close();
  // Frees this port, and only this one: the store, or rank 0, is about to bind it.
  void close_port(uint32_t port);

 private:
  class Session;
  struct Port {
    os::Fd fd;
    os::WatchId watch = 0;
    uint32_t number = 0;
    std::unique_ptr<os::ListenerPause> pause;
  };
  base::Result<uint32_t> open(const wire::Place& place);
  void accept(int listener);
  void stop(Port& port);
  bool make_room();

  os::Loop& loop_;
  os::milliseconds unproven_, idle_;
  size_t most_sessions_;
  std::string key_;
  std::optional<os::SocketOwners> owners_;  // none: this machine does not tell, and the key alone decides
  std::vector<Port> ports_;
  std::map<int, std::unique_ptr<Session>> sessions_;  // by descriptor
  os::TimerId timer_ = 0;
};

}  // namespace phalanx::agent
