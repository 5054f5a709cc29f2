#include "tune/recipe/key_page.h"

#include <fmt/format.h>

#include <array>
#include <string_view>
#include <type_traits>

#include "base/text.h"
#include "tune/recipe/key_table.h"

namespace phalanx::tune {
namespace {

constexpr const char* kHead = R"(# Every key of LLaMA-Factory's YAML

Printed by `phalanx-train keys`, and held against it by a test. Keys that are in none of the tables are refused, with the nearest name.
[The guide](guides/from-llama-factory.md) says how to use them.
)";

// A default as YAML writes it; "" for none.
std::string default_of(const RecipeKey& key) {
  const Recipe defaults;
  return std::visit(
      [&](auto field) -> std::string {
        using T = decltype(field);
        if constexpr (std::is_same_v<T, std::monostate>) return "";
        else if constexpr (std::is_same_v<T, std::vector<std::string> Recipe::*>) return base::join(defaults.*field, ",");
        else if constexpr (std::is_same_v<T, std::optional<int64_t> Recipe::*>) return "";
        else if constexpr (std::is_same_v<T, std::optional<double> Recipe::*>) return "";
        else if constexpr (std::is_same_v<T, std::optional<std::string> Recipe::*>) return "";
        else if constexpr (std::is_same_v<T, FileOrTree Recipe::*>) return "";
        else return fmt::format("{}", defaults.*field);
      },
      key.field);
}

std::string_view base_name(std::string_view path) { return path.substr(path.rfind('/') + 1); }

std::string in_code(std::string_view text) { return text.empty() ? "" : fmt::format("`{}`", text); }

// The test that shows an honoured key: the program's own, but for these.
struct Shown {
  std::string_view test;
  std::string_view keys;  // separated by blanks
};
constexpr std::string_view kProgramTest = "tests/train/finetune/finetune_test.py";
constexpr std::array kShown{
    Shown{"tests/train/finetune/stages_test.py",
          "adam_beta1 adam_epsilon data_seed disable_shuffling do_eval do_sample eval_dataset eval_steps eval_strategy evaluation_strategy "
          "export_size loraplus_lr_ratio lr_scheduler_kwargs lr_scheduler_type mask_history neat_packing per_device_eval_batch_size "
          "max_new_tokens preprocessing_batch_size preprocessing_num_workers repetition_penalty temperature top_k top_p use_rslora "
          "val_size warmup_steps"},
    Shown{"tests/train/finetune/vocabulary_test.py",
          "add_special_tokens add_tokens additional_target create_new_adapter early_stopping_steps freeze_extra_modules greater_is_better "
          "load_best_model_at_end metric_for_best_model new_special_tokens resize_vocab"},
    Shown{"tests/train/finetune/training.json", "adam_beta2 max_grad_norm warmup_ratio weight_decay"},
    Shown{"tests/train/tuning/stages_test.cc", "dpo_label_smoothing pref_beta pref_ftx pref_loss simpo_gamma"},
    Shown{"tests/unit/tune/chat_test.cc", "enable_thinking"}};

std::string row(const RecipeKey& key) {
  std::string values = base::replace_all(key.choices, " ", ", ");
  if (key.least != 0 || key.most != 0) values = fmt::format("{} to {}", key.least, key.most);
  if (key.handling == Handling::kHonoured)
    return fmt::format("| `{}` | {} | {} | {} | [{}](../{}) |\n", key.key, in_code(default_of(key)), values, key.note,
                       base_name(test_of(key.key)), test_of(key.key));
  return fmt::format("| `{}` | {} |\n", key.key, key.note);
}

std::string table(Handling handling, const char* head) {
  std::string out = head;
  for (const RecipeKey& key : recipe_keys())
    if (key.handling == handling) out += row(key);
  return out;
}

}  // namespace

std::string_view test_of(std::string_view key) {
  for (const Shown& one : kShown)
    for (std::string_view name : base::split_words(one.keys))
      if (name == key) return one.test;
  return kProgramTest;
}

std::string key_page() {
  return kHead + table(Handling::kHonoured, "\n## Honoured\n\n| key | default | values | sets | shown by |\n|---|---|---|---|---|\n") +
         table(Handling::kMeaningless, "\n## Accepted without effect\n\nNamed once at the start of a run.\n\n| key | why |\n|---|---|\n") +
         table(Handling::kRefused,
               "\n## Refused\n\nUnless the value asks for nothing: `null`, `false`, empty, or what is the only choice "
               "anyway.\n\n| key | why |\n|---|---|\n");
}

}  // namespace phalanx::tune
