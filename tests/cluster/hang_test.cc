// A run that stands still, on real hosts with real PyTorch ranks on gloo: who holds it up is named, with its code, within seconds of the
// threshold, and nothing is left over.
#include <sys/stat.h>

#include <fmt/format.h>

#include "base/text.h"
#include "launcher_fixture.h"

namespace {

using namespace phalanx::testbed;
using namespace std::chrono_literals;

constexpr int kThresholdS = 4;

class Hang : public Launcher {
 protected:
  void SetUp() override {
    Launcher::SetUp();
    if (IsSkipped()) return;
    static const bool installed = std::system("/usr/bin/python3 -c 'import torch.distributed' 2>/dev/null") == 0;
    if (!installed) GTEST_SKIP() << "no torch for /usr/bin/python3 (package python3-torch)";
  }
  void TearDown() override {
    phalanx_.reset();
    Launcher::TearDown();
  }

  // hosts h1, h2, … with one rank each; the run ends by itself when it has judged.
  void launch(int hosts, const Words& script_args, const Words& more = {"--on-stall", "stop"}) {
    std::string list;
    for (int h = 1; h <= hosts; ++h) list += fmt::format("{}h{}", h == 1 ? "" : ",", h);
    Words args = {"-H", list, "--preflight", "off", "--stall", fmt::format("{}s", kThresholdS), "--grace", "1s"};
    args = with(args, more);
    args = with(args, {"--", "/usr/bin/python3", script("hang.py")});
    phalanx_ = std::make_unique<Process>(run_later(with(args, script_args)));
  }
  // Every rank is in the loop.
  void until_training() { ASSERT_TRUE(phalanx_->wait_output("step 20 ", 60s)) << phalanx_->finish(0ms); }

  Outcome type(const Words& args) { return cluster().run_on("ctl", {.argv = with({PHALANX_PROGRAM}, args), .cwd = "/tmp"}, 30s); }

  pid_t rank_on(const std::string& host) {
    for (const HostProcess& p : cluster().processes(host))
      if (p.command.find("hang.py") != std::string::npos && p.name.rfind("python", 0) == 0) return p.pid;
    ADD_FAILURE() << "no rank on " << host;
    return 0;
  }

  // The verdict names code, rank and host; it came within five seconds of the threshold; nothing is left.
  std::string judged(const std::string& code, const std::string& who, milliseconds most = 90s) {
    Outcome outcome = phalanx_->finish(most);
    EXPECT_EQ(outcome.exit_code, 5) << outcome;
    EXPECT_HAS(outcome.err, "[" + code + "]");
    EXPECT_HAS(outcome.err, "error: " + who);
    size_t at = outcome.err.find("no step for ");
    EXPECT_NE(at, std::string::npos) << outcome.err;
    if (at != std::string::npos) {
      EXPECT_LE(std::atoi(outcome.err.c_str() + at + 12), kThresholdS + 5) << outcome.err;
      size_t end = outcome.err.find("\nphalanx: stopping", at);
      std::cout << "[ verdict  ] " << outcome.err.substr(at, end - at) << "\n";
    }
    EXPECT_EQ(leftovers(1s), "");
    return outcome.err;
  }

  std::unique_ptr<Process> phalanx_;
};

// Faults of the program itself, by its own argument: rank 1 of three.
struct Own {
  const char* fault;
  const char* code;
  const char* says;
};
void PrintTo(const Own& own, std::ostream* stream) { *stream << own.fault; }
class OwnFault : public Hang, public testing::WithParamInterface<Own> {};

TEST_P(OwnFault, IsNamed) {
  start({.hosts = 3});
  launch(3, {GetParam().fault, "1", "25"});
  std::string text = judged(GetParam().code, "rank 1 (h2, local 0)");
  EXPECT_HAS(text, GetParam().says);
  EXPECT_HAS(text, "ranks 0, 2: hang.py:");  // the line is read from memory: no hook, no tool
  EXPECT_HAS(text, "rank 1: hang.py:");
}

INSTANTIATE_TEST_SUITE_P(Faults, OwnFault,
                         testing::Values(Own{"sleep", "HANG-NEVER-ENTERED", "sleeps"}, Own{"lock", "HANG-DEADLOCK-LOCAL", "lock"},
                                         Own{"worker", "HANG-LOADER", "another process"},
                                         Own{"loader", "HANG-LOADER", " is at hang.py:51 (__getitem__)"},
                                         Own{"barrier", "HANG-MISMATCH", "gloo::barrier"}, Own{"vfork", "HANG-LOADER", "vfork"}),
                         [](const auto& parameter) { return parameter.param.fault; });

TEST_F(Hang, TheHookTellsTheLineOfCode) {
  start({.hosts = 2});
  launch(2, {"sleep", "1", "25"}, {"--on-stall", "stop", "--python-hook"});
  std::string text = judged("HANG-NEVER-ENTERED", "rank 1 (h2, local 0)");
  EXPECT_HAS(text, "(validate), sleeps");
  EXPECT_HAS(text, "\nhint: phalanx explain HANG-NEVER-ENTERED\n");  // the process is dead by then
  EXPECT_HAS(text, "rank 0: hang.py:");
}

// The run goes on, and nobody has to wait for a verdict.
TEST_F(Hang, StacksOfARunningJobOnEveryHost) {
  start({.hosts = 2});
  launch(2, {"sleep", "1", "25"}, {"--on-stall", "report"});
  ASSERT_TRUE(phalanx_->wait_output("step 20 ", 60s)) << phalanx_->finish(0ms);
  Outcome stacks;
  for (int tries = 0; tries < 10; ++tries) {
    stacks = type({"stacks"});
    if (stacks.out.find("(validate), sleeps") != std::string::npos) break;
  }
  EXPECT_EQ(stacks.exit_code, 0) << stacks;
  EXPECT_HAS(stacks.out, "rank 1 (h2, pid ");
  EXPECT_HAS(stacks.out, "hang.py:36 (validate), sleeps (nanosleep)");
  EXPECT_HAS(stacks.out, "hang.py:36 validate\n");
  EXPECT_HAS(stacks.out, "rank 0 (h1, pid ");
  EXPECT_HAS(stacks.out, "hang.py:118 (<module>), waits in a collective");
  EXPECT_HAS(stacks.out, " (Python 3.");
  Outcome one = type({"stacks", "--rank", "0", "--json"});
  EXPECT_HAS(one.out, "\"place\": \"hang.py:118 (<module>)\"");
  EXPECT_HAS_NOT(one.out, "validate");
  const Outcome why = type({"why"});
  EXPECT_HAS(why.out, "ranks that wait for others: 0; the others wait for: 1");
  EXPECT_HAS(why.out, "rank 1: hang.py:36 (validate), sleeps (nanosleep)\n");
  EXPECT_HAS(why.out, "waits in a collective; last step 25\n");
  EXPECT_EQ(type({"stop", "--grace", "1s"}).exit_code, 0);
  phalanx_->finish(20s);
  Outcome over = type({"stacks"});
  EXPECT_EQ(over.exit_code, 2) << over;
  EXPECT_HAS(over.err, " is not in progress");
  EXPECT_EQ(leftovers(1s), "");
}

TEST_F(Hang, ARankThatLeavesWithZeroWhileItsConnectionsStayOpen) {
  start({.hosts = 2});
  launch(2, {"exit", "1", "25"});
  judged("RUN-LEFT-EARLY", "rank 1 (h2, local 0)");
}

TEST_F(Hang, AStoppedRank) {
  start({.hosts = 2});
  launch(2, {"none", "0", "0"});
  until_training();
  ASSERT_EQ(::kill(rank_on("h2"), SIGSTOP), 0);
  std::string text = judged("HANG-STOPPED", "rank 1 (h2, local 0)");
  EXPECT_HAS(text, "hint: ssh h2 kill -CONT ");
}

bool write_to(const std::string& path, const std::string& text) {
  FILE* file = std::fopen(path.c_str(), "w");
  bool good = file && std::fputs(text.c_str(), file) >= 0;
  if (file && std::fclose(file) != 0) good = false;
  return good;
}

// A cgroup of version 1 for one rank; removed when the rank has ended.
struct Group {
  explicit Group(const std::string& controller) : folder(fmt::format("/sys/fs/cgroup/{}/phalanx-hang-test-{}", controller, ::getpid())) {
    made = ::mkdir(folder.c_str(), 0755) == 0;
  }
  ~Group() { ::rmdir(folder.c_str()); }
  std::string folder;
  bool made = false;
};

// A rank that its CPU limit holds back: the run goes on, at its pace, and that is told once.
TEST_F(Hang, ACpuLimitIsToldWhileTheRunGoesOn) {
  Group group("cpu");
  if (!group.made) GTEST_SKIP() << "no cpu controller of version 1";
  start({.hosts = 2});
  launch(2, {"burn", "1", "0"}, {"--on-stall", "report"});
  until_training();
  ASSERT_TRUE(write_to(group.folder + "/cpu.cfs_quota_us", "30000"));
  ASSERT_TRUE(write_to(group.folder + "/cgroup.procs", std::to_string(rank_on("h2"))));
  EXPECT_TRUE(phalanx_->wait_output("[SLOW-CPU-LIMIT]", 60s));
  phalanx_->signal(SIGINT);
  Outcome outcome = phalanx_->finish(20s);
  EXPECT_HAS(outcome.err, "rank 1 (h2, local 0): a rank is throttled by the CPU limit of its cgroup");
  EXPECT_HAS_NOT(outcome.err, "no step for");
  EXPECT_EQ(outcome.err.find("[SLOW-CPU-LIMIT]"), outcome.err.rfind("[SLOW-CPU-LIMIT]"));
  EXPECT_EQ(leftovers(1s), "");
}

TEST_F(Hang, AFrozenCgroup) {
  Group group("freezer");
  if (!group.made) GTEST_SKIP() << "no freezer of version 1";
  start({.hosts = 2});
  launch(2, {"none", "0", "0"});
  until_training();
  ASSERT_TRUE(write_to(group.folder + "/cgroup.procs", std::to_string(rank_on("h2"))));
  ASSERT_TRUE(write_to(group.folder + "/freezer.state", "FROZEN"));
  bool stalled = phalanx_->wait_output("on-stall stop", 60s);
  write_to(group.folder + "/freezer.state", "THAWED");  // what is frozen cannot end
  EXPECT_TRUE(stalled);
  std::string text = judged("HANG-STOPPED", "rank 1 (h2, local 0)");
  EXPECT_HAS(text, "frozen: ");
}

TEST_F(Hang, AFileSystemThatDoesNotAnswer) {
  start({.hosts = 2});
  say("h2", "mkdir -p /tmp/data");
  auto server = cluster().start_on("h2", {.argv = {"/usr/bin/python3", script("fuse_fs.py"), "hung", "/tmp/data"}, .cwd = "/tmp"});
  ASSERT_TRUE(server.ok());
  if (!server->wait_output("mounted", 10s)) GTEST_SKIP() << "no FUSE here";
  launch(2, {"read", "1", "25", "/tmp/data/batch"});
  ASSERT_TRUE(phalanx_->wait_output("on-stall stop", 90s));
  server->signal(SIGKILL);  // its end lets the rank go
  std::string text = judged("HANG-DISK", "rank 1 (h2, local 0)");
  EXPECT_HAS(text, "/tmp/data/batch");
}

// Links: of three hosts, the one between h1 and h2.
TEST_F(Hang, ALinkCutInMidStep) {
  start({.hosts = 2});
  launch(2, {"none", "0", "0"});
  until_training();
  ASSERT_TRUE(cluster().separate("h1", "h2").ok());
  std::string text = judged("HANG-LINK", "ranks 0 (h1), 1 (h2)");
  EXPECT_HAS(text, "is blocked");
  EXPECT_HAS(text, "phalanx check h1,h2");
}

TEST_F(Hang, AHoleForLargePacketsThatOpensInMidStep) {
  start({.hosts = 2});
  launch(2, {"none", "0", "0"});
  until_training();
  for (const char* host : {"h1", "h2"})
    say(host,
        "nft add table inet hole && nft 'add chain inet hole in { type filter hook input priority 0; }' && "
        "nft add rule inet hole in ip saddr '{10.77.0.1, 10.77.0.2}' meta length gt 1000 drop");
  judged("NET-MTU-HOLE", "rank");
}

// With default options and before any step: two groups in opposite order. From the first rank's word to the verdict.
TEST_F(Hang, ADeadlockInTheFirstIterationIsProvedWithinSeconds) {
  start({.hosts = 2});
  phalanx_ = std::make_unique<Process>(run_later({"-H", "h1,h2", "--preflight", "off", "--on-stall", "stop", "--grace", "1s", "--",
                                                  "/usr/bin/python3", script("hang.py"), "first", "1", "0"}));
  Outcome outcome = phalanx_->finish(60s);
  EXPECT_EQ(outcome.exit_code, 5) << outcome;
  EXPECT_HAS(outcome.err, "[HANG-CIRCULAR]");
  EXPECT_HAS(outcome.err, "hang.py:");
  EXPECT_EQ(leftovers(1s), "");
  std::cout << outcome.err;
}

// Rank 0 saves for 12 s while the other waits in a barrier: nobody is alarmed, and the run goes on.
TEST_F(Hang, ASaveThatTheOthersWaitForIsNoDeadlock) {
  start({.hosts = 2});
  phalanx_ = std::make_unique<Process>(run_later(
      {"-H", "h1,h2", "--preflight", "off", "--on-stall", "stop", "--", "/usr/bin/python3", script("hang.py"), "save", "0", "0", "12"}));
  until_training();
  phalanx_->signal(SIGINT);
  Outcome outcome = phalanx_->finish(20s);
  EXPECT_EQ(outcome.exit_code, 130) << outcome;
  EXPECT_HAS_NOT(outcome.err, "HANG-");
  EXPECT_EQ(leftovers(1s), "");
}

TEST_F(Hang, ReportTellsOnceAndGoesOn) {
  start({.hosts = 2});
  launch(2, {"none", "0", "0"}, {"--on-stall", "report"});
  until_training();
  pid_t rank = rank_on("h2");
  ASSERT_EQ(::kill(rank, SIGSTOP), 0);
  ASSERT_TRUE(phalanx_->wait_output("[HANG-STOPPED]", 30s)) << phalanx_->finish(0ms);
  ASSERT_EQ(::kill(rank, SIGCONT), 0);
  EXPECT_TRUE(phalanx_->wait_output("the run continues", 10s));
  phalanx_->signal(SIGINT);
  Outcome outcome = phalanx_->finish(20s);
  EXPECT_EQ(outcome.exit_code, 130) << outcome;
  EXPECT_EQ(leftovers(1s), "");
}

}  // namespace
