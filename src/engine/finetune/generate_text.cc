#include "engine/finetune/generate_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "base/json.h"
#include "base/try.h"
#include "base/unicode.h"
#include "engine/finetune/bar.h"
#include "engine/finetune/read_rows.h"
#include "engine/train/report/progress.h"
#include "engine/tuning/adapter.h"
#include "engine/tuning/load_decoder.h"
#include "os/files.h"

namespace phalanx::engine::finetune {
namespace {

constexpr const char* kNoTemplate = "none";

base::Error cannot(std::string why) { return base::fail(base::ErrorKind::kConfig, "cannot generate text").because(std::move(why)); }

// The template that a fine-tuning wrote beside its weights.
base::Status read_template_file(const std::string& folder, tune::Recipe* out) {
  TRY_ASSIGN(const auto text, os::read_if_present(folder + "/" + kTemplateFile, 1 << 20));
  if (!text) return base::ok();
  TRY_ASSIGN(const base::Json json, base::parse_json(*text));
  out->chat_template = base::get_string(json, "template").value_or("");
  out->default_system = base::get_string(json, "default_system");
  out->enable_thinking = base::get_bool(json, "enable_thinking").value_or(true);
  return base::ok();
}

// Of a published model: the template whose tokens its vocabulary has.
std::string known_template(const tune::Tokenizer& tokenizer, const std::string& model_type) {
  if (tokenizer.id_of("<|start_header_id|>")) return "llama3";
  if (tokenizer.id_of("<|im_start|>")) return model_type == "qwen3" ? "qwen3" : model_type == "qwen2" ? "qwen" : "chatml";
  if (model_type == "mistral" && tokenizer.id_of("[INST]")) return "mistral";
  return kNoTemplate;
}

base::Result<tune::Recipe> choose_template(const TextRequest& request, const tune::Tokenizer& tokenizer, const std::string& model_type) {
  tune::Recipe out;
  if (request.chat_template) out.chat_template = *request.chat_template;
  if (out.chat_template.empty() && request.adapter) TRY(read_template_file(*request.adapter, &out));
  if (out.chat_template.empty()) TRY(read_template_file(request.model, &out));
  if (out.chat_template.empty()) out.chat_template = known_template(tokenizer, model_type);
  if (request.system) out.default_system = request.system;
  return out;
}

// What the model is given, and where its answer ends.
struct Prompt {
  std::vector<int64_t> ids, stops;
};
base::Result<Prompt> encode(const TextRequest& request, const tune::Recipe& recipe, const tune::Tokenizer& tokenizer) {
  Prompt out;
  std::vector<int32_t> ids;
  if (recipe.chat_template == kNoTemplate) {
    ids = tokenizer.encode_whole(request.prompt);
    TRY_ASSIGN(const auto config, os::read_if_present(request.model + "/tokenizer_config.json", 64 << 20));
    TRY_ASSIGN(const tune::SpecialTokens special, tune::parse_special_tokens(config.value_or("{}")));
    if (auto eos = tokenizer.id_of(special.eos); eos && !special.eos.empty()) out.stops.push_back(*eos);
  } else {
    TRY_ASSIGN(const Text text, read_text(recipe, request.model));
    ids = text.chat->turns({{request.prompt, ""}, ""}).front().source;
    out.stops.assign(text.chat->stops().begin(), text.chat->stops().end());
  }
  out.ids.assign(ids.begin(), ids.end());
  return out;
}

// Prints an answer as far as its characters are complete.
class Printer {
 public:
  Printer(const tune::Tokenizer& tokenizer, const std::vector<int64_t>& stops) : tokenizer_(tokenizer), stops_(stops) {}
  void show(const std::vector<int64_t>& answer, bool last) {
    std::vector<int32_t> ids(answer.begin(), answer.end());
    if (!ids.empty() && std::find(stops_.begin(), stops_.end(), answer.back()) != stops_.end()) ids.pop_back();
    const std::string text = tokenizer_.decode(ids, true);
    const bool cut = text.ends_with("\xEF\xBF\xBD");  // perhaps a character of which more bytes will come
    if (text.size() <= printed_ || (cut && !last)) return;
    std::fwrite(text.data() + printed_, 1, text.size() - printed_, stdout);
    std::fflush(stdout);
    printed_ = text.size();
  }

 private:
  const tune::Tokenizer& tokenizer_;
  const std::vector<int64_t>& stops_;
  size_t printed_ = 0;
};

}  // namespace

base::Status generate_text(TextRequest request) {
  Bar bar(true, -1);
  TRY_ASSIGN(const bool has_tokenizer, os::is_present(request.model + "/tokenizer.json"));
  if (!has_tokenizer) return cannot(fmt::format("{} has no tokenizer.json", base::quote(request.model, 400)));
  TRY_ASSIGN(const std::string vocabulary, os::read_file(request.model + "/tokenizer.json", tune::kMaxTokenizerBytes));
  TRY_ASSIGN(const tune::Tokenizer tokenizer, tune::Tokenizer::parse(vocabulary));
  bar.start(words::Text{"loading the model"}, "load", Bar::Unit::kBytes, 0);
  const auto progress = [&](uint64_t done, uint64_t all) { bar.advance(done, all); };
  TRY_ASSIGN(tuning::Decoder decoder, tuning::load_decoder(request.model, progress));
  if (request.adapter) {
    TRY_ASSIGN([[maybe_unused]] const auto config, tuning::read_adapter(decoder, *request.adapter));
    tuning::merge_adapters(decoder);
  }
  bar.end();
  TRY_ASSIGN(const tune::Recipe recipe, choose_template(request, tokenizer, decoder->config.model_type));
  TRY_ASSIGN(const Prompt prompt, encode(request, recipe, tokenizer));
  if (prompt.ids.empty()) return cannot("the prompt is empty");
  for (int64_t id : prompt.ids)
    if (id >= decoder->config.vocabulary)
      return cannot(fmt::format("the tokenizer has the id {}, but the model's embedding has {} rows", id, decoder->config.vocabulary));
  const int64_t room = decoder->config.positions - static_cast<int64_t>(prompt.ids.size());
  if (room <= 0)
    return cannot(fmt::format("the prompt has {} tokens, and the model's context {}", prompt.ids.size(), decoder->config.positions));
  bar.note(words::tr("template {}, {} tokens of prompt", recipe.chat_template, prompt.ids.size()));
  Printer printer(tokenizer, prompt.stops);
  request.options.max_new_tokens = std::min(request.options.max_new_tokens, room);
  request.options.stops = prompt.stops;
  request.options.progress = [&](const std::vector<int64_t>& answer) { printer.show(answer, false); };
  printer.show(tuning::generate(decoder, prompt.ids, request.options), true);
  std::fputc('\n', stdout);
  return base::ok();
}

}  // namespace phalanx::engine::finetune
