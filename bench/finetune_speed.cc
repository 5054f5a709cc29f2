// The engine's side of bench/finetune.sh: tuning::FineTuning on rows of given lengths. Its peer, bench/finetune_peer.py, makes the same
// model, rows and steps. SHAPE MODE LENGTHS as arguments; each line "N" on standard input asks for N steps and is answered with their
// seconds and losses; the end of the input is answered with the peak of resident memory.
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <iostream>
#include <map>
#include <sstream>
#include <string>

#include "base/text.h"
#include "base/try.h"
#include "engine/comm/env.h"
#include "engine/train/cpu.h"
#include "engine/tuning/adapter.h"
#include "engine/tuning/fine_tuning.h"
#include "os/files.h"

using namespace phalanx;

namespace {

using namespace phalanx::engine;

// Qwen2.5-0.5B at an eighth of its width and vocabulary.
constexpr const char* kQwen = R"({"model_type": "qwen2", "vocab_size": 18992, "hidden_size": 112, "intermediate_size": 608,
  "num_hidden_layers": 24, "num_attention_heads": 14, "num_key_value_heads": 2, "rope_theta": 1000000.0, "rms_norm_eps": 1e-6,
  "tie_word_embeddings": true, "use_sliding_window": false, "max_position_embeddings": 2048})";
constexpr int64_t kBatch = 4, kRank = 8, kVocabulary = 18992;

// Parameter number `place` in the order of the names.
at::Tensor sines(at::IntArrayRef shape, int64_t place) {
  at::Tensor values = (at::arange(c10::multiply_integers(shape), at::kDouble) * 1.3 + place).sin().view(shape);
  return shape.size() > 1 ? values * 0.02 : values * 0.02 + 1;
}

base::Result<tuning::Decoder> make_decoder(bool lora) {
  TRY_ASSIGN(const tune::DecoderConfig config, tune::parse_decoder_config(kQwen));
  tuning::Decoder decoder(config, true);
  if (lora) TRY(tuning::add_adapters(decoder, {.rank = kRank, .alpha = 2 * kRank, .all_linear = true}, 1));
  std::map<std::string, at::Tensor> parameters;
  for (const auto& item : decoder->named_parameters()) parameters[item.key()] = item.value();
  int64_t place = 0;
  at::NoGradGuard no_grad;
  for (auto& [name, value] : parameters) {
    value.copy_(sines(value.sizes(), place++));
    value.set_requires_grad(!lora || name.find("lora") != std::string::npos);
  }
  return decoder;
}

// A line of the file is the tokens of a prompt and of its answer. Token i of row r is 10 + (104729 r + 7919 i) mod (vocabulary - 10).
base::Result<std::vector<tuning::TuningRow>> make_rows(const std::string& path) {
  TRY_ASSIGN(const std::string text, os::read_file(path, 1 << 20));
  std::vector<tuning::TuningRow> out;
  for (std::string_view line : base::split_lines(text)) {
    std::istringstream words{std::string(line)};
    int64_t prompt = 0, answer = 0;
    if (line.empty() || !(words >> prompt >> answer)) continue;
    tuning::TuningRow row;
    for (int64_t i = 0; i < prompt + answer; ++i) {
      row.ids.push_back(10 + (static_cast<int64_t>(out.size()) * 104729 + i * 7919) % (kVocabulary - 10));
      row.labels.push_back(i < prompt ? model::GptImpl::kNoTarget : row.ids.back());
    }
    out.push_back(std::move(row));
  }
  return out;
}

base::Status run(const std::string& mode, const std::string& lengths) {
  TRY_ASSIGN(comm::RankEnv env, comm::read_rank_env(comm::process_environment));
  train::keep_freed_memory();
  train::use_threads(env);
  TRY_ASSIGN(tuning::Decoder decoder, make_decoder(mode == "lora"));
  TRY_ASSIGN(std::vector<tuning::TuningRow> rows, make_rows(lengths));
  tune::Recipe recipe;
  recipe.per_device_train_batch_size = kBatch;
  recipe.learning_rate = 1e-4;
  recipe.lr_scheduler_type = "constant";
  recipe.max_steps = 100'000;
  tuning::FineTuning training(decoder, recipe, std::move(rows));
  fmt::print("ready\n");
  std::fflush(stdout);
  for (std::string line; std::getline(std::cin, line);) {
    const int steps = std::atoi(line.c_str());
    std::string losses;
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < steps; ++i) losses += fmt::format(" {:.6f}", training.step().loss);
    fmt::print("{:.6f}{}\n", std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(), losses);
    std::fflush(stdout);
  }
  const std::string status = os::read_file("/proc/self/status", 1 << 16).value();
  fmt::print("{}\n", std::atoll(status.c_str() + status.find("VmHWM:") + 6));
  return base::ok();
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  if (arguments.size() != 3 || arguments[0] != "qwen" || (arguments[1] != "lora" && arguments[1] != "full")) {
    std::fputs("usage: finetune_speed qwen lora|full LENGTHS\n", stderr);
    return 2;
  }
  base::Status status = run(arguments[1], arguments[2]);
  if (!status.ok()) std::fputs(status.error().render().c_str(), stderr);
  return status.ok() ? 0 : 1;
}
