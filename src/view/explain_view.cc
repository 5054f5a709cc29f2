#include "view/explain_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text.h"
#include "base/unicode.h"
#include "base/wrap.h"
#include "doctor/commands.h"
#include "view/command_list.h"

namespace phalanx::view {
namespace {

using base::Language;
using doctor::Row;
using doctor::Severity;
using words::Text;
using words::tr;

constexpr Text kQuestion{"Question"};
constexpr Text kWhy{"Why it matters"};
constexpr Text kCauseWhy{"Why"};
constexpr Text kFix{"What to do"};
constexpr Text kSource{"Source"};

Text what_it_means(Severity severity) {
  switch (severity) {
    case Severity::kError: return Text{"a job will fail or hang"};
    case Severity::kWarning: return Text{"a job may fail or run slowly"};
    case Severity::kNote: return Text{"information"};
  }
  return {};
}

bool is_command(std::string_view line) { return line.starts_with("$ "); }

// A paragraph a line, wrapped and indented; commands as they are.
void add_indented(std::string& out, std::string_view text, Language language, size_t columns) {
  constexpr size_t kIndent = 2;
  for (std::string_view paragraph : base::split_lines(text)) {
    if (is_command(paragraph)) {
      out += fmt::format("  $ {}\n", doctor::with_cost(paragraph.substr(2), language));
      continue;
    }
    for (const std::string& line : base::wrap(paragraph, columns - kIndent)) out += line.empty() ? "\n" : "  " + line + "\n";
  }
}

// Markdown: paragraphs apart, runs of commands in one block of code. A '<' is text, not a tag.
std::string markdown_text(std::string_view text, Language language) {
  std::string out;
  bool commands = false;
  for (std::string_view line : base::split_lines(text)) {
    if (is_command(line) != commands) {
      out += commands ? "```\n\n" : "```\n";
      commands = !commands;
    }
    if (commands) out += doctor::with_cost(line.substr(2), language) + "\n";
    else if (!base::trim(line).empty()) out += base::replace_all(base::trim(line), "<", "&lt;") + "\n\n";
  }
  return out + (commands ? "```\n\n" : "");
}

void add_markdown_page(std::string& out, const codes::Code& code, Language language) {
  const Row* row = doctor::find_row(code.name);
  std::string severity = row ? fmt::format("{}{}", severity_name(row->severity).in(language), Text{": "}.in(language)) : std::string();
  out += fmt::format("### {}\n\n**{}{}**\n\n", code.name, severity, code.title.in(language));
  if (!code.question.english.empty()) out += fmt::format("*{}*\n\n", base::replace_all(code.question.in(language), "*", "\\*"));
  out += markdown_text(code.why.in(language), language) + markdown_text(code.fix.in(language), language);
  if (!code.source.empty()) out += fmt::format("{}{}\n", Text{"Source: "}.in(language), markdown_text(code.source, language));
  while (out.ends_with("\n\n")) out.pop_back();
}

// One code of a list: "  CODE  word  title", the title below where the terminal is narrow.
struct ListColumns {
  size_t code = 0, word = 0, all = 80;
};
void add_list_line(std::string& out, std::string_view code, std::string_view word, std::string_view title, const ListColumns& columns) {
  std::string line = "  " + base::pad_right(code, columns.code) + "  ";
  if (columns.word > 0) line += base::pad_right(word, columns.word) + "  ";
  size_t indent = base::display_width(line);
  if (indent + 20 > columns.all) {
    out += std::string(base::trim(line)).insert(0, "  ") + "\n";
    line.clear();
    indent = 4;
  }
  for (const std::string& part : base::wrap(title, columns.all - indent)) {
    out += base::pad_right(line, indent) + part + "\n";
    line.clear();
  }
}

void add_list_heading(std::string& out, std::string_view title, size_t columns) {
  if (!out.empty()) out += "\n";
  for (const std::string& part : base::wrap(title, columns)) out += part + "\n";
}

}  // namespace

void add_explanation(std::string& out, Text heading, std::string_view text, Language language, size_t columns) {
  if (text.empty()) return;
  out += fmt::format("\n{}\n", heading.in(language));
  add_indented(out, text, language, columns);
}

Text severity_name(Severity severity) {
  switch (severity) {
    case Severity::kError: return Text{"error"};
    case Severity::kWarning: return Text{"warning"};
    case Severity::kNote: return Text{"note"};
  }
  return {};
}

std::string_view severity_key(Severity severity) { return severity_name(severity).english; }

std::string explain_page(const codes::Code& code, Language language, size_t columns) {
  std::string out;
  auto add = [&](const std::string& text) {
    for (const std::string& line : base::wrap(text, columns)) out += line + "\n";
  };
  add(fmt::format("{}: {}", code.name, code.title.in(language)));
  const Row* row = doctor::find_row(code.name);
  if (row)
    add(tr(language, "{} ({}); {}", severity_name(row->severity).in(language), what_it_means(row->severity).in(language),
           code.group->title.in(language)));
  add_explanation(out, kQuestion, code.question.in(language), language, columns);
  add_explanation(out, row ? kWhy : kCauseWhy, code.why.in(language), language, columns);
  add_explanation(out, kFix, code.fix.in(language), language, columns);
  add_explanation(out, kSource, code.source, language, columns);
  return out;
}

std::string explain_list(std::string_view prefix, Language language, size_t columns) {
  std::string out;
  ListColumns widths{0, 0, columns};
  std::vector<const codes::Code*> listed;
  for (const codes::Code& code : codes::all())
    if (code.name.starts_with(prefix)) listed.push_back(&code);
  for (const codes::Code* code : listed) widths.code = std::max(widths.code, code->name.size());
  for (Severity s : {Severity::kError, Severity::kWarning, Severity::kNote})
    widths.word = std::max(widths.word, base::display_width(severity_name(s).in(language)));
  ListColumns without_word{widths.code, 0, columns};
  const codes::Group* group = nullptr;
  for (const codes::Code* code : listed) {
    if (group != code->group) add_list_heading(out, code->group->title.in(language), columns);
    group = code->group;
    const Row* row = doctor::find_row(code->name);
    add_list_line(out, code->name, row ? severity_name(row->severity).in(language) : "", code->title.in(language),
                  row ? widths : without_word);
  }
  return out;
}

std::string codes_markdown(Language language) {
  std::array<size_t, 3> counts{};
  for (const Row* row : doctor::catalogue()) ++counts[static_cast<size_t>(row->severity)];
  std::string out = fmt::format("# {}\n\n", Text{"What phalanx check examines"}.in(language));
  out += tr(language,
            "{} codes: {} errors (a job will fail or hang: `run` refuses), {} warnings (it may fail or run slowly), {} notes. `phalanx "
            "explain CODE` prints the same pages, without a network.\n",
            counts[0] + counts[1] + counts[2], counts[0], counts[1], counts[2]);
  const codes::Group* group = nullptr;
  for (const codes::Code& code : codes::all()) {
    if (code.group->part == codes::Part::kRuns && (!group || group->part != codes::Part::kRuns))
      out +=
          Text{
              "\n# What breaks or hangs a run\n\nCauses reported by `phalanx run`, `phalanx why` and `phalanx explain FILE`. If a problem "
              "in a log has a page above, they report the code of that page.\n"}
              .in(language);
    if (code.group->part == codes::Part::kEnvironments && group->part != codes::Part::kEnvironments)
      out += Text{"\n# What is wrong with a Python environment\n\nFound by `phalanx env verify`.\n"}.in(language);
    if (group != code.group) out += fmt::format("\n## {}\n", code.group->title.in(language));
    group = code.group;
    out += "\n";
    add_markdown_page(out, code, language);
  }
  return out + "\n" + commands_markdown(language);
}

}  // namespace phalanx::view
