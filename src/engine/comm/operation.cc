#include "engine/comm/operation.h"

#include <fmt/format.h>

#include <stdexcept>

namespace phalanx::engine::comm {
namespace {

bool moved(at::ScalarType type) {
  switch (type) {
    case at::kFloat:
    case at::kDouble:
    case at::kBFloat16:
    case at::kHalf:
    case at::kLong:
    case at::kInt:
    case at::kByte: return true;
    default: return false;
  }
}

[[noreturn]] void refuse(const Operation& operation, const std::string& why) {
  throw std::invalid_argument(fmt::format("{}: {}", say(operation), why));
}

}  // namespace

std::string_view name_of(Kind kind) {
  switch (kind) {
    case Kind::kAllReduce: return "all_reduce";
    case Kind::kReduceScatter: return "reduce_scatter";
    case Kind::kAllGather: return "all_gather";
    case Kind::kBroadcast: return "broadcast";
    case Kind::kBarrier: return "barrier";
  }
  return "?";
}

std::string say(const Operation& operation) {
  return fmt::format("{} {} ({})", name_of(operation.kind), operation.sequence, operation.label);
}

void check_call(const Operation& operation, int world, at::Device device) {
  if (operation.kind == Kind::kBarrier) return;
  for (const at::Tensor& tensor : {operation.output, operation.input}) {
    if (!tensor.defined()) refuse(operation, "a tensor is not defined");
    if (!tensor.is_contiguous()) refuse(operation, "a tensor is not contiguous");
    if (tensor.device() != device)
      refuse(operation, fmt::format("a tensor is on {}, the group on {}", tensor.device().str(), device.str()));
    if (!moved(tensor.scalar_type()))
      refuse(operation, fmt::format("tensors of type {} are not supported", c10::toString(tensor.scalar_type())));
  }
  const at::ScalarType in = operation.input.scalar_type(), out = operation.output.scalar_type();
  const bool widened = operation.kind == Kind::kReduceScatter && out == at::kFloat && (in == at::kBFloat16 || in == at::kHalf);
  if (in != out && !widened) refuse(operation, fmt::format("input is {}, output {}", c10::toString(in), c10::toString(out)));
  const int64_t input = operation.input.numel(), output = operation.output.numel();
  if (operation.kind == Kind::kReduceScatter && input != output * world)
    refuse(operation, fmt::format("input has {} elements, not {} pieces of {}", input, world, output));
  if (operation.kind == Kind::kAllGather && output != input * world)
    refuse(operation, fmt::format("output has {} elements, not {} pieces of {}", output, world, input));
  if (operation.kind == Kind::kBroadcast && (operation.root < 0 || operation.root >= world))
    refuse(operation, fmt::format("root {} is out of range for {} ranks", operation.root, world));
}

}  // namespace phalanx::engine::comm
