// --help: for a terminal, in the reader's language.
#include <fmt/format.h>

#include "base/unicode.h"
#include "base/wrap.h"
#include "cli/flags/reference.h"

namespace phalanx::cli {
namespace {

using base::Language;
using words::Text;

constexpr size_t kHelpColumn = 39;  // where the explanations start
constexpr Text kUsage{"Usage: "};
constexpr Text kExamples{"Examples:"};

void add_wrapped(std::string& out, std::string_view text) {
  for (const std::string& line : base::wrap(text, kHelpColumns)) out += line + "\n";
}

// "  left      right", with `right` wrapped under itself; a left side that is too long stands on its own line.
void add_row(std::string& out, std::string_view left, std::string_view right, size_t column) {
  std::string line = "  " + std::string(left);
  bool fits = base::display_width(line) + 2 <= column;
  if (!fits) out += line + "\n";
  bool first = fits;
  for (const std::string& part : base::wrap(right, kHelpColumns - column)) {
    out += base::pad_right(first ? line : "", column) + part + "\n";
    first = false;
  }
}

void add_examples(std::string& out, std::string_view examples, Language language) {
  if (examples.empty()) return;
  out += fmt::format("\n{}\n", kExamples.in(language));
  for (const std::string& line : base::wrap(examples, 1000)) out += fmt::format("  {}\n", line);
}

}  // namespace

std::string help_text(Language language) {
  std::string out;
  add_wrapped(out, tagline().in(language));
  out += fmt::format("\n{}phalanx {}\n\n", kUsage.in(language), Text{"VERB ..."}.in(language));
  out += fmt::format("{}\n", Text{"Verbs:"}.in(language));
  for (const VerbRow& verb : verb_table())
    if (!verb.hidden) add_row(out, verb.name, verb.summary.in(language), 16);
  out += fmt::format("\n{}\n", Text{"Exit codes:"}.in(language));
  for (const ExitCode& code : exit_codes()) add_row(out, fmt::format("{:>3}", code.code), code.meaning.in(language), 16);
  out += fmt::format("\n{}\n", Text{"Environment:"}.in(language));
  for (const Variable& variable : variables_read()) add_row(out, variable.name, variable.meaning.in(language), 20);
  add_examples(out, "phalanx run -H gpu01,gpu02 -- python train.py\nphalanx help run", language);
  return out;
}

std::string help_text(Verb verb, Language language) {
  const VerbRow& about = row(verb);
  std::string out = fmt::format("phalanx {}: {}\n\n", about.name, about.summary.in(language));
  out += fmt::format("{}phalanx {}{}{}\n\n", kUsage.in(language), about.name, about.usage.empty() ? "" : " ", about.usage);
  add_wrapped(out, about.description.in(language));
  for (Section section : kSections) {
    std::vector<const FlagRow*> flags = flags_of(verb, section);
    if (flags.empty()) continue;
    out += fmt::format("\n{}{}\n", title(section).in(language), Text{":"}.in(language));
    for (const FlagRow* flag : flags) add_row(out, spelling(*flag), full_help(*flag, language), kHelpColumn);
  }
  add_examples(out, about.examples, language);
  return out;
}

}  // namespace phalanx::cli
