// Model FLOPs utilisation: what part of what the devices could compute the model needs. Recomputed activations do not count as need.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace phalanx::engine::train {

// Of a GPT's forward and backward, per token: 6 N + 12 · layers · width · context, N the parameters without the position embedding
// (which is looked up, not multiplied; the token embedding is also the head and counts). PaLM (arXiv 2204.02311), appendix B; the same
// as nanoGPT's estimate_mfu. Attention counts as if no position were masked.
double flops_per_token(int64_t parameters, int64_t layers, int64_t width, int64_t context);

// Dense FLOPS per second by its maker's data sheet, nullopt for a GPU that is not in our table, or for a part of one (MIG). `name` as
// the driver calls it: "NVIDIA H100 80GB HBM3". Products of fp32 as torch does them: without TF32.
std::optional<double> gpu_peak(std::string_view name, at::ScalarType dtype);
// The name of GPU `index` as this process counts them; "" where there is no driver.
std::string gpu_name(int index);

// What matrix products reach here, with this process's threads, in FLOPS per second: the best of several. Takes 40 to 150 ms. Ranks of
// one host that measure at the same time get what each of them has.
double measure_cpu(at::ScalarType dtype);

}  // namespace phalanx::engine::train
