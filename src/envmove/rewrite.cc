#include "envmove/rewrite.h"

#include <algorithm>
#include <span>

#include <fmt/format.h>

#include "base/counted.h"
#include "base/sha256.h"
#include "base/text.h"
#include "base/unicode.h"
#include "envmove/packages.h"

namespace phalanx::envmove {
namespace {

constexpr size_t kShownString = 120;

std::string no_room(const std::string& text, size_t placeholder) {
  std::string out = fmt::format("a path in it has no room to grow: {}", base::printable(text, kShownString));
  if (placeholder > 0) out += base::counted(" (the whole prefix may have {} bytes)", placeholder);
  return out;
}

Rewritten rewrite_binary(std::string_view data, const Managed* managed, const Move& move) {
  std::optional<size_t> placeholder;
  if (managed && !managed->placeholder.empty()) {
    // Only a file as conda installed it has the room that its placeholder left.
    const bool as_installed = managed->sha256.empty() || base::sha256_hex(data) == managed->sha256;
    placeholder = as_installed ? managed->placeholder.size() : 0;
  }
  BinaryReplaced done = replace_binary(data, move, placeholder);
  if (!done.too_long.empty()) return {"", done.hits + 1, no_room(done.too_long.front(), placeholder.value_or(0))};
  return {std::move(done.data), done.hits, ""};
}

bool ends_with_any(std::string_view path, std::span<const std::string_view> endings) {
  return std::any_of(endings.begin(), endings.end(), [&](std::string_view ending) { return path.ends_with(ending); });
}

// A shell reads a backslash within single quotes as one.
Code code_of(std::string_view path, const std::optional<Shebang>& shebang) {
  constexpr std::string_view kShell[] = {".sh", ".bash", ".zsh", ".csh", ".fish"}, kPython[] = {".py", ".pyi", ".json", ".ipynb"};
  if (path == "bin/activate" || ends_with_any(path, kShell)) return Code::kShell;
  if (ends_with_any(path, kPython)) return Code::kPython;
  if (!shebang) return Code::kSome;
  std::string_view program = std::string_view(shebang->interpreter).substr(shebang->interpreter.rfind('/') + 1);
  if (const std::vector<std::string_view> words = base::split_words(shebang->arguments); program == "env" && !words.empty())
    program = words.back();  // "env bash", "env -S python3"
  if (program.starts_with("python")) return Code::kPython;
  return program.ends_with("sh") ? Code::kShell : Code::kSome;
}

Rewritten no_first_line(const std::string& interpreter, size_t hits) {
  return {"", hits, fmt::format("no first line of a script can start {}", base::printable(interpreter, kShownString))};
}

// One line only, and nothing behind it: Python finds a zip archive by its end, whatever stands before it (PEP 441).
Rewritten rewrite_zip_program(std::string_view data, const Move& move) {
  std::optional<Shebang> shebang = read_shebang(data);
  const std::string interpreter = shebang ? moved_path(shebang->interpreter, move) : "";
  if (!shebang || interpreter == shebang->interpreter) return {};
  std::optional<std::string> whole = write_shebang(*shebang, interpreter, data.substr(shebang->end));
  if (!whole || read_shebang(*whole)->by_shell) return no_first_line(interpreter, 1);
  return {std::move(*whole), 1, ""};
}

Rewritten rewrite_text(std::string_view path, std::string_view data, const Move& move) {
  std::optional<Shebang> shebang = read_shebang(data);
  const Code code = code_of(path, shebang);
  std::string interpreter = shebang ? moved_path(shebang->interpreter, move) : "";
  if (!shebang || interpreter == shebang->interpreter) {
    Replaced all = replace_spellings(data, move, code);
    return {std::move(all.data), all.hits, ""};
  }
  Replaced rest = replace_spellings(data.substr(shebang->end), move, code);
  std::optional<std::string> whole = write_shebang(*shebang, interpreter, rest.data);
  if (!whole) return no_first_line(interpreter, rest.hits + 1);
  return {std::move(*whole), rest.hits + 1, ""};
}

Rewritten rewrite_activation(std::string_view path, std::string_view data, const Move& move) {
  Replaced set = replace_activation(data, move);
  Rewritten rest = rewrite_text(path, set.data, move);
  rest.hits += set.hits;
  return rest;
}

}  // namespace

FileClass classify(std::string_view path, std::string_view head, const Managed* managed) {
  if (path.ends_with(".pyc")) return FileClass::kBytecode;
  if (managed && !managed->placeholder.empty()) return managed->binary ? FileClass::kBinary : FileClass::kText;
  if (head.starts_with("\x7f"
                       "ELF"))
    return FileClass::kBinary;
  if (head.starts_with("#!") && head.substr(std::min(head.find('\n'), head.size())).starts_with("\nPK\x03\x04"))
    return FileClass::kZipProgram;
  if (head.find('\0') != std::string_view::npos) return FileClass::kOpaque;
  // A character may be cut at the end of the head.
  for (size_t cut = 0; cut < 4 && cut <= head.size(); ++cut)
    if (base::is_utf8(head.substr(0, head.size() - cut))) return FileClass::kText;
  return FileClass::kOpaque;
}

bool is_url_file(std::string_view path) { return path.ends_with(".dist-info/direct_url.json"); }

std::optional<Replaced> replace_urls(std::string_view json, const Move& move, const std::string& but_not) {
  constexpr std::string_view kUrl = "\"file:///";
  const size_t found = json.find(kUrl), begin = found + 1;
  const size_t end = found == std::string_view::npos ? found : json.find_first_of("\"\\", begin);
  if (end == std::string_view::npos || json[end] == '\\') return std::nullopt;
  const std::string path = path_of_url(json.substr(begin, end - begin));
  const std::string moved = path == but_not || path.starts_with(but_not + "/") ? path : moved_path(path, move);
  if (moved == path) return Replaced{std::string(json), 0};
  return Replaced{std::string(json.substr(0, begin)) + url_of_path(moved) + std::string(json.substr(end)), 1};
}

Move move_of_file(const Move& move, const Managed* managed) {
  Move out = move;
  if (managed && managed->placeholder.size() > 1 && managed->placeholder.starts_with('/') && !managed->placeholder.ends_with('/') &&
      managed->placeholder != move.new_prefix)
    out.old_prefixes.push_back(managed->placeholder);
  return out;
}

Rewritten rewrite(std::string_view path, std::string_view data, FileClass file_class, const Managed* managed, const Move& move) {
  if (file_class == FileClass::kText && is_url_file(path))
    if (std::optional<Replaced> done = replace_urls(data, move, "\n")) return {done->hits > 0 ? std::move(done->data) : "", done->hits, ""};
  switch (file_class) {
    case FileClass::kText: return path.starts_with("bin/activate") ? rewrite_activation(path, data, move) : rewrite_text(path, data, move);
    case FileClass::kBinary: return rewrite_binary(data, managed, move);
    case FileClass::kZipProgram: return rewrite_zip_program(data, move);
    case FileClass::kBytecode:
    case FileClass::kOpaque: break;
  }
  return {};
}

}  // namespace phalanx::envmove
