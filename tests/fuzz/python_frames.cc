// Any bytes as the memory of a Python process of any layout, as _Py_DebugOffsets, and as the line table of a code object.
#include <cstdint>
#include <string>
#include <string_view>

#include "../unit/machine/python_image.h"
#include "base/check.h"
#include "base/unicode.h"
#include "machine/python/frames.h"

using namespace phalanx;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 1 || size > python_image::Image::kSize) return 0;
  std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  unsigned which = data[0] % 8;
  for (int64_t at : {int64_t{-1}, int64_t{0}, int64_t{which}, int64_t{4096}})
    for (machine::LineTable kind : {machine::LineTable::kLnotab, machine::LineTable::kRanges, machine::LineTable::kLocations})
      if (std::optional<int> line = machine::line_at(kind, bytes.substr(0, 4096), 1, at)) PHALANX_CHECK(*line >= 1);
  std::optional<machine::PythonLayout> layout;
  if (which < 5) {
    layout = *machine::python_layout(machine::kFirstPython + which);
  } else if (which < 7) {
    python_image::Offsets314 offsets = python_image::offsets_of_314(which == 6);
    layout = machine::python_layout_in({reinterpret_cast<const char*>(&offsets), sizeof(offsets)}, 0x030e);
  } else {
    layout = machine::python_layout_in(bytes.substr(0, machine::kOffsetsBytes), machine::kLastPython);
  }
  if (!layout) return 0;
  python_image::Image memory{std::string(bytes)};
  base::Result<machine::PythonStacks> stacks = machine::read_python(
      {python_image::Image::kBase, *layout}, memory, {python_image::Image::kTid}, os::mono_now() + std::chrono::milliseconds(50));
  if (!stacks.ok()) return 0;
  PHALANX_CHECK(stacks->threads.size() <= 256);
  for (const machine::PythonThread& thread : stacks->threads) {
    PHALANX_CHECK(thread.frames.size() <= 64 && (thread.tid == 0 || thread.tid == python_image::Image::kTid));
    for (const machine::PythonFrame& frame : thread.frames)
      PHALANX_CHECK(base::is_utf8(frame.file) && base::is_utf8(frame.function) && frame.line >= 0);
  }
  return 0;
}
