// What counts as standing still, and what follows.
#include "job/stall.h"
#include "job/look.h"

#include <gtest/gtest.h>

#include <fmt/format.h>

#include "base/json_fields.h"
#include "job/narrate.h"
#include "script.h"

using namespace phalanx;

namespace {

using namespace std::chrono_literals;
using job::Movement;
using job::StallOptions;

constexpr os::Mono kZero{1'000'000'000};
os::Mono at(std::chrono::milliseconds t) { return kZero + t; }

TEST(Movement, TheThresholdFollowsTheSteps) {
  Movement m;
  m.begin(kZero);
  EXPECT_FALSE(m.steps_known());
  EXPECT_EQ(m.threshold({}), job::kSilentStall);
  for (int i = 0; i < 10; ++i) m.step(0, i, at(1s * i));
  EXPECT_TRUE(m.steps_known());
  EXPECT_EQ(m.threshold({}), job::kLeastStall) << "five steps of a second are less than a minute";
  for (int i = 10; i < 80; ++i) m.step(0, i, at(10s + 30s * (i - 10)));
  EXPECT_EQ(m.threshold({}), 150s);
  StallOptions set;
  set.threshold = 7s;
  EXPECT_EQ(m.threshold(set), 7s);
  set.threshold = 0s;
  EXPECT_FALSE(m.threshold(set).has_value());
}

TEST(Movement, EchoesOfOtherRanksAreNoSteps) {
  Movement m;
  m.begin(kZero);
  for (int i = 0; i < 20; ++i)
    for (int rank = 0; rank < 64; ++rank) m.step(rank, i, at(40s * i + 1ms * rank));
  EXPECT_EQ(m.threshold({}), 200s);
}

TEST(Movement, OutputCountsUntilStepsAreKnown) {
  Movement m;
  m.begin(kZero);
  m.output(0, "loading\n", false, at(5s));
  EXPECT_EQ(m.still(at(6s)), 1s);
  for (int i = 1; i <= 5; ++i) m.output(0, "noise\nstep " + std::to_string(i) + " loss 1\nmore\n", false, at(10s + 1s * i));
  EXPECT_TRUE(m.steps_known());
  EXPECT_EQ(m.last_step(0), 5);
  m.output(0, "still waiting\n", false, at(40s));
  EXPECT_EQ(m.still(at(41s)), 26s) << "talk is no step";
  m.output(0, "step 5 loss 1\n", false, at(42s));
  EXPECT_EQ(m.still(at(43s)), 28s) << "nor is the same step again";
}

// Two hosts with one rank each, that run, under --stall 5s.
class Stalls : public testing::Test {
 protected:
  void run(job::OnStall action) {
    job::Job asked;
    asked.stall.threshold = 5s;
    asked.stall.action = action;
    s_.emplace(std::vector<int>{1, 1}, asked);
    s_->run_all();
    for (int64_t i = 1; i <= 5; ++i) go_on(i);
    s_->actions.clear();
  }
  void go_on(int64_t step) {
    s_->pass(200ms);
    wire::RankProgress progress;
    progress.step = step;
    for (uint32_t rank : {0u, 1u}) s_->feed(job::HostReported{rank, 100, job::RankAdvanced{rank, progress}});  // one rank per host
  }
  // Questions that follow a stall, and those about what ranks spend their time on.
  std::vector<std::pair<size_t, wire::Sample>> samples(bool shares = false) {
    std::vector<std::pair<size_t, wire::Sample>> asked = s_->sent<wire::Sample>();
    std::erase_if(asked, [&](const auto& one) { return (one.second.looks > 0) != shares; });
    return asked;
  }
  // What a host's one rank was found at, in so many of a hundred looks.
  void answer_looks(size_t host, int computes) {
    const wire::Sample asked = samples(true).back().second;
    machine::ThreadSample busy, waits;
    busy.state = "R";
    waits.state = "S";
    waits.wchan = "futex_do_wait";
    waits.frames = {"libtorch_cpu.so!c10d::Work::wait"};
    machine::HostSample sample;
    sample.profiles = {{static_cast<int64_t>(host), 100, {{computes, busy}, {100 - computes, waits}}}};
    s_->say(host, wire::Sampled{asked.id, {}, base::to_text(base::to_json(sample))});
  }
  // What a host says of its one rank: it sleeps, or waits in a collective.
  void answer(size_t host, bool sleeps, const char* state = "S") {
    machine::HostSample sample;
    machine::ThreadSample main;
    main.tid = 46;
    main.state = state;
    main.wchan = sleeps ? "hrtimer_nanosleep" : "futex_do_wait";
    if (!sleeps) main.frames = {"libc.so.6!pthread_cond_wait", "libtorch_cpu.so!c10d::Work::wait"};
    machine::ProcessSample process;
    process.pid = 46;
    process.state = state;
    process.threads = {main};
    machine::RankSample rank;
    rank.rank = static_cast<int64_t>(host);
    rank.processes = {process};
    sample.ranks = {rank};
    s_->say(host, wire::Sampled{samples().back().second.id, {}, base::to_text(base::to_json(sample))});
  }
  // What both hosts say every 2.5 s; then both ranks wait for each other, or one sleeps.
  void pulse(uint32_t cpu_ms) {
    for (uint32_t rank : {0u, 1u}) s_->feed(job::HostReported{rank, 100, wire::Pulse{0, 2500, {{rank, cpu_ms, 0, 0, 'S', 1}}, {}, 0}});
  }
  void look(bool one_sleeps) {
    for (int round = 0; round < 2; ++round) {
      for (size_t h : {0, 1}) answer(h, one_sleeps && h == 1);
      s_->pass(1200ms);
    }
  }
  void answer_all() {
    for (int round = 0; round < 2; ++round) {
      for (size_t h : {0, 1}) answer(h, h == 1);
      s_->pass(1200ms);
    }
  }
  std::optional<job::test::Script> s_;
};

// Of a flood only some lines are searched as they come; the last is known all the same when somebody asks.
TEST(LastStep, IsThatOfTheLastLineEvenOfAFlood) {
  job::Movement movement;
  os::Mono now{1'000'000'000};
  movement.begin(now);
  for (int i = 1; i <= 25; ++i) movement.output(0, fmt::format("step {} loss 1.0\n", i), false, now = now + os::milliseconds(10));
  EXPECT_EQ(movement.last_step(0), 25);
  movement.output(0, "saving\n", false, now + os::milliseconds(10));
  EXPECT_GE(movement.last_step(0).value_or(0), 21);
  EXPECT_EQ(movement.last_step(1), std::nullopt);
}

// What a person who asks is told (phalanx stacks): of its own ranks only, and no more than fits.
TEST_F(Stalls, ALookTellsWhatEveryRankDoes) {
  run(job::OnStall::kReport);
  job::LiveLook look;
  machine::ThreadSample main, library;
  main.tid = 46;
  main.state = "S";
  main.wchan = "hrtimer_nanosleep";
  main.python = {{"/data/train.py", "validate", 42}};
  main.frames = std::vector<std::string>(20, "libc.so.6!nanosleep");
  library.tid = 47;
  machine::ProcessSample process;
  process.pid = 46;
  process.python = "3.11";
  process.threads = {main, library};
  machine::RankSample mine, foreign;
  mine.rank = 0;
  foreign.rank = 1;
  mine.processes = foreign.processes = {process};
  look.then[0].ranks = {mine, foreign};
  look.unanswered[1] = "no answer in time";
  base::Json json = job::look_json(s_->state, look, s_->now);
  ASSERT_EQ(json["ranks"].size(), 1u) << "rank 1 is not the first host's";
  const base::Json& rank = json["ranks"][0];
  EXPECT_EQ(rank["place"], "train.py:42 (validate)");
  EXPECT_EQ(rank["doing"], "sleeps (nanosleep)");
  EXPECT_EQ(rank["step"], 5);
  ASSERT_EQ(rank["processes"][0]["threads"].size(), 1u);
  EXPECT_EQ(rank["processes"][0]["other_threads"], 1);
  EXPECT_EQ(rank["processes"][0]["threads"][0]["native"].size(), 6u);
  EXPECT_EQ(json["hosts"][0]["problem"], "no answer in time");
  main.python[0].file = std::string(job::kMostLookBytes, 'x');
  process.threads = {main};
  look.then[0].ranks[0].processes = {process};
  json = job::look_json(s_->state, look, s_->now);
  EXPECT_TRUE(json["ranks"][0]["cut"].get<bool>());
  EXPECT_LT(base::to_text(json).size(), job::kMostLookBytes);
}

TEST_F(Stalls, AreAskedForJudgedAndToldOnce) {
  run(job::OnStall::kReport);
  s_->pass(4800ms);
  EXPECT_TRUE(samples().empty());
  s_->pass(400ms);
  ASSERT_EQ(samples().size(), 2u);
  EXPECT_FALSE(samples()[0].second.frames);
  answer_all();
  EXPECT_TRUE(samples()[2].second.frames);
  std::vector<std::pair<size_t, wire::Dig>> digs = s_->sent<wire::Dig>();
  ASSERT_EQ(digs.size(), 2u);
  EXPECT_FALSE(digs[0].second.debugger) << "the verdict is certain: no process is stopped for it";
  for (const auto& [host, dig] : digs)
    s_->say(host, wire::Dug{dig.id,
                            {{dig.ranks[0], wire::PieceKind::kHookStack,
                              "Current thread 0x1 (most recent call first):\n  File \"train.py\", line 42 in validate\n"}}});
  ASSERT_EQ(s_->told<job::Stalled>().size(), 1u);
  const job::Stalled note = s_->told<job::Stalled>()[0];
  EXPECT_EQ(note.verdict.code, "HANG-NEVER-ENTERED");
  EXPECT_EQ(note.verdict.ranks, std::vector<int>{1});
  std::string text = job::narrate(s_->state, note, base::Language::kEnglish);
  EXPECT_NE(text.find("rank 1 (h2, local 0)"), std::string::npos) << text;
  EXPECT_NE(text.find("train.py:42 (validate)"), std::string::npos) << text;
  EXPECT_EQ(text.find("no step for 7 s: "), 0u) << text;
  s_->pass(60s);
  EXPECT_EQ(s_->told<job::Stalled>().size(), 1u) << "told once";
  EXPECT_EQ(s_->state.phase, job::Phase::kRunning);
  go_on(6);
  s_->pass(400ms);
  ASSERT_EQ(s_->told<job::GoesOn>().size(), 1u);
  EXPECT_NEAR(static_cast<double>(s_->told<job::GoesOn>()[0].stood.count()) / 1e9, 67, 1.5);
  s_->pass(6s);
  EXPECT_EQ(samples().size(), 6u) << "another stall is another look";
}

// Long before the threshold, which nobody has set, and before any step.
TEST_F(Stalls, ADeadlockThatIsProvedIsToldWithinSeconds) {
  s_.emplace(std::vector<int>{1, 1}, job::Job{});
  s_->run_all();
  pulse(2000);
  s_->pass(5000ms);
  EXPECT_TRUE(samples().empty()) << "they compute";
  pulse(0);
  s_->pass(200ms);
  ASSERT_EQ(samples().size(), 2u);
  look(false);
  for (const auto& [host, dig] : s_->sent<wire::Dig>()) {
    EXPECT_FALSE(dig.debugger);
    s_->say(host, wire::Dug{dig.id, {}});
  }
  ASSERT_EQ(s_->told<job::Stalled>().size(), 1u);
  EXPECT_EQ(s_->told<job::Stalled>()[0].verdict.code, "HANG-CIRCULAR");
  EXPECT_LE(s_->told<job::Stalled>()[0].still, 10s);
  s_->pass(30s);
  EXPECT_EQ(s_->told<job::Stalled>().size(), 1u) << "told once";
  go_on(1);
  s_->pass(400ms);
  EXPECT_EQ(s_->told<job::GoesOn>().size(), 1u);
}

// A process that is stopped goes on only if somebody sees to it: told long before the threshold, unless the run would be ended for it.
TEST_F(Stalls, AProcessThatIsStoppedIsToldWithinSeconds) {
  for (job::OnStall action : {job::OnStall::kReport, job::OnStall::kStop}) {
    job::Job asked;
    asked.stall.action = action;
    s_.emplace(std::vector<int>{1, 1}, asked);
    s_->run_all();
    for (uint32_t rank : {0u, 1u})
      s_->feed(
          job::HostReported{rank, 100, wire::Pulse{0, 2500, {{rank, 0, 0, 0, static_cast<uint8_t>(rank == 1 ? 'T' : 'S'), 1}}, {}, 0}});
    s_->pass(5200ms);
    for (int round = 0; round < 2; ++round) {
      for (size_t h : {0, 1}) answer(h, false, h == 1 ? "T" : "S");
      s_->pass(1200ms);
    }
    for (const auto& [host, dig] : s_->sent<wire::Dig>()) s_->say(host, wire::Dug{dig.id, {}});
    std::vector<job::Stalled> told = s_->told<job::Stalled>();
    ASSERT_EQ(told.size(), action == job::OnStall::kReport ? 1u : 0u);
    if (!told.empty()) { EXPECT_EQ(told[0].verdict.code, "HANG-STOPPED"); }
  }
}

// Who waits least while steps are made is who the others wait for: a suspicion, then a longer look, then a name, once.
TEST_F(Stalls, AStragglerIsNamedWhileStepsAreMade) {
  run(job::OnStall::kReport);
  int64_t step = 5;
  auto go_on_for = [&](int steps) {
    for (int i = 0; i < steps; ++i) go_on(++step);
  };
  go_on_for(45);
  EXPECT_TRUE(samples(true).empty());
  go_on_for(10);
  ASSERT_EQ(samples(true).size(), 2u);
  EXPECT_EQ(samples(true)[0].second.looks, job::kFewLooks);
  go_on_for(10);
  answer_looks(0, 30);
  answer_looks(1, 98);
  EXPECT_TRUE(s_->told<job::Slow>().empty());
  ASSERT_EQ(samples(true).size(), 4u);
  EXPECT_EQ(samples(true).back().second.looks, job::kManyLooks);
  go_on_for(10);
  answer_looks(0, 30);
  answer_looks(1, 98);
  std::vector<job::Slow> told = s_->told<job::Slow>();
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].verdict.code, "SLOW-RANK");
  EXPECT_EQ(told[0].verdict.ranks, std::vector<int>{1});
  std::string text = job::narrate(s_->state, told[0], base::Language::kEnglish);
  EXPECT_NE(text.find("steps could be up to 3.1 times as fast"), std::string::npos) << text;
  job::LiveLook look;
  look.then[0].ranks = {machine::RankSample{}};
  EXPECT_EQ(job::look_json(s_->state, look, s_->now)["ranks"][0]["shares"]["communicating"], 0.7);
  go_on_for(100);
  EXPECT_EQ(s_->told<job::Slow>().size(), 1u);
}

TEST_F(Stalls, WhoWorksAloneInALongPhaseIsNoStraggler) {
  run(job::OnStall::kReport);
  for (int64_t i = 6; i <= 60; ++i) go_on(i);
  ASSERT_EQ(samples(true).size(), 2u);
  for (int look = 0; look < 3; ++look) {
    s_->pass(4000ms);  // it saves
    answer_looks(0, 2);
    answer_looks(1, 98);
  }
  EXPECT_TRUE(s_->told<job::Slow>().empty()) << "no step passed while it was looked at again";
}

TEST_F(Stalls, ALookThatProvesNothingIsSilentAndRepeatedEverMoreRarely) {
  s_.emplace(std::vector<int>{1, 1}, job::Job{});
  s_->run_all();
  pulse(0);
  s_->pass(2800ms);
  look(true);
  EXPECT_EQ(samples().size(), 4u);
  s_->pass(500ms);
  EXPECT_EQ(samples().size(), 4u);
  s_->pass(1000ms);
  EXPECT_EQ(samples().size(), 6u);
  look(true);
  s_->pass(2000ms);
  EXPECT_EQ(samples().size(), 8u) << "the pause has doubled";
  pulse(1000);
  s_->pass(3000ms);
  pulse(0);
  s_->pass(400ms);
  EXPECT_EQ(samples().size(), 10u) << "after some work a new pause is looked at soon";
  EXPECT_TRUE(s_->sent<wire::Dig>().empty());
  EXPECT_TRUE(s_->told<job::Stalled>().empty());
}

TEST_F(Stalls, NeverMeansNever) {
  job::Job asked;
  asked.stall.threshold = 0s;
  s_.emplace(std::vector<int>{1, 1}, asked);
  s_->run_all();
  pulse(0);
  s_->pass(60s);
  EXPECT_TRUE(samples().empty());
}

TEST_F(Stalls, StopEndsTheRunWithTheVerdict) {
  run(job::OnStall::kStop);
  s_->pass(5200ms);
  answer_all();
  s_->pass(3200ms);  // nobody answers the last question
  ASSERT_EQ(s_->told<job::Stalled>().size(), 1u);
  ASSERT_EQ(s_->sent<wire::Signal>().size(), 2u);
  for (int rank : {0, 1}) s_->exit(rank, SIGTERM, SIGTERM);
  s_->finish_all();
  ASSERT_TRUE(s_->verdict());
  EXPECT_EQ(s_->verdict()->kind, job::Verdict::Kind::kHung);
  EXPECT_EQ(s_->verdict()->exit_code, 5);
  EXPECT_EQ(s_->verdict()->rank, 1);
  EXPECT_EQ(s_->verdict()->stopped, 2);
  std::vector<base::Error> errors = job::explain(s_->state, *s_->verdict(), "", "", base::Language::kEnglish);
  ASSERT_EQ(errors.size(), 1u);
  EXPECT_NE(errors[0].message.find("[HANG-NEVER-ENTERED]"), std::string::npos);
}

TEST_F(Stalls, AHostThatDoesNotAnswerIsMissingEvidence) {
  run(job::OnStall::kReport);
  s_->pass(5200ms);
  s_->pass(15s);
  ASSERT_EQ(s_->told<job::Stalled>().size(), 1u);
  EXPECT_EQ(s_->told<job::Stalled>()[0].verdict.code, "HANG-UNKNOWN");
  ASSERT_GE(s_->told<job::Stalled>()[0].verdict.missing.size(), 2u);
  EXPECT_EQ(s_->told<job::Stalled>()[0].verdict.missing[0].english, "h1 did not answer: no answer in time");
}

TEST_F(Stalls, AStepInBetweenEndsTheLook) {
  run(job::OnStall::kStop);
  s_->pass(5200ms);
  go_on(6);
  s_->pass(2s);
  EXPECT_TRUE(s_->sent<wire::Dig>().empty());
  EXPECT_TRUE(s_->told<job::Stalled>().empty());
  EXPECT_TRUE(s_->told<job::GoesOn>().empty()) << "nothing was told, so nothing is taken back";
}

}  // namespace
