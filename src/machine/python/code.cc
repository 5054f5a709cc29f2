#include "machine/python/code.h"

#include <algorithm>
#include <cstring>

#include "base/unicode.h"
#include "machine/python/frames.h"

namespace phalanx::machine {
namespace {

constexpr uint64_t kMostTable = 1 << 20;
constexpr uint64_t kMostCode = 64 << 20;
constexpr uint64_t kMostCopies = 65'536;
constexpr size_t kMostFile = 512, kMostFunction = 160;  // characters, then bytes

void append_utf8(std::string& to, uint32_t c) {
  if (c >= 0x110000 || (c >= 0xd800 && c < 0xe000)) c = 0xfffd;  // surrogates stand for bytes that are no UTF-8
  if (c < 0x80) {
    to += static_cast<char>(c);
    return;
  }
  constexpr unsigned kFirst[] = {0, 0xc0, 0xe0, 0xf0};
  int more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
  to += static_cast<char>(kFirst[more] | (c >> (6 * more)));
  while (more-- > 0) to += static_cast<char>(0x80 | ((c >> (6 * more)) & 0x3f));
}

}  // namespace

bool CodeReader::is_a(uint64_t object, const char* type) {
  uint64_t at = 0, name_at = 0;
  if (!get(object + layout_.type, at)) return false;
  auto known = types_.find(type);
  if (known != types_.end()) return known->second == at;
  char name[8] = "";
  size_t length = std::strlen(type) + 1;
  if (!get(at + layout_.type_name, name_at) || !memory_.read(name_at, name, length) || std::memcmp(name, type, length) != 0) return false;
  types_.emplace(type, at);
  return true;
}

bool CodeReader::text(uint64_t object, size_t most, std::string& into) {
  uint64_t length = 0;
  uint32_t state = 0;
  if (!is_a(object, "str") || !get(object + layout_.text_length, length) || !get(object + layout_.text_state, state)) return false;
  // struct PyASCIIObject: after the bits that say whether it is interned, 2 or in a free-threaded build 8 or 16 of them, come kind (3),
  // compact (1), ascii (1).
  uint32_t kind = 0;
  bool ascii = false;
  for (unsigned shift : {2u, 8u, 16u}) {
    if ((shift == 2) == layout_.free_threaded) continue;
    kind = (state >> shift) & 7;
    ascii = ((state >> (shift + 4)) & 1) != 0;
    if (((state >> (shift + 3)) & 1) == 1 && (kind == 1 || ((kind == 2 || kind == 4) && !ascii))) break;
    kind = 0;
  }
  if (kind == 0 || length > kMostTable) return false;
  bool cut = length > most;
  if (cut) length = most;
  std::string data(length * kind, '\0');
  if (length > 0 && !memory_.read(object + (ascii ? layout_.ascii_data : layout_.text_data), data.data(), data.size())) return false;
  std::string utf8;
  for (size_t i = 0; i < data.size(); i += kind) {
    uint32_t c = 0;
    std::memcpy(&c, data.data() + i, kind);
    append_utf8(utf8, c);
  }
  if (cut) utf8 += "…";
  into = base::printable(utf8, most);
  return true;
}

bool CodeReader::bytes(uint64_t object, std::string& into) {
  uint64_t size = 0;
  if (!is_a(object, "bytes") || !get(object + layout_.bytes_size, size) || size > std::min(kMostTable, budget_)) return false;
  budget_ -= size;
  into.resize(size);
  return size == 0 || memory_.read(object + layout_.bytes_data, into.data(), size);
}

const CodeReader::Code* CodeReader::code(uint64_t at) {
  if (auto found = codes_.find(at); found != codes_.end()) return &found->second;
  Code code;
  uint64_t file = 0, name = 0, lines = 0;
  bool read = is_a(at, "code") && get(at + layout_.code_file, file) && get(at + layout_.code_name, name) &&
              get(at + layout_.code_lines, lines) && get(at + layout_.code_first_line, code.first_line) &&
              text(file, kMostFile, code.file) && text(name, kMostFunction, code.function) && bytes(lines, code.lines);
  if (!read) return nullptr;
  return &codes_.emplace(at, std::move(code)).first->second;
}

// In bytes, from the first instruction; negative: before it.
std::optional<int64_t> CodeReader::offset_in(uint64_t code, uint64_t place, uint64_t copy) {
  if (layout_.version < kPointsIntoCode) {
    auto counted = static_cast<int32_t>(static_cast<uint32_t>(place));
    if (counted < -1 || static_cast<uint64_t>(counted + 1) > kMostCode) return std::nullopt;
    return int64_t{counted} * (layout_.version < kPlacesAreInstructions ? 1 : 2);
  }
  uint64_t start = code + layout_.code_start;
  if (copy != 0) {  // struct _PyCodeArray: their number, then pointers
    uint64_t copies = 0, count = 0;
    if (copy >= kMostCopies || !get(code + layout_.code_copies, copies) || !get(copies, count) || copy >= count ||
        !get(copies + 8 * (copy + 1), start))
      return std::nullopt;
  }
  auto offset = static_cast<int64_t>(place - start);
  if (offset < -2 || offset > static_cast<int64_t>(kMostCode)) return std::nullopt;
  return offset;
}

std::optional<PythonFrame> CodeReader::frame(uint64_t at, uint64_t place, uint64_t copy) {
  const Code* found = code(at);
  std::optional<int64_t> offset = found ? offset_in(at, place, copy) : std::nullopt;
  if (!offset) return std::nullopt;
  PythonFrame frame{found->file, found->function, 0};
  frame.line = line_at(layout_.lines, found->lines, found->first_line, *offset).value_or(0);
  return frame;
}

}  // namespace phalanx::machine
