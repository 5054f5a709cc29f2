// How it works. In prose (Markdown, comments) a word is taken for the name of a file or folder if it begins with a folder of the top of
// the checkout ("src/os/loop.h", "docs/guides") or with one of src/ ("job/runner"), or ends in .h or .cc ("loop.h"); for a code if it is
// written like one and shares its first part with a code of the catalogue ("NET-LOSS"). A name stands for every path that ends with it, so
// folders may be left out in front; "*", "<what>", "{a,b}" and words in capitals ("NAME.cc") stand for anything inside one part of a path.
// Files of other projects, which pages and comments cite as sources, are listed here, by how they begin.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <regex>

#include "tidy/rules.h"

namespace phalanx::tidy {
namespace {

constexpr std::array<std::string_view, 8> kTop = {"src/", "docs/", "tests/", "tools/", "cmake/", "codes/", "bench/", "examples/"};

// Of NCCL, its user guide, LLaMA-Factory, transformers, huggingface_hub, fmt, PyTorch, Gloo, TensorFlow, Linux and CUDA.
constexpr auto kElsewhere = std::to_array<std::string_view>({"src/bootstrap.cc",
                                                             "src/debug.cc",
                                                             "src/graph/",
                                                             "src/include/",
                                                             "src/init.cc",
                                                             "src/misc/",
                                                             "src/nccl.h.in",
                                                             "src/os/linux.cc",
                                                             "src/plugin/",
                                                             "src/ras",
                                                             "src/transport",
                                                             "docs/userguide/",
                                                             "bootstrap.cc",
                                                             "init.cc",
                                                             "misc/",
                                                             "net_socket.cc",
                                                             "nccl.h",
                                                             "src/llamafactory",
                                                             "src/transformers",
                                                             "examples/train_full",
                                                             "src/format.cc",
                                                             "src/huggingface_hub",
                                                             "ATen/",
                                                             "c10/",
                                                             "caffe2/",
                                                             "torch/",
                                                             "gloo/",
                                                             "tensorflow/",
                                                             "include/linux/",
                                                             "include/net/",
                                                             "linux/",
                                                             "cuda_runtime",
                                                             "cuda_fp16.h",
                                                             "cusolver",
                                                             "fatbinary.h",
                                                             "nvml.h",
                                                             "Include/internal/pycore_runtime.h",
                                                             "Include/internal/pycore_debug_offsets.h",
                                                             "logs/nohup_logs"});

bool starts_with_any(std::string_view text, const auto& beginnings) {
  return std::any_of(beginnings.begin(), beginnings.end(), [&](std::string_view beginning) { return text.starts_with(beginning); });
}

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }
bool is_name(char c) { return is_word(c) || std::string_view("./<>*{},-").find(c) != std::string_view::npos; }
bool is_capital(char c) { return std::isupper(static_cast<unsigned char>(c)) != 0; }

// What stands for anything becomes "*".
std::string pattern_of(std::string_view name) {
  std::string out;
  for (size_t i = 0; i < name.size();) {
    size_t end = i;
    if (name[i] == '<') end = name.find('>', i);
    else if (name[i] == '{') end = name.find('}', i);
    else if (is_capital(name[i]) && (i == 0 || !is_word(name[i - 1]))) {
      while (end < name.size() && is_capital(name[end])) ++end;
      const bool word = end - i > 1 && (end == name.size() || !is_word(name[end]));
      end = word ? end - 1 : i;
      if (!word) {
        out += name[i++];
        continue;
      }
    } else {
      out += name[i++];
      continue;
    }
    out += '*';
    i = end == std::string_view::npos ? name.size() : end + 1;
  }
  return out;
}

// "*" stands for anything but "/".
bool matches(std::string_view pattern, std::string_view text) {
  if (pattern.empty()) return text.empty();
  if (pattern[0] != '*') return !text.empty() && text[0] == pattern[0] && matches(pattern.substr(1), text.substr(1));
  for (size_t n = 0; n <= text.size(); ++n) {
    if (matches(pattern.substr(1), text.substr(n))) return true;
    if (n < text.size() && text[n] == '/') return false;
  }
  return false;
}

bool exists(std::string_view name, const Known& known) {
  if (known.names.contains(name)) return true;
  const std::string pattern = pattern_of(name);
  if (pattern.find('*') == std::string::npos) return false;
  return std::any_of(known.names.begin(), known.names.end(), [&](const std::string& path) { return matches(pattern, path); });
}

// Without what a sentence or a quotation puts around it.
std::string_view bare(std::string_view word) {
  while (!word.empty() && std::string_view(".,-{>").find(word.back()) != std::string_view::npos) {
    if (word.back() == '>' && word.find('<') != std::string_view::npos) break;
    word.remove_suffix(1);
  }
  while (!word.empty() && std::string_view(",-}>").find(word.front()) != std::string_view::npos) word.remove_prefix(1);
  if (word.starts_with('<') && word.find('>') == std::string_view::npos) word.remove_prefix(1);
  while (word.ends_with('/')) word.remove_suffix(1);
  return word;
}

bool names_a_file(std::string_view name, const Known& known) {
  if (name.find("//") != std::string_view::npos || name.find("..") != std::string_view::npos || starts_with_any(name, kElsewhere))
    return false;
  if (starts_with_any(name, kTop) || name.ends_with(".h") || name.ends_with(".cc")) return true;
  return name.find('/') != std::string_view::npos && known.folders.contains(name.substr(0, name.find('/'))) &&
         std::all_of(name.begin(), name.end(), [](char c) { return c == '/' || (is_word(c) && !is_capital(c)); });
}

// The end of the word that begins at `at`. What stands between < and > belongs to it, in any language.
size_t end_of_name(std::string_view prose, size_t at) {
  constexpr size_t kLongestPlaceholder = 40;
  while (at < prose.size() && is_name(prose[at])) {
    const std::string_view placeholder = prose.substr(at, kLongestPlaceholder);
    const size_t close = prose[at] == '<' ? placeholder.find_first_of(">\n ") : std::string_view::npos;
    at += close != std::string_view::npos && placeholder[close] == '>' ? close + 1 : 1;
  }
  return at;
}

void check_files(const Source& source, const std::string& prose, const Known& known, std::vector<Finding>* out) {
  for (size_t i = 0; i < prose.size();) {
    if (!is_name(prose[i])) {
      ++i;
      continue;
    }
    const size_t end = end_of_name(prose, i);
    // Part of an address, an absolute path, a variable, or a path in someone's home.
    const bool whole = i == 0 || std::string_view(":~$/@").find(prose[i - 1]) == std::string_view::npos;
    const std::string_view name = bare(std::string_view(prose).substr(i, end - i));
    if (whole && !name.starts_with('/') && !name.starts_with('.') && names_a_file(name, known) && !exists(name, known))
      out->push_back({source.path(), source.line_of(i), "mention", fmt::format("{} does not exist", name)});
    i = end;
  }
}

void check_codes(const Source& source, const std::string& prose, const std::set<std::string>& codes, std::vector<Finding>* out) {
  static const std::regex kCode("[A-Z][A-Z0-9]+(-[A-Z0-9]+)+");
  for (std::sregex_iterator it(prose.begin(), prose.end(), kCode), end; it != end; ++it) {
    const auto at = static_cast<size_t>(it->position()), after = at + it->str().size();
    const auto part_of_more = [](char c) { return is_word(c) || c == '-' || c == '*'; };
    if ((at > 0 && part_of_more(prose[at - 1])) || (after < prose.size() && part_of_more(prose[after]))) continue;
    const std::string code = it->str(), part = code.substr(0, code.find('-') + 1);
    const auto same_part = codes.lower_bound(part);
    const bool ours = same_part != codes.end() && same_part->starts_with(part);
    const auto longer = codes.lower_bound(code + "-");  // a beginning of codes, as `check --only` takes them
    if (ours && !codes.contains(code) && (longer == codes.end() || !longer->starts_with(code + "-")))
      out->push_back({source.path(), source.line_of(at), "mention", fmt::format("there is no code {}", code)});
  }
}

// Everything but prose is blank: in C++ all but comments, in scripts and build files all but what stands behind a "#".
std::string prose_of(const Source& source) {
  if (source.markdown()) return source.text();
  if (source.cpp()) return source.comments();
  std::string out = source.text();
  bool comment = false;
  for (size_t i = 0; i < out.size(); ++i) {
    if (out[i] == '\n') comment = false;
    else if (out[i] == '#' && (i == 0 || std::isspace(static_cast<unsigned char>(out[i - 1])) != 0)) comment = true;
    else if (!comment) out[i] = ' ';
  }
  return out;
}

}  // namespace

Known known_of(const std::set<std::string>& paths, const std::vector<Source>& sources) {
  static const std::regex kPage("codes/.*/([A-Z][A-Z0-9]+(?:-[A-Z0-9]+)+)\\.md"), kFolder("src/(?:engine/)?([a-z]+)/[^/]+");
  static const std::regex kTest("add_test\\(NAME ([a-z_/]+)");
  Known known;
  std::smatch match;
  for (const std::string& path : paths) {
    if (std::regex_match(path, match, kPage)) known.codes.insert(match.str(1));
    if (std::regex_match(path, match, kFolder)) known.folders.insert(match.str(1));
    const std::string stem = path.substr(0, path.find('.', path.rfind('/') + 1));
    for (const std::string& name : {path, stem})
      for (size_t at = 0; at != std::string::npos; at = name.find('/', at)) {
        if (at > 0) ++at;
        known.names.insert(name.substr(at));
      }
  }
  for (const Source& source : sources) {
    if (!source.path().ends_with("CMakeLists.txt")) continue;
    for (std::sregex_iterator it(source.text().begin(), source.text().end(), kTest), end; it != end; ++it) known.names.insert(it->str(1));
  }
  return known;
}

std::vector<Finding> check_mentions(const Source& source, const Known& known) {
  std::vector<Finding> out;
  const std::string prose = prose_of(source);
  check_files(source, prose, known, &out);
  check_codes(source, prose, known.codes, &out);
  return out;
}

}  // namespace phalanx::tidy
