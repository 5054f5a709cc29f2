#include "machine/ranks/sample.h"

#include <dirent.h>
#include <poll.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "base/text.h"
#include "base/unicode.h"
#include "machine/cgroups.h"
#include "machine/gpu/sources.h"
#include "machine/network/tcp_sockets.h"
#include "machine/ranks/stack_scan.h"
#include "machine/ranks/use.h"
#include "machine/small_files.h"
#include "machine/storage/mounts.h"
#include "os/files.h"
#include "os/net.h"

namespace phalanx::machine {
namespace {

constexpr size_t kMostProcesses = 64;
constexpr size_t kMostThreads = 64;
constexpr size_t kMostSockets = 1024;
constexpr size_t kMostDescriptors = 4096;  // of one process, looked at for sockets
constexpr size_t kMainStack = 24 << 10, kOtherStack = 8 << 10;
constexpr size_t kMostFrames = 24;
constexpr size_t kMostPythons = 128;            // processes of a host
constexpr os::milliseconds kPythonBudget{200};  // of one process
constexpr os::milliseconds kLeastForGpus{50};
constexpr os::milliseconds kPathAnswer{500};  // many times the round trip of any network that ranks talk over
constexpr size_t kMostPaths = 16;
constexpr uint16_t kDiscardPort = 9;  // of RFC 863: nobody listens, and a reset is an answer too

std::string read_small(const std::string& path) {
  base::Result<std::string> text = os::read_file(path, 64 << 10);
  return text.ok() ? std::move(text).value() : "";
}

// The first argument of these calls is the descriptor they wait on.
bool waits_on_descriptor(int64_t number) {
  for (long call : {SYS_read, SYS_write, SYS_readv, SYS_writev, SYS_pread64, SYS_pwrite64, SYS_recvfrom, SYS_recvmsg, SYS_sendto,
                    SYS_sendmsg, SYS_connect, SYS_accept4, SYS_fsync, SYS_fdatasync, SYS_ioctl, SYS_flock})
    if (number == call) return true;
  return false;
}

class Look {
 public:
  Look(bool frames, os::milliseconds budget, const OpenedMemories& opened)
      : frames_(frames), end_(os::mono_now() + budget), opened_(opened), sockets_(tcp_sockets()) {}

  RankSample rank(const RankProcess& of, std::vector<pid_t> pids) {
    RankSample sample;
    sample.rank = of.rank;
    sample.pid = of.pid;
    sample.silent_ms = of.silent_ms;
    if (pids.size() > kMostProcesses) pids.resize(kMostProcesses);
    for (pid_t pid : pids) links_of(pid, sample);
    for (pid_t pid : pids) {
      ProcessSample one;
      if (os::mono_now() < end_ && process(pid, one)) sample.processes.push_back(std::move(one));
    }
    sample.group = group(of.pid);
    return sample;
  }

 private:
  // Sockets and pipes that the process holds.
  void links_of(pid_t pid, RankSample& sample) {
    std::string folder = fmt::format("/proc/{}/fd", pid);
    DIR* dir = ::opendir(folder.c_str());
    if (!dir) return;
    size_t seen = 0;
    while (dirent* entry = ::readdir(dir)) {
      char link[96];
      ssize_t n = ::readlinkat(::dirfd(dir), entry->d_name, link, sizeof(link) - 1);
      if (n <= 0 || ++seen > kMostDescriptors) continue;
      link[n] = 0;
      if (std::strncmp(link, "pipe:[", 6) == 0) pipes_[link].insert(pid);
      if (std::strncmp(link, "socket:[", 8) != 0) continue;
      auto found = sockets_.find(std::strtoull(link + 8, nullptr, 10));
      if (found == sockets_.end() || sample.sockets.size() >= kMostSockets || !taken_.insert(found->first).second) continue;
      sample.sockets.push_back(found->second);
      sample.sockets.back().pid = pid;
    }
    ::closedir(dir);
  }

  bool process(pid_t pid, ProcessSample& p) {
    ProcessUse use;
    if (!read_use(pid, use)) return false;
    p.pid = pid;
    p.parent = use.parent;
    p.name = use.name;
    p.state = std::string(1, use.state);
    p.cpu_ms = use.cpu_ms;
    p.major_faults = use.major_faults;
    std::string status = read_small(fmt::format("/proc/{}/status", pid));
    p.rss_kb = value_after(status, "VmRSS").value_or(0);
    p.swap_kb = value_after(status, "VmSwap").value_or(0);
    p.tracer = value_after(status, "TracerPid").value_or(0);
    if (p.tracer > 0) p.tracer_name = base::printable(read_word(fmt::format("/proc/{}/comm", p.tracer)), 32);
    std::unique_ptr<StackScan> stacks = frames_ ? std::make_unique<StackScan>(pid) : nullptr;
    for (int64_t tid : numbers_in(fmt::format("/proc/{}/task", pid))) {
      if (p.threads.size() >= kMostThreads || os::mono_now() > end_) break;
      p.threads.push_back(thread(pid, tid, stacks.get()));
    }
    if (stacks && pythons_ < kMostPythons) python(p, stacks->maps());
    return true;
  }

  void python(ProcessSample& p, const std::vector<Mapping>& maps) {
    auto pid = static_cast<pid_t>(p.pid);
    auto opened = opened_.find(pid);
    os::Mono until = std::min(end_, os::mono_now() + kPythonBudget);
    base::Result<std::optional<PythonStacks>> stacks = python_stacks(pid, maps, opened == opened_.end() ? -1 : opened->second.get(), until);
    if (!stacks.ok()) {
      p.python_problem = base::printable(stacks.error().message, 300);
      return;
    }
    if (!*stacks) return;
    ++pythons_;
    p.python = python_version_text((*stacks)->version);
    for (PythonThread& found : (*stacks)->threads) {
      if (!found.problem.empty()) p.python_problem = found.problem;
      for (ThreadSample& t : p.threads)
        if (t.tid == found.tid && t.python.empty()) t.python = std::move(found.frames);
    }
  }

  ThreadSample thread(pid_t pid, int64_t tid, StackScan* stacks) {
    ThreadSample t;
    t.tid = tid;
    std::string folder = fmt::format("/proc/{}/task/{}", pid, tid);
    ProcessUse use;
    if (read_use(folder + "/stat", use)) {
      t.name = use.name;
      t.state = std::string(1, use.state);
      t.cpu_ms = use.cpu_ms;
    }
    t.wchan = base::printable(read_word(folder + "/wchan"), 64);
    if (t.wchan == "0") t.wchan.clear();
    if (size_t dot = t.wchan.find('.'); dot != std::string::npos) t.wchan.resize(dot);  // "poll_schedule_timeout.constprop.0"
    // "202 0x10f2cc58 0x189 0x0 0x0 0x0 0x0 0x7ffc36b5e1e0 0x7f881ccd5f16", "running", "-1 0x… 0x…"
    std::string call = read_word(folder + "/syscall");
    std::vector<std::string_view> words = base::split_words(call);
    if (words.size() == 9) {
      base::Result<int64_t> number = base::parse_int(words[0], -1, 100'000);
      t.syscall = number.ok() ? *number : -1;
      t.waits_on = path_argument(pid, t.syscall, words);
      if (std::optional<int> fd = only_polled(pid, t.syscall, words)) t.waits_on = target(pid, *fd);
      if (waits_on_descriptor(t.syscall)) t.waits_on = target(pid, std::strtoll(std::string(words[1]).c_str(), nullptr, 16));
    }
    if (stacks && words.size() >= 3) {
      uint64_t sp = std::strtoull(std::string(words[words.size() - 2]).c_str(), nullptr, 16);
      uint64_t pc = std::strtoull(std::string(words[words.size() - 1]).c_str(), nullptr, 16);
      t.frames = stacks->frames(sp, pc, tid == pid ? kMainStack : kOtherStack, kMostFrames);
    }
    return t;
  }

  std::string target(pid_t pid, int64_t fd) {
    char link[512];
    ssize_t n = ::readlink(fmt::format("/proc/{}/fd/{}", pid, fd).c_str(), link, sizeof(link) - 1);
    if (n <= 0) return "";
    link[n] = 0;
    std::string text(link);
    if (text[0] == '/') return "file " + base::printable(text, 200);
    if (text.rfind("socket:[", 0) == 0) {
      auto found = sockets_.find(std::strtoull(text.c_str() + 8, nullptr, 10));
      return found == sockets_.end() ? "a local socket" : found->second.remote;
    }
    if (text.rfind("pipe:[", 0) != 0) return base::printable(text, 64);
    for (pid_t other : pipes_[text])
      if (other != pid) return fmt::format("pipe to {} ({})", other, base::printable(read_word(fmt::format("/proc/{}/comm", other)), 32));
    return "a pipe";
  }

  GroupSample group(pid_t pid) {
    if (mounts_.empty()) mounts_ = parse_mountinfo(read_small("/proc/self/mountinfo"));
    std::vector<CgroupLine> lines = parse_cgroup(read_small(fmt::format("/proc/{}/cgroup", pid)));
    GroupSample g;
    CgroupChain freezer = cgroup_chain("freezer", lines, mounts_);
    for (const std::string& folder : freezer.folders) {
      bool frozen = freezer.version_2
                        ? value_after(read_small(folder + "/cgroup.events"), "frozen") == 1
                        : read_word(folder + "/freezer.state") == "FROZEN" || read_word(folder + "/freezer.state") == "FREEZING";
      if (!frozen) continue;
      g.frozen = true;
      g.frozen_by = folder;
      break;
    }
    CgroupChain cpu = cgroup_chain("cpu", lines, mounts_);
    for (const std::string& folder : cpu.folders) {
      std::string stat = read_small(folder + "/cpu.stat");
      int64_t throttled = throttled_ms_in(stat);
      if (throttled > g.throttled_ms) {
        g.throttled_ms = throttled;
        g.throttled_periods = value_after(stat, "nr_throttled").value_or(0);
        g.periods = value_after(stat, "nr_periods").value_or(0);
      }
      double cpus = quota(folder, cpu.version_2);
      if (cpus > 0 && (g.cpus == 0 || cpus < g.cpus)) g.cpus = cpus;
    }
    return g;
  }

  static double quota(const std::string& folder, bool version_2) {
    double quota = 0, period = 0;
    if (version_2) {
      std::string text = read_word(folder + "/cpu.max");  // "max 100000", "50000 100000"
      std::vector<std::string_view> words = base::split_words(text);
      if (words.size() == 2 && words[0] != "max") {
        quota = std::strtod(std::string(words[0]).c_str(), nullptr);
        period = std::strtod(std::string(words[1]).c_str(), nullptr);
      }
    } else {
      quota = static_cast<double>(read_number(folder + "/cpu.cfs_quota_us").value_or(0));
      period = static_cast<double>(read_number(folder + "/cpu.cfs_period_us").value_or(0));
    }
    return quota > 0 && period > 0 ? quota / period : 0;
  }

  // The descriptor that poll() waits for, where it is one alone: multiprocessing's queues and connections do that.
  std::optional<int> only_polled(pid_t pid, int64_t call, const std::vector<std::string_view>& words) {
    bool polls = call == SYS_ppoll;
#ifdef SYS_poll
    polls = polls || call == SYS_poll;
#endif
    if (!polls || std::strtoull(std::string(words[2]).c_str(), nullptr, 16) != 1) return std::nullopt;
    pollfd polled{};
    iovec into{&polled, sizeof(polled)},
        from{reinterpret_cast<void*>(std::strtoull(std::string(words[1]).c_str(), nullptr, 16)), sizeof(polled)};
    if (::process_vm_readv(pid, &into, 1, &from, 1, 0) != sizeof(polled) || polled.fd < 0) return std::nullopt;
    return polled.fd;
  }

  // The path of a file that a call is given by name: an argument that points to it.
  std::string path_argument(pid_t pid, int64_t call, const std::vector<std::string_view>& words) {
    size_t argument = 0;
    for (long first : {SYS_statfs
#ifdef SYS_open
                       ,
                       SYS_open, SYS_stat, SYS_lstat, SYS_access, SYS_readlink, SYS_mkdir, SYS_rename, SYS_unlink
#endif
         })
      if (call == first) argument = 1;
    for (long second : {SYS_openat, SYS_newfstatat, SYS_statx, SYS_faccessat, SYS_readlinkat, SYS_mkdirat, SYS_unlinkat})
      if (call == second) argument = 2;
    if (argument == 0) return "";
    char text[256] = "";
    iovec into{text, sizeof(text) - 1},
        from{reinterpret_cast<void*>(std::strtoull(std::string(words[argument]).c_str(), nullptr, 16)), sizeof(text) - 1};
    if (::process_vm_readv(pid, &into, 1, &from, 1, 0) <= 0) return "";
    return "file " + base::printable(text, 200);
  }

  bool frames_;
  os::Mono end_;
  const OpenedMemories& opened_;
  size_t pythons_ = 0;
  std::map<uint64_t, SocketSample> sockets_;
  std::set<uint64_t> taken_;  // a socket that a rank and its worker hold is the rank's
  std::map<std::string, std::set<pid_t>> pipes_;
  std::vector<Mount> mounts_;
};

// Do hosts that acknowledge no data answer to a small packet? One connect to a port on which nobody listens: a refusal is an answer.
void try_paths(HostSample& sample, os::milliseconds budget) {
  std::map<std::string, std::string> answers;
  std::vector<std::pair<std::string, os::Fd>> tried;
  auto stuck = [](const SocketSample& s) { return s.timer == "on" && s.unacked > 0 && s.retransmits >= 2; };
  for (const RankSample& rank : sample.ranks)
    for (const SocketSample& s : rank.sockets) {
      if (!stuck(s) || answers.size() >= kMostPaths || !answers.emplace(s.remote_address, "no").second) continue;
      base::Result<os::Fd> fd = os::connect_tcp_start({s.remote_address, kDiscardPort});
      if (fd.ok()) tried.emplace_back(s.remote_address, std::move(fd).value());
    }
  os::Mono end = os::mono_now() + std::min(budget, kPathAnswer);
  while (!tried.empty()) {
    std::vector<pollfd> fds;
    for (const auto& [address, fd] : tried) fds.push_back({fd.get(), POLLOUT, 0});
    os::milliseconds left = std::chrono::duration_cast<os::milliseconds>(end - os::mono_now());
    if (left.count() <= 0 || ::poll(fds.data(), fds.size(), static_cast<int>(left.count())) <= 0) break;
    for (size_t i = tried.size(); i-- > 0;) {
      if (fds[i].revents == 0) continue;
      int error = os::connect_outcome(tried[i].second.get());
      if (error == 0 || error == ECONNREFUSED) answers[tried[i].first] = "yes";
      tried.erase(tried.begin() + static_cast<ptrdiff_t>(i));
    }
  }
  for (RankSample& rank : sample.ranks)
    for (SocketSample& s : rank.sockets)
      if (stuck(s)) s.answers = answers[s.remote_address];
}

}  // namespace

HostSample sample_ranks(const std::vector<RankProcess>& ranks, bool frames, bool gpus, os::milliseconds budget,
                        const OpenedMemories& opened) {
  HostSample sample;
  os::Mono began = os::mono_now();
  sample.at_ms = began.ns / 1'000'000;
  std::vector<pid_t> roots;
  for (const RankProcess& rank : ranks) roots.push_back(rank.pid);
  std::vector<std::vector<pid_t>> all = families(roots);
  Look look(frames, budget, opened);
  for (size_t i = 0; i < ranks.size(); ++i) sample.ranks.push_back(look.rank(ranks[i], std::move(all[i])));
  if (frames) try_paths(sample, budget - std::chrono::duration_cast<os::milliseconds>(os::mono_now() - began));
  if (gpus) {
    ProbeRequest request;
    os::milliseconds left = budget - std::chrono::duration_cast<os::milliseconds>(os::mono_now() - began);
    GpuFacts facts;
    if (left > kLeastForGpus && ask_nvml(request, left, facts)) read_pci("", facts);
    sample.gpus = std::move(facts.devices);
  }
  return sample;
}

}  // namespace phalanx::machine
