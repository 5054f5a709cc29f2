#include "tune/recipe/recipe.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/json.h"
#include "base/text.h"
#include "base/try.h"
#include "base/unicode.h"
#include "base/yaml.h"
#include "tune/recipe/key_table.h"
#include "tune/recipe/steps.h"
#include "words/message.h"
#include "words/said.h"

namespace phalanx::tune {
namespace {

using base::Json;

struct Written {
  Json value;
  int line = 0;
};
using Values = std::map<std::string, Written>;
using Problems = std::vector<std::string>;

std::string shown(const Json& value) { return value.is_string() ? value.get<std::string>() : base::to_text(value); }

const RecipeKey* find_key(std::string_view key) {
  for (const RecipeKey& one : recipe_keys())
    if (one.key == key) return &one;
  return nullptr;
}

bool asks_for_nothing(const Json& value, std::string_view harmless) {
  if (value.is_null() || (value.is_boolean() && !value.get<bool>())) return true;
  if (value.is_string() && value.get<std::string>().empty()) return true;
  if (harmless.empty()) return false;
  if (value.is_number()) return std::to_string(value.get<double>()).starts_with(harmless) && value.get<double>() == 0;
  return shown(value) == harmless;
}

// Stores a value in the field that it belongs to; an answer is what is wrong with it.
class Setter {
 public:
  Setter(const RecipeKey& key, const Json& value, Recipe* recipe) : key_(key), value_(value), recipe_(recipe) {}
  std::string problem() const { return problem_; }

  void operator()(std::monostate) {}
  void operator()(bool Recipe::* field) {
    if (!value_.is_boolean()) return wrong("{} is not true or false");
    recipe_->*field = value_.get<bool>();
  }
  void operator()(double Recipe::* field) {
    if (auto number = in_range()) recipe_->*field = *number;
  }
  void operator()(int64_t Recipe::* field) {
    if (auto number = whole()) recipe_->*field = *number;
  }
  void operator()(std::optional<int64_t> Recipe::* field) {
    if (auto number = whole()) recipe_->*field = *number;
  }
  void operator()(std::string Recipe::* field) {
    if (value_.is_structured()) return wrong("{} is not a text");
    std::string text = shown(value_);
    if (value_.is_boolean() && !value_.get<bool>() && has_choice("no")) text = "no";  // save_strategy: no is false in YAML
    if (!key_.choices.empty() && !has_choice(text)) return wrong("{} is not one of {}", base::replace_all(key_.choices, " ", ", "));
    recipe_->*field = std::move(text);
  }
  void operator()(std::optional<double> Recipe::* field) {
    if (auto number = in_range()) recipe_->*field = *number;
  }
  void operator()(std::optional<std::string> Recipe::* field) {
    if (value_.is_structured()) return wrong("{} is not a text");
    recipe_->*field = shown(value_);
  }
  void operator()(FileOrTree Recipe::* field) {
    if (value_.is_object()) (recipe_->*field).tree = value_;
    else if (value_.is_string() && !value_.get<std::string>().empty()) (recipe_->*field).path = value_.get<std::string>();
    else if (value_ != false && value_ != "") wrong("{} is not a file or a mapping");
  }
  // A list, or names separated by commas.
  void operator()(std::vector<std::string> Recipe::* field) {
    std::vector<std::string> out;
    if (value_.is_object()) return wrong("{} is not a list of names");
    if (value_.is_array()) {
      for (const Json& one : value_) out.push_back(shown(one));
    } else {
      const std::string text = shown(value_);
      for (std::string_view name : base::split(text, ',')) out.emplace_back(base::trim(name));
    }
    if (std::find(out.begin(), out.end(), "") != out.end()) return wrong("{} is not a list of names");
    recipe_->*field = std::move(out);
  }

 private:
  // The first argument of the text is the value.
  template <typename... Args>
  void wrong(fmt::format_string<std::string, Args...> text, const Args&... args) {
    const std::string value = base::quote(shown(value_));
    problem_ = fmt::vformat(text, fmt::make_format_args(value, args...));
  }
  bool has_choice(std::string_view text) const {
    const auto choices = base::split_words(key_.choices);
    return std::find(choices.begin(), choices.end(), text) != choices.end();
  }
  std::optional<double> in_range() {
    const bool bounded = key_.least != 0 || key_.most != 0;
    const double number = value_.is_number() ? value_.get<double>() : std::nan("");
    if (std::isfinite(number) && (!bounded || (number >= key_.least && number <= key_.most))) return number;
    if (bounded) wrong("{} is not a number from {} to {}", key_.least, key_.most);
    else wrong("{} is not a number");
    return std::nullopt;
  }
  std::optional<int64_t> whole() {
    const auto number = in_range();
    if (number && *number != std::floor(*number)) wrong("{} is not a whole number");
    if (!number || !problem_.empty()) return std::nullopt;
    return static_cast<int64_t>(*number);
  }

  const RecipeKey& key_;
  const Json& value_;
  Recipe* recipe_;
  std::string problem_;
};

std::string unknown_key(const std::string& key) {
  std::vector<std::string> names;
  for (const RecipeKey& one : recipe_keys()) names.emplace_back(one.key);
  const auto near = base::closest(key, names);
  return near ? fmt::format("unknown key {}; the nearest is {}", base::quote(key), *near) : fmt::format("unknown key {}", base::quote(key));
}

base::Status add_overrides(const std::vector<std::string>& overrides, Values* values) {
  for (const std::string& argument : overrides) {
    const size_t equals = argument.find('=');
    if (equals == std::string::npos || equals == 0)
      return base::fail(base::ErrorKind::kUsage, fmt::format("{} is not key=value", base::quote(argument)));
    auto value = base::parse_yaml(std::string_view(argument).substr(equals + 1));
    if (!value.ok()) return base::fail(base::ErrorKind::kUsage, fmt::format("the value of {} is not valid YAML", base::quote(argument)));
    (*values)[argument.substr(0, equals)] = {std::move(value->value), 0};
  }
  return base::ok();
}

// Source: transformers v4.51.3, TrainingArguments.__post_init__ and EarlyStoppingCallback.
void check_best(const Recipe& recipe, Problems* problems) {
  auto wrong = [&](bool is, const char* what) {
    if (is) problems->emplace_back(what);
  };
  wrong(recipe.seeks_best() && recipe.eval_strategy == "no",
        "load_best_model_at_end, early_stopping_steps and metric_for_best_model need an eval_strategy");
  wrong(!recipe.greater_is_better.empty() && !recipe.seeks_best(), "greater_is_better needs metric_for_best_model");
  if (!recipe.load_best_model_at_end || recipe.eval_strategy == "no") return;
  wrong(recipe.save_strategy != recipe.eval_strategy, "load_best_model_at_end needs a save_strategy that is eval_strategy");
  const double every = recipe.eval_steps.value_or(recipe.logging_steps);
  wrong(recipe.save_strategy == "steps" && recipe.eval_strategy == "steps" && every > 0 &&
            std::abs(std::remainder(recipe.save_steps, every)) > 1e-9 * recipe.save_steps,
        "load_best_model_at_end needs save_steps that is a multiple of eval_steps");
}

void check_together(const Recipe& recipe, Problems* problems) {
  auto wrong = [&](bool is, const char* what) {
    if (is) problems->emplace_back(what);
  };
  wrong(recipe.model_name_or_path.empty(), "model_name_or_path is missing");
  wrong(recipe.dataset.empty() && recipe.tokenized_path.empty(), "dataset is missing");
  wrong(!recipe.eval_dataset.empty() && !recipe.tokenized_path.empty(), "eval_dataset and tokenized_path exclude each other; use val_size");
  wrong(recipe.val_size > 0 && !recipe.eval_dataset.empty(), "val_size and eval_dataset exclude each other");
  wrong(recipe.evaluates() && recipe.val_size <= 0 && recipe.eval_dataset.empty(), "evaluation needs eval_dataset or val_size");
  wrong(recipe.eval_strategy == "steps" && recipe.eval_steps && *recipe.eval_steps <= 0, "eval_steps is not positive");
  wrong(recipe.output_dir.empty(), "output_dir is missing");
  wrong(recipe.stage != "pt" && recipe.chat_template.empty() && recipe.tokenized_path.empty(),
        recipe.stage == "dpo" ? "template is missing; stage dpo needs one" : "template is missing; stage sft needs one");
  wrong(recipe.stage == "dpo" && !recipe.tokenized_path.empty(), "tokenized_path is for the stages sft and pt");
  wrong(recipe.mask_history && recipe.train_on_prompt, "mask_history and train_on_prompt exclude each other");
  wrong(recipe.stage != "sft" && (recipe.mask_history || recipe.train_on_prompt), "mask_history and train_on_prompt are for stage sft");
  wrong(recipe.stage != "sft" && recipe.neat_packing, "neat_packing is for stage sft");
  wrong(recipe.stage == "dpo" && recipe.packing == "true", "packing is for the stages sft and pt");
  wrong(recipe.stage == "sft" && recipe.packs() && recipe.cutoff_len < 2, "packing needs a cutoff_len of at least 2");
  wrong(recipe.logging_steps <= 0, "logging_steps is not positive");
  wrong(recipe.save_strategy == "steps" && recipe.save_steps <= 0, "save_steps is not positive; save_strategy: no saves nothing between");
  wrong(recipe.save_only_model && !recipe.resume_from_checkpoint.empty() && recipe.resume_from_checkpoint != "false",
        "save_only_model and resume_from_checkpoint exclude each other: such checkpoints cannot be resumed");
  wrong(recipe.finetuning_type != "lora" && !recipe.adapter_name_or_path.empty(), "adapter_name_or_path needs finetuning_type lora");
  wrong(recipe.finetuning_type != "lora" && recipe.loraplus_lr_ratio > 0, "loraplus_lr_ratio needs finetuning_type lora");
  wrong(recipe.finetuning_type != "lora" && !recipe.additional_target.empty(), "additional_target needs finetuning_type lora");
  wrong(recipe.create_new_adapter && recipe.adapter_name_or_path.empty(), "create_new_adapter needs adapter_name_or_path");
  wrong(recipe.finetuning_type != "freeze" && !recipe.freeze_extra_modules.empty(), "freeze_extra_modules needs finetuning_type freeze");
  wrong(!recipe.tokenized_path.empty() && recipe.extends_vocabulary(),
        "add_tokens, add_special_tokens and resize_vocab need a tokenizer, which tokenized_path does without");
  check_best(recipe, problems);
  if (auto problem = schedule_problem(recipe)) problems->push_back(*problem);
}

void check_export(const Recipe& recipe, Problems* problems) {
  if (recipe.model_name_or_path.empty()) problems->emplace_back("model_name_or_path is missing");
  if (recipe.export_dir.empty()) problems->emplace_back("export_dir is missing");
  if (recipe.extends_vocabulary() && recipe.chat_template.empty())
    problems->emplace_back("template is missing; add_tokens, add_special_tokens and resize_vocab need one");
}

void take(const std::string& name, const Written& written, ReadRecipe* out, Problems* problems) {
  auto add = [&](std::string what) {
    problems->push_back(written.line > 0 ? fmt::format("line {}: {}", written.line, what) : std::move(what));
  };
  const RecipeKey* key = find_key(name);
  if (!key) return add(unknown_key(name));
  const bool harmless = key->handling == Handling::kRefused && asks_for_nothing(written.value, key->harmless);
  if (key->handling == Handling::kRefused && !harmless) return add(fmt::format("{}: {}: {}", name, shown(written.value), key->note));
  out->given.push_back({name, shown(written.value), written.line, harmless ? Handling::kMeaningless : key->handling,
                        harmless ? std::string_view("it asks for nothing") : key->note});
  if (key->handling != Handling::kHonoured || written.value.is_null()) return;
  Setter setter(*key, written.value, &out->recipe);
  std::visit(setter, key->field);
  if (!setter.problem().empty()) add(fmt::format("{}: {}", name, setter.problem()));
}

}  // namespace

bool is_recipe(std::string_view yaml) {
  auto tree = base::parse_yaml(yaml);
  return tree.ok() && tree->value.is_object() && tree->value.contains("model_name_or_path");
}

base::Result<ReadRecipe> read_recipe(std::string_view yaml, const std::vector<std::string>& overrides, Purpose purpose) {
  TRY_ASSIGN(const base::Yaml tree, base::parse_yaml(yaml));
  if (!tree.value.is_object()) return base::fail(base::ErrorKind::kConfig, "the recipe is not a mapping of keys");
  Values values;
  for (const auto& [key, value] : tree.value.items()) {
    auto line = tree.lines.find(key);
    values[key] = {value, line == tree.lines.end() ? 0 : line->second};
  }
  TRY(add_overrides(overrides, &values));
  ReadRecipe out;
  Problems problems;
  for (const std::string& key : tree.twice) problems.push_back(fmt::format("{} is given twice", key));
  for (const auto& [key, written] : values) take(key, written, &out, &problems);
  if (problems.empty() && purpose == Purpose::kTrain) check_together(out.recipe, &problems);
  if (problems.empty() && purpose == Purpose::kExport) check_export(out.recipe, &problems);
  if (problems.empty() && purpose == Purpose::kChat && out.recipe.model_name_or_path.empty())
    problems.emplace_back("model_name_or_path is missing");
  if (problems.empty()) return out;
  return base::fail(base::ErrorKind::kConfig, fmt::format("{} problem{} in the recipe", problems.size(), problems.size() == 1 ? "" : "s"))
      .because(base::join(problems, "\n"));
}

std::string explain(const ReadRecipe& read, base::Language language) {
  std::string out;
  for (Handling handling : {Handling::kHonoured, Handling::kMeaningless})
    for (const GivenKey& one : read.given) {
      if (one.handling != handling) continue;
      if (handling == Handling::kMeaningless) out += words::Text{"not used: ##recipe"}.in(language);
      out += fmt::format("{}: {}  # {}\n", one.key, one.value, words::said_in(language, one.note));
    }
  return out;
}

}  // namespace phalanx::tune
