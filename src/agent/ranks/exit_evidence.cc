#include "agent/ranks/exit_evidence.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "base/text.h"
#include "machine/cgroups.h"
#include "machine/small_files.h"
#include "os/files.h"

namespace phalanx::agent {
namespace {

constexpr size_t kMostLines = 64;
constexpr size_t kMostLine = 1000;      // bytes; cgroup paths are long, and the pid stands behind them
constexpr size_t kMostSaid = 2048;      // bytes
constexpr size_t kMostLooked = 20'000;  // lines in one look: a kernel that floods its log does not hold us up

// Kernel: version 2 memory.events, version 1 (since 4.13) memory.oom_control.
int64_t oom_kills(const std::string& folder, bool version_2) {
  base::Result<std::string> text = os::read_file(folder + (version_2 ? "/memory.events" : "/memory.oom_control"), 64 << 10);
  return text.ok() ? machine::value_after(*text, "oom_kill").value_or(0) : 0;
}

std::string limit_of(const std::string& folder, bool version_2) {
  base::Result<std::string> text = os::read_file(folder + (version_2 ? "/memory.max" : "/memory.limit_in_bytes"), 64);
  return text.ok() ? std::string(base::trim(*text)) : "";
}

bool names_pid(std::string_view line, pid_t pid) {
  for (const std::string& form : {fmt::format("process {} (", pid), fmt::format("[{}]", pid), fmt::format("pid={},", pid)})
    if (line.find(form) != std::string_view::npos) return true;
  return false;
}

// "oom-kill:constraint=CONSTRAINT_MEMCG,…,oom_memcg=/job,task_memcg=/job/step,task=python3,pid=4711,uid=0" (mm/oom_kill.c, since 5.0): the
// only line of the log that says whose a process was to who does not know its pid.
struct OomKill {
  std::string memory_group, task;
  pid_t pid = 0;
};
std::optional<OomKill> parse_oom_kill(std::string_view line) {
  if (line.find("oom-kill:") == std::string_view::npos) return std::nullopt;
  OomKill kill;
  for (std::string_view field : base::split(line, ',')) {
    size_t equals = field.find('=');
    if (equals == std::string_view::npos) continue;
    std::string_view name = field.substr(0, equals), value = field.substr(equals + 1);
    if (name == "task_memcg") kill.memory_group = value;
    if (name == "task") kill.task = value;
    if (name == "pid")
      if (base::Result<int64_t> pid = base::parse_int(value, 1, INT32_MAX); pid.ok()) kill.pid = static_cast<pid_t>(*pid);
  }
  if (kill.pid == 0 || kill.memory_group.empty()) return std::nullopt;
  return kill;
}

using Kind = wire::ExitSign::Kind;

// The kernel's own words are read here, where they enter.
Kind kind_of(std::string_view line) {
  auto has = [&](std::string_view part) { return line.find(part) != std::string_view::npos; };
  if (has("Memory cgroup out of memory")) return Kind::kKernelCgroupKill;
  if (has("Killed process")) return Kind::kKernelKill;
  return has("Xid (PCI:") ? Kind::kGpuFailure : Kind::kOther;
}

bool of_the_machine(std::string_view line) {  // whoever it names
  return line.find("Xid") != std::string_view::npos || line.find("Hardware Error") != std::string_view::npos;
}

}  // namespace

std::string_view kernel_line_of_interest(std::string_view line) {
  size_t semicolon = line.find(';');
  if (semicolon == std::string_view::npos) return {};
  std::string_view text = line.substr(semicolon + 1);
  text = text.substr(0, text.find('\n'));
  for (std::string_view mark : {"Killed process", "oom-kill:", "segfault at", "traps:", "general protection", "Xid (PCI:", "Hardware Error",
                                "fork rejected by pids controller"})
    if (text.find(mark) != std::string_view::npos) return text;
  return {};
}

ExitEvidence::ExitEvidence(const std::string& kernel_log, bool own_pids, std::string root)
    : log_(::open(kernel_log.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC)), own_pids_(own_pids), root_(std::move(root)) {
  if (log_.valid() && ::lseek(log_.get(), 0, SEEK_END) < 0) log_.reset();
}

// Every read(2) of /dev/kmsg is one record; EPIPE says that records were overwritten before they were read.
void ExitEvidence::read_log() {
  char record[8192];
  for (size_t i = 0; log_.valid() && i < kMostLooked; ++i) {
    ssize_t got = ::read(log_.get(), record, sizeof(record));
    if (got < 0 && (errno == EPIPE || errno == EINTR)) continue;
    if (got <= 0) return;
    for (std::string_view line : base::split_lines(std::string_view(record, static_cast<size_t>(got)))) {
      std::string_view text = kernel_line_of_interest(line);
      if (text.empty()) continue;
      lines_.emplace_back(text.substr(0, kMostLine));
      if (lines_.size() > kMostLines) lines_.pop_front();
    }
  }
}

void ExitEvidence::born(pid_t pid, const std::string& program) {
  Life& life = lives_[pid];
  life.name = program.substr(program.rfind('/') + 1).substr(0, 15);
  note_cgroup(pid);
  base::Result<std::string> own = os::read_file(fmt::format("{}/proc/{}/cgroup", root_, pid), 64 << 10);
  if (!own.ok()) return;
  if (mounts_.empty()) {  // once for all ranks: it is on the way to their start
    base::Result<std::string> mounted = os::read_file("/proc/self/mountinfo", 16 << 20);
    if (!mounted.ok()) return;
    mounts_ = machine::parse_mountinfo(*mounted);
  }
  machine::CgroupChain chain = machine::cgroup_chain("memory", machine::parse_cgroup(*own), mounts_);
  for (const std::string& folder : chain.folders) life.counters.push_back({folder, oom_kills(folder, chain.version_2), chain.version_2});
}

void ExitEvidence::note_cgroup(pid_t pid) {
  auto life = lives_.find(pid);
  base::Result<std::string> own = os::read_file(fmt::format("{}/proc/{}/cgroup", root_, pid), 64 << 10);
  if (life == lives_.end() || !own.ok()) return;
  for (const machine::CgroupLine& line : machine::parse_cgroup(*own)) {
    bool memory =
        line.controllers.empty() || std::find(line.controllers.begin(), line.controllers.end(), "memory") != line.controllers.end();
    if (memory && line.path != "/") life->second.memory_groups.insert(line.path);  // everybody may be in the root
  }
}

// In a pid namespace the log's pids say nothing. A process that was killed for memory is this one if it was in a cgroup that this one was
// seen in, and if it fits: the name, or an end by SIGKILL. Otherwise nothing is claimed: another job of this machine may have run out of
// memory.
std::vector<wire::ExitSign> ExitEvidence::lines_about(const Life& life, pid_t pid, int status) const {
  std::set<pid_t> pids;
  if (!own_pids_) pids.insert(pid);
  for (const std::string& line : lines_) {
    std::optional<OomKill> kill = own_pids_ ? parse_oom_kill(line) : std::nullopt;
    bool killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
    if (kill && life.memory_groups.count(kill->memory_group) && (killed || kill->task == life.name)) pids.insert(kill->pid);
  }
  std::vector<wire::ExitSign> said;
  for (const std::string& line : lines_) {
    bool named = std::any_of(pids.begin(), pids.end(), [&](pid_t p) { return names_pid(line, p); });
    if (named || of_the_machine(line)) said.push_back({kind_of(line), "kernel: " + line});
  }
  return said;
}

std::vector<wire::ExitSign> ExitEvidence::of(pid_t pid, int status) {
  std::vector<wire::ExitSign> said;
  const Life& life = lives_[pid];
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    for (const Counter& counter : life.counters) {
      int64_t more = oom_kills(counter.folder, counter.version_2) - counter.kills;
      if (more <= 0) continue;
      said.push_back({Kind::kCgroupKill, fmt::format("cgroup: {}: oom_kill {} more, limit {}", counter.folder, more,
                                                     limit_of(counter.folder, counter.version_2))});
      break;
    }
    read_log();
    for (wire::ExitSign& sign : lines_about(life, pid, status)) said.push_back(std::move(sign));
  }
  lives_.erase(pid);
  size_t bytes = 0, kept = 0;
  while (kept < said.size() && (bytes += said[kept].text.size() + 1) <= kMostSaid) ++kept;
  said.resize(std::min({kept, said.size(), wire::kMostSigns}));
  return said;
}

}  // namespace phalanx::agent
