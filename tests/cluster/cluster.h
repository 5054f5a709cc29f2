// The test cluster: N hosts made of Linux namespaces on this one machine. A host has its own network, hostname, processes (pid 1
// is its power), mounts, System V ipc, home, /tmp, /var/tmp, /run, /dev/shm, /var/log, /etc/hosts, and an sshd on port 22. The
// rest of the file system, the project's source and build folders above all, is the machine's, at the same paths. `ctl` is one
// more such host: the machine a user sits at, whose key the others accept. Only addresses inside these namespaces are used.
//
// Lifetime: a cluster belongs to one process. A guard process watches it: when the owner ends, however it ends, everything is
// removed; when the guard is killed too, the hosts die with it and the next up() or sweep() removes the empty folders.
#pragma once

#include <chrono>
#include <csignal>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "process.h"

namespace phalanx::testbed {

// One of the folders a host has to itself. Every one is a tmpfs.
struct Area {
  bool noexec = false;
  bool read_only = false;  // after the testbed has put its own files in
  int64_t size_kib = 1 << 20;
};

enum class HostKey { kKnown, kUnknown, kChanged };        // what ctl's known_hosts says about the host
enum class Login { kAccepted, kRefused, kPasswordOnly };  // what the host says to ctl's key

struct HostOptions {
  std::string name;                      // empty: h1, h2, …
  std::vector<std::string> sshd_config;  // lines that win over the testbed's own: "MaxStartups 10:30:100"
  Area home, tmp, var_tmp, run, shm;
  std::vector<std::string> absent;  // absolute paths that do not exist on this host, though they do on the machine
  HostKey host_key = HostKey::kKnown;
  Login login = Login::kAccepted;
};

// Python's torch starts on all hosts without the libraries that it does not use (tools/make_empty_libraries).
struct Options {
  int hosts = 2;
  std::vector<HostOptions> host = {};  // of h1, h2, …; missing ones are as they come
  HostOptions ctl = {};                // sshd runs there too
  std::string name = {};               // empty: made from the process id
  bool ssh_as_it_comes = false;        // with its default key exchange, not the cheapest: for measurements beside ssh
  pid_t owner = 0;                     // whose end ends the cluster; 0: this process; -1: nobody's, until down()
};

// Why clusters cannot be made here ("needs root"), or nothing. For GTEST_SKIP.
std::optional<std::string> unavailable();

// Removes what clusters without a living guard left behind; returns their names.
std::vector<std::string> sweep();

enum class Direction { kFrom, kTo, kBoth };  // seen from the host
enum class Answer { kReset, kSilence };
struct Ports {
  int first = 1, last = 65535;
};

// A process of a host, with its pid as this process sees it.
struct HostProcess {
  pid_t pid = 0, parent = 0;
  std::string name;     // comm
  std::string command;  // the arguments, joined by spaces
};

class Cluster {
 public:
  static base::Result<Cluster> up(const Options& options);
  static base::Result<Cluster> attach(const std::string& name);  // somebody else's; the handle's end changes nothing
  Cluster(Cluster&&) noexcept;
  Cluster& operator=(Cluster&&) noexcept;
  ~Cluster();  // down(), if it was made by up() and is not detached
  base::Status down();

  const std::string& name() const { return name_; }
  std::vector<std::string> hosts() const;  // without ctl
  base::Result<std::string> address(const std::string& host) const;

  base::Result<Process> start_on(const std::string& host, Command command) const;
  // Starts, waits, and at the deadline kills. A host that is down gives an Outcome that never started (exit code 255).
  Outcome run_on(const std::string& host, Command command, milliseconds deadline = std::chrono::seconds(30)) const;

  // Every living process of the host except its pid 1 and the sshd that listens.
  std::vector<HostProcess> processes(const std::string& host) const;
  // Sends a signal to the processes whose command contains `text`, or whose name equals it; returns how many.
  int kill_processes(const std::string& host, const std::string& text, int signal = SIGKILL) const;

  // Faults of the network. They add up; heal() undoes all of a host, freeze() included.
  base::Status cut(const std::string& host) const;                                // the cable: carrier lost, nothing passes
  base::Status drop(const std::string& host, Direction direction) const;          // a black hole: nothing passes, no one is told
  base::Status separate(const std::string& a, const std::string& b) const;        // a black hole between two hosts only
  base::Status lose(const std::string& host, int percent) const;                  // that part of its packets, each way, by chance
  base::Status throttle(const std::string& host, const std::string& rate) const;  // as tc says it: "10mbit", both ways
  base::Status reject(const std::string& host, Ports ports, Answer answer = Answer::kReset) const;  // new TCP connections to it
  base::Status heal(const std::string& host) const;

  // Faults of the host.
  base::Status freeze(const std::string& host) const;  // no process runs; the kernel still acknowledges TCP
  base::Status thaw(const std::string& host) const;
  base::Status power_off(const std::string& host) const;  // cut, then every process gone: peers hear nothing
  base::Status kill_all(const std::string& host) const;   // every process gone, the kernel lives: peers get FIN or RST
  base::Status boot(const std::string& host) const;       // after the last two: healed, with fresh folders

 private:
  explicit Cluster(std::string name) : name_(std::move(name)) {}
  base::Result<pid_t> init_of(const std::string& host) const;
  base::Result<std::string> port(const std::string& host) const;  // the host's at the switch
  base::Status ask_guard(const std::string& request) const;
  base::Status on_switch(const std::vector<std::string>& argv, const std::string& input = {}) const;
  base::Status on_network(const std::string& host, const std::vector<std::string>& argv, const std::string& input = {}) const;

  std::string name_;
  bool owned_ = false;
};

}  // namespace phalanx::testbed
