// Rows of `stage: pt`: plain texts, each with an end of text, one after another in blocks, or one in each row.
// Source: hiyouga/LLaMA-Factory v0.9.3, src/llamafactory/data/processor/pretrain.py; its collator leaves the padding token unlearned.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "engine/tuning/fine_tuning.h"
#include "tune/recipe/recipe.h"
#include "tune/tokenizer/tokenizer.h"

namespace phalanx::engine::finetune {

struct PretrainTokens {
  int32_t eos = 0, pad = 0;
  std::optional<int32_t> first;  // bos, where the tokenizer adds one
};

class PretrainRows {
 public:
  static constexpr int64_t kGroup = 1000;  // texts that are packed together; what does not fill a block at the end of a group is dropped

  PretrainRows(const tune::Recipe& recipe, const tune::Tokenizer& tokenizer, const PretrainTokens& tokens);
  // Rows that are complete with this text are appended to `out`.
  void add(std::string_view text, std::vector<tuning::TuningRow>* out);
  void finish(std::vector<tuning::TuningRow>* out);  // after the last text

 private:
  tuning::TuningRow row_of(std::vector<int64_t> ids) const;

  const tune::Tokenizer& tokenizer_;
  const PretrainTokens tokens_;
  const bool packs_;
  const size_t length_;
  std::vector<int64_t> group_;
  int64_t texts_ = 0;
};

}  // namespace phalanx::engine::finetune
