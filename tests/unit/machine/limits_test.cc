// Limits that are really set: rlimits of a child, control groups of both versions.
#include <gnu/libc-version.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <functional>

#include <fmt/format.h>

#include "base/json_fields.h"
#include "base/try.h"
#include "machine/probe.h"
#include "machine/small_files.h"
#include "os/clock.h"
#include "os/files.h"
#include "os/guarded.h"
#include "scratch.h"

namespace phalanx::machine {
namespace {

std::string folder() { return scratch::folder("limits-test"); }

void put(const std::string& path, const std::string& text) {
  ASSERT_TRUE(os::make_folders(path.substr(0, path.rfind('/'))).ok());
  ASSERT_TRUE(os::write_file_atomic(path, text, 0644).ok());
}

// The limits a child sees after `prepare`; a skip's reason begins with "no ".
base::Result<LimitsFacts> limits_after(const std::function<std::string()>& prepare, std::string& skip) {
  auto answers = os::run_guarded({{"limits",
                                   [&prepare]() -> std::string {
                                     std::string why = prepare();
                                     return why.empty() ? base::to_text(base::to_json(probe_limits({}))) : why;
                                   }}},
                                 os::milliseconds(5000));
  if (!answers[0].ok()) return answers[0].error();
  if (answers[0]->rfind("no ", 0) == 0) {
    skip = *answers[0];
    return LimitsFacts{};
  }
  TRY_ASSIGN(base::Json json, base::parse_json(*answers[0]));
  return base::from_json<LimitsFacts>(json);
}

bool write_to(const std::string& path, const std::string& text) {
  std::ofstream file(path);
  file << text;
  file.close();
  return !file.fail();
}

TEST(Limits, OfTheProcessItself) {
  std::string skip;
  base::Result<LimitsFacts> l = limits_after(
      []() -> std::string {
        rlimit files{200, 300}, locked{65536, 65536}, threads{64, 100}, stack{RLIM_INFINITY, RLIM_INFINITY};
        if (::setrlimit(RLIMIT_NOFILE, &files) || ::setrlimit(RLIMIT_MEMLOCK, &locked) || ::setrlimit(RLIMIT_NPROC, &threads))
          return "no setrlimit";
        if (::setrlimit(RLIMIT_STACK, &stack)) return "no unlimited stack";
        return "";
      },
      skip);
  ASSERT_TRUE(l.ok()) << l.error().message;
  if (!skip.empty()) GTEST_SKIP() << skip;
  EXPECT_EQ(l->nofile, 200);
  EXPECT_EQ(l->nofile_hard, 300);
  EXPECT_EQ(l->memlock, 65536);
  EXPECT_EQ(l->nproc, 64);
  EXPECT_GT(l->nproc_used, 0) << "counted where there is a limit";
  EXPECT_EQ(l->stack, -1);
  EXPECT_GT(l->threads_max, 0);
  EXPECT_GT(l->pid_max, 0);
}

TEST(Limits, OfARealControlGroup) {
  std::string pids = "/sys/fs/cgroup/pids/phalanx-limits-test", memory = "/sys/fs/cgroup/memory/phalanx-limits-test";
  std::string skip;
  base::Result<LimitsFacts> l = limits_after(
      [&]() -> std::string {
        if (!os::is_folder("/sys/fs/cgroup/pids") || !os::is_folder("/sys/fs/cgroup/memory")) return "no cgroup version 1";
        ::mkdir(pids.c_str(), 0755);
        ::mkdir(memory.c_str(), 0755);
        std::string self = std::to_string(::getpid());
        if (!write_to(pids + "/pids.max", "80") || !write_to(memory + "/memory.limit_in_bytes", "67108864")) return "no writable cgroup";
        if (!write_to(pids + "/cgroup.procs", self) || !write_to(memory + "/cgroup.procs", self)) return "no way into a cgroup";
        return "";
      },
      skip);
  ::rmdir(pids.c_str());
  ::rmdir(memory.c_str());
  ASSERT_TRUE(l.ok()) << l.error().message;
  if (!skip.empty()) GTEST_SKIP() << skip;
  EXPECT_EQ(l->pids_max, 80);
  EXPECT_GE(l->pids_used, 1);
  EXPECT_EQ(l->pids_cgroup, pids);
  EXPECT_EQ(l->cgroup_memory_bytes, 64 << 20);
  EXPECT_EQ(l->memory_cgroup, memory);
}

TEST(Limits, OfControlGroupsVersionTwoTheTightestCounts) {
  ProbeRequest r;
  r.root = folder();
  put(r.root + "/proc/self/cgroup", "0::/user.slice/job.scope\n");
  put(r.root + "/proc/self/mountinfo", "29 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
  std::string top = r.root + "/sys/fs/cgroup/user.slice";
  put(top + "/pids.max", "1000\n");
  put(top + "/pids.current", "990\n");
  put(top + "/job.scope/pids.max", "100\n");
  put(top + "/job.scope/pids.current", "5\n");
  put(top + "/memory.max", "max\n");
  put(top + "/job.scope/memory.max", "8589934592\n");
  put(top + "/job.scope/memory.current", "2147483648\n");
  put(top + "/job.scope/memory.stat", "anon 100\ninactive_file 1073741824\n");
  put(top + "/job.scope/cpu.max", "400000 100000\n");
  put(top + "/cpu.max", "max 100000\n");
  put(top + "/job.scope/cpuset.cpus.effective", "0-7,16-23\n");
  LimitsFacts l = probe_limits(r);
  EXPECT_EQ(l.pids_max, 1000) << "ten are left there, ninety-five below";
  EXPECT_EQ(l.pids_cgroup, "/sys/fs/cgroup/user.slice");
  EXPECT_EQ(l.cgroup_memory_bytes, int64_t{8} << 30);
  EXPECT_EQ(l.cgroup_memory_used_bytes, int64_t{1} << 30) << "without page cache that is not in use";
  EXPECT_DOUBLE_EQ(l.cpu_quota, 4.0);
  EXPECT_EQ(l.cpuset, "0-7,16-23");
  EXPECT_EQ(count_cpulist(l.cpuset), 16);
  EXPECT_EQ(l.nofile, 0) << "a tree has no rlimits";
}

TEST(SmallFiles, CpuLists) {
  EXPECT_EQ(count_cpulist("0"), 1);
  EXPECT_EQ(count_cpulist("0-3,8,10-11\n"), 7);
  for (const char* bad : {"", "a", "3-1", "0-99999999999", "1,,2"}) EXPECT_EQ(count_cpulist(bad), 0) << bad;
}

TEST(Machine, ThisOne) {
  ProbeRequest r;
  Machine m = probe_machine(r);
  char name[256] = "";
  ASSERT_EQ(::gethostname(name, sizeof(name)), 0);
  EXPECT_EQ(m.hostname, name);
  EXPECT_EQ(m.boot_id.size(), 36u);
  EXPECT_FALSE(m.kernel.empty());
  EXPECT_GT(m.memory_bytes, int64_t{64} << 20);
  EXPECT_GE(m.cpus_online, 1);
  EXPECT_GE(m.cpus_usable, 1);
  EXPECT_EQ(m.glibc, ::gnu_get_libc_version());
  EXPECT_FALSE(m.user.empty());
}

TEST(Clock, ThisOne) {
  ClockFacts c = probe_clock({});
  EXPECT_GT(c.wall_ns, int64_t{1'700'000'000} * 1'000'000'000);
  EXPECT_GT(c.mono_ns, 0);
  EXPECT_FALSE(c.time_zone.empty());
}

TEST(Clock, TheZoneIsWhereLocaltimePoints) {
  ProbeRequest r;
  r.root = folder();
  put(r.root + "/run/chrony/chronyd.pid", "77\n");
  ASSERT_TRUE(os::make_folders(r.root + "/etc").ok());
  ASSERT_EQ(::symlink("/usr/share/zoneinfo/Asia/Shanghai", (r.root + "/etc/localtime").c_str()), 0);
  ClockFacts c = probe_clock(r);
  EXPECT_EQ(c.time_zone, "Asia/Shanghai");
  EXPECT_EQ(c.daemon, "chronyd");
}

}  // namespace
}  // namespace phalanx::machine
