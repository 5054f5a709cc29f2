#include "engine/checkpoint/dtypes.h"

#include <fmt/format.h>

#include <array>
#include <utility>

namespace phalanx::engine::checkpoint {
namespace {

using Pair = std::pair<std::string_view, at::ScalarType>;
constexpr std::array kTypes{Pair{"F32", at::kFloat}, Pair{"F64", at::kDouble}, Pair{"F16", at::kHalf},  Pair{"BF16", at::kBFloat16},
                            Pair{"I64", at::kLong},  Pair{"I32", at::kInt},    Pair{"I16", at::kShort}, Pair{"I8", at::kChar},
                            Pair{"U8", at::kByte},   Pair{"BOOL", at::kBool}};

}  // namespace

std::optional<at::ScalarType> scalar_type(std::string_view dtype) {
  for (auto [name, type] : kTypes)
    if (name == dtype) return type;
  return std::nullopt;
}

base::Result<std::string> dtype_name(at::ScalarType type) {
  for (auto [name, one] : kTypes)
    if (one == type) return std::string(name);
  return base::fail(base::ErrorKind::kInternal, fmt::format("safetensors has no {} tensors", c10::toString(type)));
}

}  // namespace phalanx::engine::checkpoint
