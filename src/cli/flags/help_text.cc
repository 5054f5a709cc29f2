// --help: for a terminal, in the reader's language.
#include <algorithm>

#include <fmt/format.h>

#include "base/unicode.h"
#include "base/wrap.h"
#include "cli/flags/reference.h"

namespace phalanx::cli {
namespace {

using base::Language;
using words::Text;
using words::tr;

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
  out += fmt::format("\n{}\n", Text{"Command lines of other launchers, as they are typed:"}.in(language));
  for (const Launcher& one : launchers()) out += fmt::format("  phalanx {}\n", one.example);
  out += fmt::format("\n{}\n", Text{"Exit codes:"}.in(language));
  for (const ExitCode& code : exit_codes()) add_row(out, fmt::format("{:>3}", code.code), code.meaning.in(language), 16);
  out += fmt::format("\n{}\n", Text{"Environment:"}.in(language));
  for (const Variable& variable : variables_read()) add_row(out, variable.name, variable.meaning.in(language), 20);
  add_examples(out, "phalanx run -H gpu01,gpu02 -- python train.py\nphalanx help run", language);
  return out;
}

std::string help_of_launcher(frontdoor::Peer peer, Language language) {
  const std::span<const Launcher> all = launchers();
  const auto found = std::find_if(all.begin(), all.end(), [&](const Launcher& one) { return one.peer == peer; });
  const Launcher& about = found == all.end() ? all[0] : *found;  // torch.distributed.launch is an older torchrun
  std::string out = tr(language, "phalanx {}: run the command line of this launcher on any number of hosts\n\n", about.typed);
  out += fmt::format("{}phalanx {} [VAR=VALUE...] {} ...\n\n", kUsage.in(language), Text{"[options of run]"}.in(language), about.typed);
  add_wrapped(out,
              Text{"Takes the line as it is typed, with the files and variables that this launcher reads, and starts the same training "
                   "with the checks, supervision and records of `phalanx run`. What cannot be served is refused, with the reason. "
                   "Options of `phalanx run` come first and override the line; --dry-run among them prints every decision and the "
                   "equivalent line of `phalanx run` and starts nothing. `phalanx help run` lists them."}
                  .in(language));
  add_examples(out, fmt::format("phalanx {0}\nphalanx --dry-run {0}", about.example), language);
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
