// One dial of the mesh test (agent/mesh/dialer.h says how it goes and how its failures are told apart).
#pragma once

#include <functional>
#include <string>

#include "agent/mesh/listener.h"
#include "os/loop.h"
#include "os/net.h"
#include "wire/check_messages.h"

namespace phalanx::agent {

class MeshDial {
 public:
  // request outlives the dial. over: called once, from the loop; link() is then final.
  MeshDial(os::Loop& loop, const wire::Dial& request, const wire::DialTarget& target, std::function<void()> over);
  ~MeshDial();
  const wire::DialedLink& link() const { return link_; }

 private:
  enum class Phase { kConnecting, kProving, kEchoing, kPayload, kBurst, kOver };
  void turn(uint32_t events);
  void connected();
  void write_more();
  bool read_more();  // false: nothing more now, or over
  void take(size_t bytes);
  bool prove();  // whether who listens holds the key
  void next_echo();
  void begin_payload();
  void begin_burst();
  void end_burst();
  void send(std::string bytes);
  void arm();  // silence for the timeout ends the dial
  void on_silence();
  void on_icmp(const os::IcmpError& error);
  void fail_connect(int error_number);
  void over(wire::LinkOutcome outcome, int error_number = 0);

  os::Loop& loop_;
  const wire::Dial& request_;
  os::Endpoint where_;
  std::function<void()> over_;
  wire::DialedLink link_;
  Phase phase_ = Phase::kConnecting;
  os::Fd fd_;
  os::WatchId watch_ = 0;
  os::TimerId timer_ = 0;
  os::TimerId burst_timer_ = 0;
  os::Mono begun_, moved_, phase_begun_, echo_begun_;
  std::string out_;
  size_t written_ = 0;
  size_t awaited_ = 0;   // bytes of the answer in this phase
  size_t received_ = 0;  // of it
  std::string nonce_, hello_;
  std::string proof_;  // ours, sent with the first request
  uint32_t echoes_ = 0;
  uint64_t acknowledged_ = 0;  // at the beginning of the phase, and at the last look
};

}  // namespace phalanx::agent
