// `phalanx explain CODE…`: the pages of the catalogue, from the binary itself.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "base/text.h"
#include "base/unicode.h"
#include "cli/codes.h"
#include "cli/verbs.h"
#include "os/files.h"
#include "view/explain_view.h"
#include "view/speech.h"
#include "view/surroundings.h"

namespace cli {
namespace {

constexpr size_t kWidest = 100;  // lines longer than this are hard to read
constexpr size_t kNarrowest = 40;

base::Error usage(std::string message, std::string hint) {
  return base::fail(base::ErrorKind::kUsage, std::move(message)).with_hint(std::move(hint));
}

base::Error not_a_code(const std::string& word) {
  if (os::exists(word) || word.find_first_of("./") != std::string::npos)
    return usage(fmt::format("explain takes codes, and {} is {}", base::quote(word), os::exists(word) ? "a file" : "none"),
                 "reading log files is not part of this version; phalanx explain --all lists the codes");
  return unknown_code(word);
}

// A code, or the beginning of a group's codes: "net" is "NET-".
base::Result<std::string> page(const std::string& word, base::Language language, size_t columns) {
  if (const doctor::Row* row = doctor::find_row(word)) return view::explain_page(*row, language, columns);
  std::string prefix = to_code(word);
  if (!prefix.ends_with('-')) prefix += '-';
  std::string list = view::explain_list(prefix, language, columns);
  if (list.empty()) return not_a_code(word);
  return list;
}

}  // namespace

base::Result<int> explain_verb(const Invocation& invocation) {
  base::Language language = view::choose_language([](const char* name) { return os::environment_value(name); });
  size_t columns = std::clamp(view::terminal_columns(STDOUT_FILENO), kNarrowest, kWidest);
  bool all = invocation.has(Flag::kAll), markdown = invocation.has(Flag::kMarkdown);
  std::string out;
  if (all && markdown) return usage("--all and --markdown exclude each other", "keep one of them");
  if (all || markdown) {
    if (!invocation.operands.empty())
      return usage(
          fmt::format("{} stands for every code; {} is too much", all ? "--all" : "--markdown", base::quote(invocation.operands[0])),
          "phalanx explain --all");
    out = all ? view::explain_list("", language, columns) : view::codes_markdown(language);
  } else if (invocation.operands.empty()) {
    return usage("explain needs a code", "phalanx explain --all");
  }
  for (const std::string& word : invocation.operands) {
    TRY_ASSIGN(std::string text, page(word, language, columns));
    out += (out.empty() ? "" : "\n") + text;
  }
  std::fwrite(out.data(), 1, out.size(), stdout);
  return 0;
}

}  // namespace cli
