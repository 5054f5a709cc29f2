// Flags of torchrun, DeepSpeed and mpirun that Phalanx does not have, each with what to do instead. They are refused, never
// ignored: a flag that changes nothing would be a lie.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace phalanx::cli {

// `name` without dashes in front; '_' counts as '-'.
std::optional<std::string> advice_for_foreign_flag(std::string_view name);

}  // namespace phalanx::cli
