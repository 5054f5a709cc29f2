// What a run must not depend on: the disk of its logs, the readers of its output, and a launcher that always runs.
#include "launcher_fixture.h"

#include <signal.h>

#include <optional>

namespace {

using namespace phalanx::testbed;
using namespace std::chrono_literals;

constexpr const char* kRun = "/tmp/logs/latest";

// Logs on an ext4 of their own, which can be frozen: whoever writes to it then waits in the kernel until it is thawed.
class LogDisk : public Obeying {
 protected:
  void SetUp() override {
    Obeying::SetUp();
    if (IsSkipped()) return;
    start();
    Outcome made = cluster().run_on(
        "ctl", {.argv = {"sh", "-c",
                         "truncate -s 64M /tmp/disk && mkfs.ext4 -q /tmp/disk && mkdir /tmp/logs && mount -o loop /tmp/disk /tmp/logs"}});
    if (made.exit_code != 0) GTEST_SKIP() << "no file system on a loop device here: " << made.err;
    mounted_ = true;
  }
  void TearDown() override {
    if (mounted_) (void)cluster().run_on("ctl", {.argv = {"sh", "-c", "fsfreeze -u /tmp/logs"}});
    Obeying::TearDown();
    if (mounted_) (void)cluster().run_on("ctl", {.argv = {"sh", "-c", "umount /tmp/logs || umount -l /tmp/logs"}});
  }
  void freeze() { say("ctl", "fsfreeze -f /tmp/logs"); }
  void thaw() { say("ctl", "fsfreeze -u /tmp/logs"); }
  // Asks until `script`, on ctl, prints `text`.
  bool comes_to(const std::string& script, const std::string& text, milliseconds most) {
    for (Instant end = std::chrono::steady_clock::now() + most; std::chrono::steady_clock::now() < end;)
      if (cluster().run_on("ctl", {.argv = {"sh", "-c", script}}).out.find(text) != std::string::npos) return true;
    return false;
  }

 private:
  bool mounted_ = false;
};

TEST_F(LogDisk, ThatHangsForLongerThanTheLeaseCostsARunNothing) {
  launch("h1,h2", {"--lease", "3s", "--log-dir", "/tmp/logs"});
  freeze();
  for (int second = 0; second < 8; ++second) {
    const std::string word = "beat " + std::to_string(second);
    tell(second % 2, "echo " + word + "; sleep 1");
    ASSERT_TRUE(phalanx().wait_output(word, 3s)) << "the screen goes on while the disk hangs";
    ASSERT_FALSE(phalanx().wait(900ms)) << phalanx().finish(0ms);
  }
  thaw();
  for (int rank : {0, 1}) tell(rank, "exit 0");
  auto [outcome, after] = ended();
  EXPECT_EQ(outcome.exit_code, 0) << outcome;
  EXPECT_EQ(outcome.err.find("warning"), std::string::npos) << "everything fitted into the queue: " << outcome.err;
  const std::string logs = say("ctl", std::string("cat ") + kRun + "/ranks/*.log");
  for (int second = 0; second < 8; ++second) EXPECT_HAS(logs, "beat " + std::to_string(second));
  EXPECT_HAS(say("ctl", std::string("cat ") + kRun + "/run.json"), "\"state\": \"ended\"");
  EXPECT_EQ(leftovers(1s), "");
}

TEST_F(LogDisk, ThatHangsAtTheEndDelaysNoVerdictAndIsWrittenLater) {
  launch("h1,h2", {"--lease", "3s", "--log-dir", "/tmp/logs"});
  freeze();
  tell(1, "echo last words >&2; exit 7");
  ASSERT_TRUE(phalanx().wait_output("rank 1 (h2, local 0) exited with code 7", 3s)) << phalanx().finish(0ms);
  auto [outcome, after] = ended();
  EXPECT_EQ(outcome.exit_code, 7) << outcome;
  EXPECT_LT(after, 9s);
  EXPECT_HAS(outcome.err, "did not accept the end of the logs");
  EXPECT_HAS_NOT(outcome.err, "lost contact");
  thaw();
  EXPECT_TRUE(comes_to(std::string("cat ") + kRun + "/run.json", "\"exit_code\": 7", 10s));
  EXPECT_HAS(say("ctl", std::string("cat ") + kRun + "/ranks/1.log"), "last words");
  EXPECT_EQ(leftovers(3s), "");
}

TEST_F(LogDisk, ThatHangsUnderAFloodLosesOutputAndSaysSo) {
  launch("h1", {"--lease", "3s", "--log-dir", "/tmp/logs", "-q"}, {"h1"});
  freeze();
  tell(0, "seq 8000000; echo flood over >&2");
  ASSERT_TRUE(phalanx().wait_output("cannot keep up", 30s));
  ASSERT_TRUE(phalanx().wait_output("flood over", 30s));
  thaw();
  ASSERT_TRUE(phalanx().wait_output("accepts writes again", 20s));
  tell(0, "echo afterwards; exit 0");
  auto [outcome, after] = ended(30s);
  EXPECT_EQ(outcome.exit_code, 0);
  const std::string tail = say("ctl", std::string("grep -a -e phalanx: -e afterwards ") + kRun + "/ranks/0.log");
  EXPECT_HAS(tail, "of this log were lost here: the disk could not keep up]");
  EXPECT_HAS(tail, "afterwards");
  EXPECT_HAS(say("ctl", std::string("cat ") + kRun + "/run.json"), "lost_log_bytes");
}

TEST_F(LogDisk, ThatIsFullStillTakesTheEnd) {
  launch("h1", {"--log-dir", "/tmp/logs"}, {"h1"});
  say("ctl", "dd if=/dev/zero of=/tmp/logs/ballast bs=4k 2>/dev/null; true");
  tell(0, "echo does not fit; exit 3");
  auto [outcome, after] = ended();
  EXPECT_EQ(outcome.exit_code, 3) << outcome;
  EXPECT_HAS(say("ctl", std::string("cat ") + kRun + "/run.json"), "\"state\": \"ended\"");
}

// `phalanx run … > file`, and a run that has left its terminal, whose words go to launcher.log.
TEST_F(LogDisk, ThatHangsUnderTheOutputItselfHoldsUpNothing) {
  auto run = cluster().start_on("ctl", {.argv = {"sh", "-c",
                                                 "exec " PHALANX_PROGRAM " run --lease 3s --log-dir /tmp/logs -H h1,h2 -- " +
                                                     script("obey.sh") + " > /tmp/logs/out 2>&1"}});
  ASSERT_TRUE(run.ok());
  ASSERT_TRUE(comes_to("cat /tmp/logs/out", "rank 0 ready", 20s) && comes_to("cat /tmp/logs/out", "rank 1 ready", 20s));
  freeze();
  say("h1", "echo 'seq 100000; sleep 5; exit 7' > /tmp/tell-0");
  Outcome outcome = run->finish(28s);
  EXPECT_EQ(outcome.exit_code, 7) << outcome;
  thaw();
  EXPECT_TRUE(comes_to("cat /tmp/logs/out", "rank 0 (h1, local 0) exited with code 7", 10s));
  EXPECT_EQ(say("ctl", "grep -c '^.h1:0. [0-9]*$' /tmp/logs/out"), "100000\n");
  EXPECT_EQ(leftovers(3s), "");
}

TEST_F(LogDisk, ThatHangsUnderADetachedRunHoldsUpNothing) {
  Outcome left = cluster().run_on(
      "ctl", {.argv = {PHALANX_PROGRAM, "run", "-d", "--lease", "3s", "--log-dir", "/tmp/logs", "-H", "h1,h2", "--", script("obey.sh")}});
  ASSERT_EQ(left.exit_code, 0) << left;
  freeze();
  say("h2", "echo 'sleep 5; exit 9' > /tmp/tell-1");
  for (Instant end = std::chrono::steady_clock::now() + 28s; !named("ctl", "phalanx").empty();)
    ASSERT_LT(std::chrono::steady_clock::now(), end) << "the launcher waits for its disk";
  thaw();
  EXPECT_TRUE(comes_to(std::string("cat ") + kRun + "/launcher.log", "rank 1 (h2, local 0) exited with code 9", 10s));
  EXPECT_TRUE(comes_to(std::string("cat ") + kRun + "/run.json", "\"exit_code\": 9", 10s));
  EXPECT_EQ(leftovers(3s), "");
}

using Suspended = Obeying;

TEST_F(Suspended, ForLessThanTheLeaseTheRunGoesOn) {
  start();
  launch("h1,h2", {"--lease", "8s"});
  phalanx().signal(SIGSTOP);
  EXPECT_FALSE(phalanx().wait(6s));
  phalanx().signal(SIGCONT);
  for (int rank : {0, 1}) tell(rank, "echo awake; exit 0");
  auto [outcome, after] = ended();
  EXPECT_EQ(outcome.exit_code, 0) << outcome;
  EXPECT_EQ(leftovers(1s), "");
}

TEST_F(Suspended, ForMoreThanTheLeaseNoHostIsBlamed) {
  start();
  launch("h1,h2", {"--lease", "3s"});
  phalanx().signal(SIGSTOP);
  EXPECT_FALSE(phalanx().wait(7s));
  fault();
  phalanx().signal(SIGCONT);
  auto [outcome, after] = ended();
  EXPECT_EQ(outcome.exit_code, 4) << outcome;
  EXPECT_HAS(outcome.err, "the launcher was suspended for ");
  EXPECT_HAS(outcome.err, "their ranks after losing contact with the launcher for 3 s");
  EXPECT_HAS(outcome.err, "--lease ");
  EXPECT_HAS_NOT(outcome.err, "lost contact");
  EXPECT_EQ(leftovers(1s), "");
}

// A terminal that is not read (Ctrl-S, a stuck multiplexer) while one rank floods it and another fails.
TEST_F(Obeying, ATerminalThatIsNotReadDelaysNoVerdict) {
  start();
  Command command = run({"-H", "h1,h2", "--", script("obey.sh")});
  command.stdio = Command::kTerminal;
  auto terminal = cluster().start_on("ctl", std::move(command));
  ASSERT_TRUE(terminal.ok());
  for (const char* word : {"rank 0 ready", "rank 1 ready"}) ASSERT_TRUE(terminal->wait_output(word, 20s)) << terminal->out();
  say("h1", "echo 'seq 1000000; echo flooded; sleep 1000' > /tmp/tell-0");
  // From here on nobody reads. The flood arrives in the log, whole.
  const std::string log = "~/.local/state/phalanx/runs/latest/";
  for (Instant end = std::chrono::steady_clock::now() + 20s;
       say("ctl", "tail -n 1 " + log + "ranks/0.log 2> /dev/null || true") != "flooded\n";)
    ASSERT_LT(std::chrono::steady_clock::now(), end) << "rank 0 is held up by the terminal";
  EXPECT_EQ(say("ctl", "grep -c . " + log + "ranks/0.log"), "1000002\n");
  Instant failed = std::chrono::steady_clock::now();
  say("h2", "echo 'exit 7' > /tmp/tell-1");
  while (say("ctl", "grep '\"event\":\"end\"' " + log + "events.jsonl || true").find("\"exit_code\":7") == std::string::npos)
    ASSERT_LT(std::chrono::steady_clock::now() - failed, 9s) << "no verdict";
  EXPECT_LT(std::chrono::steady_clock::now() - failed, 8s) << "5 s of grace for rank 0, which sleeps in a child";
  Outcome outcome = terminal->finish(20s);
  EXPECT_EQ(outcome.exit_code, 7);
  EXPECT_HAS(outcome.out, "lines missing here because they were not read in time: ");
  EXPECT_HAS(outcome.out, "rank 1 (h2, local 0) exited with code 7");
}

TEST_F(Obeying, ATerminalThatIsNeverReadAgainEndsWithTheRun) {
  start({.hosts = 1});
  Command command = run({"-H", "h1", "--", script("obey.sh")});
  command.stdio = Command::kTerminal;
  auto terminal = cluster().start_on("ctl", std::move(command));
  ASSERT_TRUE(terminal.ok());
  ASSERT_TRUE(terminal->wait_output("rank 0 ready", 20s));
  say("h1", "echo 'seq 300000; exit 7' > /tmp/tell-0");
  // Its exit is seen without reading what it has written.
  for (Instant end = std::chrono::steady_clock::now() + 25s; !named("ctl", "phalanx").empty();)
    ASSERT_LT(std::chrono::steady_clock::now(), end) << "the launcher waits for its terminal for ever";
  EXPECT_EQ(terminal->finish(5s).exit_code, 7);
}

// The working directory of h2 lies on a server that never answers (a FUSE connection that nobody serves).
class HungFolder : public Launcher {
 protected:
  void SetUp() override {
    Launcher::SetUp();
    if (IsSkipped()) return;
    start();
    for (const char* host : {"h1", "h2"}) say(host, "mkdir -p /tmp/work");
    auto server =
        cluster().start_on("h2", {.argv = {"sh", "-c",
                                           "exec 3<>/dev/fuse && mount -i -t fuse -o fd=3,rootmode=40000,user_id=0,group_id=0 hangs "
                                           "/tmp/work && echo mounted && exec sleep 600"}});
    ASSERT_TRUE(server.ok());
    server_.emplace(std::move(server).value());
    if (!server_->wait_output("mounted", 5s)) GTEST_SKIP() << "no FUSE here";
    mounted_ = true;
  }
  void TearDown() override {
    if (mounted_) (void)cluster().run_on("h2", {.argv = {"sh", "-c", "umount -l /tmp/work"}});
    Launcher::TearDown();
  }

 protected:
  std::optional<Process> server_;

 private:
  bool mounted_ = false;
};

// The look at the folder is made by a child of the agent, which goes on answering pings: the host is not called lost after 5 s of silence,
// but refused with the name of the folder after the 30 s that a slow server is granted.
TEST_F(HungFolder, IsNamedWithItsHostWhileTheHostGoesOnAnswering) {
  const Instant began = std::chrono::steady_clock::now();
  Outcome outcome = run_now({"-H", "h1,h2", "--workdir", "/tmp/work", "--preflight", "off", "--", "true"}, 60s);
  const auto took = std::chrono::steady_clock::now() - began;
  EXPECT_EQ(outcome.exit_code, 3) << outcome;
  EXPECT_HAS(outcome.err, "h2: no answer from the file system of /tmp/work");
  EXPECT_HAS(outcome.err, "stat /tmp/work");
  EXPECT_HAS_NOT(outcome.err, "lost contact");
  EXPECT_HAS_NOT(outcome.err, "no response");
  EXPECT_HAS_NOT(outcome.err, "h1:");
  EXPECT_GT(took, 25s);
  EXPECT_LT(took, 45s);
  server_.reset();
  EXPECT_EQ(leftovers(2s), "");
}

}  // namespace
