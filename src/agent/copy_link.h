// The two ends of one link of a chain over hosts (job/copy/copy_chain.h): contents of a copy come in from the host before this one, and go
// out to the one behind. What travels is sealed (wire/sealed.h) with a key that the launcher has told these two hosts alone, over ssh; one
// frame is one record. Whoever sends can send anything: what arrives is compared with the hashes of the list, which came from the launcher.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "os/listener_pause.h"
#include "os/loop.h"
#include "os/net.h"
#include "os/socket_owner.h"
#include "wire/frame.h"
#include "wire/sealed_socket.h"

namespace phalanx::agent {

// Listens on one address until one peer has proved the key, at most kWaits; then only that peer is heard.
class CopyInlet {
 public:
  static constexpr os::milliseconds kWaits{10'000};
  static constexpr size_t kMostUnproven = 8;  // then the oldest goes

  struct Handlers {
    std::function<bool(const wire::Frame&)> frame;  // CopyBytes or CopyPacked. False: it is of no use, and the link is over
    std::function<void()> end;                      // the link is over, or none has come; called once
  };
  CopyInlet(os::Loop& loop, Handlers handlers) : loop_(loop), handlers_(std::move(handlers)) {}
  ~CopyInlet();
  CopyInlet(const CopyInlet&) = delete;
  CopyInlet& operator=(const CopyInlet&) = delete;

  // The port. address: of this machine. Call once.
  base::Result<uint16_t> listen(const std::string& address, const std::string& key);

 private:
  struct Peer {
    std::unique_ptr<wire::SealedSocket> socket;
    bool over = false;
  };
  void accept();
  void proved(Peer* peer);
  void take(Peer* peer, const wire::Record& record);
  void lost(Peer* peer);
  void stop_listening();
  void finish();
  void sweep();

  os::Loop& loop_;
  Handlers handlers_;
  std::string key_;
  os::Fd listener_;
  os::WatchId watch_ = 0;
  std::unique_ptr<os::ListenerPause> pause_;
  std::optional<os::SocketOwners> owners_;  // none: this machine does not tell, and the key alone decides
  std::vector<std::unique_ptr<Peer>> peers_;
  wire::FrameReader reader_;
  os::TimerId waits_ = 0, sweep_ = 0;
  bool linked_ = false, over_ = false;
};

class CopyOutlet {
 public:
  static constexpr os::milliseconds kPatience{1500};  // until the other side has proved the key
  static constexpr size_t kMostWaiting = 64 << 20;    // bytes that it has not taken; the launcher lets less gather

  explicit CopyOutlet(os::Loop& loop) : loop_(loop) {}
  ~CopyOutlet();
  CopyOutlet(const CopyOutlet&) = delete;
  CopyOutlet& operator=(const CopyOutlet&) = delete;

  // dialed: called once, whether the other side is there and holds the key. Call once.
  void dial(const os::Endpoint& where, const std::string& key, std::function<void(base::Status)> dialed);
  bool linked() const { return linked_; }
  void pass_on(const wire::Frame& frame);

 private:
  void connected(const std::string& key);
  void decide(base::Status status);

  os::Loop& loop_;
  std::function<void(base::Status)> dialed_;  // until it was called
  os::Fd connecting_;
  os::WatchId watch_ = 0;
  os::TimerId patience_ = 0;
  std::unique_ptr<wire::SealedSocket> socket_;
  bool linked_ = false;
};

}  // namespace phalanx::agent
