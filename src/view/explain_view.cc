#include "view/explain_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "base/text.h"
#include "base/unicode.h"
#include "base/wrap.h"

namespace view {
namespace {

using base::Bilingual;
using base::Language;
using doctor::Row;
using doctor::Severity;

constexpr Bilingual kQuestion{"Question", "检查内容"};
constexpr Bilingual kWhy{"Why it matters", "为什么重要"};
constexpr Bilingual kFix{"What to do", "怎么办"};
constexpr Bilingual kSource{"Source", "出处"};

Bilingual what_it_means(Severity severity) {
  switch (severity) {
    case Severity::kError: return {"a job will fail or hang", "任务必定失败或挂起"};
    case Severity::kWarning: return {"a job may fail, or is slow", "任务可能失败，或明显变慢"};
    case Severity::kNote: return {"good to know", "供参考"};
  }
  return {};
}

bool is_command(std::string_view line) { return line.starts_with("$ "); }

// A paragraph a line, wrapped and indented; commands as they are.
void add_indented(std::string& out, std::string_view text, size_t columns) {
  constexpr size_t kIndent = 2;
  for (std::string_view paragraph : base::split_lines(text)) {
    if (is_command(paragraph)) {
      out += fmt::format("  {}\n", paragraph);
      continue;
    }
    for (const std::string& line : base::wrap(paragraph, columns - kIndent)) out += line.empty() ? "\n" : "  " + line + "\n";
  }
}

void add_section(std::string& out, Bilingual heading, std::string_view text, Language language, size_t columns) {
  if (text.empty()) return;
  out += fmt::format("\n{}\n", heading.in(language));
  add_indented(out, text, columns);
}

// Markdown: paragraphs apart, runs of commands in one block of code. A '<' is text, not a tag.
std::string markdown_text(std::string_view text) {
  std::string out;
  bool commands = false;
  for (std::string_view line : base::split_lines(text)) {
    if (is_command(line) != commands) {
      out += commands ? "```\n\n" : "```\n";
      commands = !commands;
    }
    if (commands) out += fmt::format("{}\n", line.substr(2));
    else if (!base::trim(line).empty()) out += base::replace_all(base::trim(line), "<", "&lt;") + "\n\n";
  }
  return out + (commands ? "```\n\n" : "");
}

void add_markdown_page(std::string& out, const Row& row, Language language) {
  out += fmt::format("### {}\n\n**{}**{}{}\n\n", row.code, severity_name(row.severity).in(language), Bilingual{": ", "："}.in(language),
                     row.title.in(language));
  out += fmt::format("*{}*\n\n", base::replace_all(row.question.in(language), "*", "\\*"));
  out += markdown_text(row.why.in(language)) + markdown_text(row.fix.in(language));
  if (!row.source.empty()) out += fmt::format("{}{}\n", Bilingual{"Source: ", "出处："}.in(language), markdown_text(row.source));
  while (out.ends_with("\n\n")) out.pop_back();
}

}  // namespace

Bilingual severity_name(Severity severity) {
  switch (severity) {
    case Severity::kError: return {"error", "错误"};
    case Severity::kWarning: return {"warning", "警告"};
    case Severity::kNote: return {"note", "提示"};
  }
  return {};
}

std::string_view severity_key(Severity severity) { return severity_name(severity).english; }

std::string explain_page(const Row& row, Language language, size_t columns) {
  std::string out;
  for (const std::string& line : base::wrap(fmt::format("{}: {}", row.code, row.title.in(language)), columns)) out += line + "\n";
  for (const std::string& line :
       base::wrap(fmt::format(fmt::runtime(Bilingual{"{} ({}); {}", "{}（{}）；{}"}.in(language)), severity_name(row.severity).in(language),
                              what_it_means(row.severity).in(language), doctor::title(row.group).in(language)),
                  columns))
    out += line + "\n";
  add_section(out, kQuestion, row.question.in(language), language, columns);
  add_section(out, kWhy, row.why.in(language), language, columns);
  add_section(out, kFix, row.fix.in(language), language, columns);
  add_section(out, kSource, row.source, language, columns);
  return out;
}

std::string explain_list(std::string_view prefix, Language language, size_t columns) {
  std::string out;
  std::optional<doctor::Group> group;
  size_t code_columns = 0, severity_columns = 0;
  for (const Row* row : doctor::catalogue())
    if (row->code.starts_with(prefix)) code_columns = std::max(code_columns, row->code.size());
  for (Severity s : {Severity::kError, Severity::kWarning, Severity::kNote})
    severity_columns = std::max(severity_columns, base::display_width(severity_name(s).in(language)));
  for (const Row* row : doctor::catalogue()) {
    if (!row->code.starts_with(prefix)) continue;
    if (group != row->group) {
      if (!out.empty()) out += "\n";
      for (const std::string& part : base::wrap(doctor::title(row->group).in(language), columns)) out += part + "\n";
      group = row->group;
    }
    std::string line = "  " + base::pad_right(row->code, code_columns) + "  " +
                       base::pad_right(severity_name(row->severity).in(language), severity_columns) + "  ";
    size_t indent = base::display_width(line);
    // On a narrow terminal the title goes below.
    if (indent + 20 > columns) {
      out += std::string(base::trim(line)).insert(0, "  ") + "\n";
      line.clear();
      indent = 4;
    }
    for (const std::string& part : base::wrap(row->title.in(language), columns - indent)) {
      out += base::pad_right(line, indent) + part + "\n";
      line.clear();
    }
  }
  return out;
}

std::string codes_markdown(Language language) {
  std::string out = fmt::format("# {}\n\n", Bilingual{"What phalanx check looks for", "phalanx check 检查什么"}.in(language));
  out += Bilingual{"<!-- Generated by `phalanx explain --markdown` from src/doctor/rows_*.cc; do not edit. -->\n\n",
                   "<!-- 由 `PHALANX_LANG=zh phalanx explain --markdown` 从 src/doctor/rows_*.cc 生成，请勿手工修改。 -->\n\n"}
             .in(language);
  std::vector<const Row*> rows = doctor::catalogue();
  std::array<size_t, 3> counts{};
  for (const Row* row : rows) ++counts[static_cast<size_t>(row->severity)];
  out += fmt::format(fmt::runtime(Bilingual{
                         "{} codes: {} errors (a job will fail or hang: `run` refuses), {} warnings (it may fail, or is slow), {} notes. "
                         "Each page is what `phalanx explain CODE` prints, without a network.\n",
                         "共 {} 个代码：{} 个错误（任务必定失败或挂起，`run` 拒绝启动）、{} 个警告（可能失败或明显变慢）、{} 个提示。"
                         "每一节与 `phalanx explain 代码` 的输出相同，查看时无需联网。\n"}
                                      .in(language)),
                     rows.size(), counts[0], counts[1], counts[2]);
  std::optional<doctor::Group> group;
  for (const Row* row : rows) {
    if (group != row->group) {
      out += fmt::format("\n## {}{}\n", doctor::prefix(row->group),
                         fmt::format(fmt::runtime(Bilingual{": {}", "：{}"}.in(language)), doctor::title(row->group).in(language)));
      group = row->group;
    }
    out += "\n";
    add_markdown_page(out, *row, language);
  }
  return out;
}

}  // namespace view
