// Scripts that activate a venv.
#include <algorithm>

#include "base/text.h"
#include "envmove/prefix.h"

namespace phalanx::envmove {
namespace {

// What sets the variable in sh, csh and fish (CPython, Lib/venv/scripts), and what follows the value. The first two are for Windows.
struct Form {
  std::string_view before, behind;
};
constexpr Form kForms[] = {{"VIRTUAL_ENV=$(cygpath ", ")"},
                           {"export VIRTUAL_ENV=$(cygpath ", ")"},
                           {"VIRTUAL_ENV=", ""},
                           {"export VIRTUAL_ENV=", ""},
                           {"setenv VIRTUAL_ENV ", ""},
                           {"set -gx VIRTUAL_ENV ", ""}};

// What a shell makes of a word with quotes of either kind. nullopt: it would expand something, or this is not one word.
std::optional<std::string> unquoted(std::string_view word) {
  std::string out;
  for (size_t at = 0; at < word.size();) {
    const char c = word[at];
    if (c == '\'') {
      const size_t end = word.find(c, at + 1);
      if (end == std::string_view::npos) return std::nullopt;
      out += word.substr(at + 1, end - at - 1);
      at = end + 1;
    } else if (c == '"') {
      for (++at; at < word.size() && word[at] != '"'; ++at) {
        if (word[at] == '$' || word[at] == '`') return std::nullopt;
        const bool escapes =
            word[at] == '\\' && std::string_view("$`\"\\").find(word[std::min(at + 1, word.size() - 1)]) != std::string_view::npos;
        out += word[at += escapes ? 1 : 0];
      }
      if (at == word.size()) return std::nullopt;
      ++at;
    } else if (c == '\\') {
      if (at + 1 == word.size()) return std::nullopt;
      out += word[at + 1];
      at += 2;
    } else {
      if (std::string_view(" \t$`;&|<>()*?[#").find(c) != std::string_view::npos) return std::nullopt;
      out += c;
      ++at;
    }
  }
  return out;
}

struct Setting {
  std::string_view before, word, behind;  // the line
  std::optional<std::string> value;       // nothing: the shell would make something else of the word than its writer meant, or it expands
};

// What stands between the outer quotes: before they quoted it (CVE-2024-9287), Pythons wrote any place so.
std::string as_written(std::string_view word) {
  const bool quoted = word.size() > 1 && (word[0] == '"' || word[0] == '\'') && word.back() == word[0];
  return std::string(quoted ? word.substr(1, word.size() - 2) : word);
}

std::optional<Setting> read_setting(std::string_view line) {
  const size_t indent = std::min(line.find_first_not_of(" \t"), line.size());
  for (const Form& form : kForms) {
    if (!line.substr(indent).starts_with(form.before)) continue;
    Setting out;
    out.before = line.substr(0, indent + form.before.size());
    const std::string_view rest = line.substr(out.before.size());
    out.word = base::trim(rest);
    if (!out.word.ends_with(form.behind)) continue;
    out.word.remove_suffix(form.behind.size());
    out.behind = line.substr(static_cast<size_t>(out.word.data() - line.data()) + out.word.size());
    out.value = unquoted(out.word);
    return out;
  }
  return std::nullopt;
}

// The line with its value moved; empty: it sets nothing that moves.
std::string moved_line(std::string_view line, const Move& move) {
  const std::optional<Setting> set = read_setting(line);
  if (!set) return "";
  const std::string value = set->value ? *set->value : as_written(set->word), now = moved_path(value, move);
  if (now == value) return "";
  const bool keep = set->word.starts_with('"') && now.find_first_of("\"$`\\") == std::string::npos;
  return std::string(set->before) + (keep ? "\"" + now + "\"" : base::shell_quote(now)) + std::string(set->behind);
}

}  // namespace

std::optional<std::string> activation_place(std::string_view line) {
  std::optional<Setting> set = read_setting(line);
  return set ? std::move(set->value) : std::nullopt;
}

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
  const bool below_new = is_within(target, move.new_prefix);
  const std::string* best = nullptr;
  for (const std::string& old : move.old_prefixes) {
    if (!is_within(target, old) || (below_new && move.reads_as_new(old, move.new_prefix))) continue;
    if (!best || old.size() > best->size()) best = &old;
  }
  return best ? move.new_prefix + target.substr(best->size()) : target;
}

}  // namespace phalanx::envmove
