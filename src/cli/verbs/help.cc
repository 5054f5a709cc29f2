#include <fmt/format.h>

#include <cstdio>

#include "base/unicode.h"
#include "cli/flags/reference.h"
#include "cli/flags/verbs.h"
#include "cli/records/runs.h"

namespace phalanx::cli {
namespace {

// Data goes to standard output; a reader that has closed it (head, less) is no failure.
int print(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  return 0;
}

using base::usage;

}  // namespace

base::Result<int> help_verb(const Invocation& invocation) {
  bool man = invocation.has(Flag::kMan);
  bool markdown = invocation.has(Flag::kMarkdown);
  if (man && markdown) return usage("--man and --markdown cannot be combined", "keep one of them");
  if ((man || markdown) && !invocation.operands.empty())
    return usage("--man and --markdown print the whole reference, not one verb", "phalanx help --man");
  if (man) return print(man_page(PHALANX_VERSION));
  if (markdown) return print(markdown_reference(language_here()));
  if (invocation.operands.empty()) return print(help_text(language_here()));
  if (invocation.operands.size() > 1) return usage("help takes one verb", "phalanx help run");
  const VerbRow* verb = find_verb(invocation.operands[0]);
  const std::optional<frontdoor::Peer> peer = frontdoor::peer_of(invocation.operands);
  if (!verb && peer) return print(help_of_launcher(*peer, language_here()));
  if (!verb) return usage(fmt::format("{} is not a verb of phalanx", base::quote(invocation.operands[0])), "phalanx help");
  return print(help_text(verb->verb, language_here()));
}

base::Result<int> completion_verb(const Invocation& invocation) {
  if (invocation.operands.size() != 1) return usage("completion needs the name of one shell", "phalanx completion bash, or zsh, or fish");
  auto script = completion_script(invocation.operands[0], language_here());
  if (!script.ok()) return std::move(script).error();
  return print(*script);
}

}  // namespace phalanx::cli
