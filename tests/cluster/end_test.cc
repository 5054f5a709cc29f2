// Faults that end a rank or a host of a real PyTorch training, or let it hang: the verdict, how soon, and that nothing is left.
#include <algorithm>

#include <fmt/format.h>

#include "base/json.h"
#include "faults.h"
#include "launcher_fixture.h"

namespace phalanx::testbed {

void PrintTo(const InjectedFault& fault, std::ostream* stream) { *stream << fault.name; }

namespace {

class End : public Launcher, public testing::WithParamInterface<InjectedFault> {
 protected:
  static void SetUpTestSuite() { installed_ = std::system("/usr/bin/python3 -c 'import torch.distributed' 2>/dev/null") == 0; }
  void SetUp() override {
    Launcher::SetUp();
    if (!IsSkipped() && !installed_) GTEST_SKIP() << "no torch for /usr/bin/python3 (package python3-torch)";
  }
  static inline bool installed_ = false;
};

int64_t now_ns() { return std::chrono::steady_clock::now().time_since_epoch().count(); }

void expect_verdict(const InjectedFault& fault, const base::Json& record, const Outcome& outcome) {
  EXPECT_EQ(base::get_string(record, "cause").value_or(""), fault.code) << outcome;
  if (fault.stalls) {
    base::Json ranks = record.value("stall", base::Json::object()).value("ranks", base::Json::array());
    std::sort(ranks.begin(), ranks.end());
    EXPECT_EQ(ranks, fault.rank < 0 ? base::Json::array({0, 1}) : base::Json::array({fault.rank})) << outcome;
  } else {
    EXPECT_EQ(base::get_string(record, "host").value_or(""), "h2") << outcome;
    EXPECT_EQ(record.value("rank", -1), fault.rank) << outcome;
  }
}

TEST_P(End, IsNamedAndNothingIsLeft) {
  const InjectedFault& fault = GetParam();
  MemoryGroup group;
  if (fault.name == "out-of-memory" && group.folder().empty()) GTEST_SKIP() << "no memory cgroup can be made here";
  start(cluster_for(fault));
  if (fault.host_is_gone) forget_bystander("h2");
  Words args = {"-H", "h1,h2", "--preflight", "off"};
  for (const auto& [name, value] : environment_for(fault, group)) args = with(args, {"--env", name + "=" + value});
  if (fault.stalls) args = with(args, {"--stall", fmt::format("{}ms", kStallAfter.count()), "--on-stall", "stop"});
  Process phalanx = run_later(with(args, {"--", "/usr/bin/python3", script("trainer.py")}));
  int64_t at = 0;
  if (fault.strike) {
    for (const char* host : {"h1", "h2"}) ASSERT_TRUE(await_file(cluster(), host, "/tmp/steps", milliseconds(60'000))) << host;
    at = now_ns();
    base::Status done = fault.strike(cluster(), Names{});
    ASSERT_TRUE(done.ok()) << done.error().message;
  }
  Outcome outcome = phalanx.finish(milliseconds(90'000));
  int64_t ended = now_ns();
  if (!fault.strike) at = struck_at(cluster(), "h2");
  ASSERT_NE(at, 0) << outcome;
  EXPECT_LT(ended - at, std::chrono::nanoseconds(fault.most).count()) << outcome;
  base::Result<base::Json> record = base::parse_json(say("ctl", "cat .local/state/phalanx/runs/latest/run.json"));
  ASSERT_TRUE(record.ok());
  expect_verdict(fault, *record, outcome);
  EXPECT_HAS(outcome.err, fault.says);
  EXPECT_NE(outcome.exit_code, 0);
  RecordProperty("seconds", fmt::format("{:.2f}", static_cast<double>(ended - at) / 1e9));
  std::printf("%-20s %-18s %5.2f s\n", fault.name.c_str(), fault.code.c_str(), static_cast<double>(ended - at) / 1e9);
  EXPECT_TRUE(fault.host_is_gone || cluster().heal("h2").ok());
  EXPECT_EQ(leftovers(milliseconds(8000)), "");
}

std::string test_name(const testing::TestParamInfo<InjectedFault>& parameter) {
  std::string name = parameter.param.name;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Faults, End, testing::ValuesIn(end_faults()), test_name);
INSTANTIATE_TEST_SUITE_P(Stalls, End, testing::ValuesIn(stall_faults()), test_name);

}  // namespace
}  // namespace phalanx::testbed
