// An archive becomes an environment at its place: extracted beside it (extract.h), made to fit (rehome.h), and renamed. Until then nothing
// is at its place; what an interrupted one leaves beside it goes with the next.
#pragma once

#include <functional>
#include <string>

#include "base/result.h"
#include "envmove/archive/extract.h"
#include "envmove/rehome.h"

namespace phalanx::envmove {

struct Unpacked {
  Extracted extracted;
  size_t rewritten = 0;
  std::vector<std::string> former;     // places that its files named
  std::vector<std::string> untouched;  // opaque files that name one
};

struct UnpackProgress {
  std::function<void(uint64_t bytes)> extracted;
  Progress files;
};

// place: absolute, without a final slash. Error kConfig: something is there; the archive holds no environment, or one that cannot be moved
// there; kUnfit: the disk, or another one is unpacking to this place.
base::Result<Unpacked> unpack(const std::string& file, const std::string& place, const UnpackProgress& progress);

}  // namespace phalanx::envmove
