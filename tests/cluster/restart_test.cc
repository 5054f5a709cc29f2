// Runs that go on: after a failure, on a spare, with fewer hosts. Real sshds, real ranks; what is asserted is who runs where, when, and
// that nothing of an attempt outlives it.
#include <signal.h>

#include <cstdlib>

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/text.h"
#include "launcher_fixture.h"

namespace phalanx::testbed {
namespace {

// A rank that says where it is and which try this is, and ends well at the second.
constexpr const char* kTwoTries =
    "echo try $TORCHELASTIC_RESTART_COUNT: rank $RANK of $WORLD_SIZE on $(hostname); "
    "[ $TORCHELASTIC_RESTART_COUNT = 0 ] || exit 0; [ $RANK = 1 ] && touch /tmp/there; exec sleep 3600";

class Restart : public Launcher {
 protected:
  Words words(const Words& options, const std::string& script) {
    return with(with({"--fold", "off"}, options), {"--", "sh", "-c", script});
  }
  // Starts a run, waits for rank 1 on h2, and does `fault` to it; what came of it.
  Outcome after(const Words& options, const std::string& script, const std::function<void()>& fault) {
    Process phalanx = run_later(words(options, script));
    Instant most = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (cluster().run_on("h2", Command{{"test", "-e", "/tmp/there"}}).exit_code != 0 && std::chrono::steady_clock::now() < most) {}
    fault();
    return phalanx.finish(milliseconds(60'000));
  }
};

TEST_F(Restart, ASpareTakesThePlaceOfAHostThatIsSwitchedOff) {
  start({.hosts = 3});
  Outcome outcome = after({"-H", "h1,h2", "--spares", "h3"}, kTwoTries, [&] {
    forget_bystander("h2");
    ASSERT_TRUE(cluster().power_off("h2").ok());
  });
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_HAS(outcome.out, "try 1: rank 1 of 2 on h3");
  EXPECT_HAS(outcome.err, "h2: lost contact with the host");
  EXPECT_HAS(outcome.err, "h3 replaces h2; restarting in");
  EXPECT_EQ(leftovers(milliseconds(2000)), "");
}

// -H h1:2,h2:2 --spares h3: the spare has two slots as well, so that four ranks stay four.
TEST_F(Restart, ASpareWithoutSlotsKeepsTheNumberOfRanks) {
  start({.hosts = 3});
  const std::string script = base::replace_all(kTwoTries, "$RANK = 1", "$RANK = 2");  // the first rank of h2
  Outcome outcome = after({"-H", "h1:2,h2:2", "--spares", "h3"}, script, [&] {
    forget_bystander("h2");
    ASSERT_TRUE(cluster().power_off("h2").ok());
  });
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_HAS(outcome.out, "try 1: rank 2 of 4 on h3");
  EXPECT_HAS(outcome.out, "try 1: rank 3 of 4 on h3");
  EXPECT_HAS_NOT(outcome.err, "before the restart");
}

TEST_F(Restart, WithFewerHostsWhereNoSpareIsLeft) {
  start({.hosts = 3});
  Outcome outcome = after({"-H", "h1,h2,h3", "--nnodes", "2:3"}, kTwoTries, [&] {
    forget_bystander("h2");
    ASSERT_TRUE(cluster().power_off("h2").ok());
  });
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_HAS(outcome.out, "try 1: rank 0 of 2 on h1");
  EXPECT_HAS(outcome.out, "try 1: rank 1 of 2 on h3");
  EXPECT_HAS(outcome.err, "continuing without h2; restarting in");
  EXPECT_HAS(outcome.err, "(before the restart: 3 ranks;");
  EXPECT_EQ(leftovers(milliseconds(2000)), "");
}

TEST_F(Restart, AKilledRankIsStartedAgainWithAllOthers) {
  start({.hosts = 2});
  Outcome outcome =
      after({"-H", "h1,h2", "--max-restarts", "2"}, kTwoTries, [&] { EXPECT_EQ(cluster().kill_processes("h2", "sleep 3600"), 1); });
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_HAS(outcome.out, "try 1: rank 0 of 2 on h1");
  EXPECT_HAS(outcome.out, "try 1: rank 1 of 2 on h2");
  EXPECT_HAS(outcome.err, "rank 1 (h2, local 0) killed by SIGKILL");
  EXPECT_HAS(outcome.err, "RUN-KILLED");
  EXPECT_HAS(outcome.err, "restarting in 1 s: restart 1 of 2");
  EXPECT_EQ(leftovers(milliseconds(1000)), "");
}

// The next attempt starts agents of the program that runs, not of what lies at its path by then.
TEST_F(Restart, AnUpgradeOfTheProgramDoesNotReachARunThatGoesOn) {
  start({.hosts = 1});
  const Shared shared = shared_folder("upgrade");
  const std::string copy = shared.here + "/phalanx";
  std::filesystem::copy_file(TESTBED_BINARY_DIR "/phalanx", copy);
  Command command = run(words({"-H", "localhost:2", "--max-restarts", "1"}, kTwoTries));
  command.argv[0] = shared.on_hosts + "/phalanx";
  base::Result<Process> phalanx = cluster().start_on("ctl", command);
  ASSERT_TRUE(phalanx.ok());
  Instant most = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (cluster().run_on("ctl", Command{{"test", "-e", "/tmp/there"}}).exit_code != 0 && std::chrono::steady_clock::now() < most) {}
  std::ofstream(copy + ".new") << "#!/bin/sh\necho some other build starts as agent: $*\n";
  std::filesystem::permissions(copy + ".new", std::filesystem::perms::owner_all);
  std::filesystem::rename(copy + ".new", copy);
  EXPECT_EQ(cluster().run_on("ctl", Command{{"pkill", "-KILL", "-x", "sleep"}}).exit_code, 0);  // not the launcher, whose words have it too
  Outcome outcome = phalanx->finish(milliseconds(60'000));
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_HAS(outcome.out, "try 1: rank 1 of 2 on ");
  EXPECT_HAS_NOT(outcome.err, "some other build");
  std::filesystem::remove_all(shared.here);
}

TEST_F(Restart, ACutHostsRanksAreGoneBeforeTheNextAttempt) {
  start({.hosts = 3});
  std::string ended;
  Outcome outcome =
      after({"-H", "h1,h2", "--spares", "h3"}, std::string(kTwoTries), [&] { ASSERT_TRUE(cluster().drop("h2", Direction::kBoth).ok()); });
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_HAS(outcome.out, "try 1: rank 1 of 2 on h3");
  // The host itself is well, and its agent has ended the rank by its lease: before the end of the run, hence now.
  for (const HostProcess& process : cluster().processes("h2"))
    EXPECT_EQ(process.command.find("sleep 3600"), std::string::npos) << process.command;
  ASSERT_TRUE(cluster().heal("h2").ok());
  EXPECT_EQ(leftovers(milliseconds(5000)), "");
}

// A rank that writes down ten times a second that it lives, and at the second try when it was started.
constexpr const char* kBeating =
    "[ $TORCHELASTIC_RESTART_COUNT = 0 ] || { echo rank $RANK started at $(date +%s%N) on $(hostname); sleep 0.5; exit 0; }; "
    "[ $RANK = 1 ] && touch /tmp/there; while :; do date +%s%N >> /tmp/beats; sleep 0.1; done";

int64_t number_after(const std::string& text, const std::string& mark) {
  size_t at = text.find(mark);
  return at == std::string::npos ? 0 : std::atoll(text.c_str() + at + mark.size());
}

// The agent stands, its ranks do not: the guard ends them. Hosts are namespaces of one machine, so their clocks are one.
TEST_F(Restart, AStoppedAgentsRanksAreGoneBeforeTheNextAttempt) {
  start({.hosts = 3});
  Outcome outcome = after({"-H", "h1,h2", "--spares", "h3"}, kBeating, [&] {
    ASSERT_GE(cluster().kill_processes("h2", "phalanx-agent", SIGSTOP), 1);
    ASSERT_TRUE(cluster().drop("h2", Direction::kBoth).ok());  // nobody can log in and ask
  });
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  int64_t started = number_after(outcome.out, "rank 1 started at ");
  ASSERT_GT(started, 0) << outcome;
  int64_t last_beat = std::atoll(say("h2", "tail -n 1 /tmp/beats").c_str());
  EXPECT_LT(last_beat, started) << "rank 1 of the first attempt was alive " << (last_beat - started) / 1'000'000 << " ms into the second";
  EXPECT_GT(last_beat, 0);
  EXPECT_EQ(leftovers_on("h2", milliseconds(1000)), "");
  EXPECT_EQ(say("h2", "ls -d /tmp/phalanx-run-* 2>/dev/null || true"), "");
  ASSERT_TRUE(cluster().heal("h2").ok());
  EXPECT_EQ(leftovers(milliseconds(5000)), "");
}

// Its host can be asked: what is left there is killed, and no lease is waited for.
TEST_F(Restart, AHostThatCanBeAskedIsProvedEmptyBeforeTheNextAttempt) {
  start({.hosts = 3});
  Outcome outcome = after({"-H", "h1,h2", "--spares", "h3", "--lease", "60s"}, kBeating,
                          [&] { ASSERT_GE(cluster().kill_processes("h2", "phalanx-agent", SIGSTOP), 1); });
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_HAS(outcome.err, "restarting in at most 1");
  int64_t started = number_after(outcome.out, "rank 1 started at "), last_beat = std::atoll(say("h2", "tail -n 1 /tmp/beats").c_str());
  ASSERT_GT(started, 0) << outcome;
  EXPECT_LT(last_beat, started);
  EXPECT_LT(started - last_beat, 10'000'000'000) << "the next attempt waited, though nothing was left";
  EXPECT_EQ(leftovers(milliseconds(1000)), "");
}

TEST_F(Restart, AStoppedGuardIsWokenAndTheRunGoesOn) {
  start({.hosts = 2});
  Outcome outcome = after({"-H", "h1,h2"}, "[ $RANK = 1 ] && touch /tmp/there; until [ -e /tmp/enough ]; do sleep 0.1; done", [&] {
    ASSERT_EQ(cluster().kill_processes("h2", "phalanx-guard", SIGSTOP), 1);
    say("h2", "until grep -q '^State:.S' /proc/$(pgrep -x phalanx-guard)/status; do sleep 0.1; done");
    for (const char* host : {"h1", "h2"}) say(host, "touch /tmp/enough");
  });
  EXPECT_EQ(outcome.exit_code, 0) << outcome;
  EXPECT_HAS(outcome.err, "phalanx-guard did not answer and was sent SIGCONT");
  EXPECT_EQ(leftovers(milliseconds(1000)), "");
}

TEST_F(Restart, AHostThatCannotBeLoggedInToIsReplacedBeforeTheStart) {
  Options options{.hosts = 3};
  options.host.resize(3);
  options.host[1].login = Login::kRefused;
  start(options);
  Outcome outcome = run_now(words({"-H", "h1,h2", "--spares", "h3", "--max-restarts", "0"}, "echo rank $RANK on $(hostname)"));
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_HAS(outcome.out, "rank 1 on h3");
  EXPECT_HAS(outcome.err, "h3 replaces h2");
  EXPECT_EQ(leftovers(milliseconds(1000)), "");
}

TEST_F(Restart, TheSameExceptionTwiceIsTheProgramsOwn) {
  start({.hosts = 2});
  Outcome outcome =
      run_now(words({"-H", "h1,h2", "--max-restarts", "5"}, "[ $RANK = 1 ] && { echo 'ValueError: bad' >&2; exit 1; }; exec sleep 60"));
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_HAS(outcome.err, "restart 1 of 5");
  EXPECT_HAS_NOT(outcome.err, "restart 2 of 5");
  EXPECT_HAS(outcome.err, "not restarting: the program failed twice in the same way at the same step");
  EXPECT_EQ(leftovers(milliseconds(1000)), "");
}

}  // namespace
}  // namespace phalanx::testbed
