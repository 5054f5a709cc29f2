// Where each parameter lies: in which flat buffer ("unit"), from which element, and which slice of it belongs to which rank. Pure.
//
// A unit is the parameters of a part of the model laid end to end, each beginning on a 64-byte boundary, the whole padded so that it
// cuts into world() equal slices. Rank r owns slice r of every unit: it reduces the gradients of that slice, holds its optimizer
// states, and (stage 3) its parameters. So one reduce-scatter and one all-gather per unit are all the communication there is, and what
// belongs to whom for another number of ranks is arithmetic on offsets.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/optim/row.h"

namespace phalanx::engine::parallel {

struct ParamShape {
  std::string name;
  std::vector<int64_t> shape;
  int64_t numel = 0;
  int group = 0;
  std::string part;  // of the model, for stage 3: "block3"; parameters of one part are neighbours
};

struct Slot {
  size_t param = 0;    // index into the list of parameters
  int64_t offset = 0;  // in elements of the unit
  int64_t numel = 0;
  int group = 0;
};

struct Unit {
  std::string name;
  std::vector<Slot> slots;  // by offset
  int64_t elements = 0;     // padded: a multiple of world · kAlign
  bool sharded = false;     // stage 3: its parameters are whole only while in use
};

inline constexpr int64_t kAlign = 16;  // elements: 64 bytes of fp32

struct LayoutSizes {
  int64_t first_elements = 0, elements = 0;  // of a bucket; a larger parameter is a bucket of its own
  int64_t persistent_elements = 0;           // plan_parts: parameters smaller than this go to units that are not sharded
};

// `params` in their order in forward. Buckets for stages 0 to 2, in the order in which backward fills them.
std::vector<Unit> plan_buckets(const std::vector<ParamShape>& params, const LayoutSizes& sizes, int world);
// A unit per part, likewise from the last to the first; small parameters in buckets behind them. `sharded`: the parts' units are
// (stage 3); other stages may take the same cut.
std::vector<Unit> plan_parts(const std::vector<ParamShape>& params, const LayoutSizes& sizes, int world, bool sharded);

// A rank's elements of a unit.
struct Slice {
  int64_t begin = 0, numel = 0;
  int64_t end() const { return begin + numel; }
};
Slice slice_of(const Unit& unit, int rank, int world);

// The runs of the elements [begin, end) of a unit, counted from begin: what an optimizer needs to know.
std::vector<optim::Run> runs_in(const Unit& unit, int64_t begin, int64_t end);

// The part of a slot inside [begin, end) of its unit.
struct Overlap {
  size_t param = 0;
  int64_t first = 0;   // element of the flattened parameter
  int64_t offset = 0;  // from begin
  int64_t numel = 0;
};
std::vector<Overlap> overlaps(const Unit& unit, int64_t begin, int64_t end);

}  // namespace phalanx::engine::parallel
