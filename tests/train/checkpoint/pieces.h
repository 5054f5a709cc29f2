// A made-up training state, cut among ranks in a ragged way.
#pragma once

#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "engine/checkpoint/piece.h"
#include "engine/checkpoint/reader.h"
#include "engine/checkpoint/sharded.h"

namespace phalanx::pieces {

// A new empty folder in memory (a disk's fsync would take most of a test's time), where the machine has that.
class Folder {
 public:
  Folder();
  ~Folder();
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// The value itself, so that a loop over it is safe; throws the rendered Error.
template <typename T>
T value(base::Result<T> result) {
  if (!result.ok()) throw std::runtime_error(result.error().render());
  return std::move(result).value();
}

using State = std::map<std::string, at::Tensor>;

// Tensors of several dtypes and shapes, an empty one and one without dimensions among them; other values for another step.
State state(int64_t step);
// What rank `rank` of `world` holds. The cuts depend on the seed alone: about a third of the pieces are empty.
std::vector<engine::checkpoint::Piece> share(const State& state, int rank, int world, uint64_t seed);

// All ranks save one after the other; the last finishes. The checkpoint's path.
std::string save(const std::string& folder, int64_t step, int world, uint64_t seed = 1);

// Reads everything in ranges that world' ranks would ask for; adds a test failure where it is not bit for bit state(step).
void expect_state(engine::checkpoint::Reader& reader, int64_t step, int world, uint64_t seed);

}  // namespace phalanx::pieces
