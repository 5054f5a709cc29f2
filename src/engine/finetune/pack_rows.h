// Rows that are made of several records: packing.
// Source: hiyouga/LLaMA-Factory v0.9.3, src/llamafactory/data/processor/pretrain.py and supervised.py.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "engine/tuning/fine_tuning.h"
#include "tune/recipe/recipe.h"

namespace phalanx::engine::finetune {

struct PretrainTokens {
  int32_t eos = 0, pad = 0;
  std::optional<int32_t> first;  // bos, where the tokenizer adds one
};

// Stage pt: the ids of a text as a row, which is not learned where it has the padding token.
tuning::TuningRow pretrain_row(std::vector<int64_t> ids, const PretrainTokens& tokens);

// Records in their order, some of which may be empty, as rows of cutoff_len tokens. Stage pt: texts with their end, one after another, cut
// into blocks; what does not fill one at the end of a group is dropped. Stage sft: whole examples, as many as fit; one token stays free.
std::vector<tuning::TuningRow> pack_rows(std::vector<tuning::TuningRow> records, const tune::Recipe& recipe, const PretrainTokens& tokens);

}  // namespace phalanx::engine::finetune
