// Torch's types of elements and safetensors' names of them.
#pragma once

#include <c10/core/ScalarType.h>

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace phalanx::engine::checkpoint {

std::optional<at::ScalarType> scalar_type(std::string_view dtype);  // nullopt: one that libtorch 1.13 has not
base::Result<std::string> dtype_name(at::ScalarType type);          // Error: one that safetensors has not

}  // namespace phalanx::engine::checkpoint
