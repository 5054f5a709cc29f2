// Which combinations of options cannot work, said before anything is allocated. Pure.
#pragma once

#include <string>

#include "base/result.h"
#include "engine/parallel/options.h"

namespace phalanx::engine::parallel {

struct GroupTraits {
  int world = 1;
  bool on_cpu = true;
  bool ordered_sums = true;  // comm::Group::ordered_sums()
};

base::Status refuse_impossible(const Options& options, const GroupTraits& around);
std::string show(const Options& options, const GroupTraits& around);  // every option by its name, one line

}  // namespace phalanx::engine::parallel
