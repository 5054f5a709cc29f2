// Python pickles of plain data, read without Python: None, booleans, numbers, text, bytes, lists, tuples, sets, dicts. What could run code
// (a class, a function, a persistent id, an extension) is refused by name, so a file from anybody may be read.
//
// Reads what torch's dumps use (torch/csrc/jit/serialization/pickler.cpp, protocol 2) and what Python's own pickle.dumps writes of such
// data up to protocol 5 (CPython Lib/pickletools.py).
#pragma once

#include <cstddef>
#include <string_view>

#include "base/json.h"

namespace phalanx::base {

struct PickleLimits {
  size_t bytes = 64 << 20;
  size_t values = 4'000'000;  // after shared values are written out, so that a value that is shared again and again costs
  size_t depth = 64;
};

// Tuples and sets become arrays, bytes become text (one character per byte), keys of dicts must be text or numbers. Integers of more than
// 64 bits and values that contain themselves are refused. Error: kConfig, with the offset of the opcode.
Result<Json> parse_pickle(std::string_view bytes, const PickleLimits& limits = {});

}  // namespace phalanx::base
