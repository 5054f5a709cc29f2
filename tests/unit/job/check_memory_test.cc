#include "checking.h"
#include "job/remembered.h"

namespace phalanx::job::test {
namespace {

using os::milliseconds;

// What a run on two healthy hosts leaves for the next one.
std::shared_ptr<const Remembered> remembered() {
  Starting first(checked(false));
  first.start();
  std::optional<Remembered> kept = to_remember(first.state);
  return kept ? std::make_shared<const Remembered>(std::move(*kept)) : nullptr;
}

Job with_memory() {
  Job job = checked(false);
  job.remembered = remembered();
  return job;
}

TEST(CheckMemory, TheNextRunStartsAtOnceAndIsCheckedThen) {
  ASSERT_NE(remembered(), nullptr);
  Starting s(with_memory());
  EXPECT_TRUE(s.sent<wire::Probe>().empty());
  ASSERT_EQ(s.sent<wire::Prepare>().size(), 2u);
  EXPECT_EQ(s.sent<wire::OpenStore>()[0].second.address, "10.0.0.1");
  s.prepare_all();
  ASSERT_EQ(s.state.phase, Phase::kRunning) << "without a visit to the store first";
  EXPECT_EQ(s.state.hosts[1].interface, "eth0");
  s.pass(milliseconds(400));
  ASSERT_EQ(s.sent<wire::Probe>().size(), 2u);
  s.probe_all();
  s.answer_listens();
  while (s.answer_dials()) {}
  EXPECT_TRUE(s.state.survey.examined);
  EXPECT_EQ(s.state.phase, Phase::kRunning);
  s.pass(milliseconds(400));
  while (s.answer_dials()) {}
  EXPECT_GT(s.sent<wire::Dial>().back().second.burst_ms, 0u);
  EXPECT_NE(to_remember(s.state), std::nullopt);
  s.exit(0, exited(0));
  s.exit(1, exited(0));
  s.finish_all();
  ASSERT_NE(s.verdict(), nullptr);
  EXPECT_EQ(s.verdict()->kind, Verdict::Kind::kDone);
}

TEST(CheckMemory, AnErrorFoundThenStopsTheRunAsARefusal) {
  Starting s(with_memory());
  s.prepare_all();
  s.pass(milliseconds(400));
  s.probe_all();
  s.answer_listens();
  s.answer_dials([](size_t from, wire::DialedLink& link) {
    if (from == 1) link.outcome = wire::LinkOutcome::kTimeout;
  });
  s.probe_all();  // asked again, for the firewalls
  ASSERT_FALSE(s.sent<wire::Signal>().empty());
  EXPECT_EQ(to_remember(s.state), std::nullopt);
  s.exit(0, SIGTERM, SIGTERM);
  s.exit(1, SIGTERM, SIGTERM);
  s.finish_all();
  ASSERT_NE(s.verdict(), nullptr);
  EXPECT_EQ(s.verdict()->kind, Verdict::Kind::kRefused);
  EXPECT_TRUE(s.verdict()->unfit);
  EXPECT_EQ(s.verdict()->exit_code, 3);
}

TEST(CheckMemory, ItIsNotUsedWhereItMayBeWrong) {
  auto waits = [](Job job, const std::function<void(Remembered&)>& change = {}) {
    if (change) {
      auto changed = std::make_shared<Remembered>(*job.remembered);
      change(*changed);
      job.remembered = changed;
    }
    return !Starting(std::move(job)).sent<wire::Probe>().empty();
  };
  EXPECT_FALSE(waits(with_memory()));
  EXPECT_TRUE(waits(with_memory(), [](Remembered& r) { r.hosts[1].fingerprint = "of another boot"; }));
  EXPECT_TRUE(waits(with_memory(), [](Remembered& r) { r.hosts[0].fingerprint = ""; }));
  EXPECT_TRUE(waits(with_memory(), [](Remembered& r) { std::swap(r.hosts[0], r.hosts[1]); }));
  EXPECT_TRUE(waits(with_memory(), [](Remembered& r) { r.hosts.pop_back(); }));
  EXPECT_TRUE(waits(with_memory(), [](Remembered& r) { r.addresses.clear(); })) << "a file that was tampered with or cut short";
  Job job = with_memory();
  job.master_port = 29'500;
  EXPECT_TRUE(waits(job));
  job = with_memory();
  job.attempt = 1;
  EXPECT_TRUE(waits(job));
  job = with_memory();
  job.check_only = true;
  EXPECT_TRUE(waits(job));
}

TEST(CheckMemory, NothingIsKeptOfChecksThatDidNotSeeEverything) {
  Starting s(checked(false));
  machine::Facts blind = facts_of(0);
  blind.gaps.push_back({"storage", "no answer for 1.2 s"});
  s.say(0, probed(blind));
  s.say(1, probed(facts_of(1)));
  s.answer_listens();
  while (s.answer_dials()) {}
  EXPECT_EQ(to_remember(s.state), std::nullopt);
}

TEST(CheckMemory, NothingIsKeptOfHostsWithGpus) {
  Starting first(checked(false));
  first.start();
  ASSERT_NE(to_remember(first.state), std::nullopt);
  first.state.hosts[1].hello.gpus = 8;
  EXPECT_EQ(to_remember(first.state), std::nullopt) << "they are always checked first";
}

TEST(CheckMemory, NoValueOfTheUsersVariablesIsKept) {
  Starting s(checked(false));
  machine::Facts facts = facts_of(0);
  facts.software.environment = {{"HF_HOME", "/private-place"}, {"NCCL_DEBUG", "INFO"}};
  s.say(0, probed(facts));
  s.say(1, probed(facts_of(1)));
  s.answer_listens();
  while (s.answer_dials()) {}
  std::optional<Remembered> kept = to_remember(s.state);
  ASSERT_TRUE(kept);
  std::string text = base::to_text(base::to_json(*kept));
  EXPECT_EQ(text.find("private-place"), std::string::npos);
  EXPECT_NE(text.find("NCCL_DEBUG"), std::string::npos);
}

}  // namespace
}  // namespace phalanx::job::test
