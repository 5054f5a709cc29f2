// The full version of an interpreter that is not started.
#include <algorithm>

#include "base/text.h"
#include "machine/software/elf_reader.h"
#include "machine/software/python_environment.h"

namespace phalanx::machine {
namespace {

// "3.11.9" from text that holds it as a C string, as PY_VERSION stands in every interpreter.
std::string version_in(std::string_view bytes, const std::string& minor) {
  std::string wanted = '\0' + minor + ".";
  for (size_t at = bytes.find(wanted); at != std::string_view::npos; at = bytes.find(wanted, at + 1)) {
    std::string_view rest = bytes.substr(at + 1, 24);
    rest = rest.substr(0, rest.find('\0'));
    size_t end = rest.find_first_not_of("0123456789", minor.size() + 1);
    if (rest.size() == 24 || rest.size() == minor.size() + 1) continue;
    if (end == std::string_view::npos || rest[end] == '+' || rest[end] == 'a' || rest[end] == 'b' || rest[end] == 'r')
      return std::string(rest);
  }
  return "";
}

std::string version_in_library(const Rooted& files, const std::string& path, const std::string& minor) {
  if (!files.is_file(path)) return "";
  MappedFile file(files.on_disk(path));
  std::optional<std::string_view> constants = elf_section(file.bytes(), ".rodata");
  return constants ? version_in(constants->substr(0, 32 << 20), minor) : "";
}

}  // namespace

std::string python_version(const Rooted& files, const std::string& interpreter, const std::string& base, const std::string& minor) {
  if (minor.empty()) return "";
  for (const std::string& name : files.list(base + "/conda-meta", 4096)) {  // python-3.11.9-h955ad1f_0_cpython.json
    if (!name.starts_with("python-" + minor)) continue;
    return name.substr(7, name.find('-', 7) - 7);
  }
  std::string_view at = base == "/" ? std::string_view() : std::string_view(base);
  for (const char* abi : {"", "m"}) {  // python3.7m: before 3.8
    std::string header = files.read(std::string(at) + "/include/python" + minor + abi + "/patchlevel.h", 16 << 10).value_or("");
    size_t found = header.find("#define PY_VERSION ");
    size_t open = found == std::string::npos ? found : header.find('"', found);
    size_t close = open == std::string::npos ? open : header.find('"', open + 1);
    if (close != std::string::npos && header.substr(open + 1, minor.size()) == minor) return header.substr(open + 1, close - open - 1);
  }
  std::string version = version_in_library(files, interpreter, minor);
  for (const char* lib : {"/lib/", "/lib64/", "/lib/x86_64-linux-gnu/", "/lib/aarch64-linux-gnu/"})
    if (version.empty()) version = version_in_library(files, std::string(at) + lib + "libpython" + minor + ".so.1.0", minor);
  return version.empty() ? minor : version;
}

}  // namespace phalanx::machine
