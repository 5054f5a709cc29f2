// Lines of cells, wrapped and padded, for the pages of `phalanx check`. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "view/check/view.h"

namespace phalanx::view {

inline constexpr const char* kOddMark = "≠";

enum class Look { kPlain, kHeading, kOdd, kError, kWarning, kNote };

struct Cell {
  std::string text;
  Look look = Look::kPlain;
};

class Page {
 public:
  explicit Page(const CheckStyle& style) : style_(style) {}

  // `label` padded to `label_columns`, then the cells side by side, each wrapped to its width less the gap to the next. A word that is
  // wider than its cell is broken. No line ends in blanks.
  void row(std::string_view label, size_t label_columns, const std::vector<Cell>& cells, const std::vector<size_t>& widths);
  // A line as it is, however wide.
  void raw(std::string_view line) { out_ += std::string(line) + "\n"; }
  std::string take();

 private:
  const CheckStyle& style_;
  std::string out_;
};

// base::wrap, and words that are too wide broken.
std::vector<std::string> wrap_hard(std::string_view text, size_t columns);
// Names folded and joined by commas: "gpu[01-06,08],login".
std::string fold_list(const std::vector<std::string>& names);
// `room` dealt out: no more than each needs, and equally among those that need more.
std::vector<size_t> share(const std::vector<size_t>& needs, size_t room);
// A shell command broken at blanks outside quotes, each line but the last ending in " \", so that it can be typed as printed.
// A word that is too wide is left whole, and so is a command that ends in a comment.
std::vector<std::string> wrap_command(std::string_view command, size_t columns);
// A text in a look, if the style has colour.
std::string paint(std::string_view text, Look look, bool colour);

}  // namespace phalanx::view
