#include <fmt/format.h>

#include <array>
#include <cstdio>
#include <map>
#include <set>

#include "base/text.h"
#include "base/try.h"
#include "base/unicode.h"
#include "engine/comm/group.h"
#include "engine/finetune/check_recipe.h"
#include "engine/finetune/export_model.h"
#include "engine/finetune/finetune.h"
#include "engine/finetune/generate_text.h"
#include "engine/train/cpu.h"
#include "engine/train/report/progress.h"
#include "os/files.h"
#include "tune/recipe/key_page.h"
#include "words/message.h"

namespace phalanx::engine::finetune {
namespace {

constexpr words::Text kHelp{
    "RECIPE.yaml is a YAML of LLaMA-Factory (it has model_name_or_path): fine-tunes a Hugging Face model of the\n"
    "families Llama, Mistral, Qwen2, Qwen3, Gemma 1 to 3 and Phi-3. --explain prints what becomes of every key.\n"};
base::Error usage(std::string what) { return base::fail(base::ErrorKind::kUsage, std::move(what)).with_hint("phalanx-train --help"); }

struct Words {
  std::vector<std::string> operands;
  std::map<std::string, std::string> values;  // "--adapter" → "out"
};
base::Result<Words> parse(const std::vector<std::string>& arguments, const std::set<std::string>& valued) {
  Words out;
  for (size_t i = 1; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    const size_t equals = argument.starts_with("--") ? argument.find('=') : std::string::npos;
    const std::string name = argument.substr(0, equals);
    if (!argument.starts_with("-") || argument == "-") out.operands.push_back(argument);
    else if (!valued.contains(name)) return usage(fmt::format("{} has no option {}", arguments[0], base::quote(argument)));
    else if (equals == std::string::npos && i + 1 == arguments.size()) return usage(fmt::format("{} needs a value", name));
    else if (out.values.contains(name)) return usage(fmt::format("{} is given twice", name));
    else out.values[name] = equals == std::string::npos ? arguments[++i] : argument.substr(equals + 1);
  }
  return out;
}

base::Result<int> run_export(const std::vector<std::string>& arguments) {
  TRY_ASSIGN(const Words words, parse(arguments, {}));
  if (words.operands.empty()) return usage("export needs a recipe");
  const std::string& path = words.operands[0];
  TRY_ASSIGN(const std::string yaml, os::read_file(path, 256 << 10));
  const std::vector<std::string> overrides(words.operands.begin() + 1, words.operands.end());
  auto read = tune::read_recipe(yaml, overrides, tune::Purpose::kExport);
  if (!read.ok()) {
    base::Error error = std::move(read).error();
    error.message = fmt::format("{}: {}", path, error.message);
    return error;
  }
  train::use_threads({});
  Bar bar(true, -1);
  TRY(export_model(read->recipe, bar));
  return 0;
}

// A number of an option, checked; unchanged where the option is not given.
base::Status take(const Words& words, const char* name, int64_t least, int64_t most, int64_t* out) {
  auto found = words.values.find(name);
  if (found == words.values.end()) return base::ok();
  auto number = base::parse_int(found->second, least, most);
  if (!number.ok()) return usage(fmt::format("{}: {} is not a number from {} to {}", name, base::quote(found->second), least, most));
  *out = *number;
  return base::ok();
}
base::Status take(const Words& words, const char* name, double most, double* out) {
  auto found = words.values.find(name);
  if (found == words.values.end()) return base::ok();
  char* end = nullptr;
  const double number = std::strtod(found->second.c_str(), &end);
  if (found->second.empty() || *end != '\0' || !(number >= 0 && number <= most))
    return usage(fmt::format("{}: {} is not a number from 0 to {}", name, base::quote(found->second), most));
  *out = number;
  return base::ok();
}

std::optional<std::string> value(const Words& words, const char* name) {
  auto found = words.values.find(name);
  return found == words.values.end() ? std::nullopt : std::optional(found->second);
}

base::Result<std::string> read_stdin() {
  constexpr size_t kMost = 64 << 20;
  std::string out;
  char block[1 << 16];
  while (const size_t got = std::fread(block, 1, sizeof block, stdin)) {
    out.append(block, got);
    if (out.size() > kMost) return usage("the prompt on stdin is longer than 64 MiB");
  }
  return out;
}

const std::set<std::string> kSpoken{"--adapter", "--template",           "--system", "--max-new-tokens", "--temperature", "--top-k",
                                    "--top-p",   "--repetition-penalty", "--seed"};

base::Status take_options(const Words& words, ModelRequest* request, tuning::GenerateOptions* options) {
  if (auto adapters = value(words, "--adapter")) {
    request->adapters.clear();
    for (std::string_view one : base::split(std::string_view(*adapters), ',')) request->adapters.emplace_back(one);
  }
  if (auto name = value(words, "--template")) request->chat_template = name;
  if (auto system = value(words, "--system")) request->system = system;
  auto seed = static_cast<int64_t>(options->seed);
  TRY(take(words, "--max-new-tokens", 1, 1 << 24, &options->max_new_tokens));
  TRY(take(words, "--top-k", 0, 1 << 24, &options->top_k));
  TRY(take(words, "--seed", 0, INT64_MAX, &seed));
  TRY(take(words, "--temperature", 1000, &options->temperature));
  TRY(take(words, "--top-p", 1, &options->top_p));
  TRY(take(words, "--repetition-penalty", 100, &options->repetition_penalty));
  if (options->repetition_penalty <= 0) return usage("--repetition-penalty is not positive");
  options->seed = static_cast<uint64_t>(seed);
  return base::ok();
}

base::Result<int> run_generate(const std::vector<std::string>& arguments) {
  TRY_ASSIGN(const Words words, parse(arguments, kSpoken));
  if (words.operands.size() != 2) return usage("generate needs a model folder and a prompt");
  ModelRequest request{words.operands[0], {}, {}, {}, {}};
  tuning::GenerateOptions options;
  TRY(take_options(words, &request, &options));
  std::string prompt = words.operands[1];
  if (prompt == "-") { TRY_ASSIGN(prompt, read_stdin()); }
  train::use_threads({});
  TRY(generate_text(request, prompt, options));
  return 0;
}

// The keys of a recipe that `llamafactory-cli chat` reads.
base::Status read_chat_recipe(const std::string& path, const std::vector<std::string>& overrides, ModelRequest* request,
                              tuning::GenerateOptions* options) {
  TRY_ASSIGN(const std::string yaml, os::read_file(path, 256 << 10));
  auto read = tune::read_recipe(yaml, overrides, tune::Purpose::kChat);
  if (!read.ok()) {
    base::Error error = std::move(read).error();
    error.message = fmt::format("{}: {}", path, error.message);
    return error;
  }
  const tune::Recipe& recipe = read->recipe;
  *request = {recipe.model_name_or_path, recipe.adapter_name_or_path, {}, recipe.default_system, recipe.enable_thinking};
  if (!recipe.chat_template.empty()) request->chat_template = recipe.chat_template;
  *options = {.max_new_tokens = recipe.max_new_tokens,
              .temperature = recipe.do_sample ? recipe.temperature : 0,
              .top_k = recipe.top_k,
              .top_p = recipe.top_p,
              .repetition_penalty = recipe.repetition_penalty,
              .seed = static_cast<uint64_t>(recipe.seed)};
  return base::ok();
}

base::Result<int> run_chat(const std::vector<std::string>& arguments) {
  TRY_ASSIGN(const Words words, parse(arguments, kSpoken));
  if (words.operands.empty()) return usage("chat needs a model folder or a recipe");
  ModelRequest request{words.operands[0], {}, {}, {}, {}};
  tuning::GenerateOptions options;
  const std::vector<std::string> overrides(words.operands.begin() + 1, words.operands.end());
  TRY_ASSIGN(const bool is_folder, os::is_present_folder(request.model));
  if (!is_folder) TRY(read_chat_recipe(request.model, overrides, &request, &options));
  else if (!overrides.empty()) return usage("key=value is for recipes");
  TRY(take_options(words, &request, &options));
  train::use_threads({});
  TRY(chat(request, options));
  return 0;
}

base::Result<int> print_keys(const std::vector<std::string>& arguments) {
  if (arguments.size() > 1) return usage("keys takes no arguments");
  fmt::print("{}", tune::key_page());
  return 0;
}

// Exceptions of torch become an Error.
base::Result<int> guarded(base::Result<int> (*verb)(const std::vector<std::string>&), const std::vector<std::string>& arguments) {
  try {
    return verb(arguments);
  } catch (const std::exception& failure) {
    return base::fail(base::ErrorKind::kJobFailed, fmt::format("phalanx-train {} failed", arguments[0])).because(comm::reason(failure));
  }
}

struct Verb {
  std::string_view name;
  base::Result<int> (*run)(const std::vector<std::string>&);
  std::string_view synopsis;
  words::Text help;
};
constexpr std::array kVerbs{
    Verb{"export", run_export, "phalanx-train export RECIPE.yaml [KEY=VALUE ...]\n",
         words::Text{"    merges the adapters of the recipe into its model, and writes export_dir\n"}},
    Verb{"generate", run_generate,
         "phalanx-train generate MODEL [--adapter FOLDER[,FOLDER]] [--template NAME] [--system TEXT] [--max-new-tokens N]\n"
         "                       [--temperature T] [--top-k N] [--top-p P] [--repetition-penalty R] [--seed N] PROMPT | -\n",
         words::Text{"    prints the answer of a model; without --temperature always the most likely token; - reads the prompt from\n"
                     "    stdin; adapters are merged one after another; --template none continues the prompt as it is\n"}},
    Verb{"chat", run_chat, "phalanx-train chat MODEL | RECIPE.yaml [KEY=VALUE ...] [options of generate]\n",
         words::Text{"    a conversation at the terminal: lines of stdin are messages\n"}},
    Verb{"keys", print_keys, "phalanx-train keys\n", words::Text{"    prints what becomes of every key of a recipe, as Markdown\n"}},
};

}  // namespace

std::optional<base::Result<int>> run_verb(const std::vector<std::string>& arguments) {
  if (std::vector<std::string> rest = arguments; std::erase(rest, "--check-data") > 0) return check_data(rest);
  for (const Verb& verb : kVerbs) {
    if (arguments.empty() || arguments[0] != verb.name) continue;
    if (arguments.size() == 2 && (arguments[1] == "--help" || arguments[1] == "-h")) {
      fmt::print("usage: {}{}", verb.synopsis, verb.help.in(train::language_here()));
      return base::Result<int>(0);
    }
    return guarded(verb.run, arguments);
  }
  return std::nullopt;
}

std::string help() {
  const base::Language language = train::language_here();
  std::string out(kHelp.in(language));
  for (const Verb& verb : kVerbs) out += fmt::format("{}{}", verb.synopsis, verb.help.in(language));
  return out + "\n";
}

}  // namespace phalanx::engine::finetune
