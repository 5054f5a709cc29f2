// Function lengths by counting braces. No parser: at namespace or class level the text between the last ';', '{' or '}'
// and a '{' is that block's head; a head with a parenthesis that is not the head of a type or namespace starts a
// function. What a function contains (lambdas, local types) belongs to it.
#include <fmt/format.h>

#include <algorithm>
#include <regex>

#include "tidy/rules.h"

namespace phalanx::tidy {
namespace {

// Directives are blanked with their continuation lines: the braces in a macro are not this file's.
std::string blank_directives(std::string code) {
  bool directive = false;
  bool continued = false;
  for (size_t start = 0; start < code.size();) {
    size_t end = std::min(code.find('\n', start), code.size());
    size_t visible = std::min(code.find_first_not_of(' ', start), end);
    directive = continued || (visible < end && code[visible] == '#');
    continued = directive && end > start && code[end - 1] == '\\';
    if (directive) std::fill(code.begin() + static_cast<std::ptrdiff_t>(start), code.begin() + static_cast<std::ptrdiff_t>(end), ' ');
    start = end + 1;
  }
  return code;
}

std::string squeeze(std::string_view text) {
  std::string out;
  for (char c : text)
    if ((c != ' ' && c != '\n') || (!out.empty() && out.back() != ' ')) out += c == '\n' ? ' ' : c;
  return out;
}

bool function_head(std::string_view text) {
  static const std::regex kTemplate(R"(\btemplate ?<[^(){}]*>)");
  static const std::regex kScope(R"(^((inline|static|constexpr|typedef|extern|export) )*(namespace|class|struct|union|enum)\b)");
  static const std::regex kReturnsType(R"(\w ?\([^()]*\)[^:()]*$)");  // struct stat status_of(int fd)
  std::string head = std::regex_replace(squeeze(text), kTemplate, "");
  if (head.find('(') == std::string::npos) return false;
  return !std::regex_search(head, kScope) || std::regex_search(head, kReturnsType);
}

size_t first_visible(const std::string& code, size_t from, size_t to) {
  while (from < to && (code[from] == ' ' || code[from] == '\n')) ++from;
  return from;
}

}  // namespace

std::vector<Finding> check_functions(const Source& source) {
  std::vector<Finding> out;
  if (!source.cpp()) return out;
  const std::string code = blank_directives(source.code());
  int depth_in_function = 0;  // 0: at namespace or class level
  size_t head_start = 0;
  size_t function_start = 0;
  int parentheses = 0;  // braces inside a head's parentheses are default arguments
  for (size_t i = 0; i < code.size(); ++i) {
    char c = code[i];
    if (depth_in_function == 0) {
      if (c == '(') ++parentheses;
      if (c == ')') --parentheses;
      if (parentheses > 0) continue;
      if (c == '{' && function_head(code.substr(head_start, i - head_start))) {
        function_start = first_visible(code, head_start, i);
        depth_in_function = 1;
      } else if (c == '{' || c == '}' || c == ';') {
        head_start = i + 1;
        parentheses = 0;
      }
      continue;
    }
    if (c == '{') ++depth_in_function;
    if (c == '}' && --depth_in_function == 0) {
      int lines = source.line_of(i) - source.line_of(function_start) + 1;
      if (lines > kMaxFunctionLines)
        out.push_back({source.path(), source.line_of(function_start), "function-length",
                       fmt::format("{} lines; at most {}", lines, kMaxFunctionLines)});
      head_start = i + 1;
    }
  }
  return out;
}

}  // namespace phalanx::tidy
