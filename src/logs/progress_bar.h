// Reading progress bars out of text. Pure.
//
// Understood, after escape sequences are taken out:
//   tqdm          desc:  45%|████▌     | 450/1000 [00:12<00:15, 35.9it/s, loss=2.3]     (tqdm/std.py, format_meter)
//   no total      desc: 450it [00:12, 35.9it/s]
//   anything with a percentage or a count: "Receiving objects:  45% (450/1000)", "step 3/100", "━━━ 45.6/100.0 MB 3 MB/s"
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace phalanx::logs {

struct Bar {
  std::string desc;            // what is counted, "" if the bar does not say
  std::optional<double> done;  // in the bar's own unit
  std::optional<double> total;
  std::optional<double> fraction;  // 0 to 1
  std::optional<double> elapsed_s;
  std::optional<double> eta_s;
  std::string rate;     // as written: "35.9it/s"
  std::string postfix;  // as written: "loss=2.3"

  bool complete() const { return fraction && *fraction >= 1.0; }
};

// Longer text is never a bar.
inline constexpr size_t kMaxBarBytes = 4096;

// Nothing when `segment` is not the state of a progress bar. Numbers are those of the text, not checked against each
// other; a total of 0 gives no fraction.
std::optional<Bar> parse_bar(std::string_view segment);

// Whether two states belong to one bar: the descriptions agree but for their numbers ("epoch 1 loss 2.31", "epoch 1 loss 2.29").
bool same_bar(const Bar& a, const Bar& b);

}  // namespace phalanx::logs
