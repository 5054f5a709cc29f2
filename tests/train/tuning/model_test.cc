// Decoders against transformers' numbers: logits, losses and gradients of every family, and tensors that do not fit.
#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "engine/tuning/load_decoder.h"
#include "golden.h"

using namespace phalanx;

namespace {

using namespace phalanx::engine;

at::Tensor matrix(const base::Json& rows) {
  std::vector<at::Tensor> out;
  for (const base::Json& row : rows) out.push_back(at::tensor(row.get<std::vector<int64_t>>()).unsqueeze(0));
  return at::cat(out);
}

// Rows of one length, without their padding.
tuning::Sequences rows_of(const at::Tensor& tokens) {
  tuning::Sequences out{tokens.reshape({-1}), {}};
  for (int64_t i = 0; i <= tokens.size(0); ++i) out.starts.push_back(i * tokens.size(1));
  return out;
}

double probe(const at::Tensor& value) {
  at::Tensor flat = value.detach().to(at::kDouble).reshape({-1});
  return (flat * (at::arange(flat.numel(), flat.options()) * 0.37).cos()).sum().item<double>();
}

struct Case {
  explicit Case(const std::string& name)
      : folder(tune::golden_folder() + "/models/" + name), expected(*base::parse_json(tune::read_text(folder + "/expected.json"))) {}
  std::string folder;
  base::Json expected;
};

void expect_gradients(tuning::Decoder& decoder, const base::Json& expected) {
  const double total = expected["gradient_norm_total"].get<double>();
  double squares = 0;
  size_t count = 0;
  for (const auto& item : decoder->named_parameters()) {
    SCOPED_TRACE(item.key());
    const base::Json& one = expected["gradients"][item.key()];
    const at::Tensor& gradient = item.value().grad();
    const double norm = gradient.to(at::kDouble).norm().item<double>();
    EXPECT_NEAR(norm, one["norm"].get<double>(), 1e-5 * total);
    EXPECT_NEAR(probe(gradient), one["probe"].get<double>(), 3e-5 * total);
    squares += norm * norm;
    ++count;
  }
  EXPECT_EQ(count, expected["gradients"].size());
  EXPECT_NEAR(std::sqrt(squares), total, 1e-4 * total);
}

class GoldenModel : public testing::TestWithParam<const char*> {};

TEST_P(GoldenModel, LogitsLossAndGradients) {
  if (tune::golden_folder().empty()) GTEST_SKIP() << "needs the golden data: ../shared/golden, or PHALANX_GOLDEN=<folder>";
  const Case golden(GetParam());
  auto loaded = tuning::load_decoder(golden.folder);
  ASSERT_TRUE(loaded.ok()) << loaded.error().render();
  tuning::Decoder decoder = *loaded;
  const at::Tensor tokens = matrix(golden.expected["input_ids"]), labels = matrix(golden.expected["labels"]);
  const at::Tensor mask = matrix(golden.expected["attention_mask"]).unsqueeze(-1);
  auto files = tuning::TensorFiles::open_file(golden.folder + "/expected_logits.safetensors");
  ASSERT_TRUE(files.ok());
  const at::Tensor logits = *files->read("logits");
  EXPECT_LE(((decoder(tokens) - logits) * mask).abs().max().item<double>(), 1e-4);

  for (auto& parameter : decoder->parameters()) parameter.set_requires_grad(true);
  model::SummedLoss loss = decoder->loss(rows_of(tokens), labels.reshape({-1}));
  EXPECT_EQ(loss.targets, golden.expected["targets"].get<int64_t>());
  at::Tensor mean = loss.sum / static_cast<double>(loss.targets);
  EXPECT_NEAR(mean.item<double>(), golden.expected["loss"].get<double>(), 1e-5);
  mean.backward();
  expect_gradients(decoder, golden.expected);
}

INSTANTIATE_TEST_SUITE_P(Families, GoldenModel,
                         testing::Values("llama3", "llama-tied", "qwen2", "qwen3", "mistral", "x-llama-bias-linear", "x-llama-yarn",
                                         "gemma", "gemma2", "gemma3-text", "phi3", "x-phi3-longrope"));

tune::DecoderConfig small_config() {
  auto config = tune::parse_decoder_config(R"({"model_type": "qwen3", "vocab_size": 11, "hidden_size": 8, "intermediate_size": 6,
    "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 4, "use_sliding_window": true,
    "sliding_window": 3, "max_window_layers": 1})");
  PHALANX_CHECK(config.ok());
  return *config;
}

tuning::Decoder small_decoder() {
  tuning::Decoder decoder(small_config(), false);
  at::NoGradGuard no_grad;
  double place = 0;
  for (auto& value : decoder->parameters()) {
    at::Tensor angles = (at::arange(value.numel(), at::kFloat) * 0.7 + place++).view(value.sizes());
    value.copy_(value.dim() > 1 ? angles.sin() * 0.5 : angles.sin() * 0.2 + 1);
  }
  decoder->eval();
  return decoder;
}

struct LossAndGradients {
  double loss;
  std::vector<at::Tensor> gradients;
};
LossAndGradients learn(tuning::Decoder& decoder, const tuning::Sequences& rows, const at::Tensor& labels) {
  decoder->zero_grad();
  const model::SummedLoss loss = decoder->loss(rows, labels);
  loss.sum.backward();
  LossAndGradients out{loss.sum.item<double>(), {}};
  for (const at::Tensor& value : decoder->parameters()) out.gradients.push_back(value.grad().clone());
  return out;
}

// Sequences of several lengths end to end: the sum of what each of them gives alone, in the fused layers as in the plain ones.
TEST(Decoder, SequencesEndToEndAreAsEachAlone) {
  tuning::Decoder decoder = small_decoder();
  std::vector<int64_t> ids;
  for (int64_t i = 0; i < 18; ++i) ids.push_back((i * 7 + 3) % 11);
  const tuning::Sequences rows{at::tensor(ids), {0, 9, 10, 18}};
  at::Tensor labels = rows.tokens.clone();
  labels.narrow(0, 0, 4).fill_(-100);
  LossAndGradients alone{0, {}};
  decoder->set_kernels(model::Kernels::kPlain);
  for (size_t i : {0, 2}) {
    const int64_t first = rows.starts[i], count = rows.starts[i + 1] - first;
    LossAndGradients one = learn(decoder, {rows.tokens.narrow(0, first, count), {0, count}}, labels.narrow(0, first, count));
    alone.loss += one.loss;
    for (size_t p = 0; p < one.gradients.size(); ++p)
      i == 0 ? alone.gradients.push_back(one.gradients[p]) : static_cast<void>(alone.gradients[p].add_(one.gradients[p]));
  }
  for (auto kernels : {model::Kernels::kPlain, model::Kernels::kFused}) {
    decoder->set_kernels(kernels);
    const LossAndGradients together = learn(decoder, rows, labels);
    EXPECT_NEAR(together.loss, alone.loss, 1e-5);
    for (size_t p = 0; p < alone.gradients.size(); ++p)
      EXPECT_LE((together.gradients[p] - alone.gradients[p]).abs().max().item<double>(), 5e-6) << p;
  }
}

// Keys that a cache holds are what a whole pass makes, also behind the window.
TEST(Decoder, ACacheGivesTheLogitsOfAWholePass) {
  at::NoGradGuard no_grad;
  tuning::Decoder decoder = small_decoder();
  const at::Tensor tokens = at::tensor(std::vector<int64_t>{1, 5, 3, 9, 10, 2, 7, 7}).unsqueeze(0);
  const at::Tensor whole = decoder(tokens);
  tuning::DecoderCache cache;
  std::vector<at::Tensor> parts{decoder(tokens.narrow(1, 0, 3), &cache)};
  for (int64_t i = 3; i < tokens.size(1); ++i) parts.push_back(decoder(tokens.narrow(1, i, 1), &cache));
  EXPECT_LE((at::cat(parts, 1) - whole).abs().max().item<double>(), 4e-6);
  // The last layer sees three positions, the first all of them: the first token still counts.
  at::Tensor changed = tokens.clone();
  changed.select(1, 0).fill_(4);
  EXPECT_GT((decoder(changed) - whole).select(1, 7).abs().max().item<double>(), 1e-5);
}

// Of parameter number `place` in the order of names (tools/make_decoder_golden.py).
at::Tensor sines(at::IntArrayRef shape, int64_t place, bool of_norm) {
  at::Tensor values = (at::arange(c10::multiply_integers(shape), at::kDouble) * 1.3 + place).sin().view(shape);
  return of_norm ? values * 0.2 + 1 : values * 0.4;
}

// Without the golden data of the real libraries too: against our own numbers, from the published descriptions.
TEST(Decoder, AgreesWithTheOracle) {
  auto golden = base::parse_json(tune::read_text(std::string(PHALANX_TRAIN_TESTS) + "/tuning/decoders.json"));
  ASSERT_TRUE(golden.ok());
  const at::Tensor tokens = matrix((*golden)["tokens"]), labels = matrix((*golden)["labels"]);
  for (const auto& [family, truth] : (*golden)["families"].items()) {
    SCOPED_TRACE(family);
    auto config = tune::parse_decoder_config(base::to_text(truth["config"]));
    ASSERT_TRUE(config.ok()) << config.error().cause;
    tuning::Decoder decoder(*config, config->tied.value_or(false));
    std::map<std::string, at::Tensor> parameters;
    for (const auto& item : decoder->named_parameters()) parameters[item.key()] = item.value();
    ASSERT_EQ(parameters.size(), truth["gradient_norms"].size());
    int64_t place = 0;
    for (auto& [name, value] : parameters) {
      at::NoGradGuard no_grad;
      value.copy_(sines(value.sizes(), place++, name.find("norm") != std::string::npos));
    }
    model::SummedLoss loss = decoder->loss(rows_of(tokens), labels.reshape({-1}));
    at::Tensor mean = loss.sum / static_cast<double>(loss.targets);
    EXPECT_EQ(loss.targets, truth["targets"].get<int64_t>());
    EXPECT_NEAR(mean.item<double>(), truth["loss"].get<double>(), 1e-5);
    mean.backward();
    for (const auto& [name, value] : parameters) {
      const double wanted = truth["gradient_norms"][name].get<double>();
      EXPECT_NEAR(value.grad().norm().item<double>(), wanted, 5e-5 * std::max(1.0, wanted)) << name;
    }
    const at::Tensor logits = decoder(tokens).select(1, tokens.size(1) - 1);
    for (int64_t row = 0; row < 2; ++row) {
      const at::Tensor expected = at::tensor(truth["logits"][static_cast<size_t>(row)].get<std::vector<double>>());
      EXPECT_LE((logits[row].to(at::kDouble) - expected).abs().max().item<double>(), 2e-5);
    }
  }
}

TEST(Decoder, WhatDoesNotFitIsListed) {
  tuning::Decoder decoder = small_decoder();
  const std::string path = testing::TempDir() + "phalanx-misfit-" + std::to_string(::getpid()) + ".safetensors";
  std::vector<checkpoint::TensorInfo> infos{{"model.norm.weight", "F32", {3}, 0, 0}, {"strange.weight", "F32", {1}, 0, 0}};
  std::ofstream(path, std::ios::binary) << checkpoint::make_safetensors_header(infos, {}) << std::string(16, '\0');
  auto files = tuning::TensorFiles::open_file(path);
  ASSERT_TRUE(files.ok());
  const at::Tensor value = at::empty({8});
  base::Status loaded = tuning::load_tensors(*files, {{"model.norm.weight", value}, {"lm_head.weight", value}}, {});
  ASSERT_FALSE(loaded.ok());
  EXPECT_EQ(
      loaded.error().cause,
      "missing: lm_head.weight\nunexpected: strange.weight\nof another shape: model.norm.weight is [3] in the file and [8] in the model");
  std::ofstream(path, std::ios::binary) << checkpoint::make_safetensors_header(infos, {}) << std::string(15, '\0');
  EXPECT_FALSE(tuning::TensorFiles::open_file(path).ok());
  ::unlink(path.c_str());
}

}  // namespace
