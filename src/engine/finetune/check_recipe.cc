#include "engine/finetune/check_recipe.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/counted.h"
#include "base/json.h"
#include "base/text.h"
#include "base/try.h"
#include "engine/comm/group.h"
#include "engine/finetune/finetune.h"
#include "engine/finetune/read_rows.h"
#include "engine/finetune/vocabulary.h"
#include "engine/train/report/progress.h"
#include "engine/tuning/load_decoder.h"
#include "os/files.h"
#include "tune/recipe/steps.h"

namespace phalanx::engine::finetune {
namespace {

using base::Json;
using words::tr;

struct Asked {
  std::vector<std::string> operands;
  std::vector<int64_t> worlds{1, 2, 4, 8};
  bool json = false;
};

base::Result<Asked> parse(const std::vector<std::string>& arguments) {
  Asked out;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    const bool valued = argument == "--worlds" || argument == "--threads";
    if (!argument.starts_with("--")) out.operands.push_back(argument);
    else if (argument == "--json") out.json = true;
    else if (!valued || i + 1 == arguments.size())
      return base::fail(base::ErrorKind::kUsage, fmt::format("{} is no option of --check-data, or lacks its value", argument))
          .with_hint("phalanx-train --help");
    else if (++i; argument == "--worlds") {
      out.worlds.clear();
      for (std::string_view word : base::split(std::string_view(arguments[i]), ',')) {
        TRY_ASSIGN(const int64_t world, base::parse_int(word, 1, 65'536));
        out.worlds.push_back(world);
      }
    }
  }
  return out;
}

struct Lengths {
  int64_t shortest = 0, longest = 0, at_cutoff = 0, unlearned = 0;
};
Lengths lengths_of(const std::vector<tuning::TuningRow>& rows, int64_t cutoff) {
  Lengths out{INT64_MAX, 0, 0, 0};
  for (const tuning::TuningRow& row : rows) {
    const auto length = static_cast<int64_t>(std::max(row.ids.size(), row.rejected_ids.size()));
    out.shortest = std::min(out.shortest, length);
    out.longest = std::max(out.longest, length);
    out.at_cutoff += length >= cutoff ? 1 : 0;
    const bool learned = std::any_of(row.labels.begin(), row.labels.end(), [](int64_t label) { return label >= 0; });
    out.unlearned += learned ? 0 : 1;
  }
  return out;
}

Json report_of(const tune::Recipe& recipe, const tune::DecoderConfig& model, int64_t parameters, const RowsRead& data,
               const std::vector<int64_t>& worlds) {
  const Lengths lengths = lengths_of(data.rows, recipe.cutoff_len);
  const auto rows = static_cast<int64_t>(data.rows.size());
  Json steps = Json::array();
  for (int64_t world : worlds) steps.push_back({{"ranks", world}, {"steps", tune::total_steps(recipe, rows, world)}});
  return {
      {"schema", 1},
      {"model", {{"folder", recipe.model_name_or_path}, {"type", model.model_type}, {"layers", model.layers}, {"parameters", parameters}}},
      {"sequences", rows},
      {"evaluated_sequences", data.evaluated.size()},
      {"tokens", data.tokens},
      {"learned", data.learned},
      {"omitted_records", data.dropped},
      {"shortest", lengths.shortest},
      {"longest", lengths.longest},
      {"at_cutoff_len", lengths.at_cutoff},
      {"without_labels", lengths.unlearned},
      {"steps", steps}};
}

std::string text_of(const Json& report, const tune::Recipe& recipe) {
  const base::Language language = train::language_here();
  const auto number = [&](const char* key) { return report[key].get<int64_t>(); };
  const Json& model = report["model"];
  std::string out = tr(language, "model: {}, {} layers, {} parameters; its files are complete\n", model["type"].get<std::string>(),
                       model["layers"].get<int64_t>(), model["parameters"].get<int64_t>());
  out += tr(language, "data: {} sequences, {} tokens, {} of them learned; records omitted: {}\n", number("sequences"), number("tokens"),
            number("learned"), number("omitted_records"));
  out += tr(language, "lengths: {} to {} tokens; {} sequences reach cutoff_len ({})\n", number("shortest"), number("longest"),
            number("at_cutoff_len"), recipe.cutoff_len);
  if (number("evaluated_sequences") > 0) out += tr(language, "evaluation: {} sequences\n", number("evaluated_sequences"));
  if (number("without_labels") > 0)
    out += tr(language, "{} sequences teach nothing: none of their labels counts\n", number("without_labels"));
  for (const Json& one : report["steps"])
    out += tr(language, "{} ranks: {} steps\n", one["ranks"].get<int64_t>(), one["steps"].get<int64_t>());
  return out;
}

base::Result<int> check(const Asked& asked, const std::string& yaml) {
  const std::string& path = asked.operands[0];
  TRY_ASSIGN(const tune::ReadRecipe read, read_whole({path, yaml, {asked.operands.begin() + 1, asked.operands.end()}}));
  const tune::Recipe& recipe = read.recipe;
  Bar bar(true, -1);
  TRY_ASSIGN(const tuning::HollowDecoder hollow, tuning::make_decoder(recipe.model_name_or_path));
  int64_t parameters = 0;
  for (const tuning::NamedTensor& one : hollow.parameters) parameters += one.value.numel();
  TRY_ASSIGN(const std::string words, tokenizer_folder(recipe.model_name_or_path, recipe.adapter_name_or_path));
  std::optional<Text> text;
  if (recipe.tokenized_path.empty()) { TRY_ASSIGN(text, read_text(recipe, words)); }
  const tune::DecoderConfig& config = hollow.decoder->config;
  const Text* given = text ? &*text : nullptr;
  TRY_ASSIGN(const tuning::Changes changes, changes_for(recipe, given, config.vocabulary, true));
  TRY_ASSIGN(const RowsRead data, read_rows(recipe, given, std::max(config.vocabulary, changes.vocabulary), bar));
  const Json report = report_of(recipe, config, parameters, data, asked.worlds);
  fmt::print("{}", asked.json ? base::to_text(report, 2) + "\n" : text_of(report, recipe));
  return 0;
}

}  // namespace

std::optional<base::Result<int>> check_data(const std::vector<std::string>& arguments) {
  auto asked = parse(arguments);
  if (!asked.ok() || asked->operands.empty()) return std::nullopt;
  auto yaml = os::read_file(asked->operands[0], 256 << 10);
  if (!yaml.ok() || !is_recipe(*yaml)) return std::nullopt;
  try {
    return check(*asked, *yaml);
  } catch (const std::exception& failure) {
    return base::Result<int>(base::fail(base::ErrorKind::kJobFailed, "the check failed").because(comm::reason(failure)));
  }
}

}  // namespace phalanx::engine::finetune
