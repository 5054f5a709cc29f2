// Can this host reach the store? One real connection, on which both sides prove that they hold the attempt's key (wire/challenge.h).
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "os/loop.h"
#include "os/net.h"
#include "wire/messages.h"

namespace phalanx::agent {

// Starts the check; `done` is called once, from the loop, at the latest after `timeout`. The object must live until then.
// On success Reached.interface names the interface the connection went out on. On failure the error tells a refusal, a timeout (a
// firewall that drops), and no route apart.
class ReachCheck {
 public:
  ReachCheck(os::Loop& loop, os::Endpoint store, std::string key, os::milliseconds timeout, std::function<void(wire::Reached)> done);
  ~ReachCheck();

 private:
  void on_ready();
  void answered();
  void finish(wire::Reached result);
  void fail_with(int error_number);
  void fail_as_stranger();

  os::Loop& loop_;
  os::Endpoint store_;
  std::string key_, nonce_;
  std::function<void(wire::Reached)> done_;
  os::milliseconds timeout_;
  os::Fd socket_;
  os::WatchId watch_ = 0;
  os::TimerId timer_ = 0;
  enum class Stage { kConnecting, kChallenging, kProving } stage_ = Stage::kConnecting;
  std::string heard_;  // of this stage's answer
};

// The interface that has this address; empty if none does.
std::string interface_of(const std::string& address);

}  // namespace phalanx::agent
