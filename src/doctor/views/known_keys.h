// Keys that configurations may have (codes/values/config-keys.tsv), to find misspelt ones.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace phalanx::doctor {

// The first keys of `object` that the section ("deepspeed.zero_optimization") does not know but that are within a third of their length
// of one that it does; and that one.
struct Misspelt {
  std::string key, meant;
};
std::vector<Misspelt> misspelt_keys(const base::Json& object, std::string_view section);

}  // namespace phalanx::doctor
