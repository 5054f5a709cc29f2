// The first lines of scripts.
#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"
#include "envmove/prefix.h"

namespace phalanx::envmove {
namespace {

constexpr std::string_view kShell = "#!/bin/sh\n", kExec = "'''exec' ";
constexpr std::string_view kPassOn = " \"$0\" \"$@\"\n' '''\n";
constexpr std::string_view kPassOnByRattler = " \"$0\" \"$@\" #'''\n";  // of pixi, where conda and pip take two lines

std::string_view name_of(std::string_view path) { return path.substr(path.rfind('/') + 1); }

// Whether a docstring comes first and "from __future__" after it. Behind the two lines, which are a string to Python, the docstring is
// none any more and the import no longer comes first (astral-sh/uv issue 6489).
bool has_future_after_docstring(std::string_view rest) {
  bool docstring = false;
  for (std::string_view line : base::split_lines(rest)) {
    std::string_view text = base::trim(line);
    if (text.empty() || text.starts_with("#")) continue;
    if (!docstring) {
      const bool raw = text.starts_with("r") || text.starts_with("u");
      docstring = text.substr(raw ? 1 : 0).starts_with("\"") || text.substr(raw ? 1 : 0).starts_with("'");
      if (!docstring) return false;
    }
    if (text.starts_with("from __future__ ")) return true;
  }
  return false;
}

std::optional<Shebang> read_by_shell(std::string_view script) {
  if (!script.starts_with(kShell) || !script.substr(kShell.size()).starts_with(kExec)) return std::nullopt;
  const size_t at = kShell.size() + kExec.size();
  const bool quoted = at < script.size() && script[at] == '"';
  const size_t begin = at + (quoted ? 1 : 0), end = script.find(quoted ? '"' : ' ', begin);
  if (end == std::string_view::npos) return std::nullopt;
  const size_t behind = end + (quoted ? 1 : 0);
  const bool usual = script.substr(behind).starts_with(kPassOn);
  if (!usual && !script.substr(behind).starts_with(kPassOnByRattler)) return std::nullopt;
  std::string_view interpreter = script.substr(begin, end - begin);
  if (!interpreter.starts_with("/") || interpreter.find_first_of("\n$`\\\"") != std::string_view::npos) return std::nullopt;
  return Shebang{std::string(interpreter), "", behind + (usual ? kPassOn : kPassOnByRattler).size(), true};
}

}  // namespace

std::optional<Shebang> read_shebang(std::string_view script) {
  if (std::optional<Shebang> shell = read_by_shell(script)) return shell;
  if (!script.starts_with("#!")) return std::nullopt;
  const size_t newline = std::min(script.find('\n'), script.size());
  std::string_view line = script.substr(2, newline - 2);
  const size_t blanks = line.find_first_not_of(' ');
  if (blanks == std::string_view::npos || line[blanks] != '/') return std::nullopt;
  line.remove_prefix(blanks);
  if (line.find('\0') != std::string_view::npos) return std::nullopt;
  const size_t end = std::min(line.find_first_of(" \t\r"), line.size());
  return Shebang{std::string(line.substr(0, end)), std::string(line.substr(end)), std::min(newline + 1, script.size()), false};
}

std::optional<std::string> write_shebang(const Shebang& shebang, std::string_view interpreter, std::string_view rest) {
  std::string line = fmt::format("#!{}{}", interpreter, shebang.arguments);
  const bool blank = interpreter.find_first_of(" \t") != std::string_view::npos;
  if (!blank && line.size() <= kLongestShebang) return fmt::format("{}\n{}", line, rest);
  if (!name_of(interpreter).starts_with("python") || has_future_after_docstring(rest)) return std::nullopt;
  if (!shebang.arguments.empty() && !base::trim(shebang.arguments).empty()) return std::nullopt;  // "-E" would be lost
  if (interpreter.find_first_of("\"$`\\\n") != std::string_view::npos) return std::nullopt;
  return fmt::format("{}{}\"{}\"{}{}", kShell, kExec, interpreter, kPassOn, rest);
}

}  // namespace phalanx::envmove
