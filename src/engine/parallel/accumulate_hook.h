// A call behind autograd's AccumulateGrad node of a parameter: "its .grad() is final for this backward".
//
// These classes are public in libtorch's headers but undocumented; every use of them is in this file and its source. The handle of a
// node is shared_ptr<Node> up to torch 2.6 and intrusive_ptr<Node> later.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>

namespace phalanx::engine::parallel {

// Keeps the node alive, which the parameter itself holds only weakly. Attach it when the parameter has its final dtype and device.
std::shared_ptr<void> on_gradient(at::Tensor& parameter, std::function<void()> call);

}  // namespace phalanx::engine::parallel
