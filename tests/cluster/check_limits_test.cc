// Low limits and a clock that is off, really made on the test cluster and found by `phalanx check`.
#include <unistd.h>

#include "check_fixture.h"

namespace {

using namespace phalanx::testbed;
using namespace std::chrono_literals;

class CheckLimits : public Check {
 protected:
  void TearDown() override {
    if (!group_.empty()) ::rmdir(group_.c_str());
    Check::TearDown();
  }
  // Sessions inherit the limits of the sshd that listens. What was lowered comes back with a boot: raising needs CAP_SYS_RESOURCE.
  void limit(const std::string& what) { say("h2", "prlimit --pid $(cat /run/testbed/sshd.pid) " + what); }
  void boot_anew() {
    forget_bystander("h2");
    ASSERT_TRUE(cluster().kill_all("h2").ok());
    ASSERT_TRUE(cluster().boot("h2").ok());
  }
  // h2's sshd, and so its sessions, in a group of a controller of version 1; false: there is none here.
  bool confine(const std::string& controller, const std::string& file, const std::string& value) {
    group_ = "/sys/fs/cgroup/" + controller + "/phalanx-check-" + std::to_string(::getpid());
    std::string made = say("h2", "[ -d /sys/fs/cgroup/" + controller + " ] || exit 0; mkdir " + group_ + " && echo " + value + " > " +
                                     group_ + "/" + file + " && cat /run/testbed/sshd.pid > " + group_ + "/cgroup.procs && echo made");
    return made.find("made") != std::string::npos;
  }
  void release(const std::string& controller) {
    say("h2",
        "for p in $(cat " + group_ + "/cgroup.procs); do echo $p > /sys/fs/cgroup/" + controller + "/cgroup.procs 2>/dev/null; done; true");
  }
  // A user without root's exemptions, who may log in on h2.
  void add_user() {
    say("h2",
        "cp /etc/passwd /tmp/passwd; echo 'me:x:4321:4321::/tmp/me:/bin/bash' >> /tmp/passwd; mount --bind /tmp/passwd /etc/passwd; "
        "mkdir -p /tmp/me/.ssh; cp ~/.ssh/authorized_keys /tmp/me/.ssh/; chown -R 4321:4321 /tmp/me; chmod 700 /tmp/me /tmp/me/.ssh");
  }
  std::string group_;  // of which sshd is a member
};

TEST_F(CheckLimits, FewFilesMayBeOpen) {
  start({.hosts = 3});
  limit("--nofile=128:128");
  expect(check(kHosts), "LIM-NOFILE", "h2");
  boot_anew();
  expect_gone(check(kHosts), "LIM-NOFILE");
}

TEST_F(CheckLimits, FewProcessesMayBeStarted) {
  start({.hosts = 3});
  add_user();
  const Words hosts = {"-H", "h1,me@h2,h3", "--nproc-per-node", "2", "--", "true"};
  limit("--nproc=40:40");
  expect(check(hosts), "LIM-NPROC", "h2");
  boot_anew();
  add_user();
  expect_gone(check(hosts), "LIM-NPROC");
}

TEST_F(CheckLimits, LittleMemoryMayBeLocked) {
  const HostOptions gpus = session_variable(kGpuLibrary);
  start({.hosts = 3, .host = {gpus, gpus, gpus}});
  add_user();
  // An adapter as the kernel shows one: its folder under /sys/class, which h2 then sees instead of the machine's.
  say("h2",
      "cp -a /sys/class /tmp/class; p=/tmp/class/infiniband/mlx5_0/ports/1; mkdir -p $p/gids $p/pkeys; echo '4: ACTIVE' > $p/state; echo "
      "'5: "
      "LinkUp' > $p/phys_state; echo InfiniBand > $p/link_layer; echo '100 Gb/sec (4X EDR)' > $p/rate; echo 0x1f > $p/lid; echo 0x1 > "
      "$p/sm_lid; echo 0xffff > $p/pkeys/0; mount --bind /tmp/class /sys/class");
  for (const std::string& host : cluster().hosts()) say(host, two_gpus(host));
  const Words hosts = {"-H", "h1,me@h2,h3"};
  limit("--memlock=65536:65536");
  expect(check(hosts), "LIM-MEMLOCK", "h2");
  expect_gone(check(kHosts), "LIM-MEMLOCK");  // root is exempt
}

TEST_F(CheckLimits, AGroupOfFewTasks) {
  start({.hosts = 3});
  if (!confine("pids", "pids.max", "48")) GTEST_SKIP() << "no pids controller of cgroup v1 here";
  expect_fixed(with(kHosts, {"--nproc-per-node", "4", "--", "true"}), "LIM-PIDS-MAX", "h2");
  release("pids");
}

TEST_F(CheckLimits, AGroupOfLittleMemory) {
  start({.hosts = 3});
  if (!confine("memory", "memory.limit_in_bytes", "512M")) GTEST_SKIP() << "no memory controller of cgroup v1 here";
  const Words ranks = with(kHosts, {"--nproc-per-node", "4", "--", "python3", "-c", "import torch"});
  expect(check(ranks), "LIM-MEMORY-NONE", "h2");
  say("h2", "echo -1 > " + group_ + "/memory.limit_in_bytes");
  expect_gone(check(ranks), "LIM-MEMORY-NONE");
  release("memory");
}

// The agent is a static program: a clock that lies to it needs one that is not (the same code, linked dynamically).
TEST_F(CheckLimits, AClockThirtySecondsOff) {
  std::string faketime = "/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1";
  if (::access(faketime.c_str(), R_OK) != 0) GTEST_SKIP() << faketime << " is missing (package faketime)";
  start({.hosts = 3,
         .host = {HostOptions{},
                  session_variable("LD_PRELOAD=" + faketime + " FAKETIME=+30s FAKETIME_DONT_FAKE_MONOTONIC=1 DONT_FAKE_MONOTONIC=1")}});
  expect(ask(with({PHALANX_DYNAMIC_PROGRAM, "check", "--json"}, kHosts)), "TIME-SKEW", "h2");
}

}  // namespace
