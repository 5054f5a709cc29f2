// A merged checkpoint is a model: what phalanx_gpt.py computes from the folder alone is what the engine computes.
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/randint.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>

#include "engine/train/build.h"
#include "engine/train/verbs.h"
#include "os/files.h"
#include "training.h"

using namespace phalanx;

namespace {

using namespace engine::train;

struct Case {
  const char* name;
  int world;
  std::vector<std::string> settings;
  std::vector<std::string> merge;
  at::ScalarType stored = at::kFloat;
};

void write_raw(const std::string& path, const at::Tensor& tensor) {
  const at::Tensor flat = tensor.contiguous();
  std::ofstream(path, std::ios::binary).write(static_cast<const char*>(flat.data_ptr()), static_cast<std::streamsize>(flat.nbytes()));
}

// The engine's model with the values that training ended with, rounded as the merged file has them.
engine::model::Gpt trained(const Config& config, int64_t vocabulary, const ranks::Outcome& outcome, at::ScalarType stored) {
  at::NoGradGuard no_grad;
  engine::model::Gpt gpt = make_model(config, vocabulary);
  for (auto& item : gpt->named_parameters()) {
    auto values = outcome.parameters.at(item.key());
    item.value().copy_(at::from_blob(values.data(), item.value().sizes()).to(stored).to(at::kFloat));
  }
  gpt->eval();
  return gpt;
}

// Trains, merges, and has Python compare: logits, and what a greedy continuation takes.
void compare(const Case& c) {
  SCOPED_TRACE(c.name);
  ranks::TempFolder folder;
  std::vector<std::string> settings{"train.steps=4", "checkpoint.every=4"};
  settings.insert(settings.end(), c.settings.begin(), c.settings.end());
  const Config config = ranks::small_config(folder, settings);
  const ranks::Outcome outcome = ranks::train(config, c.world);
  ASSERT_TRUE(outcome.errors.empty()) << outcome.errors[0];
  std::vector<std::string> command{"merge", config.out, "-o", folder / "model"};
  command.insert(command.end(), c.merge.begin(), c.merge.end());
  testing::internal::CaptureStdout();
  auto code = run_verb(command);
  std::fflush(stdout);
  const std::string said = testing::internal::GetCapturedStdout();
  ASSERT_TRUE(code && code->ok()) << (code ? code->error().render() : "no verb");
  EXPECT_NE(said.find("phalanx_gpt.load"), std::string::npos) << said;

  at::NoGradGuard no_grad;
  const int64_t vocabulary = config.model.vocabulary > 0 ? config.model.vocabulary : 256;
  engine::model::Gpt gpt = trained(config, vocabulary, outcome, c.stored);
  at::Generator generator = at::detail::createCPUGenerator();
  generator.set_current_seed(5);
  const at::Tensor tokens = at::randint(0, vocabulary, {3, config.model.context}, generator, at::kLong);
  write_raw(folder / "tokens", tokens);
  write_raw(folder / "logits", gpt(tokens));
  std::vector<int64_t> prompt{1, 2, 3};
  const auto next = engine::model::generate(gpt, prompt, {.count = 20, .temperature = 0});
  write_raw(folder / "next", at::from_blob(const_cast<int64_t*>(next.data()), {20}, at::kLong));
  const std::string python = fmt::format("/usr/bin/python3 '{}/train/merged_model.py' '{}' {}", PHALANX_TRAIN_TESTS, folder.path(),
                                         fmt::join(tokens.sizes(), " "));
  EXPECT_EQ(std::system(python.c_str()), 0) << python;
}

TEST(MergedModel, PythonComputesTheEnginesLogits) {
  for (const Case& c : {
           Case{"one rank", 1, {}, {}},
           Case{"several files, three layers, one head", 2, {"model.layers=3", "model.heads=1"}, {"--max-shard-size", "20KB"}},
           Case{"ZeRO-3, four heads, other widths",
                3,
                {"parallel.mode=zero3", "train.batch=9", "model.heads=4", "model.width=48", "model.context=24"},
                {}},
           Case{"a vocabulary of its own, plain kernels, dropout",
                1,
                {"model.vocabulary=300", "model.kernels=plain", "model.dropout=0.1"},
                {}},
           Case{"bf16", 2, {"model.layers=1"}, {"--dtype", "bf16"}, at::kBFloat16},
           Case{"fp16", 1, {}, {"--dtype", "fp16"}, at::kHalf},
       })
    compare(c);
}

TEST(MergedModel, AConfigurationThatContradictsTheTensorsIsRefused) {
  ranks::TempFolder folder;
  const Config config = ranks::small_config(folder, {"train.steps=1", "checkpoint.every=1"});
  ASSERT_TRUE(ranks::train(config, 1).errors.empty());
  const std::string step = config.out + "/checkpoints/step-00000001/";
  // The manifest is changed together with the mark that vouches for it, as a program with a defect would write it.
  std::string text = os::read_file(step + "manifest.json", 1 << 20).value();
  const size_t layers = text.find("\"model.layers\"");
  ASSERT_NE(layers, std::string::npos);
  text[text.find('2', layers)] = '3';
  std::ofstream(step + "manifest.json") << text;
  const std::string hash = "sha256sum '" + step + "manifest.json' | cut -d' ' -f1 | tr -d '\\n'";
  std::string done = os::read_file(step + "DONE", 1 << 10).value();
  FILE* pipe = popen(hash.c_str(), "r");
  char hex[65] = {};
  ASSERT_EQ(std::fread(hex, 1, 64, pipe), 64u);
  pclose(pipe);
  std::ofstream(step + "DONE") << hex << done.substr(64);
  auto code = run_verb({"merge", config.out});
  ASSERT_TRUE(code && !code->ok());
  EXPECT_NE(code->error().render().find("block2."), std::string::npos) << code->error().render();
}

}  // namespace
