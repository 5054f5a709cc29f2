#include "machine/ranks/use.h"

#include <unistd.h>

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "base/text.h"
#include "base/unicode.h"
#include "machine/cgroups.h"
#include "machine/small_files.h"
#include "machine/storage/mounts.h"
#include "os/files.h"

namespace phalanx::machine {
namespace {

constexpr int64_t kMostCount = 1'000'000'000'000'000;  // ticks, pages, faults: more is not a machine's

std::string read_small(const std::string& path) {
  base::Result<std::string> text = os::read_file(path, 256 << 10);
  return text.ok() ? std::move(text).value() : "";
}

}  // namespace

bool parse_use(std::string_view text, ProcessUse& use) {
  // The name may hold anything, also blanks and ')': it ends at the last one.
  size_t open = text.find('('), close = text.rfind(')');
  if (open == std::string_view::npos || close == std::string_view::npos || close < open) return false;
  std::vector<std::string_view> f = base::split_words(text.substr(close + 1));
  if (f.size() < 22 || f[0].size() != 1) return false;
  auto number = [&](size_t i) {
    base::Result<int64_t> value = base::parse_int(f[i], 0, kMostCount);
    return value.ok() ? *value : 0;
  };
  static const int64_t ticks = std::max<int64_t>(1, ::sysconf(_SC_CLK_TCK));
  static const int64_t page_kb = std::max<int64_t>(1, ::sysconf(_SC_PAGESIZE) / 1024);
  use.name = base::printable(text.substr(open + 1, close - open - 1), 32);
  use.state = f[0][0];
  use.parent = number(1);
  use.major_faults = number(9);
  use.cpu_ms = (number(11) + number(12)) / ticks * 1000 + (number(11) + number(12)) % ticks * 1000 / ticks;
  use.start_ticks = static_cast<uint64_t>(number(19));
  use.rss_kb = number(21) * page_kb;
  return true;
}

bool read_use(const std::string& stat_file, ProcessUse& use) {
  base::Result<std::string> text = os::read_file(stat_file, 4096);
  return text.ok() && parse_use(*text, use);
}

bool read_use(pid_t pid, ProcessUse& use) { return read_use(fmt::format("/proc/{}/stat", pid), use); }

std::vector<std::vector<pid_t>> families(const std::vector<pid_t>& roots) {
  std::multimap<int64_t, pid_t> children;
  for (int64_t pid : numbers_in("/proc")) {
    ProcessUse use;
    if (read_use(static_cast<pid_t>(pid), use)) children.emplace(use.parent, static_cast<pid_t>(pid));
  }
  std::vector<std::vector<pid_t>> out;
  for (pid_t root : roots) {
    std::vector<pid_t> family{root};
    for (size_t i = 0; i < family.size() && family.size() < 4096; ++i) {
      auto [begin, end] = children.equal_range(family[i]);
      for (auto it = begin; it != end; ++it) family.push_back(it->second);
    }
    out.push_back(std::move(family));
  }
  return out;
}

// The limit may be that of a group above the process's own, which counts what it holds back there.
std::string throttle_file(pid_t pid) {
  std::vector<CgroupLine> lines = parse_cgroup(read_small(fmt::format("/proc/{}/cgroup", pid)));
  CgroupChain chain = cgroup_chain("cpu", lines, parse_mountinfo(read_small("/proc/self/mountinfo")));
  std::string first;
  for (const std::string& folder : chain.folders) {
    std::string file = folder + "/cpu.stat";
    if (!value_after(read_small(file), "nr_throttled")) continue;
    if (first.empty()) first = file;
    const std::string limit = read_small(folder + (chain.version_2 ? "/cpu.max" : "/cpu.cfs_quota_us"));  // "max 100000", "-1"
    if (!limit.empty() && limit[0] >= '0' && limit[0] <= '9') return file;
  }
  return first;
}

int64_t throttled_ms(const std::string& file) { return file.empty() ? 0 : throttled_ms_in(read_small(file)); }

int64_t throttled_ms_in(std::string_view stat) {
  if (std::optional<int64_t> us = value_after(stat, "throttled_usec")) return *us / 1000;  // version 2
  return value_after(stat, "throttled_time").value_or(0) / 1'000'000;                      // version 1, nanoseconds
}

std::optional<int64_t> delayed_ms_in(std::string_view schedstat) {
  std::vector<std::string_view> words = base::split_words(schedstat);
  if (words.size() < 3) return std::nullopt;
  base::Result<int64_t> ns = base::parse_int(words[1], 0, INT64_MAX);
  return ns.ok() ? std::optional(*ns / 1'000'000) : std::nullopt;
}

std::optional<int64_t> delayed_ms(pid_t pid) { return delayed_ms_in(read_small(fmt::format("/proc/{}/schedstat", pid))); }

// "cpu  user nice system idle iowait irq softirq steal guest guest_nice"; guests are part of user and nice.
CpuTimes cpu_times_in(std::string_view stat) {
  CpuTimes times;
  std::vector<std::string_view> words = base::split_words(stat.substr(0, stat.find('\n')));
  if (words.size() < 9 || words[0] != "cpu") return times;
  for (size_t i = 1; i <= 8; ++i) {
    base::Result<int64_t> ticks = base::parse_int(words[i], 0, kMostCount);
    if (!ticks.ok()) return {};
    times.all += *ticks;
    if (i == 4 || i == 5) times.idle += *ticks;
    if (i == 8) times.stolen = *ticks;
  }
  return times;
}

CpuTimes cpu_times() { return cpu_times_in(read_small("/proc/stat")); }

}  // namespace phalanx::machine
