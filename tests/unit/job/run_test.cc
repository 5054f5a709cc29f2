#include "job/run.h"

#include <gtest/gtest.h>

#include "script.h"

namespace phalanx::job::test {
namespace {

using os::milliseconds;

// A run whose hosts answer as agents do, one attempt after another.
class Series {
 public:
  Series(int hosts, int spares, int max_restarts, int least = 0) {
    Job job;
    for (int h = 0; h < hosts + spares; ++h) {
      HostRequest request;
      request.target.name = request.target.destination = "h" + std::to_string(h + 1);
      request.slots = 1;
      (h < hosts ? job.hosts : job.spares).push_back(request);
    }
    job.argv = {"true"};
    job.token = "0123456789abcdef";
    job.max_restarts = max_restarts;
    job.least_hosts = least;
    run = begin_run(job, now);
  }
  void feed(const Event& event) {
    for (Action& action : step(run, event, now)) actions.push_back(std::move(action));
  }
  void say(size_t host, FromHost message) { feed(HostSaid{host, std::move(message)}); }
  void pass(milliseconds duration) {
    for (os::Mono end = now + duration; now < end && !run.ended;) {
      now = now + milliseconds(200);
      for (size_t h = 0; h < run.attempt.hosts.size() && !run.waiting; ++h)
        if (run.attempt.hosts[h].open && !run.attempt.hosts[h].ended) say(h, wire::Pong{run.attempt.hosts[h].nonce, now.ns});
      feed(Tick{});
    }
  }
  size_t hosts() const { return run.attempt.hosts.size(); }
  void hello(size_t h) {
    wire::Hello hello;
    hello.now_ns = now.ns;
    hello.addresses = {{"eth0", "10.0.0." + std::to_string(h + 1)}};
    say(h, hello);
  }
  void start() {
    for (size_t h = 0; h < hosts(); ++h) hello(h);
    for (size_t h = 0; h < hosts(); ++h) say(h, wire::Prepared{{}, "/bin/true"});
    say(0, wire::StoreOpened{{}, 4711});
    for (size_t h = 1; h < hosts(); ++h) say(h, wire::Reached{{}, "eth0"});
    EXPECT_EQ(run.attempt.phase, Phase::kRunning);
  }
  void exit(size_t rank, int status, uint8_t stopped_by_us = 0, const std::string& last_words = "") {
    wire::Exited m;
    m.rank = static_cast<uint32_t>(rank);
    m.status = static_cast<uint32_t>(status);
    m.stopped_by_us = stopped_by_us;
    m.last_words = last_words;
    m.at_ns = now.ns;
    say(rank, m);
  }
  // Rank `rank` fails by itself, the others are stopped, and every host says that nothing is left.
  void fail(size_t rank, const std::string& last_words = "") {
    exit(rank, exited(1), 0, last_words);
    for (size_t r = 0; r < run.attempt.ranks.size(); ++r)
      if (r != rank) exit(r, SIGTERM, SIGTERM);
    finish();
  }
  void at_step(int rank, int64_t step) {
    wire::RankProgress progress;
    progress.step = step;
    size_t host = static_cast<size_t>(run.attempt.plan->host_of(rank));
    feed(HostReported{host, 100, RankAdvanced{static_cast<uint32_t>(rank), progress}});
  }
  void print(size_t rank, const std::string& line) {
    wire::Output output;
    output.rank = static_cast<uint32_t>(rank);
    output.data = line;
    feed(HostReported{rank, 100, output});
  }
  void finish() {
    for (size_t h = 0; h < hosts() && !run.waiting && !run.ended; ++h)
      if (!run.attempt.hosts[h].ended) say(h, wire::Finished{});
  }
  void lose(size_t h) {
    feed(HostEnded{h, base::fail(base::ErrorKind::kUnreachable, "lost contact")});
    for (size_t r = 0; r < run.attempt.ranks.size(); ++r)
      if (r != h) exit(r, SIGTERM, SIGTERM);
    finish();
  }
  std::vector<std::string> names() const {
    std::vector<std::string> list;
    for (const HostRequest& host : run.attempt.job.hosts) list.push_back(host.target.name);
    return list;
  }
  template <typename T>
  std::vector<T> told() const {
    std::vector<T> out;
    for (const Action& action : actions)
      if (auto* tell = std::get_if<Tell>(&action))
        if (auto* n = std::get_if<T>(&tell->note)) out.push_back(*n);
    return out;
  }
  template <typename T>
  size_t count() const {
    size_t n = 0;
    for (const Action& action : actions) n += std::holds_alternative<T>(action);
    return n;
  }
  const Verdict* verdict() const {
    return !actions.empty() && std::holds_alternative<End>(actions.back()) ? &std::get<End>(actions.back()).verdict : nullptr;
  }

  os::Mono now{1'000'000'000};
  Run run;
  Actions actions;
};

using Names = std::vector<std::string>;

TEST(Run, WithoutRestartsEndsWithItsOnlyAttempt) {
  Series s(2, 0, 0);
  s.start();
  s.fail(1);
  ASSERT_NE(s.verdict(), nullptr);
  EXPECT_EQ(s.verdict()->rank, 1);
  EXPECT_EQ(s.count<OpenHosts>(), 0u);
  EXPECT_TRUE(s.told<NotRestarting>().empty()) << "nobody asked for restarts";
}

TEST(Run, StartsAgainWithANewTokenAndSaysWhichTryItIs) {
  Series s(2, 0, 2);
  s.start();
  std::string token = s.run.attempt.job.token;
  s.fail(1);
  EXPECT_EQ(s.verdict(), nullptr);
  EXPECT_EQ(s.count<CloseHosts>(), 1u);
  ASSERT_EQ(s.told<Restarting>().size(), 1u);
  EXPECT_EQ(s.told<Restarting>()[0].ended.rank, 1);
  EXPECT_EQ(s.told<Restarting>()[0].wait, kFirstBackoff);
  s.pass(kFirstBackoff - milliseconds(200));
  EXPECT_EQ(s.count<OpenHosts>(), 0u);
  s.pass(milliseconds(400));
  EXPECT_EQ(s.count<OpenHosts>(), 1u);
  EXPECT_EQ(s.run.attempt.job.attempt, 1);
  EXPECT_EQ(s.run.attempt.job.token.size(), 16u);
  EXPECT_NE(s.run.attempt.job.token, token);
  s.start();
  for (size_t r : {0u, 1u}) s.exit(r, 0);
  s.finish();
  ASSERT_NE(s.verdict(), nullptr);
  EXPECT_EQ(s.verdict()->kind, Verdict::Kind::kDone);
  EXPECT_EQ(s.verdict()->attempt, 1);
}

TEST(Run, PausesGrowAndTheBudgetEnds) {
  Series s(1, 0, 3);
  for (int attempt = 0; attempt < 4; ++attempt) {
    s.start();
    s.fail(0, "ValueError: case " + std::string(static_cast<size_t>(attempt + 1), 'x'));
    s.pass(milliseconds(5000));
  }
  ASSERT_NE(s.verdict(), nullptr);
  std::vector<Restarting> restarts = s.told<Restarting>();
  ASSERT_EQ(restarts.size(), 3u);
  EXPECT_EQ(restarts[0].wait, milliseconds(1000));
  EXPECT_EQ(restarts[1].wait, milliseconds(2000));
  EXPECT_EQ(restarts[2].wait, milliseconds(4000));
  ASSERT_EQ(s.told<NotRestarting>().size(), 1u);
  EXPECT_EQ(s.told<NotRestarting>()[0].why, NotRestarting::Why::kBudget);
  EXPECT_EQ(s.verdict()->attempt, 3);
}

TEST(Run, TheSameFailureAtTheSameStepTwiceEndsTheRestarts) {
  Series s(2, 0, 10);
  s.start();
  s.at_step(1, 40);
  s.fail(1, "Traceback\n  File \"t.py\"\nValueError: bad batch at 0x7f12 of 10.0.0.1:4711\n");
  s.pass(milliseconds(2000));
  s.start();
  s.at_step(1, 40);
  s.fail(1, "Traceback\n  File \"t.py\"\nValueError: bad batch at 0x7f99 of 10.0.0.1:5122\n");
  ASSERT_NE(s.verdict(), nullptr);
  ASSERT_EQ(s.told<NotRestarting>().size(), 1u);
  EXPECT_EQ(s.told<NotRestarting>()[0].why, NotRestarting::Why::kRepeats);
  EXPECT_EQ(s.verdict()->attempt, 1);
}

TEST(Run, TheSameFailureAtAnotherStepDoesNot) {
  Series s(2, 0, 10);
  for (int64_t step : {40, 55}) {
    s.start();
    s.at_step(1, step);
    s.fail(1, "ConnectionError: x");
    s.pass(milliseconds(3000));
  }
  EXPECT_EQ(s.verdict(), nullptr);
}

// Most programs print their steps, and often only rank 0 does.
TEST(Run, TheStepThatARankPrintsCountsAndThatOfAnotherRankWhereItPrintsNone) {
  for (const size_t printing : {size_t{1}, size_t{0}}) {
    Series s(2, 0, 10);
    for (int64_t step : {40, 55}) {
      s.start();
      s.print(printing, fmt::format("step {} loss 2.0\n", step));
      s.fail(1, "ConnectionError: x");
      s.pass(milliseconds(3000));
    }
    EXPECT_EQ(s.verdict(), nullptr) << printing;
  }
}

// What was printed last may be a line behind when a rank dies.
TEST(Run, StepsThatWerePrintedMayDifferByOneAndBeTheSame) {
  Series s(2, 0, 10);
  for (int64_t step : {40, 41}) {
    s.start();
    s.print(0, fmt::format("step {} loss 2.0\n", step));
    s.fail(1, "ConnectionError: x");
    s.pass(milliseconds(3000));
  }
  ASSERT_NE(s.verdict(), nullptr);
  EXPECT_EQ(s.told<NotRestarting>().at(0).why, NotRestarting::Why::kRepeats);
}

TEST(Run, WhereNoStepIsKnownOnlyShortAttemptsRepeatEachOther) {
  Series s(2, 0, 10);
  for (int attempt = 0; attempt < 3; ++attempt) {
    s.start();
    s.pass(kLongAttempt);
    s.fail(1, "ConnectionError: x");
    s.pass(milliseconds(3000));
    ASSERT_EQ(s.verdict(), nullptr) << attempt;
  }
  for (int attempt = 0; attempt < 2; ++attempt) {
    s.start();
    s.fail(1, "ConnectionError: x");
    s.pass(milliseconds(5000));
  }
  ASSERT_NE(s.verdict(), nullptr);
  EXPECT_EQ(s.told<NotRestarting>().at(0).why, NotRestarting::Why::kRepeats);
}

TEST(Run, ASpareTakesThePlaceOfALostHostWhenItsLeaseIsOver) {
  Series s(3, 1, 1);
  s.start();
  s.lose(1);
  EXPECT_EQ(s.verdict(), nullptr);
  ASSERT_EQ(s.told<Restarting>().size(), 1u);
  EXPECT_EQ(s.told<Restarting>()[0].wait, kDefaultLease + kLeaseMargin) << "the lost host's ranks may live as long";
  ASSERT_EQ(s.told<Restarting>()[0].replaced.size(), 1u);
  EXPECT_EQ(s.told<Restarting>()[0].replaced[0].name, "h2");
  EXPECT_EQ(s.told<Restarting>()[0].replaced[0].by, "h4");
  s.pass(kDefaultLease);
  EXPECT_EQ(s.count<OpenHosts>(), 0u);
  s.pass(kLeaseMargin + milliseconds(200));
  EXPECT_EQ(s.names(), (Names{"h1", "h4", "h3"}));
}

TEST(Run, ALostHostThatIsProvedEmptyIsNotWaitedFor) {
  Series s(3, 1, 1);
  s.start();
  s.lose(1);
  EXPECT_EQ(s.count<ProveEmpty>(), 1u);
  EXPECT_TRUE(s.told<Restarting>()[0].sooner);
  s.feed(HostProved{HostProved::Proof::kAsked, 1});
  s.feed(HostProved{HostProved::Proof::kEmpty, 1});
  s.pass(kFirstBackoff - milliseconds(200));
  EXPECT_EQ(s.count<OpenHosts>(), 0u);
  s.pass(milliseconds(400));
  EXPECT_EQ(s.count<OpenHosts>(), 1u);
}

TEST(Run, ALostHostThatIsBeingAskedIsWaitedForBeyondItsLease) {
  for (HostProved::Proof proof : {HostProved::Proof::kEmpty, HostProved::Proof::kLeft, HostProved::Proof::kUnknown}) {
    Series s(3, 1, 1);
    s.start();
    s.lose(1);
    s.pass(kDefaultLease);
    s.feed(HostProved{HostProved::Proof::kAsked, 1});
    s.pass(kLeaseMargin + milliseconds(5000));
    EXPECT_EQ(s.count<OpenHosts>(), 0u);
    s.feed(HostProved{proof, 1});
    s.pass(milliseconds(200));
    EXPECT_EQ(s.count<OpenHosts>(), 1u);
  }
  Series silent(3, 1, 1);
  silent.start();
  silent.lose(1);
  silent.feed(HostProved{HostProved::Proof::kAsked, 1});
  silent.pass(kDefaultLease + kLeaseMargin + milliseconds(200));
  EXPECT_EQ(silent.count<OpenHosts>(), 1u) << "its lease is over, and so is the time it had to answer";
}

// The words of a dying agent or guard prove nothing, and nothing is lost by that: the proof is made while the first pause passes anyway.
TEST(Run, AProofWithinTheFirstPauseDelaysNothing) {
  Series s(3, 1, 1);
  s.start();
  s.feed(HostEnded{1,
                   base::fail(base::ErrorKind::kUnreachable, "lost contact").because("phalanx-agent was killed; its 1 process was killed"),
                   wire::GuardEnd::kAgentKilled});
  for (size_t r : {0u, 2u}) s.exit(r, SIGTERM, SIGTERM);
  s.finish();
  ASSERT_EQ(s.told<Restarting>().size(), 1u);
  EXPECT_GT(s.told<Restarting>()[0].wait, kDefaultLease) << "only a proof makes it shorter";
  ASSERT_EQ(s.count<ProveEmpty>(), 1u);
  s.feed(HostProved{HostProved::Proof::kAsked, 1});
  s.feed(HostProved{HostProved::Proof::kEmpty, 1});
  s.pass(kFirstBackoff + milliseconds(200));
  EXPECT_EQ(s.count<OpenHosts>(), 1u);
}

TEST(Run, GoesOnWithFewerHostsDownToTheLeast) {
  Series s(3, 0, 5, 2);
  s.start();
  s.lose(0);
  s.pass(kDefaultLease + kLeaseMargin + milliseconds(200));
  EXPECT_EQ(s.names(), (Names{"h2", "h3"}));
  s.start();
  s.lose(1);
  s.pass(kDefaultLease + kLeaseMargin + milliseconds(200));
  EXPECT_EQ(s.names(), (Names{"h2", "h1"})) << "one is too few: who is out longest is tried again";
}

TEST(Run, WithNoReplacementTheLostHostIsTriedAgain) {
  Series s(2, 0, 2);
  s.start();
  s.lose(1);
  s.pass(kDefaultLease + kLeaseMargin + milliseconds(200));
  EXPECT_EQ(s.names(), (Names{"h1", "h2"}));
  s.hello(0);
  s.feed(HostEnded{1, base::fail(base::ErrorKind::kUnreachable, "h2: no route")});
  s.pass(kSettle + milliseconds(200));
  s.finish();
  EXPECT_EQ(s.verdict(), nullptr) << "it may be on its way up";
  s.pass(milliseconds(9000));
  s.feed(HostEnded{0, base::fail(base::ErrorKind::kUnreachable, "h1: no route")});
  s.pass(milliseconds(9000));
  ASSERT_NE(s.verdict(), nullptr);
  EXPECT_EQ(s.verdict()->kind, Verdict::Kind::kRefused);
  EXPECT_EQ(s.verdict()->exit_code, 4);
}

TEST(Run, AnUnfitHostIsReplacedBeforeTheStartAtNoCost) {
  Series s(2, 1, 0);
  s.hello(0);
  s.feed(HostEnded{1, base::fail(base::ErrorKind::kUnreachable, "h2: no route")});
  s.pass(kSettle + milliseconds(200));
  s.finish();
  ASSERT_EQ(s.told<Restarting>().size(), 1u);
  EXPECT_TRUE(s.told<Restarting>()[0].before_start);
  s.pass(milliseconds(400));
  EXPECT_EQ(s.names(), (Names{"h1", "h3"}));
  EXPECT_EQ(s.run.attempt.job.attempt, 0);
  s.feed(HostEnded{1, base::fail(base::ErrorKind::kUnreachable, "h3: no route")});
  s.hello(0);
  s.pass(kSettle + milliseconds(200));
  s.finish();
  ASSERT_NE(s.verdict(), nullptr) << "no spare is left, and nothing has run";
  EXPECT_EQ(s.verdict()->exit_code, 4);
}

TEST(Run, CtrlCEndsTheWaiting) {
  Series s(1, 0, 5);
  s.start();
  s.fail(0);
  s.feed(OperatorSignal{SIGINT});
  ASSERT_NE(s.verdict(), nullptr);
  EXPECT_EQ(s.verdict()->kind, Verdict::Kind::kInterrupted);
  EXPECT_EQ(s.verdict()->exit_code, 130);
}

TEST(Run, CtrlCWhileAnAttemptFailsIsNoReasonToRestart) {
  Series s(2, 0, 5);
  s.start();
  s.exit(1, exited(1));
  s.feed(OperatorSignal{SIGINT});
  s.exit(0, SIGTERM, SIGTERM);
  s.finish();
  ASSERT_NE(s.verdict(), nullptr);
  EXPECT_EQ(s.verdict()->rank, 1);
}

TEST(Run, AHostWithProcessesThatCannotBeKilledIsLeftOut) {
  Series s(2, 1, 1);
  s.start();
  s.exit(0, exited(1));
  s.exit(1, SIGTERM, SIGTERM);
  s.say(0, wire::Finished{});
  s.say(1, wire::Finished{0, 1});
  s.pass(milliseconds(1400));
  EXPECT_EQ(s.names(), (Names{"h1", "h3"}));
}

}  // namespace
}  // namespace phalanx::job::test
