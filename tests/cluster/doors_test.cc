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

// The ranks print nothing: step and loss are those of a file that its YAML names. The lines of an earlier run in it are left alone.
TEST_F(Doors, LlamaFactorysLogFileTellsStepAndLoss) {
  start({.hosts = 1});
  for (const char* host : {"ctl", "h1"}) say(host, "mkdir -p /tmp/saves && printf 'stage: sft\noutput_dir: saves/sft\n' > /tmp/c.yaml");
  say("h1",
      "mkdir -p /tmp/saves/sft && echo '{\"current_steps\": 99, \"total_steps\": 99, \"loss\": 9.5}' > /tmp/saves/sft/trainer_log.jsonl");
  Outcome outcome = type({"-H", "h1", "PYTHONPATH=" + script("stand_in"), "NPROC_PER_NODE=2", "llamafactory-cli", "train", "c.yaml"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome;
  EXPECT_HAS(outcome.err, "--env PHALANX_PROGRESS_FILE=saves/sft/trainer_log.jsonl");
  EXPECT_HAS(outcome.err, "finished in");
  EXPECT_HAS(outcome.err, "; step 15/15, loss 0.2");
  EXPECT_EQ(outcome.err.find("99"), std::string::npos) << outcome;
  EXPECT_EQ(leftovers(1s), "");
}

// What DeepSpeed would do on this machine alone, with a warning.
TEST_F(Doors, AHostfileThatIsMissingStartsNothing) {
  start({.hosts = 1});
  Outcome outcome = type({"deepspeed", "--hostfile", "nowhere.txt", script("ddp.py")});
  EXPECT_EQ(outcome.exit_code, 2) << outcome;
  EXPECT_HAS(outcome.err, "--hostfile \"nowhere.txt\": there is no such file");
}

// Files and exit codes that scripts around torchrun read. No torch is needed.
class Output : public Launcher {
 protected:
  Outcome type(const Words& words, std::map<std::string, std::string> env = {}) {
    return cluster().run_on(
        "ctl", {.argv = with({PHALANX_PROGRAM, "--lease", "6s", "--fold", "off"}, words), .env = std::move(env), .cwd = "/tmp"}, 30s);
  }
};

TEST_F(Output, TorchrunsLogFilesAndItsChoiceOfWhatTheTerminalShows) {
  start({.hosts = 2});
  const std::string rank =
      "echo out $RANK; echo err $RANK >&2; test -z \"$FAIL\" || { echo \"{\\\"message\\\": \\\"no $RANK\\\"}\" > "
      "$TORCHELASTIC_ERROR_FILE; test $RANK = 1 && exit 3; sleep 20; }";
  const Words script = {"--no-python", "sh", "-c", rank};
  Outcome outcome = type(with({"-H", "h1,h2", "torchrun", "--nnodes", "2", "--nproc-per-node", "2", "--log-dir", "/tmp/logs", "--redirects",
                               "1", "--tee", "1:1", "--local-ranks-filter", "1"},
                              script));
  EXPECT_EQ(outcome.exit_code, 0) << outcome;
  for (const char* shown : {"out 1", "out 3"}) EXPECT_HAS(outcome.out, shown);
  for (const char* shown : {"err 1", "err 3"}) EXPECT_HAS(outcome.out + outcome.err, shown);
  for (const char* hidden : {"out 0", "out 2", "err 0", "err 2"}) EXPECT_HAS_NOT(outcome.out + outcome.err, hidden);
  for (int r = 0; r < 4; ++r) {
    EXPECT_EQ(say("ctl", fmt::format("cat /tmp/logs/2*/attempt_0/{}/stdout.log", r)), fmt::format("out {}\n", r));
    EXPECT_EQ(say("ctl", fmt::format("cat /tmp/logs/2*/attempt_0/{}/stderr.log", r)), fmt::format("err {}\n", r));
  }
  // One try and its restart; the error file of the launcher itself gets the cause.
  outcome =
      type(with({"-H", "h1", "FAIL=1", "torchrun", "--max-restarts", "1", "--nproc-per-node", "2", "--log-dir", "/tmp/failed"}, script),
           {{"TORCHELASTIC_ERROR_FILE", "/tmp/error.json"}});
  EXPECT_EQ(outcome.exit_code, 3) << outcome;
  for (int attempt : {0, 1})
    EXPECT_EQ(say("ctl", fmt::format("cat /tmp/failed/2*/attempt_{}/1/error.json", attempt)), "{\"message\": \"no 1\"}\n");
  EXPECT_EQ(say("ctl", "cat /tmp/error.json"), "{\"message\":\"no 1\"}\n");
  outcome = type(with({"-H", "h1", "torchrun"}, {"--no-python", "sh", "-c", "exit 5"}), {{"TORCHELASTIC_ERROR_FILE", "/tmp/error.json"}});
  EXPECT_EQ(outcome.exit_code, 5) << outcome;
  EXPECT_HAS(say("ctl", "cat /tmp/error.json"), "exited with code 5");
  EXPECT_HAS(say("ctl", "cat /tmp/error.json"), "\"errorCode\":5");
}

// torchrun's elastic options: a lost host does not end the run while MIN are left, and each failure is a restart of the whole.
TEST_F(Output, ElasticOptionsMeanWhatTorchrunMeans) {
  start({.hosts = 3});
  const std::string rank =
      "echo start $RANK of $WORLD_SIZE attempt $TORCHELASTIC_RESTART_COUNT of $TORCHELASTIC_MAX_RESTARTS; "
      "test $TORCHELASTIC_RESTART_COUNT = 0 -a $RANK = 1 && sleep 3 && exit 9; true";  // when rank 0 has spoken
  const Outcome outcome =
      type({"-H", "h1,h2,h3", "torchrun", "--nnodes", "1:2", "--max-restarts", "3", "--rdzv-backend", "c10d", "--rdzv-id", "job7",
            "--rdzv-conf", "join_timeout=60,last_call_timeout=5", "--rdzv-endpoint", "h1:29400", "--no-python", "sh", "-c", rank});
  EXPECT_EQ(outcome.exit_code, 0) << outcome;
  for (const char* line :
       {"start 0 of 2 attempt 0 of 3", "start 1 of 2 attempt 0 of 3", "start 0 of 2 attempt 1 of 3", "start 1 of 2 attempt 1 of 3"})
    EXPECT_HAS(outcome.out, line);
  EXPECT_HAS_NOT(outcome.out, "attempt 2");
}

}  // namespace
