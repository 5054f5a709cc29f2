// The variables that `accelerate launch` sets for its processes, each from one option or one key of its configuration file. Source:
// accelerate/utils/launch.py and commands/launch.py (16cb6eb8).
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace phalanx::frontdoor {

// When a variable is set.
enum class Group : uint8_t { kDynamo, kFsdp, kDeepSpeed, kMegatron, kParallel, kContextParallel, kSequenceParallel, kFp8 };
// What Python makes of the value: str(x), str(x).lower(), x.upper().
enum class Spelling : uint8_t { kAsIs, kLower, kUpper };

struct AccelerateVariable {
  std::string_view flag;  // with '-'; the key of the file is the same with '_'
  std::string_view variable;
  Group group;
  Spelling spelling = Spelling::kAsIs;
  std::string_view fallback = {};  // where nothing is given; empty: the variable is not set
  bool is_switch = false;          // an option without a value
};

std::span<const AccelerateVariable> accelerate_variables();

}  // namespace phalanx::frontdoor
