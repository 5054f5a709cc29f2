// What a training run is asked to do: one YAML file plus `key=value` arguments. One table (settings()) defines every key:
// its name, default, range and meaning; the reader, the arguments, the help and the checkpoint's record come from it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/json.h"
#include "base/language.h"
#include "base/result.h"

namespace phalanx::engine::train {

struct Config {
  std::string out = "runs/train";
  int64_t seed = 1;
  std::string device = "auto";
  struct Data {
    std::string corpus, files, validation_files, format = "auto", field = "text", prompt_field, documents = "join";
    double validation = 0.05;
    std::string shuffle = "on", streaming = "off", remainder = "drop";
    int64_t shuffle_buffer = 4096, workers = 0, prefetch = 2, pad_token = 0, pad_multiple = 1;
  } data;
  struct Model {
    int64_t layers = 4, heads = 4, width = 128, context = 128, vocabulary = 0;
    double dropout = 0;
    std::string kernels = "fused", activation_checkpointing = "off";
  } model;
  struct Train {
    int64_t steps = 1000, epochs = 0, batch = 32, accumulate = 1, log_every = 10;
    std::string precision = "fp32", loss_scaling = "auto", deterministic = "off";
  } train;
  struct Parallel {
    std::string mode = "ddp", share_parameters = "auto", offload = "off";
    double bucket_mb = 25;
    int64_t live_units = 2, persistent_elements = 100'000;
  } parallel;
  struct Optimizer {
    std::string name = "adamw", schedule = "cosine";
    double lr = 1e-3, min_lr = 1e-4, weight_decay = 0.1, beta1 = 0.9, beta2 = 0.95, epsilon = 1e-8, momentum = 0.9, clip = 1.0;
    int64_t warmup = 100;
    double warmup_ratio = 0;
  } optimizer;
  struct Validation {
    int64_t every = 200, batches = 8, patience = 0;
    double min_delta = 0;
  } validation;
  struct Checkpoint {
    int64_t every = 500, keep = 2;
    std::string existing = "resume", background = "on", best = "on", layout = "auto";
  } checkpoint;
  struct Metrics {
    std::string tensorboard = "on", mfu = "on";
  } metrics;
  struct Sample {
    int64_t bytes = 400, top_k = 40;
    double temperature = 0.8;
    std::string prompt = "\n";
  } sample;
};

// One key, bound to its place in a Config.
struct Setting {
  std::string_view key;  // "train.steps", "seed"
  std::variant<int64_t*, double*, std::string*> value;
  double min = 0, max = 0;   // of numbers, both allowed
  std::string_view choices;  // of text, separated by '|'; empty: any
  std::string_view help;
};
std::vector<Setting> settings(Config& config);

// `text` is the file's content, `name` how errors call it: "gpt.yaml:12:3: unknown key …". Unknown and repeated keys,
// wrong types, values out of range, and combinations that cannot work are errors (kConfig). Then the arguments, each
// "key=value", win over the file (errors: kUsage).
base::Result<Config> read_config(std::string_view text, std::string_view name, const std::vector<std::string>& arguments);

base::Json to_json(const Config& config);               // {"train.steps": 1000, …}
std::string help_of_settings(base::Language language);  // the table, for --help

}  // namespace phalanx::engine::train
