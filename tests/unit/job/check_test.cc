#include <gtest/gtest.h>

#include "base/json_fields.h"
#include "script.h"

namespace job::test {
namespace {

using os::milliseconds;

Job checked(bool only) {
  Job job;
  job.check_only = only;
  job.preflight = Preflight::kStrict;
  if (only) job.argv = {};
  return job;
}

host::Facts facts_of(size_t host) {
  host::Facts facts;
  host::Interface eth;
  eth.name = "eth0";
  eth.kind = "physical";
  eth.state = "up";
  eth.up = eth.running = eth.carrier = true;
  eth.mtu = 1500;
  eth.speed_mbps = 10'000;
  eth.addresses = {{"10.0.0." + std::to_string(host + 1), 24, false}};
  facts.network.interfaces = {eth};
  facts.machine.hostname = "h" + std::to_string(host + 1);
  return facts;
}

wire::Probed probed(const host::Facts& facts) { return {{}, base::to_text(base::to_json(facts))}; }

// A script whose hosts answer the checks as healthy ones do, until `dial` says otherwise.
struct Checking : Script {
  Checking(std::vector<int> slots, Job job) : Script(std::move(slots), std::move(job)) { open_all(); }

  void probe_all() {
    for (size_t h = 0; h < state.hosts.size(); ++h) say(h, probed(facts_of(h)));
  }
  // Everything sent since the last call, answered.
  void answer_listens(uint32_t port = 4000) {
    auto listens = sent<wire::Listen>();
    for (size_t i = listens_seen; i < listens.size(); ++i) {
      wire::Listening answer;
      for (size_t p = 0; p < listens[i].second.places.size(); ++p) answer.places.push_back({{}, port + static_cast<uint32_t>(p)});
      if (!listens[i].second.places.empty()) say(listens[i].first, answer);
    }
    listens_seen = listens.size();
  }
  bool answer_dials(const std::function<void(size_t from, wire::DialedLink&)>& change = {}) {
    auto dials = sent<wire::Dial>();
    size_t from_index = dials_seen;
    dials_seen = dials.size();
    for (size_t i = from_index; i < dials.size(); ++i) {
      const auto& [from, dial] = dials[i];
      wire::Dialed answer;
      answer.round = dial.round;
      for (const wire::DialTarget& target : dial.targets) {
        wire::DialedLink link;
        link.to = target.to;
        link.master_port = target.master_port;
        link.outcome = "ok";
        link.round_trip_ns = 100'000;
        link.bytes_per_second = dial.burst_ms > 0 ? 1'000'000'000 : 0;
        link.local_address = "10.0.0." + std::to_string(from + 1);
        if (change) change(from, link);
        answer.links.push_back(std::move(link));
      }
      say(from, answer);
    }
    return dials.size() > from_index;
  }
  size_t listens_seen = 0, dials_seen = 0;
};

TEST(Checks, ProbeEveryHostOverTheConnectionThatIsThere) {
  Job job = checked(false);
  job.argv = {"python", "train.py"};
  job.set = {{"NCCL_DEBUG", "INFO"}};
  job.master_port = 29'500;
  Checking s({1, 1}, std::move(job));
  auto probes = s.sent<wire::Probe>();
  ASSERT_EQ(probes.size(), 2u);
  EXPECT_TRUE(s.sent<wire::Prepare>().empty());
  EXPECT_EQ(probes[0].second.argv, (std::vector<std::string>{"python", "train.py"}));
  EXPECT_EQ(probes[0].second.set[0].first, "NCCL_DEBUG");
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
  const cluster::Mesh& mesh = s.state.checks.situation.mesh;
  EXPECT_TRUE(mesh.complete);
  ASSERT_EQ(mesh.links.size(), 8u);
  for (const cluster::Link& link : mesh.links) {
    EXPECT_EQ(link.outcome, "ok");
    EXPECT_EQ(link.bytes_per_second, link.master_port ? 0 : 1'000'000'000) << link.from << " " << link.to;
  }
  EXPECT_EQ(s.state.checks.situation.hosts[1].address, "10.0.0.2");
  EXPECT_EQ(s.state.checks.situation.hosts[1].interface, "eth0");
}

TEST(Checks, ALinkThatFailsIsKeptAndGetsNoBurst) {
  Checking s({1, 1}, checked(true));
  s.probe_all();
  s.answer_listens();
  s.answer_dials([](size_t from, wire::DialedLink& link) {
    if (from == 1) link.outcome = "timeout", link.error_number = 110;
  });
  for (const auto& [from, dial] : s.sent<wire::Dial>())
    if (dial.round > 0) { EXPECT_EQ(from, 0u); }
  while (s.answer_dials()) {}
  s.finish_all();
  ASSERT_NE(s.verdict(), nullptr);
  ASSERT_EQ(s.state.checks.situation.mesh.links.size(), 2u);
  for (const cluster::Link& link : s.state.checks.situation.mesh.links) EXPECT_EQ(link.outcome, link.from == 1 ? "timeout" : "ok");
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
  EXPECT_EQ(s.state.checks.situation.mesh.links.size(), 2u);
  EXPECT_FALSE(s.state.checks.situation.hosts[1].probed);
  EXPECT_FALSE(s.state.checks.situation.hosts[1].error.empty());
  s.say(0, wire::Finished{});
  s.say(2, wire::Finished{});
  ASSERT_NE(s.verdict(), nullptr) << "nobody waits for the end of a host that hangs";
  EXPECT_EQ(s.verdict()->kind, Verdict::Kind::kChecked);
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
  EXPECT_EQ(s.state.checks.situation.hosts[1].error, "h2: no answer within 10 s");
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
  s.answer_listens();
  ASSERT_EQ(s.sent<wire::Prepare>().size(), 2u);
  ASSERT_EQ(s.sent<wire::OpenStore>().size(), 1u);
  EXPECT_EQ(s.sent<wire::OpenStore>()[0].second.address, "10.0.0.1");
  EXPECT_TRUE(s.sent<wire::Listen>().back().second.places.empty()) << "the mesh's listeners are closed before the store opens";
  s.prepare_all();
  s.say(1, wire::Reached{{}, "eth0"});
  EXPECT_EQ(s.state.phase, Phase::kRunning);
}

TEST(Checks, FactsThatCannotBeReadAreAHostWithoutFacts) {
  Checking s({1}, checked(true));
  s.say(0, wire::Probed{{}, "{\"machine\": 7}"});
  s.finish_all();
  ASSERT_NE(s.verdict(), nullptr);
  EXPECT_FALSE(s.state.checks.situation.hosts[0].probed);
  EXPECT_NE(s.state.checks.situation.hosts[0].error.find("machine is not an object"), std::string::npos);
}

TEST(Checks, ClocksAreComparedThroughTheShortestRoundTrip) {
  Checking s({1, 1}, checked(true));
  s.state.wall_less_mono_ns = 5'000;
  s.pass(milliseconds(200));  // a pong: the monotonic offsets are known
  for (size_t h = 0; h < 2; ++h) {
    host::Facts facts = facts_of(h);
    facts.clock.mono_ns = 1;
    facts.clock.wall_ns = 1 + 5'000 - s.offset(h) + (h == 1 ? 30'000'000'000 : 0);
    s.say(h, probed(facts));
  }
  s.answer_listens();
  while (s.answer_dials()) {}
  const auto& hosts = s.state.checks.situation.hosts;
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
  host::Facts facts = facts_of(0);
  facts.gpus.devices.resize(1);
  facts.gpus.devices[0].processes.resize(1);
  facts.gpus.devices[0].processes[0].pid = 4711;
  facts.gpus.devices[0].processes[0].visible = false;
  size_t probes = s.sent<wire::Probe>().size();
  s.say(0, probed(facts));
  s.say(0, probed(facts));
  EXPECT_EQ(s.sent<wire::Probe>().size(), probes + 2) << "asked again, each time";
  EXPECT_EQ(s.told<WaitingForGpuMemory>().size(), 1u) << "told once";
  EXPECT_EQ(s.state.checks.stage, Checks::Stage::kProbing);
  facts.gpus.devices[0].processes.clear();
  s.say(0, probed(facts));
  EXPECT_NE(s.state.checks.stage, Checks::Stage::kProbing);
}

TEST(Checks, ButNotForEver) {
  Checking s({1}, checked(false));
  s.state.job.hosts[0].former_pids = {4711};
  host::Facts facts = facts_of(0);
  facts.gpus.devices.resize(1);
  facts.gpus.devices[0].processes.resize(1);
  facts.gpus.devices[0].processes[0].pid = 4711;
  for (os::Mono end = s.now + kGpuMemoryPatience + milliseconds(400); s.now < end;) {
    s.pass(milliseconds(200));
    s.say(0, probed(facts));
  }
  EXPECT_NE(s.state.checks.stage, Checks::Stage::kProbing);
}

}  // namespace
}  // namespace job::test
