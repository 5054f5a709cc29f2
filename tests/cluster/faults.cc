#include "faults.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include <fmt/format.h>

#include "base/try.h"
#include "os/files.h"

namespace phalanx::testbed {
namespace {

base::Status kill_on_h2(const Cluster& cluster, const std::string& name, int signal_number = SIGKILL) {
  if (cluster.kill_processes("h2", name, signal_number) > 0) return base::ok();
  return base::fail(base::ErrorKind::kInternal, "no " + name + " on h2");
}

// Stopped as by a debugger: SIGCONT does not help. Lasts until the process is killed or the caller ends.
base::Status hold_on_h2(const Cluster& cluster, const std::string& name) {
  pid_t target = 0;
  for (const HostProcess& process : cluster.processes("h2"))
    if (process.name == name || process.command.find(name) != std::string::npos) target = process.pid;
  if (target == 0) return base::fail(base::ErrorKind::kInternal, "no " + name + " on h2");
  TRY_ASSIGN(os::PipeEnds held, os::make_pipe());
  pid_t holder = ::fork();
  if (holder < 0) return base::system_error("fork", "");
  if (holder == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    bool done = ::ptrace(PTRACE_SEIZE, target, 0, 0) == 0 && ::ptrace(PTRACE_INTERRUPT, target, 0, 0) == 0;
    if (::write(held.write.get(), done ? "y" : "n", 1) != 1) ::_exit(1);
    int status = 0;
    while (done && ::waitpid(target, &status, __WALL) == target && !WIFEXITED(status) && !WIFSIGNALED(status)) {}
    ::_exit(0);
  }
  char done = 0;
  if (::read(held.read.get(), &done, 1) == 1 && done == 'y') return base::ok();
  return base::fail(base::ErrorKind::kInternal, "ptrace of " + name + " on h2");
}

base::Status stop_rank(const Cluster& cluster, const std::string& name) {
  if (cluster.kill_processes("h2", name, SIGSTOP) > 0) return base::ok();
  return base::fail(base::ErrorKind::kInternal, "no " + name + " on h2");
}

// Between the ranks: packets beyond a size are lost, and nobody is told.
base::Status open_mtu_hole(const Cluster& cluster) {
  constexpr const char* kRules =
      "nft add table inet hole && nft 'add chain inet hole in { type filter hook input priority 0; }' && "
      "nft add rule inet hole in ip saddr \"{$0}\" meta length gt 1000 drop";
  TRY_ASSIGN(std::string one, cluster.address("h1"));
  TRY_ASSIGN(std::string two, cluster.address("h2"));
  for (const char* host : {"h1", "h2"}) {
    Outcome outcome = cluster.run_on(host, Command{{"sh", "-c", kRules, one + ", " + two}});
    if (outcome.exit_code != 0) return base::fail(base::ErrorKind::kInternal, "nft on " + std::string(host)).because(outcome.err);
  }
  return base::ok();
}

}  // namespace

std::vector<InjectedFault> stall_faults() {
  std::vector<InjectedFault> faults = {
      {"never-entered", "HANG-NEVER-ENTERED"},
      {"lock-taken-twice", "HANG-DEADLOCK-LOCAL"},
      {"loader-hangs", "HANG-LOADER"},
      {"other-collective", "HANG-MISMATCH"},
      {"one-batch-fewer", "HANG-MISMATCH"},
      {"lock-file-while-loading", "HANG-NEVER-ENTERED"},
      {"stopped-while-saving", "HANG-STOPPED"},
      {"rank-stopped", "HANG-STOPPED", 1, "", [](auto& c, auto& names) { return stop_rank(c, names.rank); }},
      {"link-of-ranks-cut", "HANG-LINK", -1, "", [](auto& c, auto&) { return c.separate("h1", "h2"); }},
      {"mtu-hole", "NET-MTU-HOLE", -1, "", [](auto& c, auto&) { return open_mtu_hole(c); }},
  };
  for (InjectedFault& fault : faults) {
    fault.stalls = true;
    fault.most = kStallAfter + milliseconds(5000);
  }
  return faults;
}

// By default nothing is said for a minute that may be a long save or evaluation. These are told within seconds.
std::vector<InjectedFault> proved_faults() {
  std::vector<InjectedFault> faults = {
      {"barrier-against-broadcast", "HANG-MISMATCH", 1},
      {"opposite-groups", "HANG-CIRCULAR", -1},
      {"receive-from-each-other", "HANG-CIRCULAR", -1},
      {"gather-against-reduce", "HANG-MISMATCH", 1},
      {"store-key-that-nobody-sets", "HANG-CIRCULAR", -1},
      {"first-iteration", "HANG-MISMATCH", 1},
      {"in-a-debugger", "HANG-TRACED", 1, "", [](auto& c, auto& names) { return hold_on_h2(c, names.rank); }},
      {"partition", "HANG-LINK", -1, "", [](auto& c, auto&) { return c.separate("h1", "h2"); }},
      {"mtu-hole-by-default", "NET-MTU-HOLE", -1, "", [](auto& c, auto&) { return open_mtu_hole(c); }},
  };
  for (InjectedFault& fault : faults) {
    fault.stalls = fault.by_default = true;
    fault.most = kProvedAfter;
  }
  return faults;
}

std::vector<InjectedFault> end_faults() {
  constexpr milliseconds kSilence{6500};  // a host is lost after 5 s of silence
  return {
      {"exception", "RUN-EXCEPTION", 1, "ValueError: bad batch"},
      {"exit-code", "RUN-EXIT-CODE", 1},
      {"sys-exit-message", "RUN-EXIT-CODE", 1, "no data left"},
      {"segfault", "RUN-SEGFAULT", 1},
      {"abort", "RUN-ABORTED", 1},
      {"bus-error", "RUN-BUS-ERROR", 1},
      {"killed", "RUN-KILLED", 1},
      {"terminated", "RUN-TERMINATED", 1},
      {"hung-up", "RUN-TERMINATED", 1},
      {"out-of-memory", "RUN-OOM-CGROUP", 1, "Killed process", {}, milliseconds(8000)},
      {"left-early", "RUN-LEFT-EARLY", 1, "Connection closed by peer", {}, milliseconds(4000)},
      {"swallowed", "RUN-LEFT-EARLY", 1, "", {}, milliseconds(4000)},
      {"loader-killed", "RUN-EXCEPTION", 1, "DataLoader worker", {}, milliseconds(4000)},
      {"no-shared-memory", "FS-SHM-SMALL", 1, "", {}, milliseconds(6000)},
      {"disk-full", "FS-DISK-FULL", 1, "enforce fail at inline_container.cc"},
      {"read-only", "RUN-EXCEPTION", 1},
      {"missing-checkpoint", "FS-FILE-MISSING", 1, "FileNotFoundError"},
      {"missing-module", "ENV-IMPORT", 1, "ModuleNotFoundError: No module named 'flash_attn'"},
      {"before-init", "ENV-IMPORT", 1, "ModuleNotFoundError: No module named 'flash_attn'"},
      {"killed-while-evaluating", "RUN-KILLED", 1},
      {"exception-while-evaluating", "RUN-EXCEPTION", 1, "ValueError: a label that is no class"},
      {"wrong-shape", "RUN-EXCEPTION", 1, "mat1 and mat2 shapes cannot be multiplied"},
      {"assertion", "RUN-EXCEPTION", 1, "AssertionError: loss is nan"},
      {"recursion", "RUN-EXCEPTION", 1, "RecursionError"},
      {"too-many-files", "LIM-NOFILE", 1, "Too many open files", {}, milliseconds(8000)},
      {"killed-from-outside", "RUN-KILLED", 1, "", [](auto& c, auto& names) { return kill_on_h2(c, names.rank); }},
      {"agent-killed", "HOST-AGENT-KILLED", -1, "", [](auto& c, auto& names) { return kill_on_h2(c, names.agent); }},
      {.name = "guard-killed",
       .code = "HOST-LOST",
       .rank = -1,
       .strike = [](auto& c, auto&) { return kill_on_h2(c, "phalanx-guard"); },
       .only_ours = true},
      {"agent-stopped", "HOST-LOST", -1, "", [](auto& c, auto& names) { return kill_on_h2(c, names.agent, SIGSTOP); }, kSilence},
      {.name = "guard-stopped",
       .code = "HOST-LOST",
       .rank = -1,
       .says = "phalanx-guard has not answered",
       .strike = [](auto& c, auto&) { return hold_on_h2(c, "phalanx-guard"); },
       .most = milliseconds(9000),  // a guard that cannot be woken is given a lease
       .only_ours = true},
      {"power-off", "HOST-LOST", -1, "", [](auto& c, auto&) { return c.power_off("h2"); }, kSilence, true},
      {"every-process-gone", "HOST-LOST", -1, "", [](auto& c, auto&) { return c.kill_all("h2"); }, kSilence, true},
      {"host-stands-still", "HOST-LOST", -1, "", [](auto& c, auto&) { return c.freeze("h2"); }, kSilence},
      {"cable-pulled", "HOST-LOST", -1, "", [](auto& c, auto&) { return c.cut("h2"); }, kSilence},
      {"black-hole", "HOST-LOST", -1, "", [](auto& c, auto&) { return c.drop("h2", Direction::kBoth); }, kSilence},
      {"deaf-host", "HOST-LOST", -1, "", [](auto& c, auto&) { return c.drop("h2", Direction::kTo); }, kSilence},
      {"mute-host", "HOST-LOST", -1, "", [](auto& c, auto&) { return c.drop("h2", Direction::kFrom); }, kSilence},
  };
}

MemoryGroup::MemoryGroup() {
  for (const char* root : {"/sys/fs/cgroup/memory", "/sys/fs/cgroup"}) {
    std::string limit = os::exists(std::string(root) + "/memory.limit_in_bytes") ? "memory.limit_in_bytes" : "memory.max";
    std::string folder = fmt::format("{}/phalanx-faults-{}", root, ::getpid());
    if (::mkdir(folder.c_str(), 0700) != 0) continue;
    folder_ = folder;
    std::ofstream(folder + "/" + limit) << 200 * 1024 * 1024;
    if (os::exists(folder + "/" + limit)) return;
    ::rmdir(folder.c_str());
    folder_.clear();
  }
}

MemoryGroup::~MemoryGroup() {
  if (!folder_.empty()) ::rmdir(folder_.c_str());
}

Options cluster_for(const InjectedFault& fault) {
  Options options{.hosts = 2};
  options.host.resize(2);
  options.host[1].run.size_kib = 2048;                                        // for disk-full
  if (fault.name == "no-shared-memory") options.host[1].shm.size_kib = 4096;  // a batch is 8 MiB
  return options;
}

std::map<std::string, std::string> environment_for(const InjectedFault& fault, const MemoryGroup& group) {
  return {{"FAULT", fault.strike ? std::string() : fault.name}, {"FAULT_CGROUP", group.folder()}, {"OMP_NUM_THREADS", "1"}};
}

bool await_file(const Cluster& cluster, const std::string& host, const std::string& path, milliseconds most) {
  return cluster.run_on(host, Command{{"sh", "-c", "until test -e \"$0\"; do sleep 0.02; done", path}}, most).ended;
}

int64_t struck_at(const Cluster& cluster, const std::string& host) {
  Outcome outcome = cluster.run_on(host, Command{{"cat", "/tmp/struck"}});
  return outcome.exit_code == 0 ? std::atoll(outcome.out.c_str()) : 0;
}

}  // namespace phalanx::testbed
