// Which combinations of options cannot work, said before anything is allocated. Pure.
#pragma once

#include <string>

#include "base/result.h"
#include "engine/parallel/options.h"

namespace engine::parallel {

struct Surroundings {
  int world = 1;
  bool on_cpu = true;
  bool ordered_sums = true;  // comm::Group::ordered_sums()
};

base::Status refuse_impossible(const Options& options, const Surroundings& around);
std::string show(const Options& options, const Surroundings& around);  // every option by its name, one line

}  // namespace engine::parallel
