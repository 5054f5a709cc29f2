#include "engine/finetune/pretrain_rows.h"

#include <algorithm>

#include "tune/chat/labels.h"

namespace phalanx::engine::finetune {

PretrainRows::PretrainRows(const tune::Recipe& recipe, const tune::Tokenizer& tokenizer, const PretrainTokens& tokens)
    : tokenizer_(tokenizer), tokens_(tokens), packs_(recipe.packing != "false"), length_(static_cast<size_t>(recipe.cutoff_len)) {}

tuning::TuningRow PretrainRows::row_of(std::vector<int64_t> ids) const {
  if (packs_ && tokens_.first) ids[0] = *tokens_.first;
  std::vector<int64_t> labels = ids;
  std::replace(labels.begin(), labels.end(), int64_t{tokens_.pad}, int64_t{tune::kIgnored});
  return {std::move(ids), std::move(labels)};
}

void PretrainRows::add(std::string_view text, std::vector<tuning::TuningRow>* out) {
  const std::vector<int32_t> ids = tokenizer_.encode(text);
  if (packs_) {
    group_.insert(group_.end(), ids.begin(), ids.end());
    group_.push_back(tokens_.eos);
    if (++texts_ % kGroup == 0) finish(out);
    return;
  }
  std::vector<int64_t> row;
  if (tokens_.first) row.push_back(*tokens_.first);
  row.insert(row.end(), ids.begin(), ids.end());
  row.push_back(tokens_.eos);
  row.resize(std::min(row.size(), length_));
  out->push_back(row_of(std::move(row)));
}

void PretrainRows::finish(std::vector<tuning::TuningRow>* out) {
  for (size_t begin = 0; begin + length_ <= group_.size(); begin += length_) {
    const auto at = group_.begin() + static_cast<ptrdiff_t>(begin);
    out->push_back(row_of({at, at + static_cast<ptrdiff_t>(length_)}));
  }
  group_.clear();
}

}  // namespace phalanx::engine::finetune
