// A model with what text needs beside it: its tokenizer, and the template of its answers.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/finetune/bar.h"
#include "engine/finetune/read_rows.h"
#include "engine/tuning/generate.h"
#include "tune/chat/conversation.h"

namespace phalanx::engine::finetune {

struct ModelRequest {
  std::string model;                         // a folder
  std::vector<std::string> adapters;         // folders of PEFT's kind, merged one after another
  std::optional<std::string> chat_template;  // "none": the prompt is continued as it is; without: what the folders say
  std::optional<std::string> system;
  std::optional<bool> enable_thinking;
};

class Talker {
 public:
  // Error kConfig: the model or an adapter cannot be used, or the folder has no tokenizer.
  static base::Result<Talker> open(const ModelRequest& request, Bar& bar);

  // Writes the answer to stdout while it comes, and gives it. `messages`: user, assistant, …, user. Error kConfig: they do not fit into the
  // model's context, or hold no token. `going`: whether to go on, asked after every token.
  base::Result<std::string> answer(const std::vector<std::string>& messages, tuning::GenerateOptions options,
                                   const std::function<bool()>& going = {});
  const std::string& template_name() const { return recipe_.chat_template; }
  size_t prompt_tokens() const { return prompt_tokens_; }  // of the newest answer
  void set_system(std::string system);

 private:
  Talker() = default;
  base::Result<std::vector<int64_t>> encode(const std::vector<std::string>& messages) const;

  tuning::Decoder decoder_{nullptr};
  tune::Recipe recipe_;
  std::unique_ptr<tune::Tokenizer> tokenizer_;
  std::unique_ptr<tune::ChatEncoder> chat_;  // null: no template
  std::vector<int64_t> stops_;
  size_t prompt_tokens_ = 0;
};

}  // namespace phalanx::engine::finetune
