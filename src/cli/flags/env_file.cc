#include "cli/flags/env_file.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/counted.h"
#include "base/text.h"
#include "base/unicode.h"

namespace phalanx::cli {
namespace {

using base::Error;
using base::Result;

constexpr size_t kLongestName = 255;

bool name_start(char c) { return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_'; }
bool name_byte(char c) { return name_start(c) || (c >= '0' && c <= '9'); }

// One line at a time; errors come without their place, which the caller adds.
Error wrong(std::string message, std::string hint) {
  return base::fail(base::ErrorKind::kConfig, std::move(message)).with_hint(std::move(hint));
}

// After a closing quote only blanks or a comment may follow.
bool only_comment(std::string_view rest) {
  std::string_view text = base::trim(rest);
  return text.empty() || (text[0] == '#' && base::is_blank(rest[0]));
}

Result<std::string> after_quote(std::string value, std::string_view rest) {
  if (only_comment(rest)) return value;
  return wrong(fmt::format("{} follows the closing quote", base::quote(base::trim(rest), 40)), "put the whole value between the quotes");
}

Result<std::string> single_quoted(std::string_view text) {
  size_t end = text.find('\'');
  if (end == std::string_view::npos)
    return wrong("a single quote is not closed on its line", "write \\n for a new line, between double quotes");
  return after_quote(std::string(text.substr(0, end)), text.substr(end + 1));
}

Result<std::string> double_quoted(std::string_view text) {
  std::string value;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '"') return after_quote(std::move(value), text.substr(i + 1));
    if (text[i] != '\\') {
      value += text[i];
      continue;
    }
    if (++i == text.size()) break;
    switch (text[i]) {
      case '\\':
      case '"':
      case '$':
      case '`': value += text[i]; break;
      case 'n': value += '\n'; break;
      case 'r': value += '\r'; break;
      case 't': value += '\t'; break;
      default:
        return wrong(
            fmt::format("\"\\{}\" is not an escape", base::printable(text.substr(i, base::first_character(text.substr(i)).length))),
            "write \\\\ for a backslash, or put the value between single quotes");
    }
  }
  return wrong("a double quote is not closed on its line", "write \\n for a new line");
}

// To the end of the line, or to a '#' that has a blank in front of it, as in a shell.
std::string bare(std::string_view text) {
  for (size_t i = 1; i < text.size(); ++i)
    if (text[i] == '#' && base::is_blank(text[i - 1])) return std::string(base::trim(text.substr(0, i)));
  return std::string(base::trim(text));
}

Result<std::pair<std::string, std::string>> parse_line(std::string_view line) {
  std::string_view text = line;
  if (text.starts_with("export") && text.size() > 6 && base::is_blank(text[6])) text = base::trim(text.substr(6));
  size_t equals = text.find('=');
  if (equals == std::string_view::npos)
    return wrong(fmt::format("{} has no '='", base::quote(text, 60)),
                 is_variable_name(text) ? fmt::format("write {0}=value, or pass this machine's value on with --export {0}", text)
                                        : "write NAME=value");
  std::string_view name = text.substr(0, equals);
  if (!is_variable_name(name)) {
    std::string hint = is_variable_name(base::trim(name)) ? "write NAME=value without spaces around '='"
                                                          : "a name consists of letters, digits and '_', and does not start with a digit";
    return wrong(fmt::format("{} is not the name of a variable", base::quote(name, 60)), std::move(hint));
  }
  std::string_view rest = text.substr(equals + 1);
  Result<std::string> value = rest.starts_with('\'')  ? single_quoted(rest.substr(1))
                              : rest.starts_with('"') ? double_quoted(rest.substr(1))
                                                      : Result<std::string>(bare(rest));
  if (!value.ok()) return std::move(value).error();
  if (value->size() > kLongestEnvValue)
    return wrong(base::counted("the value of {} is {} bytes long; the limit is {}", name, value->size(), kLongestEnvValue),
                 "pass large data in a file");
  return std::pair(std::string(name), std::move(value).value());
}

}  // namespace

bool is_variable_name(std::string_view name) {
  return !name.empty() && name.size() <= kLongestName && name_start(name[0]) && std::all_of(name.begin(), name.end(), name_byte);
}

Result<std::vector<std::pair<std::string, std::string>>> parse_env_file(std::string_view text, std::string_view path) {
  std::string shown = base::printable(path, 300);
  if (text.size() > kLargestEnvFile)
    return wrong(
        fmt::format("{}: {} is larger than the limit of {}", shown, base::format_bytes(text.size()), base::format_bytes(kLargestEnvFile)),
        "");
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);  // byte order mark, as editors on Windows write it
  std::vector<std::pair<std::string, std::string>> variables;
  size_t number = 0;
  for (std::string_view line : base::split_lines(text)) {
    ++number;
    auto at_line = [&](Error error) {
      error.message = fmt::format("{}:{}: {}", shown, number, error.message);
      return error;
    };
    std::string_view trimmed = base::trim(line);
    if (trimmed.empty() || trimmed[0] == '#') continue;
    if (trimmed.find('\0') != std::string_view::npos) return at_line(wrong("the line contains a zero byte", "is it a text file in UTF-8?"));
    auto variable = parse_line(trimmed);
    if (!variable.ok()) return at_line(std::move(variable).error());
    if (variables.size() == kMostEnvVariables) return at_line(wrong(base::counted("more than {} variables", kMostEnvVariables), ""));
    variables.push_back(std::move(variable).value());
  }
  return variables;
}

}  // namespace phalanx::cli
