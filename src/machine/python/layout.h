// Where CPython keeps what a stack is made of: offsets into its structures, of each version. Up to 3.12 they stand in a table here, taken
// from the headers of that version; from 3.13 on the interpreter says itself (_Py_DebugOffsets, the first bytes of _PyRuntime).
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "machine/python/line_table.h"

namespace phalanx::machine {

// A version is 0x030b for 3.11. 0 as an offset: the version has no such field, unless the field stands first (those say so).
struct PythonLayout {
  uint32_t version = 0;
  LineTable lines = LineTable::kLocations;
  bool free_threaded = false;
  uint32_t interpreters_head = 0;                          // _PyRuntimeState; the pointer to the first interpreter
  uint32_t interpreter_next = 0, threads_head = 0;         // PyInterpreterState; next may be first
  uint32_t thread_next = 0, thread_id = 0, native_id = 0;  // PyThreadState; thread_id: pthread_t
  uint32_t thread_frame = 0;                               // the innermost frame; of 3.11 and 3.12 a _PyCFrame
  std::optional<uint32_t> cframe_frame;                    // _PyCFrame: the innermost frame
  uint32_t frame_previous = 0, frame_code = 0;             // code may be first
  uint32_t frame_place = 0;                                // up to 3.10 an int, counted in places; then a pointer into the code
  uint32_t frame_state = 0, frame_copy = 0;                // a byte (FrameState); tlbc_index
  uint32_t code_file = 0, code_name = 0, code_first_line = 0, code_lines = 0, code_start = 0, code_copies = 0;
  uint32_t type = 0, type_name = 0;         // PyObject, PyTypeObject
  uint32_t bytes_size = 0, bytes_data = 0;  // PyBytesObject
  uint32_t text_length = 0, text_state = 0, ascii_data = 0, text_data = 0;
};

inline constexpr uint32_t kFirstPython = 0x0308, kLastPython = 0x030e;
// _PyCodeUnits in which f_lasti counts: 3.8 and 3.9 in bytes, 3.10 in instructions.
inline constexpr uint32_t kPlacesAreInstructions = 0x030a;
inline constexpr uint32_t kPointsIntoCode = 0x030b;
inline constexpr uint32_t kSaysOffsets = 0x030d;
// What frame_state says: of 3.8 and 3.9 f_executing, of 3.10 f_state, then owner.
enum class FrameState { kRuns, kGenerator, kEntry, kOver };  // kEntry: from C, no Python function; kOver: has returned, or is suspended
FrameState frame_state(uint32_t version, uint8_t value);

// Of a version before kSaysOffsets; nothing: not known.
const PythonLayout* python_layout(uint32_t version);
// From the first bytes of _PyRuntime, as many of them as there are. Nothing: no such structure, another version's, or it makes no sense.
inline constexpr size_t kOffsetsBytes = 1024;
std::optional<PythonLayout> python_layout_in(std::string_view offsets, uint32_t version);

}  // namespace phalanx::machine
