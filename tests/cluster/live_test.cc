// What `phalanx run` says by default of trainings with real PyTorch that go on: deadlocks within 10 s, stragglers within 60 s, healthy ones
// not at all. The rows stand side by side, each on hosts of its own. LIVE_ROWS=NAME,… takes these, LIVE_ROWS=all all of them, as
// `./x bench faults --live` does; LIVE_SHOW=1 prints what phalanx said.
#include <gtest/gtest.h>

#include <cstdio>

#include "live_rows.h"

namespace phalanx::testbed {
namespace {

class Live : public testing::Test {
 protected:
  void SetUp() override {
    if (auto reason = unavailable()) GTEST_SKIP() << "no test cluster: " << *reason;
    static const bool installed = std::system("/usr/bin/python3 -c 'import torch.distributed' 2>/dev/null") == 0;
    if (!installed) GTEST_SKIP() << "no torch for /usr/bin/python3 (package python3-torch)";
  }

  static void expect(std::vector<LiveRow> rows) {
    const char* only = std::getenv("LIVE_ROWS");
    if (only && std::string(only) != "all") {
      std::erase_if(rows,
                    [&](const LiveRow& row) { return ("," + std::string(only) + ",").find("," + row.name + ",") == std::string::npos; });
    } else if (!only) {
      std::erase_if(rows, [](const LiveRow& row) { return !row.in_tests; });
    }
    std::vector<LiveResult> results = play(rows, PHALANX_PROGRAM, TESTBED_PROJECT "/tests/cluster/scripts");
    for (size_t i = 0; i < rows.size(); ++i) {
      EXPECT_EQ(results[i].problem, "") << rows[i].name << ":\n" << results[i].text;
      for (const auto& [code, seconds] : results[i].told_after)
        std::printf("%-28s %-16s %5.1f s\n", rows[i].name.c_str(), code.c_str(), seconds);
      if (std::getenv("LIVE_SHOW")) std::printf("%s\n", results[i].text.c_str());
      if (!rows[i].says.empty() && rows[i].trainer) { EXPECT_NE(results[i].text.find(".py:"), std::string::npos) << "no line of Python"; }
    }
  }
};

TEST_F(Live, DeadlocksAreToldWithinTenSeconds) { expect(proved_rows()); }
TEST_F(Live, WhatSlowsARunIsToldWhileItGoesOn) { expect(slow_rows()); }
TEST_F(Live, HealthyTrainingsAreLeftInPeace) { expect(healthy_rows()); }

}  // namespace
}  // namespace phalanx::testbed
