#include "cli/script_word.h"

#include <unistd.h>

#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"
#include "base/unicode.h"
#include "os/files.h"
#include "os/program.h"

namespace phalanx::cli {
namespace {

// `phalanx run -H h1,h2 -- ` as it was typed.
std::string typed_line(const Invocation& invocation) {
  std::string line = fmt::format("phalanx {}", row(invocation.verb).name);
  for (const GivenFlag& given : invocation.flags) {
    line += " " + given.typed;
    if (given.row->optional_value) line += given.value.empty() ? "" : "=" + base::shell_quote(given.value);
    else if (given.row->kind != ValueKind::kNone) line += " " + base::shell_quote(given.value);
  }
  return line + " -- ";
}

bool is_script(std::string_view word) { return word.ends_with(".py") || word.ends_with(".sh"); }

bool is_interpreter(std::string_view word) {
  const std::string_view name = word.substr(word.rfind('/') + 1);
  return name.starts_with("python") || name == "sh" || name == "bash" || name == "torchrun";
}

}  // namespace

base::Status check_copied_script(const Invocation& invocation, const std::string& folder) {
  const std::vector<std::string>& words = invocation.operands;
  if (words.size() < 2 || !is_interpreter(words[0]) || !is_script(words[1]) || words[1].starts_with('/')) return base::ok();
  const std::string file = folder + "/" + words[1];
  if (os::exists(file)) return base::ok();
  const std::string place = file.substr(0, file.rfind('/'));
  std::vector<std::string> names;
  if (auto there = os::names_if_present(place); there.ok() && *there) names = std::move(**there);
  std::erase_if(names, [](const std::string& name) { return !is_script(name); });
  base::Error error = base::fail(base::ErrorKind::kUsage, fmt::format("{} does not exist, so it is not copied to the hosts", file));
  if (auto near = base::closest(words[1].substr(words[1].rfind('/') + 1), names))
    return std::move(error).with_hint(fmt::format("did you mean {}?", base::printable(*near)));
  return std::move(error).with_hint("ls " + base::shell_quote(place));
}

base::Status check_first_word(const Invocation& invocation, const std::string& folder, const std::string& path) {
  if (invocation.verb != Verb::kRun && invocation.verb != Verb::kPlan) return base::ok();
  const std::string& word = invocation.operands[0];
  auto refuse = [&](std::string message, const std::string& command) {
    return base::fail(base::ErrorKind::kUsage, std::move(message)).with_hint(typed_line(invocation) + command);
  };
  const size_t blank = word.find(' ');
  const std::string file = word.starts_with('/') ? word : folder + "/" + word;
  // "--sync DIR": of an option whose value may be missing it is attached.
  const bool bare_sync = std::any_of(invocation.flags.begin(), invocation.flags.end(), [](const GivenFlag& given) {
    return given.row->flag == Flag::kSync && given.value.empty() && given.line == 0;
  });
  if (bare_sync && os::is_folder(file))
    return base::fail(base::ErrorKind::kUsage, fmt::format("{} is a directory, not a command", base::quote(word)))
        .with_hint(fmt::format("write --sync={}", base::shell_quote(word)));
  if (!word.ends_with(".py") && blank == std::string::npos) return base::ok();
  const bool program = os::find_program(word, path, folder).ok();
  if (word.ends_with(".py") && !program && os::exists(file) && ::access(file.c_str(), X_OK) != 0)
    return refuse(fmt::format("{} is a Python script, not a program", base::quote(word)),
                  "python " + base::shell_quote(invocation.operands));
  if (invocation.operands.size() == 1 && blank != std::string::npos && !program && !os::exists(file) &&
      os::find_program(word.substr(0, blank), path, folder).ok())
    return refuse(fmt::format("{} is one word: the command stands in quotes", base::quote(word)), base::printable(word));
  return base::ok();
}

}  // namespace phalanx::cli
