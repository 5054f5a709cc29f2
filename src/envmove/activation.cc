// Scripts that activate a venv.
#include <algorithm>

#include "base/text.h"
#include "envmove/prefix.h"

namespace phalanx::envmove {
namespace {

// What sets the variable in sh, csh and fish (CPython, Lib/venv/scripts).
constexpr std::string_view kKeys[] = {"VIRTUAL_ENV=", "setenv VIRTUAL_ENV ", "set -gx VIRTUAL_ENV "};

// The line with its value moved; empty: it sets nothing that moves.
std::string moved_line(std::string_view line, const Move& move) {
  const size_t indent = std::min(line.find_first_not_of(" \t"), line.size());
  for (std::string_view key : kKeys) {
    if (!line.substr(indent).starts_with(key)) continue;
    const std::string_view head = line.substr(0, indent + key.size());
    std::string_view value = base::trim(line.substr(head.size()));
    const char quote = value.size() > 1 && (value[0] == '"' || value[0] == '\'') && value.back() == value[0] ? value[0] : '\0';
    if (quote) value = value.substr(1, value.size() - 2);
    const std::string now = moved_path(std::string(value), move);
    if (now == value) return "";
    const bool keep = quote == '"' && now.find_first_of("\"$`\\") == std::string::npos;
    return std::string(head) + (keep ? "\"" + now + "\"" : base::shell_quote(now));
  }
  return "";
}

}  // namespace

Replaced replace_activation(std::string_view script, const Move& move) {
  Replaced out;
  for (size_t at = 0; at < script.size();) {
    const size_t end = std::min(script.find('\n', at), script.size());
    std::string line = moved_line(script.substr(at, end - at), move);
    out.hits += line.empty() ? 0 : 1;
    out.data += line.empty() ? script.substr(at, end - at) : std::string_view(line);
    if (end < script.size()) out.data += '\n';
    at = end + 1;
  }
  return out;
}

std::string moved_path(const std::string& target, const Move& move) {
  auto below = [&](const std::string& prefix) { return target == prefix || target.starts_with(prefix + "/"); };
  if (below(move.new_prefix)) return target;
  const std::string* best = nullptr;
  for (const std::string& old : move.old_prefixes)
    if (below(old) && (!best || old.size() > best->size())) best = &old;
  return best ? move.new_prefix + target.substr(best->size()) : target;
}

}  // namespace phalanx::envmove
