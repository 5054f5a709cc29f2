#include "tune/chat/labels.h"

#include <algorithm>

namespace phalanx::tune {
namespace {

// Room for a source and a target of these lengths, `room` together. The shorter of the two is kept whole if it takes less than half.
void cut(Turn* turn, int64_t room) {
  const auto source = static_cast<int64_t>(turn->source.size()), target = static_cast<int64_t>(turn->target.size());
  int64_t most = 0;
  if (2 * target < room) most = room;
  else if (2 * source < room) most = room - source;
  else most = static_cast<int64_t>(static_cast<double>(room) * (static_cast<double>(target) / static_cast<double>(source + target)));
  const int64_t new_target = std::min(most, target);
  const int64_t new_source = std::min(std::max<int64_t>(room - new_target, 0), source);
  turn->source.resize(static_cast<size_t>(new_source));
  turn->target.resize(static_cast<size_t>(new_target));
}

}  // namespace

Labelled label(std::vector<Turn> turns, const LabelRules& rules) {
  if (rules.mask_history) std::reverse(turns.begin(), turns.end());
  int64_t total = rules.ending ? 1 : 0;
  size_t kept = 0;
  for (; kept < turns.size() && total < rules.cutoff_len; ++kept) {
    cut(&turns[kept], rules.cutoff_len - total);
    total += static_cast<int64_t>(turns[kept].source.size() + turns[kept].target.size());
  }
  turns.resize(kept);
  if (rules.mask_history) std::reverse(turns.begin(), turns.end());
  Labelled out;
  for (size_t i = 0; i < turns.size(); ++i) {
    const bool learned = !rules.mask_history || i + 1 == turns.size();
    const size_t first = out.labels.size();
    for (const auto* part : {&turns[i].source, &turns[i].target}) {
      out.ids.insert(out.ids.end(), part->begin(), part->end());
      if (rules.train_on_prompt || (part == &turns[i].target && learned)) out.labels.insert(out.labels.end(), part->begin(), part->end());
      else out.labels.resize(out.ids.size(), kIgnored);
    }
    if (rules.ending && i > 0 && !turns[i].source.empty() && !rules.train_on_prompt) out.labels[first] = *rules.ending;
  }
  if (rules.ending) {
    out.ids.push_back(*rules.ending);
    out.labels.push_back(*rules.ending);
  }
  return out;
}

LabelledPair label_pair(const std::vector<Turn>& chosen, const std::vector<Turn>& rejected, const LabelRules& rules) {
  Turn whole;  // the prompt with the longer answer, whose cut is both answers'
  for (size_t i = 0; i < chosen.size(); ++i) {
    whole.source.insert(whole.source.end(), chosen[i].source.begin(), chosen[i].source.end());
    if (i + 1 < chosen.size()) whole.source.insert(whole.source.end(), chosen[i].target.begin(), chosen[i].target.end());
  }
  std::vector<int32_t> answers[2] = {chosen.back().target, rejected.back().target};
  for (auto& answer : answers)
    if (rules.ending) answer.push_back(*rules.ending);
  whole.target = answers[0].size() >= answers[1].size() ? answers[0] : answers[1];
  cut(&whole, rules.cutoff_len);
  const auto join = [&](std::vector<int32_t> answer) {
    answer.resize(std::min(answer.size(), whole.target.size()));
    Labelled out{whole.source, std::vector<int32_t>(whole.source.size(), kIgnored)};
    out.ids.insert(out.ids.end(), answer.begin(), answer.end());
    out.labels.insert(out.labels.end(), answer.begin(), answer.end());
    return out;
  };
  return {join(std::move(answers[0])), join(std::move(answers[1]))};
}

}  // namespace phalanx::tune
