// The words of `phalanx check` and of run's preflight, on hosts with a fault that is really there.
#include <csignal>

#include "check_fixture.h"

namespace {

using namespace phalanx::testbed;
using namespace std::chrono_literals;

class CheckVerb : public Check {
 protected:
  void SetUp() override {
    Check::SetUp();
    if (IsSkipped()) return;
    start({.hosts = 3});
    say("h2", "mkdir -p /tmp/out && mount -t tmpfs -o ro ro /tmp/out");  // an error
    for (const char* host : {"h1", "h3"}) say(host, "mkdir -p /tmp/out");
    for (const std::string& host : cluster().hosts())
      say(host, "echo 'import os; print(\"rank\", os.environ[\"RANK\"], \"ran\")' > /tmp/train.py");
  }
  Outcome type(const Words& args) { return cluster().run_on("ctl", {.argv = with({PHALANX_PROGRAM}, args), .cwd = "/tmp"}); }
  const Words command_ = {"--", "python3", "/tmp/train.py", "--output_dir", "/tmp/out"};
};

TEST_F(CheckVerb, SaysOnePageForPeople) {
  Outcome outcome = type(with({"check", "h1,h2,h3"}, command_));
  EXPECT_EQ(outcome.exit_code, 3) << outcome;
  EXPECT_HAS(outcome.out, "FS-READ-ONLY");
  EXPECT_HAS(outcome.out, "h2: ");
  EXPECT_HAS(outcome.out, "Details: phalanx explain FS-READ-ONLY");
  EXPECT_LT(outcome.took, 5s);
}

TEST_F(CheckVerb, LooksOnlyForWhatItWasAskedFor) {
  Outcome storage = type(with({"check", "h1,h2,h3", "--only", "FS-"}, command_));
  EXPECT_EQ(storage.exit_code, 3) << storage;
  EXPECT_HAS_NOT(storage.out, "TIME-");
  Outcome network = type(with({"check", "h1,h2,h3", "--only", "NET-,RDZV-"}, command_));
  EXPECT_EQ(network.exit_code, 0) << network;
  EXPECT_HAS_NOT(network.out, "FS-READ-ONLY");
}

TEST_F(CheckVerb, TheExitCodeIsAMatterOfChoice) {
  EXPECT_EQ(type(with({"check", "h1,h2,h3", "--fail-on", "never"}, command_)).exit_code, 0);
  EXPECT_EQ(type({"check", "h1,h2,h3", "--fail-on", "note"}).exit_code, 3) << "clocks here are not synchronised: a note";
  EXPECT_EQ(type({"check", "h1,h2,h3", "--fail-on", "error"}).exit_code, 0);
}

TEST_F(CheckVerb, TheRunIsRefusedWarnedOrLetGo) {
  Outcome strict = type(with({"run", "-H", "h1,h2,h3"}, command_));
  EXPECT_EQ(strict.exit_code, 3) << strict;
  EXPECT_HAS(strict.err, "FS-READ-ONLY");
  EXPECT_HAS_NOT(strict.out, "ran");
  Outcome warned = type(with({"run", "-H", "h1,h2,h3", "--preflight", "warn"}, command_));
  EXPECT_EQ(warned.exit_code, 0) << warned;
  EXPECT_HAS(warned.err, "FS-READ-ONLY");
  EXPECT_HAS(warned.out, "rank 2 ran");
  Outcome off = type(with({"run", "-H", "h1,h2,h3", "--preflight", "off"}, command_));
  EXPECT_EQ(off.exit_code, 0) << off;
  EXPECT_HAS_NOT(off.err, "FS-READ-ONLY");
}

TEST_F(CheckVerb, WatchesUntilItIsInterrupted) {
  Words argv = with({PHALANX_PROGRAM, "check", "h1,h2,h3", "--watch", "1s"}, command_);
  auto watching = cluster().start_on("ctl", {.argv = argv, .cwd = "/tmp"});
  ASSERT_TRUE(watching.ok());
  ASSERT_TRUE(watching->wait_output("FS-READ-ONLY", 10s)) << watching->err();
  say("h2", "umount /tmp/out");
  EXPECT_TRUE(watching->wait_output("gone  error FS-READ-ONLY", 10s)) << watching->out();
  watching->signal(SIGINT);
  Outcome outcome = watching->finish(5s);
  EXPECT_EQ(outcome.exit_code, 0) << "what the last look found" << outcome;
  EXPECT_EQ(leftovers(1s), "");
}

}  // namespace
