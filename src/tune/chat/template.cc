#include "tune/chat/template.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/json.h"
#include "base/try.h"
#include "base/unicode.h"

namespace phalanx::tune {
namespace {

constexpr std::string_view kThought = "<think>", kThoughtEnd = "</think>", kNoThought = "<think>\n\n</think>\n\n";

bool has_thought(std::string_view text) {
  return text.find(kThought) != std::string_view::npos || text.find(kThoughtEnd) != std::string_view::npos;
}

// Every <think>…</think> cut out, then newlines at the start.
std::string without_thoughts(std::string_view text) {
  std::string out;
  while (true) {
    const size_t begin = text.find(kThought);
    const size_t end = begin == std::string_view::npos ? begin : text.find(kThoughtEnd, begin + kThought.size());
    if (end == std::string_view::npos) break;
    out += text.substr(0, begin);
    text.remove_prefix(end + kThoughtEnd.size());
  }
  out += text;
  return out.substr(std::min(out.find_first_not_of('\n'), out.size()));
}

std::string filled(std::string_view slot, std::string_view content) {
  const size_t place = slot.find("{}");
  if (place == std::string_view::npos) return std::string(slot);
  std::string out(slot.substr(0, place));
  out += content;
  out += slot.substr(place + 2);
  return out;
}

// A token of tokenizer_config.json is a text or an object with its content.
std::string token_text(const base::Json& config, const char* key) {
  auto found = config.find(key);
  if (found == config.end()) return "";
  if (found->is_string()) return found->get<std::string>();
  return base::get_string(*found, "content").value_or("");
}

void append_all(std::vector<int32_t>* out, const std::vector<int32_t>& more) { out->insert(out->end(), more.begin(), more.end()); }

}  // namespace

base::Result<SpecialTokens> parse_special_tokens(std::string_view tokenizer_config) {
  TRY_ASSIGN(const base::Json config, base::parse_json(tokenizer_config));
  if (!config.is_object()) return base::fail(base::ErrorKind::kConfig, "tokenizer_config.json is not an object");
  return SpecialTokens{token_text(config, "bos_token"), token_text(config, "eos_token"), token_text(config, "pad_token"),
                       base::get_bool(config, "add_bos_token").value_or(false)};
}

base::Result<ChatEncoder> ChatEncoder::make(const Template* chat, const Tokenizer* tokenizer, const SpecialTokens& tokens,
                                            bool enable_thinking) {
  ChatEncoder out;
  out.chat_ = chat;
  out.tokenizer_ = tokenizer;
  out.default_system_ = std::string(chat->default_system);
  out.enable_thinking_ = enable_thinking;
  const std::string eos = chat->replace_eos ? std::string(chat->stop_words.front()) : tokens.eos;
  const auto eos_id = tokenizer->id_of(eos);
  if (!eos_id)
    return base::fail(base::ErrorKind::kConfig, fmt::format("template {} does not fit the tokenizer", chat->name))
        .because(eos.empty() ? "tokenizer_config.json names no eos_token"
                             : fmt::format("the vocabulary has no token {}", base::quote(eos)));
  out.eos_ = *eos_id;
  out.bos_ = tokens.bos.empty() ? std::nullopt : tokenizer->id_of(tokens.bos);
  out.pad_ = (tokens.pad.empty() ? std::nullopt : tokenizer->id_of(tokens.pad)).value_or(out.eos_);
  out.stops_ = {out.eos_};
  // Llama 3.0 lacks the second stop word of its template, <|eom_id|>, and cannot produce it either.
  for (std::string_view word : chat->stop_words)
    if (auto id = tokenizer->id_of(word); id && *id != out.eos_) out.stops_.push_back(*id);
  std::sort(out.stops_.begin(), out.stops_.end());
  return out;
}

void ChatEncoder::append(const Slots& slots, std::string_view content, std::vector<int32_t>* out) const {
  for (const Slot& slot : slots) {
    if (slot.kind == Slot::Kind::kText) append_all(out, tokenizer_->encode(filled(slot.text, content)));
    else if (slot.kind == Slot::Kind::kEos) out->push_back(eos_);
    else if (bos_) out->push_back(*bos_);
  }
}

std::vector<Turn> ChatEncoder::turns(const Conversation& conversation) const {
  const std::string_view system = conversation.system.empty() ? default_system_ : conversation.system;
  std::vector<Turn> out;
  for (size_t i = 0; i + 1 < conversation.messages.size(); i += 2) {
    Turn turn;
    std::string user = conversation.messages[i], answer = conversation.messages[i + 1];
    if (i == 0) {
      append(chat_->prefix, "", &turn.source);
      if (!system.empty() && chat_->system_in_user) user = filled(chat_->system.front().text, system) + user;
      else if (!system.empty()) append(chat_->system, system, &turn.source);
    }
    append(chat_->user, user, &turn.source);
    if (chat_->reasoning && !enable_thinking_) answer = without_thoughts(answer);
    if (chat_->reasoning && !has_thought(answer))
      append_all(enable_thinking_ ? &turn.target : &turn.source, tokenizer_->encode(kNoThought));
    append(chat_->assistant, answer, &turn.target);
    out.push_back(std::move(turn));
  }
  return out;
}

}  // namespace phalanx::tune
