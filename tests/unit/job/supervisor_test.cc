#include "script.h"

#include <gtest/gtest.h>

#include "job/narrate.h"

namespace phalanx::job::test {
namespace {

using os::milliseconds;

TEST(Supervisor, StartsNoRankBeforeEveryHostHasReachedTheStore) {
  Script s({2, 1});
  s.open_all();
  EXPECT_EQ(s.sent<wire::Prepare>().size(), 2u);
  EXPECT_EQ(s.sent<wire::OpenStore>().size(), 1u);
  s.prepare_all();
  ASSERT_EQ(s.sent<wire::Reach>().size(), 1u);
  EXPECT_EQ(s.sent<wire::Reach>()[0].second.port, 4711u);
  EXPECT_TRUE(s.sent<wire::Start>().empty());
  s.say(1, wire::Reached{{}, "eth0"});
  EXPECT_EQ(s.sent<wire::Start>().size(), 2u);
  EXPECT_EQ(s.state.phase, Phase::kRunning);
}

// An upgrade under a running launcher: hosts share the folder of the other build, or somebody replaced the program there.
TEST(Supervisor, AnAgentOfAnotherBuildIsRefused) {
  Script s({1, 1});
  s.state.job.build = "0123";
  wire::Hello other;
  other.cpus = 1;
  other.build = "4567";
  s.say(1, other);
  EXPECT_FALSE(s.state.hosts[1].open);
  ASSERT_TRUE(s.state.hosts[1].refusal);
  EXPECT_NE(s.state.hosts[1].refusal->render().find("another build of phalanx"), std::string::npos);
  other.build = "0123";
  s.say(0, other);
  EXPECT_TRUE(s.state.hosts[0].open);
}

TEST(Supervisor, EndsWellWhenEveryRankEndsWell) {
  Script s({2, 1});
  s.run_all();
  for (int r : {2, 0, 1}) s.exit(r, 0);
  EXPECT_EQ(s.sent<wire::Finish>().size(), 2u);
  EXPECT_EQ(s.verdict(), nullptr) << "hosts have not said that nothing is left";
  s.finish_all();
  ASSERT_NE(s.verdict(), nullptr);
  EXPECT_EQ(s.verdict()->kind, Verdict::Kind::kDone);
  EXPECT_EQ(s.verdict()->exit_code, 0);
}

TEST(Supervisor, NamesTheEarliestFailureOnOneClockNotTheFirstToArrive) {
  Script s({2, 2});
  s.run_all();
  s.pass(milliseconds(3000));
  s.exit(0, exited(1), 0, milliseconds(10));  // arrives first …
  s.exit(3, SIGKILL, 0, milliseconds(220));   // … but this one came before it
  EXPECT_EQ(s.sent<wire::Signal>().size(), 2u);
  s.exit(1, SIGTERM, SIGTERM);
  s.exit(2, SIGTERM, SIGTERM);
  s.finish_all();
  ASSERT_NE(s.verdict(), nullptr);
  EXPECT_EQ(s.verdict()->kind, Verdict::Kind::kRankFailed);
  EXPECT_EQ(s.verdict()->rank, 3);
  EXPECT_EQ(s.verdict()->host, 1u);
  EXPECT_EQ(s.verdict()->exit_code, 128 + SIGKILL);
  EXPECT_EQ(s.verdict()->stopped, 2);
  EXPECT_EQ(s.verdict()->also_failed, 1);
  ASSERT_TRUE(s.verdict()->lead.has_value());
  EXPECT_NEAR(static_cast<double>(s.verdict()->lead->count()), 210e6, 1e6);
}

TEST(Supervisor, ARankThatFailsBecauseWeStoppedItIsNotTheCause) {
  Script s({2});
  s.run_all();
  s.exit(1, exited(3));
  s.exit(0, exited(1), SIGTERM, milliseconds(50));  // its clock claims an earlier end; we had stopped it
  s.finish_all();
  ASSERT_NE(s.verdict(), nullptr);
  EXPECT_EQ(s.verdict()->rank, 1);
  EXPECT_EQ(s.verdict()->exit_code, 3);
  ASSERT_TRUE(s.verdict()->lead.has_value()) << "that it came first is known without any clock";
  EXPECT_EQ(s.verdict()->lead->count(), 0);
}

// Python takes a while to end after its traceback. Its peers may notice, and be heard of, before it has.
TEST(Supervisor, ARankThatWasOnItsWayOutIsTheCauseOfItsPeersFailure) {
  constexpr const char *kOwn = "Traceback (most recent call last):\n  File \"t.py\", line 3, in f\n    g()\nValueError: bad batch\n",
                       *kVictim = "RuntimeError: [gloo/transport/tcp/pair.cc:598] Connection closed by peer [10.0.0.1]:4711\n",
                       *kWentOn = "ValueError: bad batch\nstep 4\n",
                       *kBroken =
                           "    raise RuntimeError('DataLoader worker (pid(s) {}) exited unexpectedly'.format(pids_str)) from e\n"
                           "RuntimeError: DataLoader worker (pid(s) 33) exited unexpectedly\n";
  struct Case {
    const char *of_first, *of_stopped;
    int blamed;
  };
  const std::string went_on = std::string("Traceback (most recent call last):\n") + kWentOn;
  for (Case c : {Case{kVictim, kOwn, 1},
                 {kVictim, "", 0},
                 {kOwn, kOwn, 0},
                 {kVictim, kVictim, 0},
                 {kVictim, went_on.c_str(), 0},
                 {kVictim, kBroken, 1},
                 {kBroken, kVictim, 0},
                 {kBroken, kBroken, 0}}) {
    Script s({1, 1});
    s.run_all();
    s.exit(0, exited(1), 0, {}, c.of_first);
    s.exit(1, SIGTERM, SIGTERM, {}, c.of_stopped);
    s.finish_all();
    ASSERT_NE(s.verdict(), nullptr);
    EXPECT_EQ(s.verdict()->rank, c.blamed) << c.of_stopped;
    EXPECT_EQ(s.verdict()->exit_code, 1);
    EXPECT_EQ(s.verdict()->evidence == "ValueError: bad batch", c.of_stopped == kOwn);
  }
}

TEST(Supervisor, KillsAfterTheGraceWhatIgnoresSigterm) {
  Job job;
  job.failure_grace = milliseconds(2000);
  Script s({2}, job);
  s.run_all();
  s.exit(0, exited(3));
  s.pass(milliseconds(1800));
  EXPECT_EQ(s.sent<wire::Signal>().size(), 1u);
  s.pass(milliseconds(400));
  ASSERT_EQ(s.sent<wire::Signal>().size(), 2u);
  EXPECT_EQ(s.sent<wire::Signal>()[1].second.signal, SIGKILL);
  ASSERT_EQ(s.told<KillingRanks>().size(), 1u);
  EXPECT_EQ(s.told<KillingRanks>()[0].awaited, std::vector<int>{1});
  s.exit(1, SIGKILL, SIGKILL);
  s.finish_all();
  ASSERT_NE(s.verdict(), nullptr);
  EXPECT_EQ(s.verdict()->rank, 0);
}

TEST(Supervisor, EndsEvenIfARankCannotBeKilled) {
  Job job;
  job.failure_grace = milliseconds(1000);
  Script s({2}, job);
  s.run_all();
  s.exit(0, exited(3));
  s.pass(milliseconds(1000) + kKillPatience + kFinishPatience + milliseconds(1000));
  ASSERT_NE(s.verdict(), nullptr);
  EXPECT_EQ(s.verdict()->exit_code, 3);
}

TEST(Supervisor, CtrlCOnceStopsTwiceKills) {
  Script s({1, 1});
  s.run_all();
  s.feed(OperatorSignal{SIGINT});
  EXPECT_EQ(s.sent<wire::Signal>().size(), 2u);
  ASSERT_EQ(s.told<StoppingRanks>().size(), 1u);
  EXPECT_TRUE(s.told<StoppingRanks>()[0].by_operator);
  s.feed(OperatorSignal{SIGINT});
  ASSERT_EQ(s.sent<wire::Signal>().size(), 4u);
  EXPECT_EQ(s.sent<wire::Signal>()[3].second.signal, SIGKILL);
  s.exit(0, SIGKILL, SIGKILL);
  s.exit(1, SIGKILL, SIGKILL);
  s.finish_all();
  ASSERT_NE(s.verdict(), nullptr);
  EXPECT_EQ(s.verdict()->kind, Verdict::Kind::kInterrupted);
  EXPECT_EQ(s.verdict()->exit_code, 130);
}

TEST(Supervisor, CtrlCWhileOpeningGivesUpTheOpening) {
  Script s({1, 1});
  s.hello(0);
  s.feed(OperatorSignal{SIGINT});
  EXPECT_EQ(s.sent<wire::Finish>().size(), 1u);
  s.say(0, wire::Finished{});
  ASSERT_NE(s.verdict(), nullptr);
  EXPECT_EQ(s.verdict()->exit_code, 130);
}

TEST(Supervisor, ASilentHostIsLostAndTheOthersAreStopped) {
  Script s({1, 2});
  s.run_all();
  s.pass(kHostPatience + milliseconds(600), {1});
  ASSERT_EQ(s.sent<wire::Signal>().size(), 1u) << "only the host that is left";
  EXPECT_EQ(s.sent<wire::Signal>()[0].first, 0u);
  s.exit(0, SIGTERM, SIGTERM);
  s.finish_all();
  ASSERT_NE(s.verdict(), nullptr);
  EXPECT_EQ(s.verdict()->kind, Verdict::Kind::kHostLost);
  EXPECT_EQ(s.verdict()->host, 1u);
  EXPECT_EQ(s.verdict()->exit_code, 4);
  EXPECT_EQ(s.verdict()->lost, 2);
  EXPECT_EQ(s.verdict()->stopped, 1);
}

// Its kernel sends again what was never acknowledged, so a little is heard of a host that gets nothing.
TEST(Supervisor, AHostThatDoesNotAnswerIsLostThoughALittleIsHeard) {
  Script s({1, 1});
  s.run_all();
  wire::Output output;
  output.rank = 1;
  for (int i = 0; i < 11; ++i) {
    s.pass(milliseconds(500), {1});
    s.feed(HostReported{1, 200, output});
  }
  ASSERT_EQ(s.state.phase, Phase::kStopping);
  EXPECT_EQ(s.state.lost_host, 1u);
  EXPECT_NE(s.state.lost_error.cause.find("does not arrive"), std::string::npos) << s.state.lost_error.cause;
}

// Its answers wait behind what its ranks print.
TEST(Supervisor, AHostThatTalksMuchMayAnswerLate) {
  Script s({1, 1});
  s.run_all();
  wire::Output output;
  output.rank = 1;
  for (int i = 0; i < 24; ++i) {
    s.pass(milliseconds(500), {1});
    s.feed(HostReported{1, 20'000, output});
  }
  EXPECT_EQ(s.state.phase, Phase::kRunning);
}

// The launcher's machine was suspended for longer than the lease: its agents have ended their ranks, and none of them is to blame.
TEST(Supervisor, AfterALongSleepNoHostIsBlamed) {
  Script s({1, 1});
  s.run_all();
  s.pass(milliseconds(2000));
  s.now = s.now + kDefaultLease + milliseconds(4000);
  const base::Error gone = base::fail(base::ErrorKind::kUnreachable, "h1: lost contact with the host");
  s.feed(HostEnded{0, gone});
  s.feed(HostEnded{1, gone});
  s.finish_all();
  ASSERT_NE(s.verdict(), nullptr);
  EXPECT_EQ(s.verdict()->kind, Verdict::Kind::kHostLost);
  EXPECT_TRUE(s.verdict()->suspended);
  EXPECT_TRUE(s.verdict()->unfit_hosts.empty());
  EXPECT_EQ(s.verdict()->exit_code, 4);
  std::vector<base::Error> words = explain(s.state, *s.verdict(), "", "", base::Language::kEnglish);
  ASSERT_EQ(words.size(), 1u);
  EXPECT_EQ(words[0].message.rfind("the launcher was suspended for 3", 0), 0u) << words[0].message;
  EXPECT_EQ(words[0].cause, "its hosts stop their ranks after losing contact with the launcher for 30 s");
}

// The guard's exit code decides, not what a login says.
TEST(Supervisor, AnAgentThatWasKilledIsKnownByItsGuard) {
  const std::pair<std::optional<wire::GuardEnd>, std::string> kCases[] = {
      {wire::GuardEnd::kAgentKilled, "HOST-AGENT-KILLED"}, {wire::GuardEnd::kLeaseOver, "HOST-LOST"}, {std::nullopt, "HOST-LOST"}};
  for (const auto& [guard, code] : kCases) {
    Script s({1, 1});
    s.run_all();
    s.feed(HostEnded{
        0, base::fail(base::ErrorKind::kUnreachable, "h1: lost contact with the host").because("phalanx-agent was killed by SIGKILL"),
        guard});
    s.exit(1, SIGTERM, SIGTERM);
    s.finish_all();
    ASSERT_NE(s.verdict(), nullptr);
    EXPECT_EQ(s.verdict()->code, code);
  }
}

TEST(Supervisor, AShortSleepExcusesNoHost) {
  Script s({1, 1});
  s.run_all();
  s.pass(milliseconds(2000));
  s.now = s.now + milliseconds(10'000);
  s.feed(Tick{});
  EXPECT_EQ(s.state.phase, Phase::kRunning) << "who slept cannot judge the silence of others";
  s.feed(HostEnded{0, base::fail(base::ErrorKind::kUnreachable, "h1: lost contact with the host")});
  s.exit(1, SIGTERM, SIGTERM);
  s.finish_all();
  ASSERT_NE(s.verdict(), nullptr);
  EXPECT_FALSE(s.verdict()->suspended);
  EXPECT_EQ(s.verdict()->unfit_hosts, (std::vector<size_t>{0}));
}

TEST(Supervisor, RefusalsOfAllHostsAreToldTogether) {
  Script s({1, 1, 1});
  s.open_all();
  wire::Prepared bad{{false, base::fail(base::ErrorKind::kUnfit, "the working directory /data does not exist")}, ""};
  s.say(1, bad);
  EXPECT_EQ(s.verdict(), nullptr);
  s.say(0, wire::Prepared{{}, "/bin/true"});
  s.say(2, bad);
  s.finish_all();
  ASSERT_NE(s.verdict(), nullptr);
  EXPECT_EQ(s.verdict()->exit_code, 3);
  ASSERT_EQ(s.verdict()->refusals.size(), 2u);
  EXPECT_EQ(s.verdict()->refusals[0].message, "h2: the working directory /data does not exist");
  EXPECT_TRUE(s.sent<wire::Start>().empty());
}

// The store is on h1, which is not asked whether it reaches it.
TEST(Supervisor, AHostThatIsLostAfterItHasPreparedStartsNoRanks) {
  for (bool store_first : {true, false}) {
    Script s({1, 1});
    s.open_all();
    s.say(0, wire::Prepared{{}, "/bin/true"});
    if (store_first) s.say(0, wire::StoreOpened{{}, 4711});
    else s.say(1, wire::Prepared{{}, "/bin/true"});
    s.feed(HostEnded{0, base::fail(base::ErrorKind::kUnreachable, "h1: lost contact with the host")});
    if (store_first) s.say(1, wire::Prepared{{}, "/bin/true"});
    s.say(1, wire::Reached{{}, "eth0"});
    s.pass(kSettle + milliseconds(200));
    s.finish_all();
    ASSERT_NE(s.verdict(), nullptr);
    EXPECT_EQ(s.verdict()->kind, Verdict::Kind::kRefused);
    EXPECT_EQ(s.verdict()->unfit_hosts, (std::vector<size_t>{0}));
    EXPECT_TRUE(s.sent<wire::Start>().empty());
  }
}

// Each of them fails: the last one ends the wait for the others.
TEST(Supervisor, AHostThatCanStartNoRankEndsTheRunAtOnce) {
  Script s({3});
  s.open_all();
  s.prepare_all();
  for (uint32_t r = 0; r < 3; ++r)
    s.say(0, wire::Started{{false, base::fail(base::ErrorKind::kUnfit, "pipe2: Too many open files")}, r, 0});
  s.finish_all();
  ASSERT_NE(s.verdict(), nullptr);
  EXPECT_EQ(s.verdict()->kind, Verdict::Kind::kRefused);
  EXPECT_TRUE(s.told<KillingRanks>().empty());
}

TEST(Supervisor, AnUnreachableHostEndsTheLaunchShortlyAfterTheFirstRefusal) {
  Script s({1, 1});
  s.feed(HostEnded{1, base::fail(base::ErrorKind::kUnreachable, "h2: the host does not answer")});
  EXPECT_EQ(s.verdict(), nullptr);
  s.pass(kSettle + milliseconds(200));
  ASSERT_NE(s.verdict(), nullptr);
  EXPECT_EQ(s.verdict()->exit_code, 4);
}

TEST(Supervisor, TriesTheNextAddressWhenAHostCannotReachTheFirst) {
  Script s({1, 1});
  s.hello(1);
  wire::Hello two_homes;
  two_homes.addresses = {{"docker0", "172.17.0.1"}, {"eth0", "10.0.0.1"}};
  two_homes.ssh_server = "172.17.0.1";
  s.say(0, two_homes);
  s.prepare_all();
  s.say(1, wire::Reached{{false, base::fail(base::ErrorKind::kUnfit, "cannot connect")}, ""});
  ASSERT_EQ(s.sent<wire::OpenStore>().size(), 2u);
  EXPECT_EQ(s.sent<wire::OpenStore>()[0].second.address, "172.17.0.1");
  EXPECT_EQ(s.sent<wire::OpenStore>()[1].second.address, "10.0.0.1");
  s.say(0, wire::StoreOpened{{}, 4712});
  s.say(1, wire::Reached{{}, "eth0"});
  ASSERT_EQ(s.sent<wire::Start>().size(), 2u);
  EXPECT_EQ(s.sent<wire::Start>()[1].second.store_address, "10.0.0.1");
}

TEST(Supervisor, SaysWhoNeverMetTheStore) {
  Script s({1, 2});
  s.run_all();
  s.say(0, wire::Connected{0});
  s.pass(kStoreSilence - milliseconds(400));
  EXPECT_TRUE(s.told<WaitingForStore>().empty());
  s.pass(milliseconds(800));
  ASSERT_EQ(s.told<WaitingForStore>().size(), 1u);
  EXPECT_EQ(s.told<WaitingForStore>()[0].missing, (std::vector<int>{1, 2}));
}

TEST(Supervisor, AProgramThatNeverUsesTheStoreIsLeftInPeace) {
  Script s({2});
  s.run_all();
  s.pass(3 * kStoreSilence);
  EXPECT_TRUE(s.told<WaitingForStore>().empty());
}

TEST(Supervisor, ADryRunStartsNothing) {
  Job job;
  job.dry_run = true;
  Script s({1, 1}, job);
  s.open_all();
  s.prepare_all();
  s.finish_all();
  ASSERT_NE(s.verdict(), nullptr);
  EXPECT_EQ(s.verdict()->kind, Verdict::Kind::kPlanned);
  EXPECT_TRUE(s.sent<wire::Start>().empty());
}

TEST(Supervisor, ARankThatCannotBeStartedRefusesTheRun) {
  Script s({2});
  s.open_all();
  s.prepare_all();
  s.say(0, wire::Started{{}, 0, 100});
  s.say(0, wire::Started{{false, base::fail(base::ErrorKind::kInternal, "exec /bin/x: Exec format error")}, 1, 0});
  s.exit(0, SIGTERM, SIGTERM);
  s.finish_all();
  ASSERT_NE(s.verdict(), nullptr);
  EXPECT_EQ(s.verdict()->kind, Verdict::Kind::kRefused);
  EXPECT_EQ(s.verdict()->exit_code, 3);
}

}  // namespace
}  // namespace phalanx::job::test
