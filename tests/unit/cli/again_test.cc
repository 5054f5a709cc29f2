// The lines that `phalanx inspect` prints to be typed again.
#include "cli/records/again.h"

#include <gtest/gtest.h>

#include "base/json_fields.h"
#include "cli/records/record_plan.h"

namespace phalanx::cli {
namespace {

logs::Run recorded(const char* more) {
  logs::Run run;
  run.ours = true;
  run.record = base::parse_json(R"({"schema": 1, "id": "x", "workdir": "/w", "master_addr": "10.0.0.1", "master_port": 29500,
    "command": ["python", "train.py", "--local_rank=${local_rank}"],
    "reach": {"ssh_options": [], "hosts": [{"host": "h1", "destination": "h1"}, {"host": "h2", "destination": "h2"}]},
    "hosts": [{"host": "h1", "ranks": 2}, {"host": "h2", "ranks": 2}])" +
                                std::string(more) + "}")
                   .value();
  return run;
}

TEST(Again, WhereTheCommandAsksForLocalRanksTheLineDoesToo) {
  const logs::Run run = recorded(R"(, "local_rank_macro": true)");
  const job::State planned = planned_state(run.record);
  EXPECT_EQ(run_again(run, planned, {}),
            "cd /w && phalanx run -H h1:2,h2:2 --local-rank-macro -- python train.py '--local_rank=${local_rank}'");
  const std::string rank = rank_again(run, planned, 3);
  EXPECT_TRUE(rank.ends_with(" python train.py --local_rank=1")) << rank;
}

TEST(Again, WhereItDoesNotTheWordStays) {
  const logs::Run run = recorded("");
  const job::State planned = planned_state(run.record);
  EXPECT_EQ(run_again(run, planned, {}), "cd /w && phalanx run -H h1:2,h2:2 -- python train.py '--local_rank=${local_rank}'");
  EXPECT_TRUE(rank_again(run, planned, 3).ends_with(" '--local_rank=${local_rank}'"));
}

}  // namespace
}  // namespace phalanx::cli
