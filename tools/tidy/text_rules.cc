#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <regex>

#include "tidy/rules.h"

namespace phalanx::tidy {
namespace {

int columns(std::string_view line) {
  return static_cast<int>(std::count_if(line.begin(), line.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

int max_lines(const Source& source) {
  if (source.path().starts_with("src/main_")) return kMaxMainLines;
  return source.header() ? kMaxHeaderLines : kMaxSourceLines;
}

// "HostManager", "host_manager" and "host-manager" all give {"host", "manager", …}.
std::vector<std::string> words(std::string_view name) {
  std::vector<std::string> out(1);
  for (char c : name) {
    bool upper = std::isupper(static_cast<unsigned char>(c));
    if (!std::isalnum(static_cast<unsigned char>(c)) || upper) out.emplace_back();
    if (std::isalnum(static_cast<unsigned char>(c))) out.back() += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return out;
}

// Names that say nothing about what is inside.
std::string empty_word(std::string_view name) {
  static const std::set<std::string> kEmpty = {"util", "utils", "common", "helper", "helpers", "manager", "managers", "misc"};
  for (const std::string& word : words(name))
    if (kEmpty.contains(word)) return word;
  return {};
}

void find_all(const Source& source, const std::string& text, const std::regex& pattern, const char* rule, std::string_view what,
              std::vector<Finding>* out) {
  for (std::sregex_iterator it(text.begin(), text.end(), pattern), end; it != end; ++it)
    out->push_back({source.path(), source.line_of(static_cast<size_t>(it->position(it->size() - 1))), rule,
                    fmt::format("'{}': {}", it->str(it->size() - 1), what)});
}

}  // namespace

std::vector<Finding> check_text(const Source& source) {
  std::vector<Finding> out;
  std::vector<std::string> lines = split(source.text(), '\n');
  if (!source.text().empty() && lines.back().empty()) lines.pop_back();
  else if (!source.text().empty())
    out.push_back({source.path(), static_cast<int>(lines.size()), "newline", "the last line has no newline"});
  for (size_t i = 0; i < lines.size(); ++i) {
    int line = static_cast<int>(i) + 1;
    if (lines[i].ends_with('\r')) out.push_back({source.path(), line, "crlf", "carriage return at the end of the line"});
    else if (lines[i].ends_with(' ') || lines[i].ends_with('\t'))
      out.push_back({source.path(), line, "white-space", "trailing white space"});
    bool data = source.path().ends_with(".yaml") && source.path().starts_with("codes/signatures/");  // lines of logs, as they are written
    if (!source.markdown() && !data && columns(lines[i]) > kMaxColumns)
      out.push_back({source.path(), line, "line-length", fmt::format("{} columns; at most {}", columns(lines[i]), kMaxColumns)});
  }
  int limit = max_lines(source);
  if (source.cpp() && static_cast<int>(lines.size()) > limit)
    out.push_back({source.path(), limit + 1, "file-length", fmt::format("{} lines; at most {}: split it by idea", lines.size(), limit)});
  return out;
}

std::vector<Finding> check_names(const Source& source) {
  std::vector<Finding> out;
  for (const std::string& part : source.parts())
    if (std::string word = empty_word(part); !word.empty())
      out.push_back({source.path(), 0, "name", fmt::format("'{}' says nothing; name what is inside", word)});
  if (!source.cpp()) return out;
  static const std::regex kType(R"(\b(?:class|struct|enum|union|namespace)\s+(?:class\s+)?(?:\[\[\w+\]\]\s*)?(\w+))");
  const std::string& code = source.code();
  for (std::sregex_iterator it(code.begin(), code.end(), kType), end; it != end; ++it)
    if (std::string word = empty_word(it->str(1)); !word.empty())
      out.push_back({source.path(), source.line_of(static_cast<size_t>(it->position(1))), "name",
                     fmt::format("'{}' in {} says nothing; name what it does", word, it->str(1))});
  return out;
}

std::vector<Finding> check_header(const Source& source) {
  std::vector<Finding> out;
  if (!source.header()) return out;
  if (source.code().find("#pragma once\n") == std::string::npos) out.push_back({source.path(), 1, "pragma-once", "no #pragma once"});
  static const std::regex kUsing(R"((using\s+namespace\s+[\w:]+))");
  find_all(source, source.code(), kUsing, "using-namespace", "a header must not open a namespace for its readers", &out);
  return out;
}

std::vector<Finding> check_namespace(const Source& source) {
  std::vector<Finding> out;
  if (source.parts()[0] != "src" || !source.cpp()) return out;
  static const std::regex kOpened(
      R"(\nnamespace ((?:base|os|wire|store|codes|machine|hosts|agent|doctor|diagnosis|job|logs|fit|view|cli|engine)\b))");
  find_all(source, source.code(), kOpened, "namespace", "write phalanx:: before it", &out);
  if (!source.header() || source.path() == "src/base/try.h") return out;
  // USE_C10D_…: what libtorch asks for before its own headers are read.
  static const std::regex kMacro(R"(\n#define ((?!PHALANX_|USE_C10D_)\w+))");
  find_all(source, source.code(), kMacro, "macro", "a header's macros begin with PHALANX_", &out);
  return out;
}

std::vector<Finding> check_banned(const Source& source) {
  std::vector<Finding> out;
  static const std::regex kMarker(
      "(?:^|[^A-Za-z0-9_])(TO"
      "DO|FIX"
      "ME|XX"
      "X)(?![A-Za-z0-9_])");
  find_all(source, source.text(), kMarker, "marker", "finish it, or write it down where work is planned", &out);
  // "reading the checkpoint failed on rank 1"
  static const std::regex kPhrase(R"(\b(agree\([^;"]*"(?!\w+ing\b)))");
  if (source.path().starts_with("src/engine/") || source.path().starts_with("examples/"))
    find_all(source, source.text(), kPhrase, "agree-phrase",
             "say what is done with a word in -ing: the message goes on with 'failed on rank …'", &out);
  if (source.parts()[0] != "src") return out;
  static const std::regex kMachine(
      "(/(?:wo"
      "rk|ro"
      "ot|ho"
      "me/\\w+)/)");
  find_all(source, source.text(), kMachine, "machine", "a path of somebody's machine", &out);
  if (source.path().starts_with("src/os/")) return out;  // where waiting is made
  static const std::regex kSleep(R"(\b(sleep_for|sleep_until|usleep|nanosleep|clock_nanosleep)\b)");
  find_all(source, source.code(), kSleep, "sleep", "wait for an event with a deadline (os/loop.h)", &out);
  return out;
}

}  // namespace phalanx::tidy
