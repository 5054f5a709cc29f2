// The helper program that asks NVML (nvml_reader.c), as it lies in this one. Empty where it could not be built.
#pragma once

#include <string_view>

namespace phalanx::machine {

std::string_view nvml_image();

}  // namespace phalanx::machine
