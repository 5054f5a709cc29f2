#include "term_svg/picture.h"

#include <fmt/format.h>

namespace phalanx::term_svg {
namespace {

constexpr double kColumn = 8.4;  // of a 14 px monospace font
constexpr int kLine = 19;
constexpr int kMargin = 16;
constexpr int kTitleBar = 34;
constexpr std::string_view kBackground = "#16181d";
constexpr std::string_view kForeground = "#d7dae0";
constexpr std::string_view kFonts = "ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono','Noto Sans Mono CJK SC',monospace";

constexpr const char* kPalette[16] = {"#3b4048", "#e06c75", "#98c379", "#e5c07b", "#61afef", "#c678dd", "#56b6c2", "#d7dae0",
                                      "#7f848e", "#ef7d87", "#a9d48a", "#f0cf8e", "#74bbf5", "#d48ae8", "#68c6d2", "#ffffff"};

std::string color(int code, std::string_view standard) {
  if (code == kDefaultColor) return std::string(standard);
  if (code < 16) return kPalette[code];
  if (code >= 256) return fmt::format("#{:06x}", code - 256);
  if (code >= 232) return fmt::format("#{0:02x}{0:02x}{0:02x}", 8 + 10 * (code - 232));
  auto level = [](int n) { return n == 0 ? 0 : 55 + 40 * n; };
  return fmt::format("#{:02x}{:02x}{:02x}", level((code - 16) / 36), level((code - 16) / 6 % 6), level((code - 16) % 6));
}

std::string escape(std::string_view text) {
  std::string out;
  for (char c : text) {
    if (c == '&') out += "&amp;";
    else if (c == '<') out += "&lt;";
    else if (c == '>') out += "&gt;";
    else if (c == '"') out += "&quot;";
    else out += c;
  }
  return out;
}

struct Run {
  size_t column = 0, width = 0;
  std::string text;
  Style style;
};

// Equal neighbours are one run; a wide character is one by itself, because fonts disagree about its width.
std::vector<Run> runs_of(const Row& row) {
  std::vector<Run> runs;
  bool alone = true;
  for (size_t column = 0; column < row.size(); ++column) {
    if (row[column].text.empty()) continue;
    bool wide = column + 1 < row.size() && row[column + 1].text.empty();
    if (alone || wide || runs.back().style != row[column].style) runs.push_back({column, 0, "", row[column].style});
    runs.back().text += row[column].text;
    runs.back().width += wide ? 2 : 1;
    alone = wide;
  }
  return runs;
}

void draw(const Run& run, int baseline, std::string* out) {
  std::string fore = color(run.style.foreground, kForeground);
  std::string back = color(run.style.background, kBackground);
  if (run.style.reverse) std::swap(fore, back);
  double x = kMargin + kColumn * static_cast<double>(run.column);
  double width = kColumn * static_cast<double>(run.width);
  if (back != kBackground)
    *out += fmt::format("<rect x=\"{:.1f}\" y=\"{}\" width=\"{:.1f}\" height=\"{}\" fill=\"{}\"/>\n", x, baseline - 14, width, kLine, back);
  if (run.text.find_first_not_of(' ') == std::string::npos) return;
  *out += fmt::format("<text x=\"{:.1f}\" y=\"{}\" textLength=\"{:.1f}\"{}{}{}{}{}>{}</text>\n", x, baseline, width,
                      fore == kForeground ? "" : fmt::format(" fill=\"{}\"", fore), run.style.bold ? " font-weight=\"bold\"" : "",
                      run.style.dim ? " opacity=\"0.65\"" : "", run.style.italic ? " font-style=\"italic\"" : "",
                      run.style.underline ? " text-decoration=\"underline\"" : "", escape(run.text));
}

}  // namespace

std::string to_svg(const std::vector<Row>& rows, size_t columns, std::string_view title) {
  size_t count = rows.size();
  while (count > 1 && text(rows[count - 1]).empty()) --count;
  int width = 2 * kMargin + static_cast<int>(kColumn * static_cast<double>(columns));
  int height = kTitleBar + kLine * static_cast<int>(count) + kMargin;
  std::string out = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\" role=\"img\">\n"
      "<title>{2}</title>\n<rect width=\"{0}\" height=\"{1}\" rx=\"8\" fill=\"{3}\"/>\n"
      "<circle cx=\"18\" cy=\"17\" r=\"5\" fill=\"#e06c75\"/><circle cx=\"36\" cy=\"17\" r=\"5\" fill=\"#e5c07b\"/>"
      "<circle cx=\"54\" cy=\"17\" r=\"5\" fill=\"#98c379\"/>\n"
      "<g font-family=\"{4}\" font-size=\"14\" fill=\"{5}\" xml:space=\"preserve\" style=\"white-space:pre\">\n"
      "<text x=\"{6}\" y=\"22\" font-size=\"12\" fill=\"#7f848e\" text-anchor=\"middle\">{2}</text>\n",
      width, height, escape(title), kBackground, kFonts, kForeground, width / 2);
  for (size_t i = 0; i < count; ++i)
    for (const Run& run : runs_of(rows[i])) draw(run, kTitleBar + kLine * static_cast<int>(i) + 14, &out);
  return out + "</g>\n</svg>\n";
}

}  // namespace phalanx::term_svg
