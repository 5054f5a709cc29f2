// `phalanx train x.yaml -H h1,h2,h3` with a LLaMA-Factory YAML: three hosts learn what one rank learns, with every stage of ZeRO, and a
// continued run ends with the same bytes.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>

#include "base/json.h"
#include "launcher_fixture.h"
#include "os/files.h"

namespace phalanx::testbed {
namespace {

constexpr double kBound = 1.1e-4;  // of a loss, which is logged with four digits

struct Learned {
  std::vector<double> losses;
  std::string adapter;  // the bytes of its file
  std::string talk;
};

class FineTune : public Launcher {
 protected:
  void SetUp() override {
    Launcher::SetUp();
    if (IsSkipped()) return;
    folder_ = TESTBED_BINARY_DIR "/finetune-XXXXXX";
    ASSERT_NE(::mkdtemp(folder_.data()), nullptr);
    start({.hosts = 3});
    const Outcome made = cluster().run_on("ctl", {{"/usr/bin/python3", script("finetune_folder.py"), folder_}}, milliseconds(30'000));
    ASSERT_EQ(made.exit_code, 0) << made;
  }
  void TearDown() override {
    Launcher::TearDown();
    if (!folder_.empty()) std::filesystem::remove_all(folder_);
  }

  // What `phalanx train x.yaml …` with these hosts and overrides wrote into the folder `out`.
  Learned train(const std::string& out, const Words& options, const Words& overrides) {
    Command command{{PHALANX_PROGRAM, "train", "--preflight", "off", "--env", "OMP_NUM_THREADS=1"}};
    command.argv = with(command.argv, options);
    command.argv = with(command.argv, {file("x.yaml"), "output_dir=" + file(out)});
    command.argv = with(command.argv, overrides);
    const Outcome outcome = cluster().run_on("ctl", command, milliseconds(60'000));
    EXPECT_EQ(outcome.exit_code, 0) << outcome;
    Learned learned{{}, read(out + "/adapter_model.safetensors"), outcome.out + outcome.err};
    const auto state = base::parse_json(read(out + "/trainer_state.json"));
    if (!state.ok()) return learned;
    for (const base::Json& entry : (*state)["log_history"])
      if (entry.contains("loss")) learned.losses.push_back(entry["loss"].get<double>());
    return learned;
  }
  std::string file(const std::string& name) const { return folder_ + "/" + name; }
  std::string read(const std::string& name) const {
    auto text = os::read_file(file(name), 1 << 20);
    return text.ok() ? std::move(text).value() : "";
  }

  std::string folder_;
};

TEST_F(FineTune, ThreeHostsGiveTheLossesOfOneRank) {
  const Learned alone = train("alone", {"-H", "h1"}, {"gradient_accumulation_steps=6"});
  ASSERT_EQ(alone.losses.size(), 8u) << alone.talk;
  const auto expect_the_same = [&](const Learned& other) {
    ASSERT_EQ(other.losses.size(), alone.losses.size()) << other.talk;
    for (size_t i = 0; i < alone.losses.size(); ++i) EXPECT_NEAR(other.losses[i], alone.losses[i], kBound) << "step " << i + 1;
  };
  const auto stage = [](int number) {
    return fmt::format("deepspeed={{zero_optimization: {{stage: {}, stage3_param_persistence_threshold: 20}}}}", number);
  };
  for (int number : {0, 1, 2}) {
    SCOPED_TRACE(number);
    const Learned three = train(fmt::format("three-{}", number), {"-H", "h1,h2,h3"}, {stage(number), "gradient_accumulation_steps=2"});
    expect_the_same(three);
    EXPECT_HAS(three.talk, number == 0 ? "1 × 2 × 3 sequences" : fmt::format("ZeRO: zero{} over 3 ranks", number));
  }
  const Words six{"-H", "h1,h2,h3", "--nproc-per-node", "2"};
  const Learned whole = train("whole", six, {stage(3)});
  expect_the_same(whole);
  EXPECT_HAS(whole.talk, "ZeRO: zero3 over 6 ranks");
  const Learned continued = train("continued", six, {stage(3), "resume_from_checkpoint=" + file("whole/checkpoint-4")});
  EXPECT_HAS(continued.talk, "resumed after step 4 of 8");
  EXPECT_EQ(continued.losses, whole.losses);
  EXPECT_TRUE(continued.adapter == whole.adapter && !whole.adapter.empty());
  EXPECT_EQ(leftovers(std::chrono::milliseconds(1000)), "");
}

}  // namespace
}  // namespace phalanx::testbed
