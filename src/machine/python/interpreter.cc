#include "machine/python/interpreter.h"

#include <unistd.h>

#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"
#include "machine/rooted.h"
#include "machine/software/elf_reader.h"

namespace phalanx::machine {
namespace {

using base::ErrorKind;
using base::fail;

std::string program_of(pid_t pid) {
  char link[4096];
  ssize_t n = ::readlink(fmt::format("/proc/{}/exe", pid).c_str(), link, sizeof(link));
  return n > 0 ? std::string(link, static_cast<size_t>(n)) : "";
}

std::string said_version(std::string_view name) {
  constexpr std::string_view kMark = "python3.";
  size_t at = name.find(kMark);
  if (at == std::string_view::npos) return "";
  std::string_view rest = name.substr(at + kMark.size());
  return std::string(rest.substr(0, rest.find_first_not_of("0123456789")));
}

struct Found {
  uint64_t runtime = 0;
  uint32_t version = 0;  // 0: the file does not say
};

std::optional<Found> look_into(const std::string& file, const Mapping& mapping, Memory& memory) {
  MappedFile mapped(file);
  Symbols symbols(mapped.bytes());
  std::optional<uint64_t> runtime = symbols.address_of("_PyRuntime"), added = symbols.added_by(mapping);
  if (!runtime || !added) return std::nullopt;
  Found found{*runtime + *added, 0};
  // An unsigned long since 3.11, as PY_VERSION_HEX: 0x030b07f0.
  uint64_t hex = 0;
  if (std::optional<uint64_t> version = symbols.address_of("Py_Version"); version && memory.read(*version + *added, &hex, sizeof(hex)))
    found.version = static_cast<uint32_t>(hex >> 16);
  return found;
}

}  // namespace

uint32_t python_version_in(std::string_view path) {
  base::Result<int64_t> minor = base::parse_int(said_version(name_of(path)), 0, 99);
  return minor.ok() ? 0x0300 + static_cast<uint32_t>(*minor) : 0;
}

std::string python_version_text(uint32_t version) { return fmt::format("{}.{}", version >> 8, version & 0xff); }

base::Result<std::optional<Interpreter>> find_interpreter(pid_t pid, const std::vector<Mapping>& maps, Memory& memory) {
  std::string program = program_of(pid);
  std::optional<Found> found;
  std::string path;
  for (const Mapping& m : maps) {
    bool own = !m.path.empty() && m.path == program, library = name_of(m.path).starts_with("libpython3");
    if (!own && !library) continue;
    // A program that was replaced while it runs can still be read by this link.
    found = look_into(own ? fmt::format("/proc/{}/exe", pid) : fmt::format("/proc/{}/root{}", pid, m.path), m, memory);
    path = m.path;
    if (found) break;
  }
  if (!found) return std::optional<Interpreter>();
  if (found->version == 0) found->version = python_version_in(path);
  if (found->version == 0) return fail(ErrorKind::kUnfit, fmt::format("cannot tell the version of Python in {}", path));
  if (found->version < kFirstPython || found->version > kLastPython)
    return fail(ErrorKind::kUnfit, fmt::format("Python {} cannot be read, only {} to {}", python_version_text(found->version),
                                               python_version_text(kFirstPython), python_version_text(kLastPython)));
  Interpreter interpreter{found->runtime, {}};
  if (const PythonLayout* layout = python_layout(found->version)) {
    interpreter.layout = *layout;
    return std::optional(interpreter);
  }
  char offsets[kOffsetsBytes];
  std::optional<PythonLayout> layout;
  if (memory.read(found->runtime, offsets, sizeof(offsets))) layout = python_layout_in({offsets, sizeof(offsets)}, found->version);
  if (!layout)
    return fail(ErrorKind::kUnfit,
                fmt::format("Python {} in {} does not say where its stacks are", python_version_text(found->version), path));
  interpreter.layout = *layout;
  return std::optional(interpreter);
}

}  // namespace phalanx::machine
