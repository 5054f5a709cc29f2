// What frameworks make of the variables of a rank: first as their sources read them, without them; then the frameworks themselves, where
// Python finds them (PYTHONPATH counts).
#include <fmt/format.h>

#include "base/text.h"
#include "launcher_fixture.h"

using namespace phalanx;

namespace {

using namespace phalanx::testbed;
using namespace std::chrono_literals;

constexpr const char* kPython = "/usr/bin/python3";

class Frameworks : public Launcher {
 protected:
  // `phalanx words…`, typed on ctl in /tmp, with this machine's PYTHONPATH.
  Outcome type(Words words) {
    std::map<std::string, std::string> env;
    if (const char* path = std::getenv("PYTHONPATH")) env["PYTHONPATH"] = path;
    words.insert(words.begin() + (words.at(0) == "run" ? 1 : 0), {"--fold", "off"});  // options stand before a door, but after "run"
    return cluster().run_on("ctl", {.argv = with({PHALANX_PROGRAM}, words), .env = env, .cwd = "/tmp"}, 120s);
  }
  static bool has(const std::string& module) {
    return std::system(fmt::format("{} -c 'import {}' >/dev/null 2>&1", kPython, module).c_str()) == 0;
  }
  // The folder of a package's own scripts.
  std::string scripts_of(const std::string& package) {
    const char* path = std::getenv("PYTHONPATH");
    return std::string(
        base::trim(cluster()
                       .run_on("ctl",
                               {.argv = {kPython, "-c", fmt::format("import {0}, os; print(os.path.dirname({0}.__file__))", package)},
                                .env = {{"PYTHONPATH", path ? path : ""}},
                                .cwd = "/tmp"},
                               30s)
                       .out));
  }
};

// Three ranks on two hosts, two and one.
TEST_F(Frameworks, ReadWhatTheyNeedInTheVariablesOfEveryDoor) {
  start({.hosts = 2});
  const std::string contract = script("contract.py");
  auto expect = [](const Outcome& outcome, const std::string& accelerate) {
    EXPECT_EQ(outcome.exit_code, 0) << outcome;
    for (int rank = 0; rank < 3; ++rank) {
      const int local = rank == 1 ? 1 : 0, node = rank == 2 ? 1 : 0;
      EXPECT_HAS(outcome.out, fmt::format("{0} torch: {0}/3 attempt 0 client", rank));
      EXPECT_HAS(outcome.out, fmt::format("{0} accelerate: {0}/3 local {1} {2}", rank, local, accelerate));
      EXPECT_HAS(outcome.out, fmt::format("{0} lightning: {0}/3 local {1} node {2} TorchElastic", rank, local, node));
      EXPECT_HAS(outcome.out, fmt::format("{} transformers: {}, of its node {}", rank, rank == 0 ? "saves" : "waits",
                                          local == 0 ? "the first" : "another"));
      EXPECT_HAS(outcome.out, fmt::format("{0} deepspeed: {0}/3 local {1} node {2} of 2", rank, local, node));
    }
  };
  expect(type({"run", "-H", "h1:2,h2:1", "--", kPython, contract}), "MULTI_GPU");
  say("ctl", "printf 'h1 slots=2\\nh2 slots=1\\n' > /tmp/hostfile");
  expect(type({"deepspeed", "--hostfile", "/tmp/hostfile", "--no_python", contract}), "MULTI_GPU");
  const Outcome torchrun =
      type({"-H", "h1,h2", "ACCELERATE_USE_CPU=true", "torchrun", "--nnodes=2", "--nproc-per-node", "1", "--no-python", contract});
  EXPECT_EQ(torchrun.exit_code, 0) << torchrun;
  for (int rank : {0, 1}) EXPECT_HAS(torchrun.out, fmt::format("{0} accelerate: {0}/2 local 0 MULTI_CPU", rank));
}

TEST_F(Frameworks, AcceleratesOwnScripts) {
  if (IsSkipped()) return;
  if (!has("accelerate")) GTEST_SKIP() << "no accelerate for /usr/bin/python3";
  start({.hosts = 1});
  const std::string folder = scripts_of("accelerate.test_utils.scripts"), data_loop = script("accelerate_data_loop.py");
  for (const char* host : {"ctl", "h1"})
    say(host,
        "printf 'compute_environment: LOCAL_MACHINE\ndistributed_type: MULTI_CPU\nnum_processes: 2\nnum_machines: 1\nuse_cpu: true\n' "
        "> /tmp/config.yaml");
  // Before 0.21 a PartialState() of its own, as in test_ops.py, asks for NCCL on CPUs too.
  const bool old =
      std::system(fmt::format("{} -c 'import accelerate, sys; sys.exit(accelerate.__version__ < \"0.21\")'", kPython).c_str()) != 0;
  const std::string ops = folder + "/test_ops.py";
  std::vector<std::string> all = {folder + "/test_script.py", folder + "/test_sync.py", data_loop};
  if (!old) all.push_back(ops);
  for (const Words& how : {Words{"--cpu", "--num_processes", "2"}, Words{"--config_file", "/tmp/config.yaml"}})
    for (const std::string& name : all) {
      const Outcome outcome = type(with(with({"-H", "h1", "accelerate", "launch"}, how), {name}));
      EXPECT_EQ(outcome.exit_code, 0) << name << outcome;
      if (name != data_loop) continue;
      for (const char* line : {"data loop 0/2", "data loop 1/2"}) EXPECT_HAS(outcome.out, line);
    }
  if (old) {
    const Outcome outcome = type({"-H", "h1", "accelerate", "launch", "--cpu", "--num_processes", "2", ops});
    EXPECT_EQ(outcome.exit_code, 1) << outcome;
    EXPECT_HAS(outcome.err, "ENV-CPU-TORCH: torch is built without CUDA, and something asks for it");
  }
  EXPECT_EQ(leftovers(1s), "");
}

TEST_F(Frameworks, LightningsDdpThroughTheEnvironmentAndThroughItsOwnLauncher) {
  if (IsSkipped()) return;
  if (!has("pytorch_lightning") && !has("lightning.pytorch")) GTEST_SKIP() << "no lightning for /usr/bin/python3";
  start({.hosts = 2});
  const std::string ddp = script("lightning_ddp.py");
  Outcome outcome = type({"run", "-H", "h1", "--nproc-per-node", "2", "--", kPython, ddp, "2", "1"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome;
  for (int rank : {0, 1})
    EXPECT_HAS(outcome.out, fmt::format("lightning {0}/2 local {0} node 0: TorchElasticEnvironment, same weights True", rank));
  outcome = type({"run", "-H", "h1,h2", "--nproc-per-node", "1", "--", kPython, ddp, "1", "2"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome;
  for (int rank : {0, 1})
    EXPECT_HAS(outcome.out, fmt::format("lightning {0}/2 local 0 node {0}: TorchElasticEnvironment, same weights True", rank));
  // Its CSVLogger, in a folder that a YAML of its command line would name.
  outcome = type({"run", "-H", "h1", "--nproc-per-node", "2", "--env", "PHALANX_PROGRESS_FILE=csv/digits/version_*/metrics.csv", "--",
                  kPython, ddp, "2", "1", "csv"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome;
  EXPECT_HAS(outcome.err, "; step 4, loss ");
  outcome = type({"-H", "h1", kPython, ddp, "2", "1"});  // one process, which starts the other
  EXPECT_EQ(outcome.exit_code, 0) << outcome;
  for (int rank : {0, 1})
    EXPECT_HAS(outcome.out, fmt::format("lightning {0}/2 local {0} node 0: LightningEnvironment, same weights True", rank));
  EXPECT_EQ(leftovers(1s), "");
}

TEST_F(Frameworks, TransformersTrainerOnTwoRanks) {
  if (IsSkipped()) return;
  if (!has("transformers")) GTEST_SKIP() << "no transformers for /usr/bin/python3";
  start({.hosts = 1});
  const Outcome outcome = type({"-H", "h1", "ACCELERATE_USE_CPU=true", kPython, "-m", "torch.distributed.run", "--nproc_per_node", "2",
                                script("trainer_ddp.py"), "/tmp/out"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome;
  for (int rank : {0, 1}) EXPECT_HAS(outcome.out, fmt::format("trainer {}/2: distributed", rank));
}

TEST_F(Frameworks, DeepSpeedUnderItsOwnCommandLine) {
  if (IsSkipped()) return;
  if (!has("deepspeed")) GTEST_SKIP() << "no deepspeed for /usr/bin/python3";
  start({.hosts = 1});
  const Outcome outcome = type({"-H", "h1", "deepspeed", "--num_gpus", "2", script("deepspeed_init.py")});
  EXPECT_EQ(outcome.exit_code, 0) << outcome;
  for (int rank : {0, 1}) EXPECT_HAS(outcome.out, fmt::format("deepspeed {}/2: sum 2", rank));
}

}  // namespace
