#include "engine/comm/call_note.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>

namespace phalanx::engine::comm {
namespace {

bool same_call(const CallNote& a, const CallNote& b, bool with_label) {
  return a.sequence == b.sequence && a.elements == b.elements && a.root == b.root && a.kind == b.kind && a.dtype == b.dtype &&
         a.reduction == b.reduction && (!with_label || std::memcmp(a.label, b.label, sizeof a.label) == 0);
}

}  // namespace

std::string CallNote::say() const {
  const std::string_view name(label, strnlen(label, sizeof label));
  if (static_cast<Kind>(kind) == Kind::kBarrier) return fmt::format("barrier {} ({})", sequence, name);
  return fmt::format("{} {} ({}) of {} {}{}{}", name_of(static_cast<Kind>(kind)), sequence, name, elements,
                     c10::toString(static_cast<at::ScalarType>(dtype)), reduction ? ", max" : "",
                     root >= 0 ? fmt::format(", root {}", root) : "");
}

CallNote note_of(const Operation& operation) {
  CallNote note;
  note.sequence = operation.sequence;
  note.kind = static_cast<uint8_t>(operation.kind);
  note.reduction = static_cast<uint8_t>(operation.reduction);
  note.root = operation.root;
  note.elements = elements_of(operation);
  note.dtype = static_cast<uint8_t>(dtype_of(operation));
  std::memcpy(note.label, operation.label.data(), std::min(operation.label.size(), sizeof note.label));
  return note;
}

void check_equal(const std::vector<CallNote>& notes, bool with_label) {
  const CallNote& first = notes.front();
  for (size_t r = 1; r < notes.size(); ++r)
    if (!same_call(first, notes[r], with_label))
      throw std::runtime_error(fmt::format("the ranks called different operations: rank 0 {}, rank {} {}", first.say(), r, notes[r].say()));
}

}  // namespace phalanx::engine::comm
