// Opens a connection to every host of a run: all at once where that is safe, retried where a login daemon was busy.
//
// sshd lets MaxStartups (10:30:100 by default) logins be unauthenticated at a time and drops others at random. So at most
// kSameDestination logins to one destination are under way together (two names of one machine count as two: their
// drops are retried), and at most `fanout` in all; every drop halves the fan-out for the rest of the launch (a jump
// host has its own limit) and is retried after a random pause.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "hosts/connect/connection.h"
#include "hosts/connect/transport.h"
#include "wire/guard_end.h"

namespace phalanx::hosts {

struct OpenerOptions {
  int fanout = 64;
  std::chrono::milliseconds timeout{10'000};  // from spawn to the first frame, per try, deployment not counted
  // ssh has the same deadline for its connect and says more about it when it is first.
  std::chrono::milliseconds after_ssh{2000};
  // A host whose time is over is waited for as long as others answered within this: then it is this machine, or what they all pass
  // through, that is slow.
  std::chrono::milliseconds quiet{5000};
  std::chrono::milliseconds longest{60'000};  // … but never beyond this, per try
  int most_tries = 6;
  // While the program is sent to a host there is no limit for the whole, because a slow link may need long. The host fails when no byte
  // of the program has moved for so long.
  std::chrono::milliseconds upload_stall{60'000};
  // What was handed to the transport can still be on its way, where it cannot be observed (buffers of ssh, of the kernel, of the network).
  // Once everything was handed over, a link of this speed would have carried all of it, and only then does upload_stall begin to count.
  size_t slowest_link = 16 << 10;  // bytes per second
};

class Opener {
 public:
  struct Host {
    Target target;
    const Transport* transport = nullptr;
  };
  // transports: one per target; they must outlive the hosts.
  static std::vector<Host> with_transports(const std::vector<Target>& targets, const std::vector<const Transport*>& transports);
  struct Handlers {
    std::function<void(size_t host, const wire::Frame&)> frame;
    // The connection is over. error: why, in words for the user. guard: the host's guard has ended its ranks, of a stream that had worked.
    std::function<void(size_t host, base::Error error, std::optional<wire::GuardEnd> guard)> end;
  };
  static constexpr int kSameDestination = 8;

  Opener(os::Loop& loop, Payload& payload, std::vector<Host> hosts, OpenerOptions options, Handlers handlers, uint32_t seed);
  ~Opener();

  void start();
  Connection* connection(size_t host);  // null while none is open
  bool on_child(pid_t pid, int status);
  bool deployed(size_t host) const { return slots_[host].deployed; }
  // Give up on what is not open yet, e.g. after Ctrl-C.
  void abandon();
  // Give up everything: what is open is cut. The handlers are still called; over() becomes true.
  void shut();
  bool over() const;  // every host's connection has ended and its process is reaped; nothing of this is scheduled any more

 private:
  enum class Phase { kWaiting, kOpening, kOpen, kEnded };
  struct Slot {
    Host host;
    Phase phase = Phase::kWaiting;
    int tries = 0;
    bool deployed = false;
    bool timed_out = false, extended = false;
    os::milliseconds waited{};  // where that was longer than the timeout
    os::Mono began;
    os::milliseconds patience{};
    os::Mono awake;  // when the launcher last came back from standing still
    // This machine had no descriptors left to start its program with.
    std::optional<os::Mono> starved_since;
    std::string starved_by;
    bool stalled = false;  // the program was being sent, and nothing of it moved any more
    std::unique_ptr<Connection> connection;
    os::TimerId timer = 0;
  };
  void soon(std::function<void()> call);
  void fill();
  void open(size_t index);
  void on_frame(size_t index, const wire::Frame& frame);
  void on_end(size_t index, const Death& death, bool started);
  void on_timeout(size_t index);
  // How much more time a host gets that has used up its own; zero: none.
  os::nanoseconds more_time(const Slot& slot) const;
  os::milliseconds upload_patience(const Connection::Upload& upload) const;
  bool retry(size_t index, const Death& death);
  bool wait_for_descriptors(size_t index, const std::string& why);
  base::Error explain(const Slot& slot, const Death& death, bool started) const;
  base::Error explain_stall(const Slot& slot, const Death& death) const;

  os::Loop& loop_;
  Payload& payload_;
  std::vector<Slot> slots_;
  OpenerOptions options_;
  Handlers handlers_;
  std::minstd_rand random_;
  std::map<std::string, int> opening_to_;  // destination → logins under way
  int opening_ = 0;
  std::optional<os::Mono> answered_;  // when a host answered last
  int scheduled_ = 0;                 // calls of soon() that have not come
  bool abandoned_ = false;
};

}  // namespace phalanx::hosts
