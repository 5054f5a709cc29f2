#include "agent/obituary.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>

#include "base/text.h"
#include "host/cgroups.h"
#include "host/small_files.h"
#include "os/family.h"
#include "os/files.h"

namespace agent {
namespace {

constexpr size_t kMostLines = 64;
constexpr size_t kMostSaid = 2048;      // bytes
constexpr size_t kMostLooked = 20'000;  // lines in one look: a kernel that floods its log does not hold us up

// Kernel: version 2 memory.events, version 1 (since 4.13) memory.oom_control.
int64_t oom_kills(const std::string& folder, bool version_2) {
  base::Result<std::string> text = os::read_file(folder + (version_2 ? "/memory.events" : "/memory.oom_control"), 64 << 10);
  return text.ok() ? host::value_after(*text, "oom_kill").value_or(0) : 0;
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

// In a pid namespace of our own the log's pids say nothing: the name has to do.
bool names_program(std::string_view line, const std::string& name) {
  return !name.empty() && line.find("Killed process") != std::string_view::npos &&
         line.find(fmt::format("({})", name)) != std::string_view::npos;
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

Obituary::Obituary(const std::string& kernel_log)
    : log_(::open(kernel_log.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC)), own_pids_(os::in_own_pid_namespace()) {
  if (log_.valid() && ::lseek(log_.get(), 0, SEEK_END) < 0) log_.reset();
}

// Every read(2) of /dev/kmsg is one record; EPIPE says that records were overwritten before they were read.
void Obituary::read_log() {
  char record[8192];
  for (size_t i = 0; log_.valid() && i < kMostLooked; ++i) {
    ssize_t got = ::read(log_.get(), record, sizeof(record));
    if (got < 0 && (errno == EPIPE || errno == EINTR)) continue;
    if (got <= 0) return;
    for (std::string_view line : base::split_lines(std::string_view(record, static_cast<size_t>(got)))) {
      std::string_view text = kernel_line_of_interest(line);
      if (text.empty()) continue;
      lines_.emplace_back(text.substr(0, 300));
      if (lines_.size() > kMostLines) lines_.pop_front();
    }
  }
}

void Obituary::born(pid_t pid, const std::string& program) {
  Life& life = lives_[pid];
  life.name = program.substr(program.rfind('/') + 1).substr(0, 15);
  base::Result<std::string> own = os::read_file(fmt::format("/proc/{}/cgroup", pid), 64 << 10);
  if (!own.ok()) return;
  if (mounts_.empty()) {  // once for all ranks: it is on the way to their start
    base::Result<std::string> mounted = os::read_file("/proc/self/mountinfo", 16 << 20);
    if (!mounted.ok()) return;
    mounts_ = host::parse_mountinfo(*mounted);
  }
  host::CgroupChain chain = host::cgroup_chain("memory", host::parse_cgroup(*own), mounts_);
  for (const std::string& folder : chain.folders) life.counters.push_back({folder, oom_kills(folder, chain.version_2), chain.version_2});
}

std::string Obituary::of(pid_t pid, int status) {
  std::string said;
  const Life& life = lives_[pid];
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    for (const Counter& counter : life.counters) {
      int64_t more = oom_kills(counter.folder, counter.version_2) - counter.kills;
      if (more <= 0) continue;
      said += fmt::format("cgroup: {}: oom_kill {} more, limit {}\n", counter.folder, more, limit_of(counter.folder, counter.version_2));
      break;
    }
    read_log();
    for (const std::string& line : lines_)
      if (names_pid(line, pid) || (own_pids_ && names_program(line, life.name)) || of_the_machine(line)) said += "kernel: " + line + "\n";
  }
  lives_.erase(pid);
  if (said.size() > kMostSaid) said.resize(said.rfind('\n', kMostSaid) + 1);
  return said;
}

}  // namespace agent
