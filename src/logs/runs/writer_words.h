// What a Writer and its process say to each other, both of one build on one machine. To the process: commands, a header and a body. From
// it: lines of JSON, {"warn":"…"} or {"synced":N,"lost":N}.
#pragma once

#include <cstdint>

namespace phalanx::logs {

struct CommandHeader {
  uint32_t kind = 0;  // Command
  uint32_t file = 0;  // FileId, for those that name one
  uint32_t head = 0;  // bytes of the first part of the body
  uint32_t size = 0;  // bytes of the whole body
};

enum class Command : uint32_t {
  kLog,      // head: path; behind it: one byte, the Form, and decimal its most bytes. Files are numbered as they come
  kAppend,   // head: TimeMarks; behind it: bytes
  kReplace,  // head: path; behind it: the content
  kRemove,   // head: path
  kMissing,  // behind an empty head: decimal bytes that were dropped before they came here
  kSync,     // behind an empty head: decimal number to be answered when everything before it is written
};

}  // namespace phalanx::logs
