#include "engine/model/device_attention.h"

#include <stdexcept>

#include "engine/autocast.h"
#include "engine/torch_version.h"

#if PHALANX_TORCH_SINCE(2, 5)
#include <ATen/ops/scaled_dot_product_attention.h>
#endif

namespace phalanx::engine::model {
namespace {

constexpr bool kHasOperator = PHALANX_TORCH_SINCE(2, 5);

// All three [sequences, heads, time, head]. `repeated`: several query heads share a head of k and v.
at::Tensor causal([[maybe_unused]] const at::Tensor& q, [[maybe_unused]] const at::Tensor& k, [[maybe_unused]] const at::Tensor& v,
                  [[maybe_unused]] c10::optional<double> scale, [[maybe_unused]] bool repeated) {
#if PHALANX_TORCH_SINCE(2, 5)
  return at::scaled_dot_product_attention(q, k, v, {}, 0.0, /*is_causal=*/true, scale, repeated);
#else
  throw std::logic_error("this libtorch has no operator for attention");
#endif
}

}  // namespace

bool attends_by_operator(const at::Tensor& x) { return kHasOperator && x.is_cuda(); }

at::Tensor operator_causal_attention(const at::Tensor& qkv, int64_t heads) {
  const int64_t batch = qkv.size(0), time = qkv.size(1), width = qkv.size(2) / 3;
  const at::Tensor parts = qkv.view({batch, time, 3, heads, width / heads}).permute({2, 0, 3, 1, 4});
  return causal(parts[0], parts[1], parts[2], {}, false).transpose(1, 2).reshape({batch, time, width});
}

at::Tensor operator_grouped_attention(const Padding& padding, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, double scale) {
  const int64_t sharing = q.size(1) / k.size(1);
  // In fp32 the kernels want as many heads of each.
  const bool shared = sharing > 1 && (autocast_of(q.device()).on || q.scalar_type() != at::kFloat);
  const bool copied = sharing > 1 && !shared;
  const std::vector<at::Tensor> qs = padded(padding, q), ks = padded(padding, copied ? k.repeat_interleave(sharing, 1) : k),
                                vs = padded(padding, copied ? v.repeat_interleave(sharing, 1) : v);
  std::vector<at::Tensor> seen;
  for (size_t i = 0; i < padding.groups.size(); ++i) {
    const auto [sequences, longest, rows] = padding.groups[i];
    const auto by_sequence = [&, sequences = sequences, longest = longest](const at::Tensor& x) {
      return x.reshape({sequences, longest, x.size(1), x.size(2)}).transpose(1, 2);
    };
    const at::Tensor out = causal(by_sequence(qs[i]), by_sequence(ks[i]), by_sequence(vs[i]), scale, shared);
    seen.push_back(out.transpose(1, 2).reshape({sequences * longest, q.size(1) * q.size(2)}));
  }
  return unpadded(padding, seen);
}

}  // namespace phalanx::engine::model
