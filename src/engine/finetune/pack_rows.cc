#include "engine/finetune/pack_rows.h"

#include <algorithm>

#include "tune/chat/labels.h"
#include "tune/chat/packing.h"

namespace phalanx::engine::finetune {
namespace {

using Rows = std::vector<tuning::TuningRow>;

void append(std::vector<int64_t>* to, const std::vector<int64_t>& from) { to->insert(to->end(), from.begin(), from.end()); }

void add_blocks(const Rows& records, size_t begin, size_t end, int64_t cutoff_len, const PretrainTokens& tokens, Rows* out) {
  std::vector<int64_t> group;
  for (size_t i = begin; i < end; ++i) append(&group, records[i].ids);
  const auto length = static_cast<size_t>(cutoff_len);
  for (size_t at = 0; at + length <= group.size(); at += length) {
    const auto first = group.begin() + static_cast<ptrdiff_t>(at);
    std::vector<int64_t> ids(first, first + static_cast<ptrdiff_t>(length));
    if (tokens.first) ids[0] = *tokens.first;
    out->push_back(pretrain_row(std::move(ids), tokens));
  }
}

void add_packed(const Rows& records, size_t begin, size_t end, int64_t capacity, Rows* out) {
  std::vector<int64_t> lengths;
  for (size_t i = begin; i < end; ++i) lengths.push_back(static_cast<int64_t>(records[i].ids.size()));
  for (const std::vector<size_t>& sequence : tune::pack(lengths, capacity)) {
    tuning::TuningRow& row = out->emplace_back();
    for (size_t place : sequence) {
      if (!row.ids.empty()) row.starts.push_back(static_cast<int64_t>(row.ids.size()));
      append(&row.ids, records[begin + place].ids);
      append(&row.labels, records[begin + place].labels);
    }
  }
}

}  // namespace

tuning::TuningRow pretrain_row(std::vector<int64_t> ids, const PretrainTokens& tokens) {
  std::vector<int64_t> labels = ids;
  std::replace(labels.begin(), labels.end(), int64_t{tokens.pad}, int64_t{tune::kIgnored});
  return {std::move(ids), std::move(labels)};
}

Rows pack_rows(Rows records, const tune::Recipe& recipe, const PretrainTokens& tokens) {
  Rows out;
  if (!recipe.packs()) {
    for (tuning::TuningRow& row : records)
      if (!row.ids.empty()) out.push_back(std::move(row));
    return out;
  }
  for (auto [begin, end] : tune::packing_groups(records.size(), recipe.preprocessing_num_workers, recipe.preprocessing_batch_size)) {
    if (recipe.stage == "pt") add_blocks(records, begin, end, recipe.cutoff_len, tokens, &out);
    else add_packed(records, begin, end, recipe.cutoff_len - 1, &out);
  }
  return out;
}

}  // namespace phalanx::engine::finetune
