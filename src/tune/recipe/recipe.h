// A LLaMA-Factory YAML: flat keys, overridden by key=value arguments. Each key is honoured, has no meaning here (said once), or is refused
// with the reason; an unknown key is refused with the nearest name. The table is key_table.cc.
// Source: hiyouga/LLaMA-Factory v0.9.3, src/llamafactory/hparams/, and transformers' TrainingArguments for the keys of training.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/language.h"
#include "base/result.h"
#include "tune/recipe/deepspeed.h"

namespace phalanx::tune {

// A key whose value is a path, or what such a file would hold.
struct FileOrTree {
  std::string path;
  base::Json tree;  // null: none
};

// The honoured keys under their own names, with their defaults.
struct Recipe {
  std::string model_name_or_path;
  std::vector<std::string> adapter_name_or_path;
  bool create_new_adapter = false;  // beside a merged one; false: the last adapter is trained further
  std::vector<std::string> add_tokens, add_special_tokens;
  bool resize_vocab = false;

  std::string stage = "sft";  // sft, pt, dpo
  bool do_train = false;
  std::string finetuning_type = "lora";  // lora, freeze, full
  int64_t lora_rank = 8;
  std::optional<int64_t> lora_alpha;  // none: twice the rank
  double lora_dropout = 0;
  std::vector<std::string> lora_target = {"all"};
  std::vector<std::string> additional_target;  // trained whole, beside the adapter
  bool use_rslora = false;
  double loraplus_lr_ratio = 0;         // of B's learning rate to A's; 0: they are equal
  int64_t freeze_trainable_layers = 2;  // negative: the first ones
  std::vector<std::string> freeze_trainable_modules = {"all"};
  std::vector<std::string> freeze_extra_modules;  // outside the layers
  double pref_beta = 0.1;
  std::string pref_loss = "sigmoid";  // sigmoid, hinge, ipo, orpo, simpo
  double pref_ftx = 0;                // share of the chosen answers' own loss
  double dpo_label_smoothing = 0;
  double simpo_gamma = 0.5;

  std::vector<std::string> dataset, eval_dataset;
  double val_size = 0;  // of the records, set aside for evaluation: a share, from 1 on a number
  std::string dataset_dir = "data";
  std::string tokenized_path;               // instead of data sets and template: a file of JSON lines {"input_ids": [...], "labels": [...]}
  std::string chat_template;                // the key `template`
  int64_t cutoff_len = 2048;                // tokens
  std::string packing;                      // empty: as the stage has it; true, false
  bool neat_packing = false;                // packed examples do not see each other
  int64_t preprocessing_batch_size = 1000;  // records that are packed together
  int64_t preprocessing_num_workers = 1;    // parts of the data that are cut into such groups
  bool train_on_prompt = false;
  bool mask_history = false;
  std::optional<int64_t> max_samples;         // of each data set, the first ones
  std::optional<std::string> default_system;  // none: the template's
  bool enable_thinking = true;

  int64_t per_device_train_batch_size = 8;  // sequences
  int64_t per_device_eval_batch_size = 8;
  int64_t gradient_accumulation_steps = 1;
  double learning_rate = 5e-5;
  double weight_decay = 0;
  double adam_beta1 = 0.9;
  double adam_beta2 = 0.999;
  double adam_epsilon = 1e-8;
  double max_grad_norm = 1;  // 0: no clipping
  double num_train_epochs = 3;
  int64_t max_steps = -1;  // positive: instead of epochs
  std::string lr_scheduler_type = "linear";
  FileOrTree lr_scheduler_kwargs;
  double warmup_ratio = 0;
  int64_t warmup_steps = 0;  // positive: instead of the ratio
  int64_t seed = 42;
  std::optional<int64_t> data_seed;
  bool disable_shuffling = false;

  std::string output_dir;
  bool overwrite_output_dir = false;
  double logging_steps = 500;  // below 1: a share of all steps
  bool logging_first_step = false;
  double save_steps = 500;
  std::string save_strategy = "steps";  // no, steps, epoch
  std::optional<int64_t> save_total_limit;
  bool save_only_model = false;        // checkpoints that cannot be resumed
  std::string resume_from_checkpoint;  // empty or false: as overwrite_output_dir says; true: the newest of output_dir; a folder
  bool plot_loss = false;
  bool do_eval = false;
  std::string eval_strategy = "no";  // no, steps, epoch
  std::optional<double> eval_steps;  // none: logging_steps; below 1: a share of all steps
  bool load_best_model_at_end = false;
  std::string metric_for_best_model;            // empty: loss
  std::string greater_is_better;                // true, false; empty: unless the metric is a loss
  std::optional<int64_t> early_stopping_steps;  // evaluations
  bool bf16 = false;
  bool tf32 = false;
  bool use_cpu = false;
  FileOrTree deepspeed;
  DeepSpeed zero;  // what that says; whoever reads its file fills it in

  std::string export_dir;   // of `phalanx-train export`
  int64_t export_size = 5;  // GB of a file

  bool do_sample = true;  // of `phalanx-train chat`
  double temperature = 0.95;
  double top_p = 0.7;
  int64_t top_k = 50;
  int64_t max_new_tokens = 1024;
  double repetition_penalty = 1;

  bool packs() const { return packing == "true" || neat_packing || (packing.empty() && stage == "pt"); }
  bool extends_vocabulary() const { return resize_vocab || !add_tokens.empty() || !add_special_tokens.empty(); }
  // Whether evaluations are compared.
  bool seeks_best() const { return load_best_model_at_end || early_stopping_steps || !metric_for_best_model.empty(); }
  bool evaluates() const { return do_eval || eval_strategy != "no"; }
};

enum class Handling { kHonoured, kMeaningless, kRefused };

// What became of a key that was given.
struct GivenKey {
  std::string key;
  std::string value;  // as JSON, but texts without quotes
  int line = 0;       // 0: an argument
  Handling handling = Handling::kHonoured;
  std::string_view note;  // what it sets, or why it has no meaning here
};

struct ReadRecipe {
  Recipe recipe;
  std::vector<GivenKey> given;  // in the order of the keys' names
};

// Whether a YAML is of this dialect: it has model_name_or_path at the top.
bool is_recipe(std::string_view yaml);

// `overrides`: key=value, the value in YAML; later ones win. `purpose` says which keys must be there. Error kConfig lists every problem,
// one per line.
enum class Purpose { kTrain, kExport, kChat };
base::Result<ReadRecipe> read_recipe(std::string_view yaml, const std::vector<std::string>& overrides, Purpose purpose = Purpose::kTrain);

// What `--explain` prints: every given key with what it sets, then those without a meaning here. The Chinese of the notes is in
// words/zh-CN/said-tune.yaml.
std::string explain(const ReadRecipe& read, base::Language language);

}  // namespace phalanx::tune
