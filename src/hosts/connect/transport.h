// How a host is reached. A transport names the program to spawn here whose stdin and stdout become the agent's stream (or the session to
// ask for instead), and reads its death into an Error that says what to do. Everything else (spawning, handshake, deadlines,
// retries) is the same for all and lives in connection.h and opener.h.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "hosts/connect/container.h"
#include "hosts/connect/ssh_session.h"
#include "os/fd.h"

namespace phalanx::hosts {

// Where to go. Made from a host list's row.
struct Target {
  std::string name = {};         // as the user typed it; how the host is called in all speech
  std::string destination = {};  // what the transport is given, e.g. "user@gpu02"; empty: this machine
  int port = 0;                  // 0: the transport's default
  std::string slurm_job = {};    // not empty: a node of this Slurm job, which srun reaches by its name, `destination`
  uint32_t node_rank = 0;        // not 0: it has joined by itself (hosts/join/)
  Container container = {};      // on the host: there the agent runs
};

// The line a user types here to run `command` on that host, in its container if it has one: "ssh gpu02 df", "srun --jobid=7 --overlap -N1
// -n1 -w gpu02 df", "docker exec train sh -c df".
std::string typed(const Target& target, const std::string& command);

// A descriptor for the transport's program, and its number there. Ours is closed once the program runs.
struct InheritedFd {
  std::shared_ptr<os::Fd> fd;
  int there = 0;
};

struct Launch {
  std::vector<std::string> argv;  // argv[0] is looked up in PATH
  std::string program = {};       // what is executed, if it is not argv[0]
  bool deploys = false;           // the far side may ask for the binary first (deploy.h)
  bool warm = false;              // over a connection that is already there: an answer comes at once or never
  std::vector<InheritedFd> inherits = {};
  std::optional<SessionRequest> session = {};  // is asked for first; the program runs where it is refused
};

// Why a connection that never became a stream ended.
struct Death {
  int status = 0;                // as from waitpid
  std::string stderr_text = {};  // the last 8 KiB
  bool spawned = true;           // false: a session was refused, and the program could not be started
};

// A shared connection that says nothing for so long leads nowhere.
inline constexpr std::chrono::milliseconds kWarmPatience{3000};
// What a login may take: a later try has what the shared connection has left of the time for one host.
inline std::chrono::milliseconds login_time(std::chrono::milliseconds whole, int attempt) {
  constexpr std::chrono::milliseconds kLeast{2000};
  return attempt > 0 ? std::max(kLeast, whole - kWarmPatience) : whole;
}

class Transport {
 public:
  virtual ~Transport() = default;
  // attempt: 0, 1, …: a later try may choose a safer way (no shared connection).
  virtual Launch launch(const Target& target, int attempt) const = 0;
  virtual base::Error explain(const Target& target, const Death& death) const = 0;
  // True if trying again soon may help: the far side was busy with other logins.
  virtual bool may_retry(const Death& death) const = 0;
  // The command with which a user sees for himself why the host does not answer.
  virtual std::string try_by_hand(const Target& target) const { return typed(target, "true"); }
  // A connection that is kept for the next launch is not used again: a new login gets the limits that hold now.
  virtual void forget(const Target&) const {}
};

// This machine, by fork and exec.
class LocalTransport : public Transport {
 public:
  // build: of the agent that is deployed into a container.
  explicit LocalTransport(std::string self, std::string build = "") : self_(std::move(self)), build_(std::move(build)) {}
  Launch launch(const Target& target, int attempt) const override;
  base::Error explain(const Target& target, const Death& death) const override;
  bool may_retry(const Death&) const override { return false; }

 private:
  std::string self_;  // path of this binary
  std::string build_;
};

}  // namespace phalanx::hosts
