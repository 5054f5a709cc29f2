// What `phalanx run` does when something dies or goes silent: the words, the exit code, the time, and that nothing is left.
#include "launcher_fixture.h"

using namespace phalanx;

namespace {

using namespace phalanx::testbed;
using namespace std::chrono_literals;

using Fault = Obeying;

// A rank of h2 ends badly; everything else must be stopped within two seconds.
struct BadEnd {
  const char* name;
  const char* line;  // told to rank 1
  int exit_code;
  const char* says;
};
void PrintTo(const BadEnd& end, std::ostream* stream) { *stream << end.name; }
class RankEnds : public Obeying, public testing::WithParamInterface<BadEnd> {};

TEST_P(RankEnds, IsNamedAndTheOthersAreStopped) {
  start();
  launch("h1,h2");
  tell(1, GetParam().line);
  auto [outcome, after] = ended();
  EXPECT_EQ(outcome.exit_code, GetParam().exit_code) << outcome;
  EXPECT_HAS(outcome.err, GetParam().says);
  EXPECT_HAS(outcome.err, "before any other");
  EXPECT_HAS(outcome.err, "1 rank stopped by phalanx");
  EXPECT_HAS(outcome.err, "last words");
  EXPECT_LT(after, 2s);
  EXPECT_EQ(leftovers(500ms), "");
}

INSTANTIATE_TEST_SUITE_P(
    Ways, RankEnds,
    testing::Values(BadEnd{"ExitCode3", "echo last words >&2; exit 3", 3, "rank 1 (h2, local 0) exited with code 3"},
                    BadEnd{"Sigkill", "echo last words >&2; kill -KILL $$", 137, "rank 1 (h2, local 0) killed by SIGKILL"},
                    BadEnd{"Segfault", "echo last words >&2; kill -SEGV $$", 139, "rank 1 (h2, local 0) killed by SIGSEGV"}),
    [](const auto& parameter) { return parameter.param.name; });

TEST_F(Fault, TheFirstFailureIsNamedNotTheLastVictim) {
  start({.hosts = 3});
  launch("h1,h2,h3:2", {}, {"h1", "h2", "h3", "h3"});
  tell(0, "trap 'exit 9' TERM");
  tell(3, "trap 'exit 8' TERM");
  tell(2, "exit 7");
  auto [outcome, after] = ended();
  EXPECT_EQ(outcome.exit_code, 7) << outcome;
  EXPECT_HAS(outcome.err, "rank 2 (h3, local 0) exited with code 7");
  EXPECT_LT(after, 2s);
}

TEST_F(Fault, ARankThatIgnoresSigtermIsKilledAfterTheGrace) {
  start();
  launch("h1,h2", {"--grace", "1s"});
  tell(0, "trap '' TERM; echo deaf");
  ASSERT_TRUE(phalanx().wait_output("deaf", 5s));
  tell(1, "exit 3");
  auto [outcome, after] = ended();
  EXPECT_EQ(outcome.exit_code, 3) << outcome;
  EXPECT_HAS(outcome.err, "rank 0 (h1)");
  EXPECT_HAS(outcome.err, "SIGKILL");
  EXPECT_GE(after, 1s);
  EXPECT_LT(after, 3s);
  EXPECT_EQ(leftovers(500ms), "");
}

// Grandchildren in sessions of their own, orphans among them; "forked" when all four are there.
const char* const kFamily =
    "setsid sleep 1001 & (setsid setsid sleep 1002 &) ; nohup sh -c 'trap \"\" TERM HUP; sleep 1003' >/dev/null 2>&1 & "
    "until pgrep -xf 'sleep 1001' && pgrep -xf 'sleep 1002' && pgrep -xf 'sleep 1003'; do :; done >/dev/null; echo forked";

TEST_F(Fault, GrandchildrenGoWithAFailedRank) {
  start();
  launch("h1,h2");
  tell(0, kFamily);
  ASSERT_TRUE(phalanx().wait_output("forked", 5s));
  tell(1, "exit 3");
  auto [outcome, after] = ended();
  EXPECT_EQ(outcome.exit_code, 3) << outcome;
  EXPECT_LT(after, 3s);
  EXPECT_EQ(leftovers(500ms), "");
}

TEST_F(Fault, GrandchildrenGoAtASuccessfulEndToo) {
  start();
  launch("h1,h2");
  tell(0, kFamily);
  ASSERT_TRUE(phalanx().wait_output("forked", 5s));
  tell(0, "exit 0");
  tell(1, "exit 0");
  auto [outcome, after] = ended();
  EXPECT_EQ(outcome.exit_code, 0) << outcome;
  EXPECT_HAS(outcome.err, "h1: killed 4 processes left behind by the ranks");
  EXPECT_LT(after, 3s);
  EXPECT_EQ(leftovers(500ms), "");
}

// One of the two processes that stand on a host, or both, are killed.
struct KilledPart {
  const char* name;
  std::vector<std::string> parts;
};
void PrintTo(const KilledPart& part, std::ostream* stream) { *stream << part.name; }
class HostPart : public Obeying, public testing::WithParamInterface<KilledPart> {};

TEST_P(HostPart, KilledIsToldAndNothingIsLeft) {
  start();
  launch("h1,h2");
  bool both = GetParam().parts.size() == 2;
  if (!both) {
    tell(1, kFamily);
    ASSERT_TRUE(phalanx().wait_output("forked", 5s));
  }
  fault();
  for (const auto& part : GetParam().parts) {
    auto found = named("h2", part);
    ASSERT_EQ(found.size(), 1U) << part;
    ASSERT_EQ(::kill(found[0].pid, SIGKILL), 0);
  }
  EXPECT_EQ(leftovers_on("h2", 2s), "");
  auto [outcome, after] = ended();
  EXPECT_NE(outcome.exit_code, 0) << outcome;
  EXPECT_HAS(outcome.err, "h2: ");
  EXPECT_HAS(outcome.err, both ? "" : GetParam().parts[0]);
  EXPECT_HAS(outcome.err, "1 stopped by phalanx");
  EXPECT_LT(after, 3s);
  EXPECT_EQ(leftovers(500ms), "");
}

INSTANTIATE_TEST_SUITE_P(Parts, HostPart,
                         testing::Values(KilledPart{"Agent", {"phalanx-agent"}}, KilledPart{"Guard", {"phalanx-guard"}},
                                         KilledPart{"Both", {"phalanx-guard", "phalanx-agent"}}),
                         [](const auto& parameter) { return parameter.param.name; });

TEST_F(Fault, NothingOutlivesAKilledLauncher) {
  start();
  launch("h1,h2");
  tell(0, kFamily);
  ASSERT_TRUE(phalanx().wait_output("forked", 5s));
  fault();
  phalanx().signal(SIGKILL);
  EXPECT_EQ(leftovers(2500ms), "");
  EXPECT_EQ(ended().outcome.exit_code, 137);
}

TEST_F(Fault, NothingOutlivesALauncherKilledDuringLoginsOrDeployment) {
  start();
  say("ctl", "exec 3<>/dev/tcp/h2/22; read -r line <&3");  // ctl knows its hardware address: a login waits, nobody says there is no route
  ASSERT_TRUE(cluster().drop("h2", Direction::kBoth).ok());
  Process launch = run_later({"-H", "h1,h2", "--connect-timeout", "30s", "--", "true"});
  while (named("h1", "phalanx-agent").empty()) ASSERT_FALSE(launch.wait(20ms));
  launch.signal(SIGKILL);
  EXPECT_EQ(leftovers(2s), "");
  ASSERT_TRUE(cluster().heal("h2").ok());
  ASSERT_TRUE(cluster().throttle("h2", "16mbit").ok());
  Process slow = run_later({"-H", "h1,h2", "--", "true"});
  while (named("h2", "head").empty()) ASSERT_FALSE(slow.wait(20ms));
  slow.signal(SIGKILL);
  EXPECT_EQ(leftovers(8s), "");
  EXPECT_EQ(say("h2", "find ~ /tmp /var/tmp /dev/shm -name '.new.*'"), "");
}

TEST_F(Fault, AKilledSshClientIsALostHost) {
  start();
  launch("h1,h2");
  fault();
  int killed = 0;
  for (const auto& process : named("ctl", "ssh")) {
    if (process.command.find("[mux]") == std::string::npos && process.command.find(" h2 ") != std::string::npos) {
      killed += ::kill(process.pid, SIGKILL) == 0;
    }
  }
  ASSERT_EQ(killed, 1);
  auto [outcome, after] = ended();
  EXPECT_EQ(outcome.exit_code, 4) << outcome;
  EXPECT_HAS(outcome.err, "h2: ");
  EXPECT_HAS(outcome.err, "1 rank lost with it, 1 stopped by phalanx");
  EXPECT_LT(after, 3s);
  EXPECT_EQ(leftovers(2s), "");
}

// A host that falls silent: told within seven seconds; its own processes are gone two seconds after its agent has noticed, which
// is eight seconds after the last it heard.
struct Silence {
  const char* name;
  base::Status (*begin)(Cluster&);
};
void PrintTo(const Silence& silence, std::ostream* stream) { *stream << silence.name; }
class HostFallsSilent : public Obeying, public testing::WithParamInterface<Silence> {};

TEST_P(HostFallsSilent, IsToldAndBothSidesEnd) {
  start();
  launch("h1,h2");
  tell(1, kFamily);
  ASSERT_TRUE(phalanx().wait_output("forked", 5s));
  if (std::string(GetParam().name) == "PoweredOff") forget_bystander("h2");
  fault();
  ASSERT_TRUE(GetParam().begin(cluster()).ok());
  auto [outcome, after] = ended(15s);
  EXPECT_EQ(outcome.exit_code, 4) << outcome;
  EXPECT_HAS(outcome.err, "h2: ");
  EXPECT_HAS(outcome.err, "1 rank lost with it, 1 stopped by phalanx");
  EXPECT_LT(after, 8s);
  EXPECT_EQ(leftovers_on("h1", 500ms), "");
  bool frozen = std::string(GetParam().name) == "Frozen";
  ASSERT_TRUE(!frozen || cluster().thaw("h2").ok());
  EXPECT_EQ(leftovers(8s), "");
}

INSTANTIATE_TEST_SUITE_P(Ways, HostFallsSilent,
                         testing::Values(Silence{"LinkCut", [](Cluster& c) { return c.cut("h2"); }},
                                         Silence{"OneWay", [](Cluster& c) { return c.drop("h2", Direction::kFrom); }},
                                         Silence{"Frozen", [](Cluster& c) { return c.freeze("h2"); }},
                                         Silence{"PoweredOff", [](Cluster& c) { return c.power_off("h2"); }}),
                         [](const auto& parameter) { return parameter.param.name; });

TEST_F(Fault, CtrlCOnceEndsTheRanksInOrder) {
  start();
  launch("h1,h2");
  for (int rank : {0, 1}) tell(rank, "trap 'echo tidy $RANK; exit 0' TERM");
  fault();
  phalanx().signal_group(SIGINT);
  auto [outcome, after] = ended();
  EXPECT_EQ(outcome.exit_code, 130) << outcome;
  EXPECT_HAS(outcome.err, "interrupted");
  EXPECT_LT(after, 1500ms);
  EXPECT_EQ(leftovers(500ms), "");
}

TEST_F(Fault, CtrlCOnceSaysWhoIsAwaitedAndKillsAfterTheGrace) {
  start();
  launch("h1,h2", {"--grace", "2s"});
  tell(1, "trap '' TERM; echo deaf");
  ASSERT_TRUE(phalanx().wait_output("deaf", 5s));
  fault();
  phalanx().signal_group(SIGINT);
  ASSERT_TRUE(phalanx().wait_output("rank 1 (h2)", 2s) || phalanx().wait_output("1 (h2)", 0ms)) << phalanx().err();
  auto [outcome, after] = ended();
  EXPECT_EQ(outcome.exit_code, 130) << outcome;
  EXPECT_HAS(outcome.err, "SIGKILL to rank 1 (h2)");
  EXPECT_GE(after, 2s);
  EXPECT_LT(after, 4s);
  EXPECT_EQ(leftovers(500ms), "");
}

TEST_F(Fault, CtrlCTwiceKillsAtOnce) {
  start();
  launch("h1,h2");
  for (int rank : {0, 1}) tell(rank, "trap '' TERM; echo deaf $RANK");
  ASSERT_TRUE(phalanx().wait_output("deaf 0", 5s) && phalanx().wait_output("deaf 1", 5s));
  phalanx().signal_group(SIGINT);
  ASSERT_TRUE(phalanx().wait_output("SIGTERM", 2s)) << phalanx().err();
  EXPECT_FALSE(phalanx().wait(500ms));
  fault();
  phalanx().signal_group(SIGINT);
  auto [outcome, after] = ended();
  EXPECT_EQ(outcome.exit_code, 130) << outcome;
  EXPECT_LT(after, 1500ms);
  EXPECT_EQ(leftovers(500ms), "");
}

TEST_F(Fault, CtrlCTypedAtATerminal) {
  start();
  Command command = run({"-H", "h1,h2", "--", "sh", "-c", "echo up $RANK; exec sleep 1008"});
  command.stdio = Command::kTerminal;
  auto launch = cluster().start_on("ctl", command);
  ASSERT_TRUE(launch.ok() && launch->wait_output("up 0", 10s) && launch->wait_output("up 1", 10s));
  launch->type("\x03");
  Outcome outcome = launch->finish(5s);
  EXPECT_EQ(outcome.exit_code, 130) << outcome;
  EXPECT_EQ(leftovers(500ms), "");
}

TEST_F(Fault, AShortSilenceIsSurvived) {
  start();
  launch("h1,h2");
  ASSERT_TRUE(cluster().drop("h2", Direction::kBoth).ok());
  EXPECT_FALSE(phalanx().wait(3s));
  ASSERT_TRUE(cluster().heal("h2").ok());
  EXPECT_FALSE(phalanx().wait(3s));
  for (int rank : {0, 1}) tell(rank, "exit 0");
  auto [outcome, after] = ended();
  EXPECT_EQ(outcome.exit_code, 0) << outcome;
}

TEST_F(Fault, AHostThatForksWithoutEndIsCleanedToo) {
  start();
  launch("h1,h2");
  tell(1, "while :; do setsid sh -c 'sleep 1009 & exec sleep 1010' & done");
  EXPECT_FALSE(phalanx().wait(500ms));
  fault();
  phalanx().signal_group(SIGINT);
  auto [outcome, after] = ended();
  EXPECT_EQ(outcome.exit_code, 130) << outcome;
  EXPECT_LT(after, 5s);
  EXPECT_EQ(leftovers(1s), "");
}

TEST_F(Fault, CtrlCDuringTheLoginsEndsAtOnce) {
  start();
  ASSERT_TRUE(cluster().drop("h2", Direction::kBoth).ok());
  Process launch = run_later({"-H", "h1,h2", "--connect-timeout", "30s", "--", "true"});
  ASSERT_FALSE(launch.wait(1s));
  launch.signal_group(SIGINT);
  Outcome outcome = launch.finish(5s);
  EXPECT_EQ(outcome.exit_code, 130) << outcome;
  EXPECT_LT(outcome.took, 3s);
  EXPECT_EQ(leftovers(1s), "");
}

TEST_F(Fault, AWorkerThatNeverConnectsIsNamedAfterTenSeconds) {
  start();
  Process launch = run_later({"-H", "h1,h2", "--", script("meet_store.py"), "1"});
  ASSERT_TRUE(launch.wait_output("joining", 20s));
  EXPECT_FALSE(launch.wait_output("waiting for", 5s)) << launch.err();
  ASSERT_TRUE(launch.wait_output("waiting for rank 1 (h2): never connected to the store", 8s)) << launch.err();
  launch.signal_group(SIGINT);
  Outcome outcome = launch.finish(15s);
  EXPECT_EQ(outcome.exit_code, 130) << outcome;
  EXPECT_EQ(leftovers(1s), "");
}

}  // namespace
