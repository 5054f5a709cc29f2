// What the numbers of a training mean, and that a whole training writes them.
#include "engine/train/report/metrics.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/text.h"
#include "engine/train/report/throughput.h"
#include "os/files.h"
#include "training.h"

using namespace phalanx;

namespace {

using namespace engine::train;
namespace fs = std::filesystem;

StepReport report(int64_t step, double loss) {
  StepReport one;
  one.step = step;
  one.loss = loss;
  one.lr = 1e-3;
  one.grad_norm = 0.817;
  one.targets = 1000;
  one.overlap = 0.75;
  one.times = {.data = 0.01, .exchange = 0.01, .forward = 0.02, .backward = 0.04, .optimizer = 0.02, .waited = 0.01};
  return one;
}

TEST(Metrics, MeansAreOfTheStepsSinceTheLastLine) {
  Means means;
  EXPECT_EQ(means.tokens_per_s(), 0);
  EXPECT_EQ(means.loss(), 0);
  means.add(report(1, 3));
  StepReport second = report(2, 2);
  second.times.data = 0.03;
  means.add(second);
  EXPECT_DOUBLE_EQ(means.loss(), 2.5);
  EXPECT_DOUBLE_EQ(means.times().data, 0.02);
  EXPECT_NEAR(means.tokens_per_s(), 2000 / 0.22, 1e-6);
  RunFacts facts;
  EXPECT_EQ(means.mfu(facts), 0) << "the peak is not known";
  facts.flops_per_token = 6e6;
  facts.peak_flops = 1e11;
  EXPECT_NEAR(means.mfu(facts), 2000 / 0.22 * 6e6 / 1e11, 1e-12);
  const base::Json line = log_line(second, means, facts, 4);
  EXPECT_EQ(line["skipped"], 4);
  EXPECT_NEAR(line["seconds"]["step"].get<double>(), 0.11, 1e-12);
  EXPECT_FALSE(line.contains("loss_scale"));
  EXPECT_EQ(terminal_line(second, means, facts, 1000, 192),
            "step 2/1000  loss 2.0000  lr 1.0e-03  norm 0.82  9091 tokens/s  mfu 55 %  eta 3m12s\n");
  EXPECT_EQ(terminal_line(second, means, {}, 2, 0), "step 2/2  loss 2.0000  lr 1.0e-03  norm 0.82  9091 tokens/s\n");
}

TEST(Metrics, Durations) {
  EXPECT_EQ(short_duration(0.4), "0s");
  EXPECT_EQ(short_duration(59.6), "1m00s");
  EXPECT_EQ(short_duration(3599.6), "1h00m");
  EXPECT_EQ(short_duration(183840), "2d03h");
  EXPECT_EQ(short_duration(std::nan("")), "?");
  EXPECT_EQ(short_duration(-1), "?");
}

TEST(Metrics, SummaryNamesWhatCostTooMuch) {
  RunTimes times;
  EXPECT_EQ(summary(times, {}), "");
  times.all = 100;
  times.steps = 500;
  times.sum = {.data = 5, .exchange = 2, .forward = 20, .backward = 40, .optimizer = 20, .waited = 6};
  times.phases = {{"load", 1}, {"train", 90}, {"save", 3}, {"eval", 7}};
  EXPECT_EQ(summary(times, {.ranks = 2}),
            "500 steps in 1m40s: data 5 %, forward 20 %, backward 36 %, optimizer 18 %, waiting for other ranks 8 %, "
            "validation 7 %, saving 3 %, other 3 %\n");
  EXPECT_EQ(summary(times, {}).find("other ranks"), std::string::npos);
  times.sum.data = 40;
  EXPECT_NE(summary(times, {}).find("warning: reading data took 33 % of the step time\nhint: set data.workers=2"), std::string::npos);
  EXPECT_NE(summary(times, {.data_workers = 1}).find("raise data.workers"), std::string::npos);
  times.sum.data = 1;
  times.sum.waited = 45;
  EXPECT_EQ(summary(times, {}).find("warning"), std::string::npos);
  EXPECT_NE(summary(times, {.ranks = 2}).find("spent more of the step time waiting for other ranks (57 %) than computing (42 %)"),
            std::string::npos)
      << summary(times, {.ranks = 2});
  EXPECT_NE(summary(times, {.ranks = 2, .sharded = true}).find("parallel.mode=ddp"), std::string::npos);
}

TEST(Throughput, OfAGptAndOfGpus) {
  // nanoGPT's GPT-2 small: 124.44 M parameters with positions, estimate_mfu counts 6 · 123.65 M + 12 · 12 · 768 · 1024.
  EXPECT_DOUBLE_EQ(flops_per_token(124'439'808, 12, 768, 1024), 6.0 * (124'439'808 - 1024 * 768) + 12.0 * 12 * 768 * 1024);
  EXPECT_EQ(gpu_peak("NVIDIA H100 80GB HBM3", at::kBFloat16), 989.4e12);
  EXPECT_EQ(gpu_peak("NVIDIA H100 PCIe", at::kBFloat16), 756e12);
  EXPECT_EQ(gpu_peak("NVIDIA H200", at::kFloat), 67e12);
  EXPECT_EQ(gpu_peak("NVIDIA A100-SXM4-80GB", at::kHalf), 312e12);
  EXPECT_EQ(gpu_peak("NVIDIA A800-SXM4-80GB", at::kFloat), 19.5e12);
  EXPECT_EQ(gpu_peak("NVIDIA A10", at::kBFloat16), 125e12);
  EXPECT_EQ(gpu_peak("NVIDIA L40S", at::kBFloat16), 362e12);
  EXPECT_EQ(gpu_peak("NVIDIA GeForce RTX 4090", at::kBFloat16), 165.2e12);
  for (const char* unknown : {"", "NVIDIA GeForce RTX 4090 D", "NVIDIA GeForce RTX 3090 Ti", "NVIDIA A10G", "Tesla V100-SXM2-16GB",
                              "NVIDIA H100 80GB HBM3 MIG 1g.10gb"})
    EXPECT_FALSE(gpu_peak(unknown, at::kBFloat16)) << unknown;
  const auto start = std::chrono::steady_clock::now();
  const double peak = measure_cpu(at::kFloat);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(2)) << "0.15 s where nobody else computes";
  EXPECT_GT(peak, 1e8);
  EXPECT_LT(peak, 1e15);
}

TEST(Metrics, OfAWholeTrainingOnTwoRanks) {
  ranks::TempFolder folder;
  const auto config = ranks::small_config(
      folder, {"metrics.mfu=on", "train.log_every=5", "data.validation=0.2", "validation.every=6", "parallel.bucket_mb=0.02"});
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  const ranks::Outcome outcome = ranks::train(config, 2);
  const std::string out = testing::internal::GetCapturedStdout(), err = testing::internal::GetCapturedStderr();
  ASSERT_TRUE(outcome.errors.empty()) << outcome.errors[0];
  auto log = os::read_file(config.out + "/log.jsonl", 1 << 20);
  ASSERT_TRUE(log.ok());
  std::vector<base::Json> lines;
  for (std::string_view line : base::split_lines(*log))
    if (line.find("validation") == std::string::npos) lines.push_back(base::parse_json(line).value());
  ASSERT_EQ(lines.size(), 3u) << "steps 5, 10, and 12, the last";
  for (const base::Json& line : lines) {
    EXPECT_GT(line["tokens_per_s"].get<double>(), 0);
    EXPECT_GT(line["mfu"].get<double>(), 0);
    EXPECT_LT(line["mfu"].get<double>(), 1);
    const base::Json& s = line["seconds"];
    double sum = 0;
    for (const char* part : {"data", "exchange", "forward", "backward", "optimizer"}) {
      EXPECT_GE(s[part].get<double>(), 0) << part;
      sum += s[part].get<double>();
    }
    EXPECT_NEAR(s["step"].get<double>(), sum, 1e-9);
    EXPECT_LE(s["waited"].get<double>(), s["backward"].get<double>() + s["optimizer"].get<double>() + 1e-6);
    EXPECT_EQ(line["overlap"].get<double>(), 0) << "in shared memory no rank reduces before backward is done";
    const base::Json& memory = line["memory"];
    EXPECT_GT(memory["resident"].get<int64_t>(), 1 << 20);
    EXPECT_GE(memory["resident_peak"].get<int64_t>(), memory["resident"].get<int64_t>());
    for (const char* part : {"parameters", "gradients", "optimizer"}) EXPECT_GT(memory[part].get<int64_t>(), 0) << part;
    EXPECT_EQ(line["skipped"], 0);
  }
  EXPECT_NE(out.find(" %  eta "), std::string::npos) << out;
  EXPECT_NE(err.find("12 steps in "), std::string::npos) << err;
  EXPECT_NE(err.find("mfu is relative to "), std::string::npos) << err;
  auto svg = os::read_file(config.out + "/loss.svg", 1 << 20);
  ASSERT_TRUE(svg.ok());
  EXPECT_NE(svg->find("training"), std::string::npos);
  EXPECT_NE(svg->find("class=\"validation\""), std::string::npos);
  size_t files = 0;
  for ([[maybe_unused]] const auto& file : fs::directory_iterator(config.out + "/tensorboard")) ++files;
  EXPECT_EQ(files, 1u);
}

TEST(Metrics, CanBeTurnedOff) {
  ranks::TempFolder folder;
  const auto config = ranks::small_config(folder, {"metrics.tensorboard=off"});
  ASSERT_TRUE(ranks::train(config, 1).errors.empty());
  EXPECT_FALSE(fs::exists(config.out + "/tensorboard"));
  auto log = os::read_file(config.out + "/log.jsonl", 1 << 20);
  EXPECT_EQ(log->find("mfu"), std::string::npos);
}

}  // namespace
