// Which tokens of a conversation are learned, and how a long one is cut.
// Source: hiyouga/LLaMA-Factory v0.9.3, src/llamafactory/data/processor/supervised.py and processor_utils.py (infer_seqlen).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "tune/chat/template.h"

namespace phalanx::tune {

inline constexpr int32_t kIgnored = -100;  // a label that the loss leaves out

struct LabelRules {
  int64_t cutoff_len = 2048;        // tokens
  bool train_on_prompt = false;     // every token is learned
  bool mask_history = false;        // turns are kept from the last one backwards, and only the last answer is learned
  std::optional<int32_t> ending{};  // an end of text that no answer has: learned at the start of each turn but the first, and at the end
};

// labels[i] is ids[i] where it is learned, else kIgnored. Not shifted.
struct Labelled {
  std::vector<int32_t> ids, labels;
};
Labelled label(std::vector<Turn> turns, const LabelRules& rules);

// Two answers to one prompt, cut alike; only the answers are learned. Source: pairwise.py.
struct LabelledPair {
  Labelled chosen, rejected;
};
LabelledPair label_pair(const std::vector<Turn>& chosen, const std::vector<Turn>& rejected, const LabelRules& rules);

}  // namespace phalanx::tune
