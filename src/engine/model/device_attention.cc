#include "engine/model/device_attention.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <numeric>
#include <stdexcept>

#include "engine/autocast.h"
#include "engine/to_device.h"
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
  std::vector<at::Tensor> places;
  for (const Padding::Group& group : padding.groups) {
    const auto by_sequence = [&](const at::Tensor& x) {
      const at::Tensor rows = group.row_of_place.defined() ? at::index_select(x, 0, group.row_of_place) : x;
      return rows.reshape({group.sequences, group.longest, x.size(1), x.size(2)}).transpose(1, 2);
    };
    const auto for_queries = [&](const at::Tensor& x) { return by_sequence(sharing > 1 && !shared ? x.repeat_interleave(sharing, 1) : x); };
    const at::Tensor seen = causal(by_sequence(q), for_queries(k), for_queries(v), scale, shared);
    places.push_back(seen.transpose(1, 2).reshape({group.sequences * group.longest, q.size(1) * q.size(2)}));
  }
  const at::Tensor all = places.size() == 1 ? places.front() : at::cat(places);
  return padding.place_of_row.defined() ? at::index_select(all, 0, padding.place_of_row) : all;
}

Padding padding_of(const std::vector<int64_t>& starts, at::Device device) {
  const auto count = static_cast<int64_t>(starts.size()) - 1;
  const auto length = [&](size_t i) { return starts[i + 1] - starts[i]; };
  std::vector<size_t> order(static_cast<size_t>(count));
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return length(a) > length(b); });
  Padding out;
  if (length(order.front()) == length(order.back())) {
    out.groups = {{count, length(0)}};
    return out;
  }
  std::vector<int64_t> place_of_row(static_cast<size_t>(starts.back()));
  int64_t place = 0;
  for (auto first = order.begin(); first != order.end();) {
    const int64_t longest = length(*first);
    const auto end = std::find_if(first, order.end(), [&](size_t i) { return 2 * length(i) <= longest; });
    std::vector<int64_t> row_of_place;
    for (auto i = first; i != end; ++i)
      for (int64_t at = 0; at < longest; ++at, ++place) {
        if (at < length(*i)) place_of_row[static_cast<size_t>(starts[*i] + at)] = place;
        row_of_place.push_back(std::min(starts[*i] + at, starts[*i + 1] - 1));
      }
    out.groups.push_back({end - first, longest, to_device(at::tensor(row_of_place, at::kLong), device)});
    first = end;
  }
  out.place_of_row = to_device(at::tensor(place_of_row, at::kLong), device);
  return out;
}

}  // namespace phalanx::engine::model
