// The manual page: man(7) macros, which every man understands.
#include <fmt/format.h>

#include "base/text.h"
#include "cli/flags/reference.h"

namespace phalanx::cli {
namespace {

constexpr base::Language kEnglish = base::Language::kEnglish;

// Text as roff reads it back: backslashes and dashes escaped, no line taken for a request.
std::string roff(std::string_view text) {
  std::string out;
  for (char c : text) {
    if (c == '\\') out += "\\e";
    else if (c == '-') out += "\\-";
    else if (c == '\'') out += "\\(aq";
    else if (c == '~') out += "\\(ti";
    else if (c == '^') out += "\\(ha";
    else if (c == '`') out += "\\(ga";
    else out += c;
  }
  if (out.starts_with('.')) out.insert(0, "\\&");
  return out;
}

void add_flag(std::string& out, const FlagRow& flag) {
  std::string line;
  if (flag.short_name) line += fmt::format("\\fB\\-{}\\fR, ", flag.short_name);
  line += fmt::format("\\fB\\-\\-{}\\fR", roff(flag.name));
  if (flag.optional_value) line += fmt::format("[=\\fI{}\\fR]", roff(flag.metavar));
  else if (flag.kind != ValueKind::kNone) line += fmt::format(" \\fI{}\\fR", roff(flag.metavar));
  out += fmt::format(".TP\n{}\n{}.\n", line, roff(full_help(flag, kEnglish)));
}

bool same_flags(Verb a, Verb b) { return flags_of(a) == flags_of(b); }

// Options of `verb`; a verb with the options of an earlier one points there.
void add_options(std::string& out, const VerbRow& verb) {
  for (const VerbRow& earlier : verb_table()) {
    if (&earlier == &verb) break;
    if (flags_of(verb.verb).size() > 1 && same_flags(earlier.verb, verb.verb)) {
      out += fmt::format(".PP\nThe options are those of \\fBphalanx {}\\fR.\n", earlier.name);
      return;
    }
  }
  for (Section section : kSections) {
    std::vector<const FlagRow*> flags = flags_of(verb.verb, section);
    if (flags.empty()) continue;
    if (section != Section::kOther) out += fmt::format(".PP\n\\fI{}\\fR\n", title(section).english);
    for (const FlagRow* flag : flags) add_flag(out, *flag);
  }
}

void add_verb(std::string& out, const VerbRow& verb) {
  out += fmt::format(".SS phalanx {} {}\n{}\n", verb.name, roff(verb.usage), roff(verb.description.english));
  add_options(out, verb);
  if (verb.examples.empty()) return;
  out += ".PP\nExamples:\n.PP\n.nf\n.RS 4\n";
  for (std::string_view line : base::split_lines(verb.examples)) out += roff(line) + "\n";
  out += ".RE\n.fi\n";
}

}  // namespace

std::string man_page(std::string_view version) {
  std::string out = fmt::format(".TH PHALANX 1 \"\" \"phalanx {}\" \"User Commands\"\n", roff(version));
  out += ".SH NAME\nphalanx \\- start a training run on any number of machines with one command\n";
  out += ".SH SYNOPSIS\n";
  for (const VerbRow& verb : verb_table())
    if (!verb.hidden) out += fmt::format(".B phalanx {}\n{}\n.br\n", verb.name, roff(verb.usage));
  out += fmt::format(".SH DESCRIPTION\n{}\n.SH VERBS\n", roff(tagline().english));
  for (const VerbRow& verb : verb_table())
    if (!verb.hidden) add_verb(out, verb);
  out += ".SH EXIT STATUS\n";
  for (const ExitCode& code : exit_codes()) out += fmt::format(".TP\n.B {}\n{}.\n", code.code, roff(code.meaning.english));
  out += ".SH ENVIRONMENT\n";
  for (const Variable& variable : variables_read())
    out += fmt::format(".TP\n.B {}\n{}.\n", roff(variable.name), roff(variable.meaning.english));
  return out + ".SH SEE ALSO\n.BR ssh (1),\n.BR ssh_config (5)\n";
}

}  // namespace phalanx::cli
