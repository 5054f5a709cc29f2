#include "machine/python/layout.h"

#include <cstring>

namespace phalanx::machine {
namespace {

constexpr uint32_t kNo = 0;

// sizeof and offsetof, 64-bit, of the headers of CPython 3.8.18, 3.9.18, 3.10.13, 3.11.7 and 3.12.1; unchanged since each version's .0.
// In the order of the structure's fields; the second line of each begins with code_file.
using enum LineTable;
// clang-format off
constexpr PythonLayout kLayouts[] = {
    {0x0308,    kLnotab, false, 32, 0,  8, 8, 176, kNo, 24, {}, 24, 32, 104, 116, kNo,
     104, 112, 40, 120, kNo, kNo, 8, 24, 16, 32, 16, 32, 48, 72},
    {0x0309,    kLnotab, false, 32, 0,  8, 8, 176, kNo, 24, {}, 24, 32, 104, 116, kNo,
     104, 112, 40, 120, kNo, kNo, 8, 24, 16, 32, 16, 32, 48, 72},
    {0x030a,    kRanges, false, 32, 0,  8, 8, 176, kNo, 24, {}, 24, 32,  96, 108, kNo,
     104, 112, 40, 120, kNo, kNo, 8, 24, 16, 32, 16, 32, 48, 72},
    {0x030b, kLocations, false, 40, 0, 16, 8, 152, 160, 56,  8, 48, 32,  56,  69, kNo,
     112, 120, 72, 136, 184, kNo, 8, 24, 16, 32, 16, 32, 48, 72},
    {0x030c, kLocations, false, 40, 0, 72, 8, 136, 144, 56,  0,  8,  0,  56,  70, kNo,
     112, 120, 68, 136, 192, kNo, 8, 24, 16, 32, 16, 32, 40, 56},
};
// clang-format on

// Which word of _Py_DebugOffsets holds what. 3.13: Include/internal/pycore_runtime.h; 3.14: Include/internal/pycore_debug_offsets.h.
struct Words {
  uint32_t version;
  uint8_t interpreters_head, interpreter_next, threads_head, thread_next, thread_frame, thread_id, native_id;
  uint8_t frame_previous, frame_code, frame_place, frame_state, frame_copy;
  uint8_t code_file, code_name, code_lines, code_first_line, code_start, code_copies;
  uint8_t type, type_name, bytes_size, bytes_data, text_state, text_length, ascii_data;
};
constexpr Words kWords[] = {
    {0x030d, 5, 8, 9, 21, 23, 24, 25, 29, 30, 31, 33, 0, 35, 36, 38, 39, 43, 0, 45, 47, 65, 66, 68, 69, 70},
    {0x030e, 5, 8, 9, 24, 26, 27, 28, 32, 33, 34, 36, 38, 40, 41, 43, 44, 48, 49, 51, 53, 75, 76, 78, 79, 80},
};

// Where a word goes.
struct Place {
  uint32_t PythonLayout::* offset;
  uint8_t Words::* word;
};
#define PHALANX_PLACE(name) {&PythonLayout::name, &Words::name}
constexpr Place kStatePlaces[] = {PHALANX_PLACE(interpreters_head), PHALANX_PLACE(interpreter_next), PHALANX_PLACE(threads_head)};
constexpr Place kObjectPlaces[] = {
    PHALANX_PLACE(thread_next),    PHALANX_PLACE(thread_frame), PHALANX_PLACE(thread_id),   PHALANX_PLACE(native_id),
    PHALANX_PLACE(frame_previous), PHALANX_PLACE(frame_code),   PHALANX_PLACE(frame_place), PHALANX_PLACE(frame_state),
    PHALANX_PLACE(code_file),      PHALANX_PLACE(code_name),    PHALANX_PLACE(code_lines),  PHALANX_PLACE(code_first_line),
    PHALANX_PLACE(code_start),     PHALANX_PLACE(type),         PHALANX_PLACE(type_name),   PHALANX_PLACE(bytes_size),
    PHALANX_PLACE(bytes_data),     PHALANX_PLACE(text_state),   PHALANX_PLACE(text_length), PHALANX_PLACE(ascii_data)};
constexpr Place kCopyPlaces[] = {PHALANX_PLACE(frame_copy), PHALANX_PLACE(code_copies)};
#undef PHALANX_PLACE

constexpr std::string_view kCookie = "xdebugpy";
constexpr size_t kVersionWord = 1, kFreeThreadedWord = 2;
constexpr uint64_t kMostOffset = 1 << 20;     // of a state
constexpr uint64_t kMostObjectOffset = 4096;  // of an object or a frame
constexpr uint32_t kCompactMore = 16;         // sizeof(PyCompactUnicodeObject) - sizeof(PyASCIIObject) since 3.12

}  // namespace

FrameState frame_state(uint32_t version, uint8_t value) {
  if (version < kPlacesAreInstructions) return value == 1 ? FrameState::kRuns : FrameState::kOver;
  if (version < kPointsIntoCode)
    return value == 0 || value == 2 ? FrameState::kRuns : FrameState::kOver;  // FRAME_EXECUTING, FRAME_UNWINDING
  return value == 1 ? FrameState::kGenerator : value >= 3 ? FrameState::kEntry : FrameState::kRuns;
}

const PythonLayout* python_layout(uint32_t version) {
  for (const PythonLayout& layout : kLayouts)
    if (layout.version == version) return &layout;
  return nullptr;
}

std::optional<PythonLayout> python_layout_in(std::string_view offsets, uint32_t version) {
  const Words* words = nullptr;
  for (const Words& known : kWords)
    if (known.version == version) words = &known;
  if (!words || !offsets.starts_with(kCookie)) return std::nullopt;
  bool good = true;
  auto word = [&](size_t index, uint64_t most) {
    uint64_t value = most + 1;
    if (offsets.size() >= (index + 1) * 8) std::memcpy(&value, offsets.data() + index * 8, 8);
    good = good && value <= most;
    return good ? static_cast<uint32_t>(value) : 0;
  };
  PythonLayout l;
  l.version = version;
  if ((word(kVersionWord, UINT32_MAX) >> 16) != version) return std::nullopt;
  l.free_threaded = word(kFreeThreadedWord, 1) == 1;
  for (const Place& place : kStatePlaces) l.*place.offset = word(words->*place.word, kMostOffset);
  for (const Place& place : kObjectPlaces)
    if (words->*place.word != 0) l.*place.offset = word(words->*place.word, kMostObjectOffset);
  for (const Place& place : kCopyPlaces)
    if (l.free_threaded && words->*place.word != 0) l.*place.offset = word(words->*place.word, kMostObjectOffset);
  l.text_data = l.ascii_data + kCompactMore;
  if (!good) return std::nullopt;
  return l;
}

}  // namespace phalanx::machine
