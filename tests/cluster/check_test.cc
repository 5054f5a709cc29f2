// Faults that are really made on the test cluster, found by `phalanx check`: host, code, a fix; and clean after it.
#include "check_fixture.h"

namespace {

using namespace testbed;
using namespace std::chrono_literals;

const Words kHosts = {"-H", "h1,h2,h3"};

Words with(Words a, const Words& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// A host whose logins get these variables ("A=1 B=2").
HostOptions session_variable(const std::string& assignments) {
  HostOptions host;
  host.sshd_config = {"SetEnv " + assignments};
  return host;
}

// --- the network -------------------------------------------------------------------------------------------------------

class CheckNetwork : public Check {
 protected:
  void SetUp() override {
    Check::SetUp();
    if (!IsSkipped()) start({.hosts = 3});
  }
  // A firewall on h2 that answers new connections to any port but ssh's in its own way.
  void firewall(const std::string& verdict) {
    say("h2",
        "nft add table inet wall; nft add chain inet wall input '{ type filter hook input priority 0; }'; "
        "nft add rule inet wall input iifname eth0 ct state new tcp dport 1024-65535 " +
            verdict);
  }
  void open_firewall() { say("h2", "nft delete table inet wall"); }
};

TEST_F(CheckNetwork, AHealthyClusterIsClean) {
  Checked checked = check(kHosts);
  EXPECT_EQ(checked.outcome.exit_code, 0) << checked.all();
  for (const base::Json& finding : checked.json["findings"]) EXPECT_EQ(finding["severity"], "note") << checked.all();
}

TEST_F(CheckNetwork, PortsThatDrop) {
  firewall("drop");
  expect(check(kHosts), "NET-PORT-DROPPED", "h2");
  open_firewall();
  expect_gone(check(kHosts), "NET-PORT-DROPPED");
}

TEST_F(CheckNetwork, PortsThatAreReset) {
  firewall("reject with tcp reset");
  expect(check(kHosts), "NET-PORT-REFUSED", "h2");
  open_firewall();
  expect_gone(check(kHosts), "NET-PORT-REFUSED");
}

TEST_F(CheckNetwork, PortsThatAreRejected) {
  firewall("reject");
  expect(check(kHosts), "NET-PORT-REJECTED", "h2");
  open_firewall();
  expect_gone(check(kHosts), "NET-PORT-REJECTED");
}

TEST_F(CheckNetwork, PortsProhibitedByAnAdministrator) {
  firewall("reject with icmpx admin-prohibited");
  expect(check(kHosts), "NET-PROHIBITED", "h2");
  open_firewall();
  expect_gone(check(kHosts), "NET-PROHIBITED");
}

TEST_F(CheckNetwork, NoRoute) {
  say("h2", "ip route add unreachable 10.77.0.3/32");
  expect(check(kHosts), "NET-NO-ROUTE", "h2");
  say("h2", "ip route del unreachable 10.77.0.3/32");
  expect_gone(check(kHosts), "NET-NO-ROUTE");
}

TEST_F(CheckNetwork, AHoleForLargePackets) {
  say("h2",
      "ethtool -K eth0 tso off gso off gro off 2>/dev/null; nft add table inet hole; nft add chain inet hole input '{ type filter hook "
      "input priority 0; }'; "
      "nft add rule inet hole input iifname eth0 tcp dport != 22 tcp sport != 22 meta length '>' 1400 drop");
  expect(check(kHosts), "NET-MTU-HOLE", "h2");
  say("h2", "nft delete table inet hole");
  expect_gone(check(kHosts), "NET-MTU-HOLE");
}

TEST_F(CheckNetwork, TheSameDecoyAddressEverywhere) {
  for (const std::string& host : cluster().hosts())
    say(host, "ip link add ib0 type veth peer name ib0p; ip addr add 192.168.122.1/24 dev ib0; ip link set ib0 up; ip link set ib0p up");
  expect(check(kHosts), "NET-SAME-DECOY", "h1");
  for (const std::string& host : cluster().hosts()) say(host, "ip link del ib0");
  expect_gone(check(kHosts), "NET-SAME-DECOY");
}

TEST_F(CheckNetwork, AnInterfaceNameThatIsMissing) {
  expect(check(with(kHosts, {"--env", "NCCL_SOCKET_IFNAME=eth7"})), "NET-IFNAME-MISSING", "h2");
  expect_gone(check(with(kHosts, {"--env", "NCCL_SOCKET_IFNAME=eth0"})), "NET-IFNAME-MISSING");
}

TEST_F(CheckNetwork, HostsInDifferentSubnets) {
  // h3 moves to a network of its own; ctl still reaches it by a route, the others do not.
  say("h3", "ip addr flush dev eth0; ip addr add 10.99.0.3/24 dev eth0; ip route add 10.77.255.1/32 dev eth0");
  say("ctl",
      "ip route add 10.99.0.3/32 dev eth0; cp /etc/hosts /tmp/hosts; sed -i 's/^10.77.0.3 /10.99.0.3 /; s/^10.77.0.3\\t/10.99.0.3\\t/' "
      "/tmp/hosts; cat /tmp/hosts > /etc/hosts");
  Checked checked = check(kHosts);
  expect(checked, "NET-DIFF-SUBNET", "h3");
  EXPECT_EQ(checked.outcome.exit_code, 3) << checked.all();
}

TEST_F(CheckNetwork, AThrottledLink) {
  ASSERT_TRUE(cluster().throttle("h2", "50mbit").ok());
  expect(check(kHosts), "NET-SLOW-LINK", "h2");
  ASSERT_TRUE(cluster().heal("h2").ok());
  expect_gone(check(kHosts), "NET-SLOW-LINK");
}

TEST_F(CheckNetwork, TheOwnNameIsLoopback) {
  std::string hosts = say("h2", "cat /etc/hosts");
  say("h2", "cp /etc/hosts /tmp/hosts; (echo '127.0.1.1 h2'; grep -v ' h2$' /tmp/hosts | grep -v '\\sh2$') > /etc/hosts");
  expect(check(kHosts), "RDZV-NAME-LOOPBACK", "h2");
  say("h2", "cat /tmp/hosts > /etc/hosts");
  expect_gone(check(kHosts), "RDZV-NAME-LOOPBACK");
}

TEST_F(CheckNetwork, TwoHostsWithOneName) {
  say("h2", "hostname h1");
  expect(check(kHosts), "RDZV-DUPLICATE-HOSTNAME", "h2");
  say("h2", "hostname h2");
  expect_gone(check(kHosts), "RDZV-DUPLICATE-HOSTNAME");
}

TEST_F(CheckNetwork, APortHeldByAnOrphan) {
  say("h1",
      "setsid sh -c 'cd /tmp; python3 -m http.server 29511 > /tmp/http.log 2>&1 &' ; for i in $(seq 100); do ss -ltn | grep -q :29511 && "
      "exit 0; sleep 0.05; done; exit 1");
  Checked checked = check(with(kHosts, {"--master-port", "29511"}));
  expect(checked, "RDZV-PORT-TAKEN", "h1");
  std::string fix = checked.fix("RDZV-PORT-TAKEN", "h1");
  EXPECT_HAS(fix, "kill ");
  type("ctl", fix);
  expect_gone(check(with(kHosts, {"--master-port", "29511"})), "RDZV-PORT-TAKEN");
}

// --- storage -----------------------------------------------------------------------------------------------------------

class CheckStorage : public Check {};

TEST_F(CheckStorage, SharedMemoryOfOneMebibyte) {
  HostOptions small;
  small.shm.size_kib = 1024;
  start({.hosts = 3, .host = {HostOptions{}, small}});
  expect(check(kHosts), "FS-SHM-SMALL", "h2");
  say("h2", "mount -o remount,size=8g /dev/shm");
  expect_gone(check(kHosts), "FS-SHM-SMALL");
}

TEST_F(CheckStorage, FullReadOnlyAndWithoutInodes) {
  start({.hosts = 3});
  Words command = with(kHosts, {"--", "python3", "train.py", "--output_dir", "/tmp/out"});
  for (const std::string& host : cluster().hosts()) say(host, "mkdir /tmp/out; touch /tmp/train.py");
  say("ctl", "touch /tmp/train.py");

  say("h2", "mount -t tmpfs -o size=4m full /tmp/out; dd if=/dev/zero of=/tmp/out/old bs=64k 2>/dev/null; true");
  expect(check(command), "FS-DISK-FULL", "h2");
  say("h2",
      "umount /tmp/out; mount -t tmpfs -o size=64m,nr_inodes=8 few /tmp/out; for i in 1 2 3 4 5 6 7 8 9; do touch /tmp/out/$i 2>/dev/null; "
      "done; true");
  expect(check(command), "FS-INODES-FULL", "h2");
  say("h2", "umount /tmp/out; mount -t tmpfs -o ro ro /tmp/out");
  Checked read_only = check(command);
  expect(read_only, "FS-READ-ONLY", "h2");
  say("h2", "umount /tmp/out");
  Checked clean = check(command);
  for (const char* code : {"FS-DISK-FULL", "FS-INODES-FULL", "FS-READ-ONLY"}) expect_gone(clean, code);
}

TEST_F(CheckStorage, AFileSystemThatHangs) {
  start({.hosts = 3});
  for (const std::string& host : cluster().hosts()) say(host, "mkdir -p /tmp/data; touch /tmp/train.py");
  auto server = cluster().start_on("h2", {.argv = {"python3", script("hung_fs.py"), "/tmp/data"}});
  ASSERT_TRUE(server.ok());
  if (!server->wait_output("mounted", 5s)) GTEST_SKIP() << "no FUSE here: " << server->err();
  Words command = with(kHosts, {"--", "python3", "/tmp/train.py", "--data_path", "/tmp/data"});
  Checked checked = check(command);
  expect(checked, "FS-HUNG", "h2");
  EXPECT_LT(checked.outcome.took, 6s) << "one hung file system must cost its deadline only";
  server->signal(SIGKILL);  // its end releases everybody who waits
  EXPECT_TRUE(server->wait(2s));
  say("h2", "umount -l /tmp/data");
  expect_gone(check(command), "FS-HUNG");
}

TEST_F(CheckStorage, MountsAndContents) {
  start({.hosts = 3});
  for (const std::string& host : cluster().hosts())
    say(host,
        "touch /tmp/train.py; mkdir -p /tmp/data /tmp/model; mount -t tmpfs nas:/data /tmp/data; seq 1000 > /tmp/data/a.txt; seq 500 > "
        "/tmp/model/config.json");
  Words command = with(kHosts, {"--", "python3", "/tmp/train.py", "--data_path", "/tmp/data", "--model_name_or_path", "/tmp/model"});
  expect_gone(check(command), "FS-MOUNT-MISSING");
  say("h3", "umount /tmp/data");
  expect(check(command), "FS-MOUNT-MISSING", "h3");
  say("h3", "mount -t tmpfs nas:/data /tmp/data; seq 1000 > /tmp/data/a.txt");
  say("h2", "echo changed >> /tmp/model/config.json");
  expect(check(command), "FS-CONTENT-DIFFERS", "h2");
  say("h2", "seq 500 > /tmp/model/config.json; mv /tmp/model /tmp/model.away");
  expect(check(command), "FS-PATH-DIFFERS", "h2");
  say("h2", "mv /tmp/model.away /tmp/model");
  Checked clean = check(command);
  for (const char* code : {"FS-MOUNT-MISSING", "FS-CONTENT-DIFFERS", "FS-PATH-DIFFERS"}) expect_gone(clean, code);
}

// --- software ----------------------------------------------------------------------------------------------------------

class CheckSoftware : public Check {
 protected:
  // A virtual environment at /tmp/env on every host, with the metadata of the packages a training environment has.
  void environments() {
    for (const std::string& host : cluster().hosts())
      say(host,
          "python3 -m venv --without-pip /tmp/env && cd /tmp/env/lib/python3*/site-packages && for p in torch-2.4.0 transformers-4.44.2 "
          "deepspeed-0.15.1; do "
          "mkdir $p.dist-info; printf 'Metadata-Version: 2.1\\nName: %s\\nVersion: %s\\n' ${p%-*} ${p#*-} > $p.dist-info/METADATA; done; "
          "printf '#!/tmp/env/bin/python3\\nprint(1)\\n' > /tmp/env/bin/torchrun; chmod +x /tmp/env/bin/torchrun; echo 'import torch' > "
          "/tmp/train.py");
  }
  Words command(const std::string& program = "/tmp/env/bin/python3") { return with(kHosts, {"--", program, "/tmp/train.py"}); }
};

TEST_F(CheckSoftware, EnvironmentsThatDiffer) {
  start({.hosts = 3});
  environments();
  Checked before = check(command());
  for (const char* code : {"ENV-TORCH-DIFFERS", "ENV-PACKAGE-MISSING", "ENV-SHEBANG"}) expect_gone(before, code);

  say("h2",
      "cd /tmp/env/lib/python3*/site-packages; mv torch-2.4.0.dist-info torch-2.3.1.dist-info; sed -i s/2.4.0/2.3.1/ "
      "torch-2.3.1.dist-info/METADATA");
  expect(check(command()), "ENV-TORCH-DIFFERS", "h2");
  say("h2",
      "cd /tmp/env/lib/python3*/site-packages; mv torch-2.3.1.dist-info torch-2.4.0.dist-info; sed -i s/2.3.1/2.4.0/ "
      "torch-2.4.0.dist-info/METADATA");

  say("h3", "cd /tmp/env/lib/python3*/site-packages; mv deepspeed-0.15.1.dist-info /tmp/away");
  expect(check(command()), "ENV-PACKAGE-MISSING", "h3");
  say("h3", "mv /tmp/away /tmp/env/lib/python3*/site-packages/deepspeed-0.15.1.dist-info");

  say("h2", "sed -i '1s#.*#\\#!/home/me/anaconda2/envs/llm/bin/python3.11#' /tmp/env/bin/torchrun");
  Checked checked = check(command("/tmp/env/bin/torchrun"));
  expect(checked, "ENV-SHEBANG", "h2");
  type("ctl", checked.fix("ENV-SHEBANG", "h2"));
  Checked clean = check(command("/tmp/env/bin/torchrun"));
  for (const char* code : {"ENV-TORCH-DIFFERS", "ENV-PACKAGE-MISSING", "ENV-SHEBANG"}) expect_gone(clean, code);
}

TEST_F(CheckSoftware, AStaleLock) {
  start({.hosts = 3});
  environments();
  say("h2",
      "mkdir -p ~/.cache/torch_extensions/py311_cpu/fused_adam; touch -d '2 hours ago' "
      "~/.cache/torch_extensions/py311_cpu/fused_adam/lock");
  Checked checked = check(command());
  expect(checked, "ENV-EXT-LOCK", "h2");
  type("ctl", checked.fix("ENV-EXT-LOCK", "h2"));
  expect_gone(check(command()), "ENV-EXT-LOCK");
}

TEST_F(CheckSoftware, VisibleDevicesOnOneHostOnly) {
  start({.hosts = 3, .host = {HostOptions{}, session_variable("CUDA_VISIBLE_DEVICES=0")}});
  expect(check(kHosts), "VIS-CVD-DIFFERS", "h2");
  expect_gone(check(with(kHosts, {"--env", "CUDA_VISIBLE_DEVICES=0"})), "VIS-CVD-DIFFERS");
}

// --- limits and clocks -------------------------------------------------------------------------------------------------

class CheckLimits : public Check {
 protected:
  // Sessions inherit the limits of the sshd that listens.
  void limit(const std::string& what) { say("h2", "prlimit --pid $(cat /run/testbed/sshd.pid) " + what); }
};

TEST_F(CheckLimits, LowLimitsOfTheLogin) {
  start({.hosts = 3});
  limit("--nofile=128:128");
  expect(check(kHosts), "LIM-NOFILE", "h2");
  limit("--nofile=1048576:1048576");
  expect_gone(check(kHosts), "LIM-NOFILE");
}

TEST_F(CheckLimits, ProcessesAndMemoryOfACgroup) {
  start({.hosts = 3});
  std::string made =
      say("h2",
          "d=/sys/fs/cgroup/pids; [ -d $d ] || exit 0; mkdir $d/phalanx-check-test && echo 48 > $d/phalanx-check-test/pids.max && "
          "cat /run/testbed/sshd.pid > $d/phalanx-check-test/cgroup.procs && echo made");
  if (made.find("made") == std::string::npos) GTEST_SKIP() << "no pids controller of cgroup v1 here";
  expect(check(with(kHosts, {"--nproc-per-node", "4"})), "LIM-PIDS-MAX", "h2");
  say("h2", "echo max > /sys/fs/cgroup/pids/phalanx-check-test/pids.max");
  expect_gone(check(with(kHosts, {"--nproc-per-node", "4"})), "LIM-PIDS-MAX");
  say("h2", "cat /run/testbed/sshd.pid > /sys/fs/cgroup/pids/cgroup.procs; rmdir /sys/fs/cgroup/pids/phalanx-check-test || true");

  made = say("h2",
             "d=/sys/fs/cgroup/memory; [ -d $d ] || exit 0; mkdir $d/phalanx-check-test && echo 512M > "
             "$d/phalanx-check-test/memory.limit_in_bytes && "
             "cat /run/testbed/sshd.pid > $d/phalanx-check-test/cgroup.procs && echo made");
  if (made.find("made") == std::string::npos) GTEST_SKIP() << "no memory controller of cgroup v1 here";
  expect(check(with(kHosts, {"--nproc-per-node", "4"})), "LIM-MEMORY-CGROUP", "h2");
  say("h2", "echo -1 > /sys/fs/cgroup/memory/phalanx-check-test/memory.limit_in_bytes");
  expect_gone(check(with(kHosts, {"--nproc-per-node", "4"})), "LIM-MEMORY-CGROUP");
  say("h2", "cat /run/testbed/sshd.pid > /sys/fs/cgroup/memory/cgroup.procs; rmdir /sys/fs/cgroup/memory/phalanx-check-test || true");
}

// The agent is a static program: a clock that lies to it needs one that is not (the same code, linked dynamically).
TEST_F(CheckLimits, AClockThirtySecondsOff) {
  std::string faketime = "/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1";
  if (::access(faketime.c_str(), R_OK) != 0) GTEST_SKIP() << faketime << " is missing (package faketime)";
  start({.hosts = 3,
         .host = {HostOptions{},
                  session_variable("LD_PRELOAD=" + faketime + " FAKETIME=+30s FAKETIME_DONT_FAKE_MONOTONIC=1 DONT_FAKE_MONOTONIC=1")}});
  Words argv = {PHALANX_DYNAMIC_PROGRAM, "check", "--json", "-H", "h1,h2,h3"};
  Checked checked;
  checked.outcome = cluster().run_on("ctl", {.argv = argv, .cwd = "/tmp"});
  auto json = base::parse_json(checked.outcome.out, 64 << 20);
  ASSERT_TRUE(json.ok()) << checked.outcome;
  checked.json = *json;
  expect(checked, "TIME-SKEW", "h2");
}

}  // namespace
