// rlimits of this process, which the ranks inherit, and what the control groups above it and the kernel allow.
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"
#include "machine/cgroups.h"
#include "machine/probe.h"
#include "machine/ranks/process_table.h"
#include "machine/small_files.h"
#include "machine/storage/mounts.h"
#include "os/files.h"

namespace phalanx::machine {
namespace {

constexpr int64_t kUnlimited = -1;
// cgroup v1 writes "no limit" as the largest multiple of the page size (mm/page_counter.c).
constexpr int64_t kNoLimitV1 = INT64_MAX / 4;

void rlimit_of(int which, int64_t& soft, int64_t* hard = nullptr) {
  rlimit limit{};
  if (::getrlimit(static_cast<__rlimit_resource_t>(which), &limit) != 0) return;
  auto value = [](rlim_t v) { return v == RLIM_INFINITY || v > static_cast<rlim_t>(INT64_MAX) ? kUnlimited : static_cast<int64_t>(v); };
  soft = value(limit.rlim_cur);
  if (hard) *hard = value(limit.rlim_max);
}

// "max" or a number; nothing if the file is not there.
std::optional<int64_t> read_limit(const std::string& path) {
  std::string word = read_word(path);
  if (word == "max") return kUnlimited;
  base::Result<int64_t> value = base::parse_int(word, 0, INT64_MAX);
  if (!value.ok()) return word.size() > 18 ? std::optional(kUnlimited) : std::nullopt;
  return *value >= kNoLimitV1 ? kUnlimited : *value;
}

// Which of a chain's limits leaves the least room.
struct Tightest {
  int64_t limit = 0, used = 0;  // limit 0: none was found; -1: all are unlimited
  std::string folder;
  void offer(int64_t offered, int64_t in_use, const std::string& at) {
    if (offered == kUnlimited) {
      if (limit == 0) limit = kUnlimited;
      return;
    }
    if (limit > 0 && limit - used <= offered - in_use) return;
    limit = offered;
    used = in_use;
    folder = at;
  }
};

// Page cache that is not in use can be had back: it does not count as used.
int64_t memory_used(const std::string& folder, bool version_2) {
  int64_t used = read_number(folder + (version_2 ? "/memory.current" : "/memory.usage_in_bytes")).value_or(0);
  base::Result<std::string> stat = os::read_file(folder + "/memory.stat", 64 << 10);
  if (!stat.ok()) return used;
  return std::max<int64_t>(0, used - value_after(*stat, version_2 ? "inactive_file" : "total_inactive_file").value_or(0));
}

double quota_of(const std::string& folder, bool version_2) {
  int64_t quota = -1, period = 0;
  if (version_2) {
    std::string text = read_word(folder + "/cpu.max");
    std::vector<std::string_view> f = base::split_words(text);
    if (f.size() != 2 || f[0] == "max") return 0;
    base::Result<int64_t> q = base::parse_int(f[0], 1, INT64_MAX), p = base::parse_int(f[1], 1, INT64_MAX);
    if (q.ok() && p.ok()) quota = *q, period = *p;
  } else {
    quota = read_number(folder + "/cpu.cfs_quota_us").value_or(-1);
    period = read_number(folder + "/cpu.cfs_period_us").value_or(0);
  }
  return quota > 0 && period > 0 ? static_cast<double>(quota) / static_cast<double>(period) : 0;
}

void cgroup_limits(const std::string& root, LimitsFacts& l) {
  base::Result<std::string> own = os::read_file(root + "/proc/self/cgroup", 256 << 10);
  base::Result<std::string> mounted = os::read_file(root + "/proc/self/mountinfo", 16 << 20);
  if (!own.ok() || !mounted.ok()) return;
  std::vector<CgroupLine> lines = parse_cgroup(*own);
  std::vector<Mount> mounts = parse_mountinfo(*mounted);
  Tightest pids, memory;
  CgroupChain chain = cgroup_chain("pids", lines, mounts);
  for (const std::string& folder : chain.folders)
    if (std::optional<int64_t> limit = read_limit(root + folder + "/pids.max"))
      pids.offer(*limit, read_number(root + folder + "/pids.current").value_or(0), folder);
  chain = cgroup_chain("memory", lines, mounts);
  for (const std::string& folder : chain.folders)
    if (std::optional<int64_t> limit = read_limit(root + folder + (chain.version_2 ? "/memory.max" : "/memory.limit_in_bytes")))
      memory.offer(*limit, memory_used(root + folder, chain.version_2), folder);
  chain = cgroup_chain("cpuset", lines, mounts);
  for (const std::string& folder : chain.folders) {
    l.cpuset = read_word(root + folder + (chain.version_2 ? "/cpuset.cpus.effective" : "/cpuset.effective_cpus"));
    if (l.cpuset.empty()) l.cpuset = read_word(root + folder + "/cpuset.cpus");
    if (!l.cpuset.empty()) break;
  }
  chain = cgroup_chain("cpu", lines, mounts);
  for (const std::string& folder : chain.folders)
    if (double quota = quota_of(root + folder, chain.version_2); quota > 0)
      l.cpu_quota = l.cpu_quota > 0 ? std::min(l.cpu_quota, quota) : quota;
  l.pids_max = pids.limit;
  l.pids_used = pids.used;
  l.pids_cgroup = pids.folder;
  l.cgroup_memory_bytes = memory.limit;
  l.cgroup_memory_used_bytes = memory.used;
  l.memory_cgroup = memory.folder;
}

void kernel_limits(const std::string& root, LimitsFacts& l) {
  std::string sys = root + "/proc/sys/";
  l.threads_max = read_number(sys + "kernel/threads-max").value_or(0);
  l.pid_max = read_number(sys + "kernel/pid_max").value_or(0);
  l.max_map_count = read_number(sys + "vm/max_map_count").value_or(0);
  l.overcommit = read_number(sys + "vm/overcommit_memory").value_or(-1);
  l.ptrace_scope = read_number(sys + "kernel/yama/ptrace_scope").value_or(-1);
  l.governor = read_word(root + "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
  std::string load = read_word(root + "/proc/loadavg");
  l.load_1min = std::strtod(load.c_str(), nullptr);
  base::Result<std::string> memory = os::read_file(root + "/proc/meminfo", 64 << 10);
  if (!memory.ok()) return;
  std::optional<int64_t> total = value_after(*memory, "SwapTotal"), free = value_after(*memory, "SwapFree");
  if (total && free) l.swap_used_bytes = std::max<int64_t>(0, *total - *free) * 1024;
}

}  // namespace

LimitsFacts probe_limits(const ProbeRequest& r) {
  LimitsFacts l;
  if (r.root.empty()) {
    rlimit_of(RLIMIT_NOFILE, l.nofile, &l.nofile_hard);
    rlimit_of(RLIMIT_NPROC, l.nproc, &l.nproc_hard);
    rlimit_of(RLIMIT_MEMLOCK, l.memlock, &l.memlock_hard);
    rlimit_of(RLIMIT_STACK, l.stack);
    rlimit_of(RLIMIT_CORE, l.core);
    rlimit_of(RLIMIT_AS, l.address_space);
    rlimit_of(RLIMIT_FSIZE, l.file_size);
  }
  cgroup_limits(r.root, l);
  kernel_limits(r.root, l);
  // Counting is the dearest part, and of use only against a limit.
  if (l.nproc > 0) l.nproc_used = count_threads(r.root, ::getuid());
  return l;
}

}  // namespace phalanx::machine
