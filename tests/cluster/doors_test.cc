// Command lines of other launchers, typed with phalanx in front, on hosts with real torch: unmodified scripts in the styles in which
// PyTorch scripts are started.
#include <fmt/format.h>

#include "launcher_fixture.h"

using namespace phalanx;

namespace {

using namespace phalanx::testbed;
using namespace std::chrono_literals;

constexpr const char* kPython = "/usr/bin/python3";

class Doors : public Launcher {
 protected:
  void SetUp() override {
    Launcher::SetUp();
    if (IsSkipped()) return;
    static const bool installed = std::system("/usr/bin/python3 -c 'import torch.distributed' 2>/dev/null") == 0;
    if (!installed) GTEST_SKIP() << "no torch for /usr/bin/python3 (package python3-torch)";
  }
  // `phalanx words…`, typed on ctl in /tmp.
  Outcome type(const Words& words) {
    return cluster().run_on("ctl", {.argv = with({PHALANX_PROGRAM, "--lease", "6s", "--fold", "off"}, words), .cwd = "/tmp"}, 60s);
  }
};

// env://: one line per node in the notes, here one line in all. The node rank of the line means nothing.
TEST_F(Doors, TorchrunOnTwoHosts) {
  start({.hosts = 2});
  Outcome outcome = type({"-H", "h1,h2", "DOOR_TEST=1", kPython, "-m", "torch.distributed.run", "--nnodes", "2", "--node_rank", "1",
                          "--nproc_per_node", "1", "--rdzv-backend", "c10d", script("ddp.py")});
  EXPECT_EQ(outcome.exit_code, 0) << outcome;
  EXPECT_HAS(outcome.out, "rank 0 of 2: sum 3");
  EXPECT_HAS(outcome.out, "rank 1 of 2: sum 3");
  EXPECT_HAS(outcome.err,
             fmt::format("phalanx run --nnodes 2 --nproc-per-node 1 --env DOOR_TEST=1 --lease 6s --fold off -H h1,h2 -- {}", kPython));
  EXPECT_EQ(leftovers(1s), "");
}

TEST_F(Doors, TorchDistributedLaunchGivesTheLocalRankAsAnArgument) {
  start({.hosts = 1});
  Outcome outcome =
      type({"-H", "h1", kPython, "-m", "torch.distributed.launch", "--nproc_per_node=2", script("legacy_rank.py"), "--scale", "2"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome;
  EXPECT_HAS(outcome.out, "rank 0 local 0: sum 5");
  EXPECT_HAS(outcome.out, "rank 1 local 1: sum 5");
}

// With --use-env there is no such argument, and the script that wants it refuses.
TEST_F(Doors, UseEnvGivesNoArgument) {
  start({.hosts = 1});
  Outcome outcome =
      type({"-H", "h1", kPython, "-m", "torch.distributed.launch", "--use-env", "--nproc_per_node=1", script("legacy_rank.py")});
  EXPECT_EQ(outcome.exit_code, 2) << outcome;
  EXPECT_HAS(outcome.out + outcome.err, "the following arguments are required: --local_rank");
}

TEST_F(Doors, AScriptThatSpawnsItsOwnRanks) {
  start({.hosts = 1});
  Outcome outcome = type({"-H", "h1", "MASTER_PORT=23457", kPython, script("spawned.py")});
  EXPECT_EQ(outcome.exit_code, 0) << outcome;
  EXPECT_HAS(outcome.out, "spawned 0 of 2: sum 3");
  EXPECT_HAS(outcome.out, "spawned 1 of 2: sum 3");
  EXPECT_EQ(leftovers(1s), "");
}

TEST_F(Doors, AGanOfThreeModulesTrainsAsOnOneProcess) {
  start({.hosts = 2});
  Outcome outcome = type({"-H", "h1,h2", kPython, "-m", "torch.distributed.run", "--nnodes=2", script("gan.py"), "/tmp/gan.ckpt"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome;
  EXPECT_HAS(outcome.out, "gan: equal True, every item once True, new order True");
  EXPECT_EQ(say("h1", "test -s /tmp/gan.ckpt && echo saved"), "saved\n");
}

// What DeepSpeed would do on this machine alone, with a warning.
TEST_F(Doors, AHostfileThatIsMissingStartsNothing) {
  start({.hosts = 1});
  Outcome outcome = type({"deepspeed", "--hostfile", "nowhere.txt", script("ddp.py")});
  EXPECT_EQ(outcome.exit_code, 2) << outcome;
  EXPECT_HAS(outcome.err, "--hostfile \"nowhere.txt\": there is no such file");
}

}  // namespace
