// The variables that NCCL, torch and CUDA read, and what is wrong with a name or a value. Pure functions over text.
//
// The tables are data (codes/values/nccl-variables.tsv, variable-names.tsv, variables-misnamed.tsv), which say where they come from.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "words/message.h"

namespace phalanx::doctor {

enum class VariableKind {
  kNumber,  // read by strtoll(value, nullptr, 0), only errno is looked at (src/misc/param.cc)
  kText,
};

struct NcclVariable {
  std::string_view name;
  VariableKind kind;
  int64_t min, max;          // both 0: no range known
  int since, removed;        // minor releases of NCCL 2: {24, 0} is "since 2.24"; 0: always; still
  std::string_view instead;  // for a removed name
};
std::span<const NcclVariable> nccl_variables();  // sorted by name
const NcclVariable* find_nccl_variable(std::string_view name);

// Names that start with NCCL_ but are read by others: plugins, images, builds, tests. Nothing is said of them.
bool is_others_nccl_name(std::string_view name);
// Torch's own names, first with NCCL_, since 2.2 with TORCH_NCCL_: "TORCH_NCCL_BLOCKING_WAIT" for "NCCL_BLOCKING_WAIT"; else empty.
std::string_view torch_name_of(std::string_view name);
// What to use for a name that never was one but is seen in the wild ("NCCL_TIMEOUT"); empty: not such a name.
words::Message advice_on_name(std::string_view name);

// The known name a person probably meant: edit distance 1, from 12 letters on 2, or blanks and case aside the same. Empty: none, or the
// name is known.
std::string meant_name(std::string_view name);
bool is_known_name(std::string_view name);  // of NCCL, torch, CUDA, GLOO, OMP

// What strtoll(value, nullptr, 0) makes of it; nothing for an empty value or one out of 64 bits: NCCL then keeps its default.
struct ReadNumber {
  int64_t value = 0;
  bool whole = true;   // false: "true" (0), "20ms" (20): text is left over
  bool octal = false;  // "010" is 8
};
std::optional<ReadNumber> read_as_nccl(std::string_view value);

// Words of a list variable that NCCL does not know: of NCCL_DEBUG, _DEBUG_SUBSYS, _ALGO, _PROTO, _P2P_LEVEL, _NET_GDR_LEVEL,
// _SOCKET_FAMILY, _LAUNCH_MODE. The first such word; empty: all known, or another variable.
std::string unknown_word(std::string_view name, std::string_view value);

int nccl_minor(std::string_view version);  // 20 of "2.20.5+cuda12.4"; -1: not NCCL 2

}  // namespace phalanx::doctor
