// Chat templates of LLaMA-Factory: how a conversation becomes ids. Each piece of text between token ids is tokenized by itself; special
// tokens in it are recognised. Source: hiyouga/LLaMA-Factory v0.9.3, src/llamafactory/data/template.py.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "tune/chat/conversation.h"
#include "tune/tokenizer/tokenizer.h"

namespace phalanx::tune {

// Text, in which "{}" stands for the content; or the id of bos or eos.
struct Slot {
  enum class Kind { kText, kBos, kEos };
  Kind kind = Kind::kText;
  std::string_view text;
};
using Slots = std::vector<Slot>;

struct Template {
  std::string_view name{};
  Slots prefix{};  // in front of the first turn
  Slots system{}, user{}, assistant{};
  std::string_view default_system{};
  std::vector<std::string_view> stop_words{};
  bool replace_eos = false;     // the first stop word becomes eos
  bool system_in_user = false;  // the system text is put in front of the first user's
  bool reasoning = false;       // an answer without a thought is given an empty one
  bool efficient_eos = false;   // answers have no end of text: see LabelRules::ending
};

// Error kConfig: unknown, with the nearest name and the list.
base::Result<const Template*> find_template(std::string_view name);

// Of tokenizer_config.json.
struct SpecialTokens {
  std::string bos, eos, pad;  // empty: none
  bool add_bos = false;
};
base::Result<SpecialTokens> parse_special_tokens(std::string_view tokenizer_config);

// The ids of a source (prompt) and of its target (answer).
struct Turn {
  std::vector<int32_t> source, target;
};

class ChatEncoder {
 public:
  // Keeps the pointers. Error kConfig: a token that the template needs is not in the vocabulary.
  static base::Result<ChatEncoder> make(const Template* chat, const Tokenizer* tokenizer, const SpecialTokens& tokens,
                                        bool enable_thinking = true);

  // Instead of the template's; empty: none.
  void set_default_system(std::string text) { default_system_ = std::move(text); }

  std::vector<Turn> turns(const Conversation& conversation) const;

  // After the template's changes to the tokenizer.
  std::optional<int32_t> bos() const { return bos_; }
  int32_t eos() const { return eos_; }
  int32_t pad() const { return pad_; }
  const std::vector<int32_t>& stops() const { return stops_; }  // sorted; eos among them
  std::optional<int32_t> ending() const { return chat_->efficient_eos ? std::optional(eos_) : std::nullopt; }

 private:
  ChatEncoder() = default;
  void append(const Slots& slots, std::string_view content, std::vector<int32_t>* out) const;

  const Template* chat_ = nullptr;
  const Tokenizer* tokenizer_ = nullptr;
  std::string default_system_;
  bool enable_thinking_ = true;
  std::optional<int32_t> bos_;
  int32_t eos_ = 0, pad_ = 0;
  std::vector<int32_t> stops_;
};

}  // namespace phalanx::tune
