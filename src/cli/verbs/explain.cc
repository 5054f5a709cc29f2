// `phalanx explain CODE…`: the pages of the catalogues, from the binary itself. `phalanx explain FILE…`: what logs say (explain_logs.h).
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "base/text.h"
#include "base/try.h"
#include "base/unicode.h"
#include "cli/codes.h"
#include "cli/explain_logs.h"
#include "cli/flags/verbs.h"
#include "codes/code.h"
#include "logs/runs/run_directory.h"
#include "os/files.h"
#include "view/explain_view.h"
#include "view/speech.h"
#include "view/terminal/capabilities.h"

namespace phalanx::cli {
namespace {

constexpr size_t kWidest = 100;  // lines longer than this are hard to read
constexpr size_t kNarrowest = 40;

using base::usage;

// No code has a point in its name: a file was meant.
base::Error missing_file(const std::string& word) {
  return base::fail(base::ErrorKind::kConfig, fmt::format("file not found: {}", base::quote(word)))
      .with_hint("phalanx explain FILE for a log, phalanx explain latest for the last run, phalanx explain --all for the codes");
}

// A code, or the beginning of a group's codes: "net" is "NET-".
base::Result<std::string> page(const std::string& word, base::Language language, size_t columns) {
  if (const codes::Code* code = codes::find(word)) return view::explain_page(*code, language, columns);
  std::string prefix = to_code(word);
  if (!prefix.ends_with('-')) prefix += '-';
  std::string list = view::explain_list(prefix, language, columns);
  if (list.empty() && word.find('.') != std::string::npos) return missing_file(word);
  if (list.empty()) return unknown_code(word);
  return list;
}

// "net" is a group even where a file has that name; "./net" is the file.
bool is_code(const std::string& word) {
  return codes::find(word) || !view::explain_list(to_code(word) + "-", base::Language::kEnglish, kWidest).empty();
}

base::Error mixed(const std::string& word, const std::string& log) {
  if (is_code(word))
    return usage(fmt::format("{} is a code and {} is a log: explain accepts only one kind at a time", base::quote(word), base::quote(log)),
                 "run phalanx explain once for each");
  return missing_file(word);
}

}  // namespace

base::Result<int> explain_verb(const Invocation& invocation) {
  base::Language language = view::choose_language([](const char* name) { return os::environment_value(name); });
  size_t columns = std::clamp(view::terminal_columns(STDOUT_FILENO), kNarrowest, kWidest);
  bool all = invocation.has(Flag::kAll), markdown = invocation.has(Flag::kMarkdown), json = invocation.has(Flag::kJson);
  std::string out;
  if ((all || markdown) && json) return usage("--json is for logs, not for lists of codes", "phalanx explain --json FILE");
  if (all && markdown) return usage("--all and --markdown cannot be combined", "keep one of them");
  if (all || markdown) {
    if (!invocation.operands.empty())
      return usage(fmt::format("{} already lists every code; remove {}", all ? "--all" : "--markdown", base::quote(invocation.operands[0])),
                   "phalanx explain --all");
    out = all ? view::explain_list("", language, columns) : view::codes_markdown(language);
  } else if (invocation.operands.empty()) {
    return usage("explain needs a code or logs", "phalanx explain --all\n      phalanx explain train.log");
  }
  if (!invocation.operands.empty()) {
    // Without a home there are no runs to name; files still can be.
    auto runs = logs::RunDirectory::base_folder("");
    std::string folder = runs.ok() ? *runs : "";
    auto logs = [&](const std::string& word) { return !is_code(word) && names_logs(word, folder); };
    auto first = std::find_if(invocation.operands.begin(), invocation.operands.end(), logs);
    if (first != invocation.operands.end()) {
      for (const std::string& word : invocation.operands)
        if (!logs(word)) return mixed(word, *first);
      return explain_logs(invocation.operands, folder, json);
    }
    if (json) return usage("--json is for logs, and no operand is a log", "phalanx explain --json FILE");
  }
  for (const std::string& word : invocation.operands) {
    TRY_ASSIGN(std::string text, page(word, language, columns));
    out += (out.empty() ? "" : "\n") + text;
  }
  std::fwrite(out.data(), 1, out.size(), stdout);
  return 0;
}

}  // namespace phalanx::cli
