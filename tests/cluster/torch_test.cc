// An unmodified torch.distributed script under `phalanx run` and under torchrun: the same sums, the same losses.
#include "base/text.h"
#include "launcher_fixture.h"

using namespace phalanx;

namespace {

using namespace phalanx::testbed;
using namespace std::chrono_literals;

class Torch : public Launcher, public testing::WithParamInterface<std::vector<int>> {  // slots per host
 protected:
  void SetUp() override {
    Launcher::SetUp();
    if (IsSkipped()) return;
    static const bool installed = std::system("/usr/bin/python3 -c 'import torch.distributed' 2>/dev/null") == 0;
    if (!installed) GTEST_SKIP() << "no torch for /usr/bin/python3 (package python3-torch)";
  }

  // What the ranks said of sums and losses, sorted, without what a launcher puts in front.
  static Words results(const std::string& text) {
    Words found;
    for (auto line : base::split_lines(text)) {
      auto at = line.find("rank ");
      if (at != std::string_view::npos &&
          (line.find("loss", at) != std::string_view::npos || line.find("sum", at) != std::string_view::npos)) {
        found.emplace_back(line.substr(at));
      }
    }
    std::sort(found.begin(), found.end());
    return found;
  }

  Words under_torchrun(const std::vector<int>& slots) {
    std::vector<Process> nodes;
    for (size_t i = 0; i < slots.size(); ++i) {
      auto node = cluster().start_on("h" + std::to_string(i + 1),
                                     {.argv = {"/usr/bin/python3", script("torchrun.py"), "--nnodes", std::to_string(slots.size()),
                                               "--node_rank", std::to_string(i), "--master_addr", "10.77.0.1", "--master_port", "29512",
                                               "--nproc_per_node", std::to_string(slots[i]), script("ddp.py")}});
      if (node.ok()) nodes.push_back(std::move(node).value());
    }
    std::string text;
    for (auto& node : nodes) {
      Outcome outcome = node.finish(90s);
      EXPECT_EQ(outcome.exit_code, 0) << outcome;
      text += outcome.out;
    }
    return results(text);
  }
};

TEST_P(Torch, TheSameLossesAsUnderTorchrun) {
  const auto& slots = GetParam();
  start({.hosts = static_cast<int>(slots.size())});
  std::string hosts;
  int world = 0;
  for (size_t i = 0; i < slots.size(); ++i) {
    hosts += (i == 0 ? "h" : ",h") + std::to_string(i + 1) + ":" + std::to_string(slots[i]);
    world += slots[i];
  }
  Outcome outcome = run_now({"-H", hosts, "--fold", "off", "--", "/usr/bin/python3", script("ddp.py")}, 90s);
  ASSERT_EQ(outcome.exit_code, 0) << outcome;
  Words ours = results(outcome.out);
  EXPECT_EQ(ours.size(), static_cast<size_t>(world * 6)) << outcome;
  std::string sum = "rank 0 of " + std::to_string(world) + ": sum " + std::to_string(world * (world + 1) / 2);
  EXPECT_NE(std::find(ours.begin(), ours.end(), sum), ours.end()) << outcome;
  EXPECT_EQ(leftovers(1s), "");
  EXPECT_EQ(ours, under_torchrun(slots));
}

INSTANTIATE_TEST_SUITE_P(Hosts, Torch, testing::Values(std::vector<int>{2}, std::vector<int>{2, 2}, std::vector<int>{1, 2, 3}),
                         [](const auto& parameter) {
                           std::string name = "Slots";
                           for (int slots : parameter.param) name += std::to_string(slots);
                           return name;
                         });

}  // namespace
