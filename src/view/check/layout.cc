#include "view/check/layout.h"

#include <algorithm>
#include <utility>

#include "base/name_ranges.h"
#include "base/text.h"
#include "base/unicode.h"
#include "base/wrap.h"

namespace phalanx::view {
namespace {

constexpr size_t kGap = 2;

std::string_view escape(Look look) {
  switch (look) {
    case Look::kPlain: return "";
    case Look::kHeading: return "\x1b[1m";
    case Look::kOdd:
    case Look::kWarning: return "\x1b[33m";
    case Look::kError: return "\x1b[1;31m";
    case Look::kNote: return "\x1b[36m";
  }
  return "";
}

// Our own marks where the terminal has no UTF-8, each as wide as before.
std::string in_ascii(std::string text) {
  constexpr std::pair<std::string_view, std::string_view> kMarks[] = {{"≠", "!"}, {"×", "x"}, {"·", "-"}, {"→", ">"},
                                                                      {"–", "-"}, {"…", "~"}, {"µ", "u"}};
  for (auto [mark, ascii] : kMarks) text = base::replace_all(text, mark, ascii);
  return text;
}

}  // namespace

std::string paint(std::string_view text, Look look, bool colour) {
  if (!colour || look == Look::kPlain || text.empty()) return std::string(text);
  return std::string(escape(look)) + std::string(text) + "\x1b[0m";
}

std::vector<std::string> wrap_hard(std::string_view text, size_t columns) {
  std::vector<std::string> lines;
  for (const std::string& line : base::wrap(text, columns)) {
    std::string_view rest = line;
    while (base::display_width(rest) > columns) {
      std::string_view piece = base::fit_columns(rest, columns);
      if (piece.empty()) break;  // one character is wider than the line
      lines.emplace_back(piece);
      rest.remove_prefix(piece.size());
    }
    lines.emplace_back(rest);
  }
  return lines;
}

std::string fold_list(const std::vector<std::string>& names) {
  std::vector<std::string> safe;
  for (const std::string& name : base::fold_names(names)) safe.push_back(base::printable(name, 1 << 16));
  return base::join(safe, ",");
}

std::vector<size_t> share(const std::vector<size_t>& needs, size_t room) {
  std::vector<size_t> given(needs.size(), 0);
  size_t open = needs.size();
  while (open > 0) {
    // Whoever needs less than an equal part is served first; when nobody does, the parts are equal.
    size_t part = room / open;
    bool served = false;
    for (size_t i = 0; i < needs.size(); ++i) {
      if (given[i] != 0 || needs[i] > part) continue;
      given[i] = std::max<size_t>(needs[i], 1);
      room -= std::min(room, given[i]);
      --open;
      served = true;
    }
    if (served) continue;
    for (size_t& width : given)
      if (width == 0) width = std::max<size_t>(part, 1);
    break;
  }
  return given;
}

void Page::row(std::string_view label, size_t label_columns, const std::vector<Cell>& cells, const std::vector<size_t>& widths) {
  std::vector<std::vector<std::string>> wrapped;
  size_t lines = 1;
  for (size_t i = 0; i < cells.size(); ++i) {
    size_t gap = i + 1 < cells.size() ? std::min(kGap, widths[i] - 1) : 0;
    wrapped.push_back(wrap_hard(cells[i].text, widths[i] - gap));
    lines = std::max(lines, wrapped.back().size());
  }
  for (size_t l = 0; l < lines; ++l) {
    std::string line = base::pad_right(l == 0 ? label : "", label_columns);
    size_t column = label_columns, used = label_columns;
    for (size_t i = 0; i < cells.size(); ++i) {
      std::string_view text = l < wrapped[i].size() ? std::string_view(wrapped[i][l]) : "";
      if (!text.empty()) {
        line.append(column - std::min(column, used), ' ');
        line += paint(text, cells[i].look, style_.colour);
        used = column + base::display_width(text);
      }
      column += widths[i];
    }
    while (line.ends_with(' ')) line.pop_back();
    out_ += line + "\n";
  }
}

std::string Page::take() {
  std::string out = std::exchange(out_, {});
  return style_.utf8 ? out : in_ascii(std::move(out));
}

std::vector<std::string> wrap_command(std::string_view command, size_t columns) {
  constexpr size_t kContinued = 2;  // " \"
  if (base::display_width(command) <= columns || command.find(" #") != std::string_view::npos) return {std::string(command)};
  std::vector<std::string> words(1);
  char quote = 0;
  for (size_t i = 0; i < command.size(); ++i) {
    char c = command[i];
    if (quote == 0 && c == ' ') {
      if (!words.back().empty()) words.emplace_back();
      continue;
    }
    words.back() += c;
    if (c == '\\' && quote != '\'' && i + 1 < command.size()) words.back() += command[++i];
    else if (quote != 0) quote = c == quote ? 0 : quote;
    else if (c == '\'' || c == '"') quote = c;
  }
  std::vector<std::string> lines;
  for (const std::string& word : words) {
    bool fits = !lines.empty() && base::display_width(lines.back()) + 1 + base::display_width(word) + kContinued <= columns;
    if (fits) lines.back() += " " + word;
    else lines.push_back((lines.empty() ? "" : "  ") + word);
  }
  for (size_t i = 0; i + 1 < lines.size(); ++i) lines[i] += " \\";
  return lines;
}

}  // namespace phalanx::view
