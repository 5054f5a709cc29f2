// What the program says about itself, all made from the table (cli/flags/flags.h), so that help, manual page, completions,
// documents and parser cannot disagree. Pure.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/language.h"
#include "base/result.h"
#include "cli/flags/flags.h"
#include "frontdoor/frontdoor.h"
#include "words/message.h"

namespace phalanx::cli {

constexpr size_t kHelpColumns = 100;

// `phalanx --help`, and `phalanx VERB --help`. No line is wider than kHelpColumns.
std::string help_text(base::Language language);
std::string help_text(Verb verb, base::Language language);
// `phalanx torchrun --help`: what Phalanx does with a command line of another launcher.
std::string help_of_launcher(frontdoor::Peer peer, base::Language language);

// roff for man(1), in English.
std::string man_page(std::string_view version);

// docs/cli.md and docs/cli.zh-CN.md. A test holds the files against this.
std::string markdown_reference(base::Language language);

// shell: bash, zsh or fish. Error (kUsage): another one.
base::Result<std::string> completion_script(std::string_view shell, base::Language language);

// Pieces the above share.
struct ExitCode {
  int code;
  words::Text meaning;
};
struct Variable {
  std::string_view name;
  words::Text meaning;
};
// What is typed before the words of another launcher, and a line of it as an example.
struct Launcher {
  frontdoor::Peer peer;
  std::string_view typed;
  std::string_view example;
};
std::span<const Launcher> launchers();
std::vector<ExitCode> exit_codes();
std::vector<Variable> variables_read();
words::Text tagline();
std::vector<const FlagRow*> flags_of(Verb verb);
std::vector<const FlagRow*> flags_of(Verb verb, Section section);
// "-H, --hosts HOST[:SLOTS],..."
std::string spelling(const FlagRow& flag);
// The help sentence with what the row says besides: "may be repeated", "also --host".
std::string full_help(const FlagRow& flag, base::Language language);

constexpr Section kSections[] = {Section::kHosts,      Section::kRanks,  Section::kEnvironment,
                                 Section::kConnection, Section::kOutput, Section::kOther};

}  // namespace phalanx::cli
