#include "engine/model/padding.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <numeric>

#include "engine/to_device.h"

namespace phalanx::engine::model {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct Pad : torch::autograd::Function<Pad> {
  static variable_list forward(AutogradContext* context, const at::Tensor& x, const Padding& padding) {
    context->saved_data["place_of_row"] = padding.place_of_row;
    variable_list groups;
    for (const Padding::Group& group : padding.groups) groups.push_back(at::index_select(x, 0, group.row_of_place));
    return groups;
  }
  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    return {at::index_select(at::cat(grads), 0, context->saved_data["place_of_row"].toTensor()), at::Tensor()};
  }
};

struct Unpad : torch::autograd::Function<Unpad> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& places, const at::Tensor& place_of_row) {
    context->saved_data["place_of_row"] = place_of_row;
    context->saved_data["places"] = places.size(0);
    return at::index_select(places, 0, place_of_row);
  }
  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    std::vector<int64_t> sizes = grads[0].sizes().vec();
    sizes[0] = context->saved_data["places"].toInt();
    at::Tensor places = at::zeros(sizes, grads[0].options());
    places.index_copy_(0, context->saved_data["place_of_row"].toTensor(), grads[0]);
    return {places, at::Tensor()};
  }
};

}  // namespace

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

std::vector<at::Tensor> padded(const Padding& padding, const at::Tensor& x) {
  if (!padding.place_of_row.defined()) return {x};
  return Pad::apply(x, padding);
}

at::Tensor unpadded(const Padding& padding, const std::vector<at::Tensor>& groups) {
  const at::Tensor all = groups.size() == 1 ? groups.front() : at::cat(groups);
  return padding.place_of_row.defined() ? Unpad::apply(all, padding.place_of_row) : all;
}

}  // namespace phalanx::engine::model
