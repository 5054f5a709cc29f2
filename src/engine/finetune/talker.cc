#include "engine/finetune/talker.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "base/json.h"
#include "base/try.h"
#include "base/unicode.h"
#include "engine/finetune/vocabulary.h"
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
  if (model_type.starts_with("gemma") && tokenizer.id_of("<start_of_turn>")) return "gemma";
  if (model_type == "phi3" && tokenizer.id_of("<|end|>")) return "phi";
  if (model_type == "mistral" && tokenizer.id_of("[INST]")) return "mistral";
  return kNoTemplate;
}

base::Result<tune::Recipe> choose_template(const ModelRequest& request, const tune::Tokenizer& tokenizer, const std::string& model_type) {
  tune::Recipe out;
  if (request.chat_template) out.chat_template = *request.chat_template;
  for (auto adapter = request.adapters.rbegin(); adapter != request.adapters.rend(); ++adapter)
    if (out.chat_template.empty()) TRY(read_template_file(*adapter, &out));
  if (out.chat_template.empty()) TRY(read_template_file(request.model, &out));
  if (out.chat_template.empty()) out.chat_template = known_template(tokenizer, model_type);
  if (request.system) out.default_system = request.system;
  if (request.enable_thinking) out.enable_thinking = *request.enable_thinking;
  return out;
}

// Prints an answer as far as its characters are complete.
class Printer {
 public:
  Printer(const tune::Tokenizer& tokenizer, const std::vector<int64_t>& stops) : tokenizer_(tokenizer), stops_(stops) {}
  void show(const std::vector<int64_t>& answer, bool last) {
    std::vector<int32_t> ids(answer.begin(), answer.end());
    if (!ids.empty() && std::find(stops_.begin(), stops_.end(), answer.back()) != stops_.end()) ids.pop_back();
    text_ = tokenizer_.decode(ids, true);
    const bool cut = text_.ends_with("\xEF\xBF\xBD");  // perhaps a character of which more bytes will come
    if (text_.size() <= printed_ || (cut && !last)) return;
    std::fwrite(text_.data() + printed_, 1, text_.size() - printed_, stdout);
    std::fflush(stdout);
    printed_ = text_.size();
  }
  const std::string& text() const { return text_; }

 private:
  const tune::Tokenizer& tokenizer_;
  const std::vector<int64_t>& stops_;
  std::string text_;
  size_t printed_ = 0;
};

base::Result<tuning::Decoder> load(const ModelRequest& request, Bar& bar) {
  bar.start(words::Text{"loading the model"}, "load", Bar::Unit::kBytes, 0);
  TRY_ASSIGN(const tuning::Changes changes, changes_for(request.adapters));
  const auto progress = [&](uint64_t done, uint64_t all) { bar.advance(done, all); };
  TRY_ASSIGN(tuning::Decoder decoder, tuning::load_decoder(request.model, progress, changes));
  for (const std::string& adapter : request.adapters) {
    TRY_ASSIGN([[maybe_unused]] const auto config, tuning::read_adapter(decoder, adapter));
    tuning::merge_adapters(decoder);
  }
  bar.end();
  TRY_ASSIGN(const auto notes, notes_on_order(request.adapters));
  for (const words::Message& note : notes) bar.note(note);
  return decoder;
}

}  // namespace

base::Result<Talker> Talker::open(const ModelRequest& request, Bar& bar) {
  TRY_ASSIGN(const std::string words, tokenizer_folder(request.model, request.adapters));
  TRY_ASSIGN(const bool has_tokenizer, os::is_present(words + "/tokenizer.json"));
  if (!has_tokenizer) return cannot(fmt::format("{} has no tokenizer.json", base::quote(words, 400)));
  TRY_ASSIGN(const std::string vocabulary, os::read_file(words + "/tokenizer.json", tune::kMaxTokenizerBytes));
  TRY_ASSIGN(tune::Tokenizer tokenizer, tune::Tokenizer::parse(vocabulary));
  Talker out;
  TRY_ASSIGN(out.decoder_, load(request, bar));
  TRY_ASSIGN(out.recipe_, choose_template(request, tokenizer, out.decoder_->config.model_type));
  if (out.recipe_.chat_template == kNoTemplate) {
    TRY_ASSIGN(const auto config, os::read_if_present(words + "/tokenizer_config.json", 64 << 20));
    TRY_ASSIGN(const tune::SpecialTokens special, tune::parse_special_tokens(config.value_or("{}")));
    if (auto eos = tokenizer.id_of(special.eos); eos && !special.eos.empty()) out.stops_.push_back(*eos);
    out.tokenizer_ = std::make_unique<tune::Tokenizer>(std::move(tokenizer));
    return out;
  }
  TRY_ASSIGN(Text text, read_text(out.recipe_, words));
  out.tokenizer_ = std::move(text.tokenizer);
  out.chat_ = std::move(text.chat);
  out.stops_.assign(out.chat_->stops().begin(), out.chat_->stops().end());
  return out;
}

void Talker::set_system(std::string system) {
  if (chat_) chat_->set_default_system(std::move(system));
}

base::Result<std::vector<int64_t>> Talker::encode(const std::vector<std::string>& messages) const {
  std::vector<int32_t> ids;
  if (chat_) {
    std::vector<std::string> whole = messages;
    whole.emplace_back();
    std::vector<tune::Turn> turns = chat_->turns({std::move(whole), ""});
    turns.back().target.clear();
    for (const tune::Turn& turn : turns)
      for (const auto* part : {&turn.source, &turn.target}) ids.insert(ids.end(), part->begin(), part->end());
  } else {
    ids = tokenizer_->encode_whole(messages.back());
  }
  if (tokenizer_->gave_up()) return cannot("the split pattern of tokenizer.json takes too many steps for this text");
  if (ids.empty()) return cannot("the prompt is empty");
  for (int32_t id : ids)
    if (id >= decoder_->config.vocabulary)
      return cannot(fmt::format("the tokenizer has the id {}, but the model's embedding has {} rows", id, decoder_->config.vocabulary));
  return std::vector<int64_t>(ids.begin(), ids.end());
}

base::Result<std::string> Talker::answer(const std::vector<std::string>& messages, tuning::GenerateOptions options,
                                         const std::function<bool()>& going) {
  TRY_ASSIGN(const std::vector<int64_t> ids, encode(messages));
  const int64_t room = decoder_->config.positions - static_cast<int64_t>(ids.size());
  if (room <= 0) return cannot(fmt::format("the prompt has {} tokens, and the model's context {}", ids.size(), decoder_->config.positions));
  prompt_tokens_ = ids.size();
  Printer printer(*tokenizer_, stops_);
  options.max_new_tokens = std::min(options.max_new_tokens, room);
  options.stops = stops_;
  options.progress = [&](const std::vector<int64_t>& answer) {
    printer.show(answer, false);
    return !going || going();
  };
  printer.show(tuning::generate(decoder_, ids, options), true);
  std::fputc('\n', stdout);
  std::fflush(stdout);
  return printer.text();
}

}  // namespace phalanx::engine::finetune
