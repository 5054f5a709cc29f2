#include "checking.h"

namespace phalanx::job::test {
namespace {

using os::milliseconds;

TEST(Checks, ProbeEveryHostOverTheConnectionThatIsThere) {
  Job job = checked(false);
  job.argv = {"python", "train.py"};
  job.set = {{"NCCL_DEBUG", "INFO"}};
  job.master_port = 29'500;
  Checking s({1, 1}, std::move(job));
  auto probes = s.sent<wire::Probe>();
  ASSERT_EQ(probes.size(), 2u);
  EXPECT_TRUE(s.sent<wire::Prepare>().empty());
  EXPECT_EQ(probes[0].second.job.argv, (std::vector<std::string>{"python", "train.py"}));
  EXPECT_EQ(probes[0].second.job.set[0].first, "NCCL_DEBUG");
  EXPECT_EQ(probes[0].second.ports, std::vector<uint32_t>{29'500});
  ASSERT_EQ(probes[0].second.peers.size(), 1u);
  EXPECT_EQ(probes[0].second.peers[0].name, "h2");
  EXPECT_EQ(probes[0].second.peers[0].addresses, std::vector<std::string>{"10.0.0.2"});
}

TEST(Checks, EveryPairConnectsAndThenBurstsAlone) {
  Job job = checked(true);
  job.master_port = 29'500;
  Checking s({1, 1, 1}, std::move(job));
  s.probe_all();
  auto listens = s.sent<wire::Listen>();
  ASSERT_EQ(listens.size(), 3u);
  EXPECT_EQ(listens[0].second.places.size(), 2u) << "rank 0's host listens on the master port as well";
  EXPECT_EQ(listens[1].second.places.size(), 1u);
  EXPECT_EQ(listens[1].second.places[0].address, "10.0.0.2");
  s.answer_listens();
  auto dials = s.sent<wire::Dial>();
  ASSERT_EQ(dials.size(), 3u);
  EXPECT_EQ(dials[0].second.targets.size(), 2u);
  EXPECT_EQ(dials[1].second.targets.size(), 3u) << "two hosts and the master port";
  EXPECT_EQ(dials[1].second.burst_ms, 0u);
  EXPECT_GT(dials[1].second.payload_bytes, 9000u);
  while (s.answer_dials()) {}
  for (const auto& [from, dial] : s.sent<wire::Dial>()) {
    if (dial.round > 0) {
      EXPECT_EQ(dial.targets.size(), 1u);
      EXPECT_GT(dial.burst_ms, 0u);
    }
  }
  s.finish_all();
  ASSERT_NE(s.verdict(), nullptr);
  EXPECT_EQ(s.verdict()->kind, Verdict::Kind::kChecked);
  const hosts::Mesh& mesh = s.state.survey.situation.mesh;
  EXPECT_TRUE(mesh.complete);
  ASSERT_EQ(mesh.links.size(), 8u);
  for (const hosts::Link& link : mesh.links) {
    EXPECT_EQ(link.outcome, wire::LinkOutcome::kOk);
    EXPECT_EQ(link.bytes_per_second, link.master_port ? 0 : 1'000'000'000) << link.from << " " << link.to;
  }
  EXPECT_EQ(s.state.survey.situation.hosts[1].address, "10.0.0.2");
  EXPECT_EQ(s.state.survey.situation.hosts[1].interface, "eth0");
}

TEST(Checks, ALinkThatFailsIsKeptAndGetsNoBurst) {
  Checking s({1, 1}, checked(true));
  s.probe_all();
  s.answer_listens();
  s.answer_dials([](size_t from, wire::DialedLink& link) {
    if (from == 1) link.outcome = wire::LinkOutcome::kTimeout, link.error_number = 110;
  });
  for (const auto& [from, dial] : s.sent<wire::Dial>())
    if (dial.round > 0) { EXPECT_EQ(from, 0u); }
  while (s.answer_dials()) {}
  s.finish_all();
  ASSERT_NE(s.verdict(), nullptr);
  ASSERT_EQ(s.state.survey.situation.mesh.links.size(), 2u);
  for (const hosts::Link& link : s.state.survey.situation.mesh.links)
    EXPECT_EQ(link.outcome, link.from == 1 ? wire::LinkOutcome::kTimeout : wire::LinkOutcome::kOk);
}

TEST(Checks, AHostThatHangsCostsItsDeadlineAndNoMore) {
  Checking s({1, 1, 1}, checked(true));
  s.say(0, probed(facts_of(0)));
  s.say(2, probed(facts_of(2)));
  s.pass(milliseconds(1000), {1});
  EXPECT_TRUE(s.sent<wire::Listen>().empty());
  s.pass(milliseconds(1400), {1});
  ASSERT_EQ(s.sent<wire::Listen>().size(), 2u) << "the others go on";
  s.answer_listens();
  while (s.answer_dials()) {}
  EXPECT_EQ(s.state.survey.situation.mesh.links.size(), 2u);
  EXPECT_FALSE(s.state.survey.situation.hosts[1].probed);
  EXPECT_FALSE(s.state.survey.situation.hosts[1].error.empty());
  s.say(0, wire::Finished{});
  s.say(2, wire::Finished{});
  ASSERT_NE(s.verdict(), nullptr) << "nobody waits for the end of a host that hangs";
  EXPECT_EQ(s.verdict()->kind, Verdict::Kind::kChecked);
}

TEST(Checks, NobodyIsSilentWhileTheAnswersOfOthersAreStillBeingRead) {
  Checking s({1, 1, 1}, checked(true));
  os::milliseconds patience = s.state.job.probe_deadline + kProbeGrace;
  auto pass = [&](os::milliseconds time) {  // with a launcher that runs
    for (; time > milliseconds(0); time -= milliseconds(100)) {
      s.now = s.now + milliseconds(100);
      s.feed(Tick{});
    }
  };
  pass(patience - milliseconds(100));
  s.say(0, probed(facts_of(0)));
  s.now = s.now + milliseconds(400);  // beyond the deadline
  s.feed(Tick{});
  EXPECT_FALSE(s.state.hosts[1].silent);
  s.say(1, probed(facts_of(1)));
  EXPECT_TRUE(s.state.survey.situation.hosts[1].probed);
  EXPECT_FALSE(s.state.hosts[2].silent);
  pass(kAnswersPause);  // nothing more comes
  EXPECT_TRUE(s.state.hosts[2].silent);
}

// 64 hosts on two processors: each answers, and each takes its time.
TEST(Checks, AHostThatAnswersPingsIsBusyAndWaitedFor) {
  Checking s({1, 1}, checked(true));
  s.say(0, probed(facts_of(0)));
  s.pass(milliseconds(8000));
  EXPECT_FALSE(s.state.hosts[1].silent);
  ASSERT_EQ(s.told<WaitingForHosts>().size(), 1u) << "told once";
  EXPECT_EQ(s.told<WaitingForHosts>()[0].hosts, std::vector<size_t>{1});
  s.say(1, probed(facts_of(1)));
  EXPECT_TRUE(s.state.survey.situation.hosts[1].probed);
  EXPECT_FALSE(s.sent<wire::Listen>().empty()) << "and the checks go on";
}

TEST(Checks, AHostThatAnswersPingsAndNothingElseIsGivenUpInTheEnd) {
  Checking s({1, 1}, checked(true));
  s.say(0, probed(facts_of(0)));
  s.pass(kBusyPatience + milliseconds(400));
  EXPECT_TRUE(s.state.hosts[1].silent);
  EXPECT_FALSE(s.state.survey.situation.hosts[1].error.empty());
}

// Its timers ring before it has read what the hosts have answered meanwhile.
TEST(Checks, NobodyIsSilentBecauseTheLauncherWasSuspended) {
  Checking s({1, 1}, checked(true));
  for (int time : {1000, 6000}) {
    s.now = s.now + milliseconds(time);
    s.feed(Tick{});
    for (size_t h : {0, 1}) EXPECT_FALSE(s.state.hosts[h].silent) << time;
  }
  for (size_t h : {0, 1}) s.say(h, probed(facts_of(h)));
  for (size_t h : {0, 1}) EXPECT_TRUE(s.state.survey.situation.hosts[h].probed);
}

TEST(Checks, AHostThatCannotBeReachedDoesNotKeepCheckFromTheOthers) {
  Job job = checked(true);
  Script s({1, 1}, std::move(job));
  s.hello(0);
  s.feed(HostEnded{1, base::fail(base::ErrorKind::kUnreachable, "h2: no answer within 10 s")});
  ASSERT_EQ(s.sent<wire::Probe>().size(), 1u);
  s.say(0, probed(facts_of(0)));
  s.say(0, wire::Finished{});
  ASSERT_NE(s.verdict(), nullptr);
  EXPECT_EQ(s.verdict()->kind, Verdict::Kind::kChecked);
  EXPECT_EQ(s.verdict()->exit_code, 4);
  ASSERT_EQ(s.verdict()->refusals.size(), 1u);
  EXPECT_EQ(s.state.survey.situation.hosts[1].error, "h2: no answer within 10 s");
}

TEST(Checks, ARunIsRefusedForAHostThatIsLostMeanwhile) {
  Checking s({1, 1}, checked(false));
  s.say(0, probed(facts_of(0)));
  s.feed(HostEnded{1, base::fail(base::ErrorKind::kUnreachable, "h2: the connection broke")});
  s.finish_all();
  ASSERT_NE(s.verdict(), nullptr);
  EXPECT_EQ(s.verdict()->kind, Verdict::Kind::kRefused);
  EXPECT_EQ(s.verdict()->exit_code, 4);
}

TEST(Checks, AHealthyRunGoesOnToTheChosenAddress) {
  Checking s({1, 1}, checked(false));
  s.probe_all();
  s.answer_listens();
  while (s.answer_dials()) {}
  ASSERT_EQ(s.sent<wire::Prepare>().size(), 2u);
  ASSERT_EQ(s.sent<wire::OpenStore>().size(), 1u);
  EXPECT_EQ(s.sent<wire::OpenStore>()[0].second.address, "10.0.0.1");
  for (const auto& [from, dial] : s.sent<wire::Dial>()) EXPECT_EQ(dial.burst_ms, 0u) << "bursts do not delay a start";
  s.prepare_all();
  s.say(1, wire::Reached{{}, "eth0"});
  EXPECT_EQ(s.state.phase, Phase::kRunning);
}

TEST(Checks, TheSpeedOfLinksIsMeasuredWhileTheProgramStarts) {
  Starting s(checked(false));
  s.start();
  ASSERT_EQ(s.state.phase, Phase::kRunning);
  size_t before = s.sent<wire::Dial>().size();
  s.pass(milliseconds(400));
  ASSERT_GT(s.sent<wire::Dial>().size(), before);
  EXPECT_GT(s.sent<wire::Dial>().back().second.burst_ms, 0u);
  while (s.answer_dials([](size_t from, wire::DialedLink& link) { link.bytes_per_second = from == 0 ? 2'000'000'000 : 10'000'000; })) {}
  EXPECT_TRUE(s.sent<wire::Listen>().back().second.places.empty()) << "the listeners are closed when it is over";
  auto told = s.told<Concerns>();
  ASSERT_EQ(told.size(), 1u);
  ASSERT_LT(told[0].from, s.state.survey.examination.findings.size());
  EXPECT_EQ(s.state.survey.examination.findings[told[0].from].row->code, "NET-SLOW-LINK");
  EXPECT_EQ(s.state.phase, Phase::kRunning) << "a warning stops nothing";
  s.pass(milliseconds(1000));
  EXPECT_EQ(s.told<Concerns>().size(), 1u);
}

TEST(Checks, AMeasurementThatIsNotAnsweredDelaysNothing) {
  Starting s(checked(false));
  s.start();
  s.pass(milliseconds(8000));
  EXPECT_TRUE(s.told<Concerns>().empty());
  for (const HostState& host : s.state.hosts) EXPECT_FALSE(host.silent);
  s.exit(0, exited(0));
  s.exit(1, exited(0));
  s.finish_all();
  ASSERT_NE(s.verdict(), nullptr);
  EXPECT_EQ(s.verdict()->kind, Verdict::Kind::kDone);
}

TEST(Checks, FirewallsAreReadOnlyWhereALinkFails) {
  Checking s({1, 1}, checked(false));
  for (const auto& [host, probe] : s.sent<wire::Probe>()) EXPECT_FALSE(probe.firewall);
  s.probe_all();
  s.answer_listens();
  s.answer_dials([](size_t from, wire::DialedLink& link) {
    if (from == 1) link.outcome = wire::LinkOutcome::kTimeout;
  });
  auto probes = s.sent<wire::Probe>();
  ASSERT_EQ(probes.size(), 4u);
  EXPECT_TRUE(probes[2].second.firewall && probes[3].second.firewall);
  EXPECT_EQ(s.verdict(), nullptr);
  machine::Facts walled = facts_of(0);
  walled.network.firewalls = {"ufw enabled"};
  s.say(0, probed(walled));
  s.say(1, wire::Probed{{false, base::fail(base::ErrorKind::kTimeout, "no answer")}, ""});
  s.finish_all();
  ASSERT_NE(s.verdict(), nullptr);
  EXPECT_EQ(s.verdict()->kind, Verdict::Kind::kRefused);
  EXPECT_EQ(s.state.survey.situation.hosts[0].facts.network.firewalls.size(), 1u);
  EXPECT_TRUE(s.state.survey.situation.hosts[1].probed) << "its facts are there from before";
  Checking check({1, 1}, checked(true));
  for (const auto& [host, probe] : check.sent<wire::Probe>()) EXPECT_TRUE(probe.firewall) << "`check` asks at once";
}

// The user knows better: an accepted error stops nothing and is not told, and the run starts.
TEST(Checks, AnAcceptedErrorIsNoReasonToRefuse) {
  auto refused = [](const std::vector<doctor::Acceptance>& accepted) {
    Job job = checked(false);
    job.accepted = accepted;
    Checking s({1, 1}, std::move(job));
    s.probe_all();
    s.answer_listens();
    s.answer_dials([](size_t from, wire::DialedLink& link) {
      if (from == 1) link.outcome = wire::LinkOutcome::kTimeout;
    });
    for (size_t h : {0, 1}) s.say(h, probed(facts_of(h)));  // their firewalls are asked for
    if (s.sent<wire::Prepare>().empty()) return s.state.survey.examination.findings[0].row->code;
    EXPECT_EQ(s.state.survey.examination.errors, 0);
    EXPECT_GE(s.state.survey.examination.accepted, 1);
    EXPECT_TRUE(s.told<Concerns>().empty());
    return std::string_view("started");
  };
  const std::string code(refused({}));
  ASSERT_NE(code, "started");
  EXPECT_EQ(refused({{code, {"h1", "h2"}}}), "started");
  EXPECT_EQ(refused({{code, {}}}), "started");
  EXPECT_EQ(refused({{"FS-SHM-SMALL", {}}}), code);
}

TEST(Checks, WhatAHostIsSentDoesNotGrowWithTheNumberOfHosts) {
  Checking s(std::vector<int>(200, 1), checked(false));
  auto probes = s.sent<wire::Probe>();
  ASSERT_EQ(probes.size(), 200u);
  size_t most = 0, all = 0;
  for (size_t h = 1; h < probes.size(); ++h) {
    most = std::max(most, probes[h].second.peers.size());
    all += probes[h].second.peers.size();
    EXPECT_TRUE(std::any_of(probes[h].second.peers.begin(), probes[h].second.peers.end(), [](const auto& p) { return p.name == "h1"; }));
  }
  EXPECT_LE(most, 16u);
  EXPECT_LE(all, 200u * 8);
}

TEST(Checks, FactsThatCannotBeReadAreAHostWithoutFacts) {
  Checking s({1}, checked(true));
  s.say(0, wire::Probed{{}, "{\"machine\": 7}"});
  s.finish_all();
  ASSERT_NE(s.verdict(), nullptr);
  EXPECT_FALSE(s.state.survey.situation.hosts[0].probed);
  EXPECT_NE(s.state.survey.situation.hosts[0].error.find("machine is not an object"), std::string::npos);
}

TEST(Checks, ClocksAreComparedThroughTheShortestRoundTrip) {
  constexpr int64_t kWall = 1'700'000'000'000'000'000;  // a clock before 1970 is refused
  Checking s({1, 1}, checked(true), kWall);
  s.pass(milliseconds(200));  // a pong: the monotonic offsets are known
  for (size_t h = 0; h < 2; ++h) {
    machine::Facts facts = facts_of(h);
    facts.clock.mono_ns = 1;
    facts.clock.wall_ns = 1 + kWall - s.offset(h) + (h == 1 ? 30'000'000'000 : 0);
    s.say(h, probed(facts));
  }
  s.answer_listens();
  while (s.answer_dials()) {}
  const auto& hosts = s.state.survey.situation.hosts;
  ASSERT_TRUE(hosts[0].clock_offset_ns && hosts[1].clock_offset_ns);
  EXPECT_NEAR(static_cast<double>(*hosts[0].clock_offset_ns), 0, 2e8);
  EXPECT_NEAR(static_cast<double>(*hosts[1].clock_offset_ns), 30e9, 2e8);
}

TEST(Checks, CtrlCEndsThem) {
  Checking s({1, 1}, checked(true));
  s.feed(OperatorSignal{SIGINT});
  s.finish_all();
  ASSERT_NE(s.verdict(), nullptr);
  EXPECT_EQ(s.verdict()->kind, Verdict::Kind::kInterrupted);
}

// The driver takes back memory of a dead process only some time after its end.
TEST(Checks, AfterARestartGpuMemoryOfDeadRanksIsWaitedFor) {
  Job job = checked(false);
  job.attempt = 1;
  Checking s({1}, job);
  s.state.job.hosts[0].former_pids = {4711};
  machine::Facts facts = facts_of(0);
  facts.gpus.devices.resize(1);
  facts.gpus.devices[0].processes.resize(1);
  facts.gpus.devices[0].processes[0].pid = 4711;
  facts.gpus.devices[0].processes[0].visible = false;
  size_t probes = s.sent<wire::Probe>().size();
  s.say(0, probed(facts));
  s.say(0, probed(facts));
  EXPECT_EQ(s.sent<wire::Probe>().size(), probes + 2) << "asked again, each time";
  EXPECT_EQ(s.told<WaitingForGpuMemory>().size(), 1u) << "told once";
  EXPECT_EQ(s.state.survey.stage, Survey::Stage::kProbing);
  facts.gpus.devices[0].processes.clear();
  s.say(0, probed(facts));
  EXPECT_NE(s.state.survey.stage, Survey::Stage::kProbing);
}

TEST(Checks, ButNotForEver) {
  Checking s({1}, checked(false));
  s.state.job.hosts[0].former_pids = {4711};
  machine::Facts facts = facts_of(0);
  facts.gpus.devices.resize(1);
  facts.gpus.devices[0].processes.resize(1);
  facts.gpus.devices[0].processes[0].pid = 4711;
  for (os::Mono end = s.now + kGpuMemoryPatience + milliseconds(400); s.now < end;) {
    s.pass(milliseconds(200));
    s.say(0, probed(facts));
  }
  EXPECT_NE(s.state.survey.stage, Survey::Stage::kProbing);
}

}  // namespace
}  // namespace phalanx::job::test
