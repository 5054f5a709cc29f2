// The test cluster proves itself: every fault does what it says and no more, and nothing outlives the process that made it.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cgroup.h"
#include "cluster.h"
#include "state.h"

using namespace phalanx;

namespace {

using namespace std::chrono_literals;
using testbed::Cluster;
using testbed::Command;
using testbed::Direction;
using testbed::Options;
using testbed::Outcome;

class Testbed : public testing::Test {
 protected:
  void SetUp() override {
    if (auto reason = testbed::unavailable()) GTEST_SKIP() << "no test cluster: " << *reason;
  }

  static Cluster up(Options options = {}) {
    auto cluster = Cluster::up(options);
    if (!cluster.ok()) ADD_FAILURE() << cluster.error().render();
    return std::move(cluster).value();
  }

  static Command shell(const std::string& script) { return Command{.argv = {"/bin/bash", "-c", script}}; }
  static std::string say(const Cluster& cluster, const std::string& host, const std::string& script) {
    Outcome outcome = cluster.run_on(host, shell(script));
    EXPECT_EQ(outcome.exit_code, 0) << script << "\n" << outcome;
    return outcome.out;
  }

  // What one host meets at the ssh port of another: the first word it is sent, "refused", or "silence" for as long as it waits.
  static std::string meet(const Cluster& cluster, const std::string& from, const std::string& to, std::chrono::milliseconds most = 700ms) {
    std::string seconds = std::to_string(static_cast<double>(most.count()) / 1000);
    Outcome outcome = cluster.run_on(from, shell("timeout " + seconds + " bash -c 'exec 3<>/dev/tcp/" + to + "/22 && head -n 1 <&3'"));
    if (outcome.exit_code == 124) return "silence";
    return outcome.exit_code == 0 ? outcome.out.substr(0, 4) : "refused";
  }
};

#define EXPECT_DONE(expression)                              \
  do {                                                       \
    auto done_ = (expression);                               \
    EXPECT_TRUE(done_.ok()) << done_.error().render();       \
  } while (0)

TEST_F(Testbed, HostsAreApartButShareTheProject) {
  Cluster cluster = up();
  EXPECT_EQ(cluster.hosts(), (std::vector<std::string>{"h1", "h2"}));
  EXPECT_EQ(say(cluster, "h1", "hostname; cat /etc/hostname; ls /sys/class/net"), "h1\nh1\neth0\nlo\n");
  EXPECT_EQ(say(cluster, "h2", "hostname; hostname -I"), "h2\n10.77.0.2 fd77::2 \n");
  EXPECT_EQ(say(cluster, "ctl", "hostname"), "ctl\n");
  EXPECT_NE(say(cluster, "h1", "cat /etc/machine-id"), say(cluster, "h2", "cat /etc/machine-id"));
  for (const char* folder : {"$HOME", "/tmp", "/var/tmp", "/run", "/dev/shm", "/var/log"}) {
    std::string mark = std::string(folder) + "/testbed-mark";
    say(cluster, "h1", "echo here > " + mark);
    EXPECT_EQ(say(cluster, "h2", "ls " + mark + " 2>/dev/null || echo none"), "none\n") << folder;
  }
  EXPECT_EQ(say(cluster, "h1", "head -n 1 " TESTBED_PROJECT "/tests/cluster/testbed_test.cc"),
            "// The test cluster proves itself: every fault does what it says and no more, "
            "and nothing outlives the process that made it.\n");
  EXPECT_EQ(say(cluster, "ctl", "ssh h1 hostname; ssh h2 ssh h1 hostname"), "h1\nh1\n");
  say(cluster, "h1", "setsid sleep 1000 >/dev/null 2>&1 < /dev/null & until pgrep -x sleep >/dev/null; do :; done");
  EXPECT_EQ(say(cluster, "h2", "pgrep sleep || echo none"), "none\n");
  ASSERT_EQ(cluster.processes("h1").size(), 1U);
  EXPECT_EQ(cluster.processes("h1")[0].command, "sleep 1000");
  EXPECT_EQ(cluster.processes("h2").size(), 0U);
  EXPECT_EQ(cluster.kill_processes("h1", "sleep"), 1);
}

TEST_F(Testbed, ProcessesGiveTheirOutputExitAndTime) {
  Cluster cluster = up({.hosts = 1});
  Outcome outcome = cluster.run_on(
      "h1",
      {.argv = {"sh", "-c", "cat; echo $0 $1 $X >&2; pwd; exit 3", "a b", "c'd"}, .env = {{"X", "$y"}}, .cwd = "/usr", .input = "in"});
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_EQ(outcome.out, "in/usr\n");
  EXPECT_EQ(outcome.err, "a b c'd $y\n");
  EXPECT_EQ(cluster.run_on("h1", shell("kill -9 $$")).signal, SIGKILL);
  EXPECT_EQ(cluster.run_on("h1", {.argv = {"/no/such"}}).exit_code, 127);
  outcome = cluster.run_on("h1", shell("echo first; sleep 100"), 200ms);
  EXPECT_FALSE(outcome.ended);
  EXPECT_EQ(outcome.out, "first\n");
  EXPECT_GE(outcome.took, 200ms);
  EXPECT_LT(outcome.took, 2s);
  EXPECT_EQ(cluster.processes("h1").size(), 0U);
  std::string megabyte(1 << 20, 'x');
  EXPECT_EQ(cluster.run_on("h1", {.argv = {"cat"}, .input = megabyte}).out, megabyte);
}

TEST_F(Testbed, ATerminalIsATerminal) {
  Cluster cluster = up({.hosts = 1});
  Command command = shell("stty size; trap 'echo caught; exit 5' INT; echo ready; while read x; do echo got $x; done");
  command.stdio = Command::kTerminal;
  auto process = cluster.start_on("h1", command);
  ASSERT_TRUE(process.ok());
  ASSERT_TRUE(process->wait_output("ready", 5s));
  process->type("hello\n");
  ASSERT_TRUE(process->wait_output("got hello", 5s));
  process->type("\x03");
  Outcome outcome = process->finish(5s);
  EXPECT_EQ(outcome.exit_code, 5) << outcome;
  EXPECT_NE(outcome.out.find("30 100"), std::string::npos);
  EXPECT_NE(outcome.out.find("caught"), std::string::npos);
}

TEST_F(Testbed, CutTakesTheCarrier) {
  Cluster cluster = up();
  EXPECT_EQ(meet(cluster, "ctl", "h1", 5s), "SSH-");
  EXPECT_DONE(cluster.cut("h1"));
  EXPECT_EQ(say(cluster, "h1", "cat /sys/class/net/eth0/carrier"), "0\n");
  EXPECT_EQ(meet(cluster, "ctl", "h1"), "silence");
  EXPECT_EQ(meet(cluster, "ctl", "h2", 5s), "SSH-");
  EXPECT_EQ(meet(cluster, "h1", "h1", 5s), "SSH-");
  EXPECT_DONE(cluster.heal("h1"));
  EXPECT_EQ(meet(cluster, "ctl", "h1", 5s), "SSH-");
}

TEST_F(Testbed, DropIsSilentAndCanBeOneWay) {
  Cluster cluster = up();
  // A datagram of h1 to ctl and one of ctl to h1: which arrive? The neighbours know each other's addresses from the first round.
  auto heard = [&](const std::string& from, const std::string& to) {
    auto listener = cluster.start_on(
        to, {.argv = {"/usr/bin/python3", "-c",
                      "import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.bind(('', 9)); print('bound', flush=True); "
                      "s.settimeout(0.7); print(s.recv(99).decode(), flush=True)"}});
    EXPECT_TRUE(listener.ok() && listener->wait_output("bound", 5s));
    say(cluster, from, "echo word > /dev/udp/" + to + "/9");
    return listener->finish(5s).out.find("word") != std::string::npos;
  };
  EXPECT_TRUE(heard("h1", "ctl"));
  EXPECT_TRUE(heard("ctl", "h1"));
  EXPECT_DONE(cluster.drop("h1", Direction::kFrom));
  EXPECT_FALSE(heard("h1", "ctl"));
  EXPECT_TRUE(heard("ctl", "h1"));
  EXPECT_DONE(cluster.heal("h1"));
  EXPECT_DONE(cluster.drop("h1", Direction::kTo));
  EXPECT_TRUE(heard("h1", "ctl"));
  EXPECT_FALSE(heard("ctl", "h1"));
  EXPECT_DONE(cluster.heal("h1"));
  EXPECT_DONE(cluster.drop("h1", Direction::kBoth));
  EXPECT_EQ(say(cluster, "h1", "cat /sys/class/net/eth0/carrier"), "1\n");
  EXPECT_EQ(meet(cluster, "ctl", "h1"), "silence");
  EXPECT_EQ(meet(cluster, "h1", "ctl"), "silence");
  EXPECT_DONE(cluster.heal("h1"));
  EXPECT_EQ(meet(cluster, "ctl", "h1", 5s), "SSH-");
}

TEST_F(Testbed, SeparateHostsReachAllButEachOther) {
  Cluster cluster = up();
  EXPECT_DONE(cluster.separate("h1", "h2"));
  EXPECT_EQ(meet(cluster, "h1", "h2"), "silence");
  EXPECT_EQ(meet(cluster, "h2", "h1"), "silence");
  EXPECT_EQ(meet(cluster, "ctl", "h1", 5s), "SSH-");
  EXPECT_EQ(meet(cluster, "h2", "ctl", 5s), "SSH-");
  EXPECT_DONE(cluster.heal("h1"));
  EXPECT_EQ(meet(cluster, "h1", "h2", 5s), "SSH-");
}

TEST_F(Testbed, ThrottleHoldsTheRateBothWays) {
  Cluster cluster = up({.hosts = 1});
  auto took = [&](const std::string& script) { return cluster.run_on("ctl", shell(script)).took; };
  const std::string fetch = "[ $(ssh h1 head -c 500000 /dev/zero | wc -c) = 500000 ]";
  const std::string send = "head -c 500000 /dev/zero | ssh h1 'cat > /dev/null'";
  EXPECT_LT(took(fetch), 1s);
  EXPECT_DONE(cluster.throttle("h1", "4mbit"));  // 1 s for half a megabyte, less what the bucket lets through at once
  EXPECT_GT(took(fetch), 800ms);
  EXPECT_GT(took(send), 800ms);
  EXPECT_DONE(cluster.heal("h1"));
  EXPECT_LT(took(fetch), 1s);
}

TEST_F(Testbed, RejectAnswersForTheNamedPortsOnly) {
  Cluster cluster = up({.hosts = 1});
  EXPECT_DONE(cluster.reject("h1", {20, 22}));
  EXPECT_EQ(meet(cluster, "ctl", "h1", 5s), "refused");
  EXPECT_EQ(meet(cluster, "h1", "localhost", 5s), "SSH-");
  EXPECT_DONE(cluster.heal("h1"));
  EXPECT_DONE(cluster.reject("h1", {1000, 65535}));
  EXPECT_EQ(meet(cluster, "ctl", "h1", 5s), "SSH-");
  EXPECT_DONE(cluster.heal("h1"));
  EXPECT_DONE(cluster.reject("h1", {22, 22}, testbed::Answer::kSilence));
  EXPECT_EQ(meet(cluster, "ctl", "h1"), "silence");
}

TEST_F(Testbed, AFrozenHostAcceptsButDoesNotAnswer) {
  Cluster cluster = up({.hosts = 1});
  auto ticking = cluster.start_on("h1", shell("while :; do echo tick; sleep 0.05; done"));
  ASSERT_TRUE(ticking.ok() && ticking->wait_output("tick", 5s));
  EXPECT_DONE(cluster.freeze("h1"));
  (void)ticking->wait(0ms);  // what it wrote before
  size_t before = ticking->out().size();
  EXPECT_EQ(meet(cluster, "ctl", "h1"), "silence");
  EXPECT_EQ(say(cluster, "ctl", "bash -c 'exec 3<>/dev/tcp/h1/22' && echo connected"), "connected\n");
  EXPECT_FALSE(ticking->wait(0ms));
  EXPECT_EQ(ticking->out().size(), before);
  EXPECT_DONE(cluster.thaw("h1"));
  EXPECT_EQ(meet(cluster, "ctl", "h1", 5s), "SSH-");
  EXPECT_FALSE(ticking->wait(300ms));
  EXPECT_GT(ticking->out().size(), before);
}

TEST_F(Testbed, PowerOffIsUnheardAndAKilledHostIsHeard) {
  Cluster cluster = up();
  auto hold = [&](const std::string& host) {  // an open connection, its sshd's greeting read
    auto process = cluster.start_on("ctl", shell("exec 3<>/dev/tcp/" + host + "/22; head -n 1 <&3; cat <&3; echo ended"));
    EXPECT_TRUE(process.ok() && process->wait_output("SSH-", 5s));
    return std::move(process).value();
  };
  auto sleeper = cluster.start_on("h1", {.argv = {"sleep", "1000"}});
  ASSERT_TRUE(sleeper.ok());
  testbed::Process to_h1 = hold("h1"), to_h2 = hold("h2");
  EXPECT_DONE(cluster.power_off("h1"));
  EXPECT_DONE(cluster.kill_all("h2"));
  EXPECT_TRUE(to_h2.wait(2s));
  EXPECT_FALSE(to_h1.wait(1s));
  EXPECT_EQ(sleeper->finish(2s).signal, SIGKILL);
  EXPECT_EQ(cluster.processes("h1").size(), 0U);
  EXPECT_EQ(cluster.run_on("h1", shell("true")).exit_code, 255);
  EXPECT_EQ(meet(cluster, "ctl", "h1"), "silence");
  EXPECT_EQ(meet(cluster, "ctl", "h2", 5s), "refused");
  EXPECT_DONE(cluster.boot("h1"));
  EXPECT_DONE(cluster.boot("h2"));
  EXPECT_EQ(meet(cluster, "ctl", "h1", 5s), "SSH-");
  EXPECT_EQ(say(cluster, "ctl", "ssh h1 hostname; ssh h2 hostname"), "h1\nh2\n");
  EXPECT_FALSE(cluster.boot("h1").ok());
}

TEST_F(Testbed, LoginsCanFailInEveryWay) {
  Options options{.hosts = 6};
  options.host.resize(6);
  options.host[1].host_key = testbed::HostKey::kUnknown;
  options.host[2].host_key = testbed::HostKey::kChanged;
  options.host[3].login = testbed::Login::kRefused;
  options.host[4].login = testbed::Login::kPasswordOnly;
  options.host[5].name = "gpu06";
  options.host[5].sshd_config = {"MaxStartups 1:100:1"};
  Cluster cluster = up(options);
  auto refusal = [&](const std::string& host) {
    Outcome outcome = cluster.run_on("ctl", shell("ssh -o BatchMode=yes " + host + " true"));
    EXPECT_EQ(outcome.exit_code, 255) << host << outcome;
    return outcome.err;
  };
  EXPECT_EQ(say(cluster, "ctl", "ssh -o BatchMode=yes h1 hostname"), "h1\n");
  EXPECT_NE(refusal("h2").find("Host key verification failed"), std::string::npos);
  EXPECT_NE(refusal("h3").find("REMOTE HOST IDENTIFICATION HAS CHANGED"), std::string::npos);
  EXPECT_NE(refusal("h4").find("Permission denied (publickey)"), std::string::npos);
  EXPECT_NE(refusal("h5").find("Permission denied (password)"), std::string::npos);
  // One login that has not yet authenticated fills it: the next is turned away at the door.
  auto first = cluster.start_on("ctl", shell("exec 3<>/dev/tcp/gpu06/22; head -n 1 <&3; cat <&3"));
  ASSERT_TRUE(first.ok() && first->wait_output("SSH-", 5s));
  EXPECT_NE(refusal("gpu06").find("kex_exchange_identification"), std::string::npos);
}

TEST_F(Testbed, FoldersCanBeFullNoexecReadOnlyOrAbsent) {
  Options options{.hosts = 4};
  options.host.resize(4);
  options.host[0].home = {.size_kib = 128};
  options.host[1].home.noexec = true;
  options.host[1].tmp.noexec = true;
  options.host[2].home.read_only = true;
  options.host[3].absent = {"/usr/bin/python3", TESTBED_PROJECT "/tests"};
  Cluster cluster = up(options);
  EXPECT_EQ(say(cluster, "h1", "head -c 200000 /dev/zero > ~/big 2>/dev/null || echo full"), "full\n");
  for (const char* folder : {"~", "/tmp"}) {
    std::string script = std::string("cp /bin/true ") + folder + "; " + folder + "/true";
    EXPECT_EQ(cluster.run_on("h1", shell("rm -f ~/big; " + script)).exit_code, 0);
    EXPECT_EQ(cluster.run_on("h2", shell(script)).exit_code, 126);
  }
  EXPECT_EQ(cluster.run_on("h3", shell("touch ~/x")).exit_code, 1);
  EXPECT_EQ(say(cluster, "h3", "ls ~/.ssh | wc -l"), "4\n");
  EXPECT_EQ(cluster.run_on("h4", {.argv = {"/usr/bin/python3", "--version"}}).exit_code, 127);
  EXPECT_EQ(say(cluster, "h4", "ls -d " TESTBED_PROJECT "/* | grep -c -E 'tests$|src$'"), "1\n");
  EXPECT_EQ(say(cluster, "h4", "env true && ls /bin/python3.11 /usr/bin/env | wc -l"), "2\n");
  EXPECT_EQ(say(cluster, "h1", "/usr/bin/python3 -c 'print(1)'; ls -d " TESTBED_PROJECT "/tests | wc -l"), "1\n1\n");
}

TEST_F(Testbed, StartsQuickly) {
  for (auto [hosts, bound] : {std::pair(8, 1500ms), {64, 10000ms}}) {
    auto begin = std::chrono::steady_clock::now();
    Cluster cluster = up({.hosts = hosts});
    auto took = std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - begin);
    EXPECT_LT(took, bound) << hosts << " hosts";
    RecordProperty("milliseconds_for_" + std::to_string(hosts), static_cast<int>(took.count()));
    EXPECT_EQ(meet(cluster, "ctl", "h" + std::to_string(hosts), 5s), "SSH-");
  }
}

// Ends are seen through a pidfd: no polling, no sleep.
os::Fd handle_of(const std::string& pid) { return os::Fd(static_cast<int>(::syscall(SYS_pidfd_open, std::atoi(pid.c_str()), 0))); }
bool ends(const os::Fd& handle, std::chrono::milliseconds most) {
  pollfd fd{handle.get(), POLLIN, 0};
  return !handle.valid() || ::poll(&fd, 1, static_cast<int>(most.count())) == 1;
}

// The pids of a cluster's guard and of the first process of h1, as its files tell.
struct Pids {
  std::string guard, host;
};
Pids pids_of(const std::string& cluster) {
  auto guard = testbed::read_text(testbed::state_path(cluster, "guard"));
  auto host = testbed::read_text(testbed::state_path(cluster, "h1.pid"));
  return {guard.ok() ? *guard : "", host.ok() ? *host : ""};
}
bool exists(const std::string& path) { return ::access(path.c_str(), F_OK) == 0; }

TEST_F(Testbed, AClusterEndsWithItsOwnerEvenWhenFrozen) {
  std::string name = "crash" + std::to_string(::getpid());
  int pipe_ends[2];
  ASSERT_EQ(::pipe(pipe_ends), 0);
  pid_t owner = ::fork();
  if (owner == 0) {
    auto cluster = Cluster::up({.hosts = 2, .name = name});
    bool fine = cluster.ok() && cluster->freeze("h1").ok();
    if (::write(pipe_ends[1], fine ? "y" : "n", 1) != 1) ::_exit(1);
    ::pause();
  }
  char said = 0;
  ASSERT_EQ(::read(pipe_ends[0], &said, 1), 1);
  ASSERT_EQ(said, 'y');
  Pids pids = pids_of(name);
  os::Fd guard = handle_of(pids.guard), host = handle_of(pids.host);
  EXPECT_TRUE(guard.valid() && host.valid());
  ::kill(owner, SIGKILL);
  ::waitpid(owner, nullptr, 0);
  EXPECT_TRUE(ends(guard, 5s));
  EXPECT_TRUE(ends(host, 5s));
  EXPECT_FALSE(exists(testbed::state_path(name)));
  EXPECT_FALSE(exists(*testbed::host_cgroup(name, {})));
}

TEST_F(Testbed, HostsDieWithAKilledGuardAndSweepRemovesTheRest) {
  Cluster cluster = up();
  Pids pids = pids_of(cluster.name());
  os::Fd guard = handle_of(pids.guard), host = handle_of(pids.host);
  EXPECT_EQ(testbed::sweep(), std::vector<std::string>{});
  EXPECT_EQ(meet(cluster, "ctl", "h1", 5s), "SSH-");
  ::kill(std::atoi(pids.guard.c_str()), SIGKILL);
  EXPECT_TRUE(ends(guard, 5s));
  EXPECT_TRUE(ends(host, 5s));
  EXPECT_EQ(testbed::sweep(), std::vector<std::string>{cluster.name()});
  EXPECT_FALSE(exists(testbed::state_path(cluster.name())));
  EXPECT_FALSE(exists(*testbed::host_cgroup(cluster.name(), {})));
  EXPECT_FALSE(cluster.down().ok());
}

TEST_F(Testbed, ClustersDoNotMeet) {
  Cluster one = up({.hosts = 1}), other = up({.hosts = 1});
  say(one, "h1", "echo one > /tmp/name");
  say(other, "h1", "echo other > /tmp/name");
  EXPECT_EQ(say(one, "ctl", "ssh h1 cat /tmp/name"), "one\n");
  EXPECT_EQ(say(other, "ctl", "ssh h1 cat /tmp/name"), "other\n");
  EXPECT_DONE(one.down());
  EXPECT_EQ(say(other, "ctl", "ssh h1 cat /tmp/name"), "other\n");
}

TEST_F(Testbed, TheProgramDoesTheSame) {
  // bash is the owner: at its end the cluster goes.
  std::string script = R"(set -e; export TESTBED=cli$$; t=')" TESTBED_PROGRAM R"('
    "$t" up 2; "$t" hosts; "$t" exec ctl ssh h2 hostname; "$t" exec h1 sh -c 'exit 7' || echo code $?
    "$t" drop h1 both; "$t" exec ctl timeout 0.5 ssh h1 true || echo code $?
    "$t" heal h1; "$t" exec ctl ssh h1 hostname; "$t" power-off h2; "$t" boot h2; "$t" exec h2 hostname; echo $TESTBED)";
  int ends_of_pipe[2];
  ASSERT_EQ(::pipe2(ends_of_pipe, O_CLOEXEC), 0);
  pid_t pid = ::fork();
  if (pid == 0) {
    ::dup2(ends_of_pipe[1], 1);
    ::execl("/bin/bash", "bash", "-c", script.c_str(), nullptr);
    ::_exit(127);
  }
  ::close(ends_of_pipe[1]);
  std::string out;
  char text[4096];
  for (ssize_t n; (n = ::read(ends_of_pipe[0], text, sizeof text)) > 0;) out.append(text, static_cast<size_t>(n));
  ::close(ends_of_pipe[0]);
  int status = 0;
  ::waitpid(pid, &status, 0);
  std::string name = "cli" + std::to_string(pid);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(out, "h1 10.77.0.1\nh2 10.77.0.2\nh2\ncode 7\ncode 124\nh1\nh2\n" + name + "\n");
  os::Fd guard = handle_of(pids_of(name).guard);
  EXPECT_TRUE(ends(guard, 5s));
  EXPECT_FALSE(exists(testbed::state_path(name)));
}

}  // namespace
