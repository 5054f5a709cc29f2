#include "engine/tuning/decoder/adapted_maps.h"

#include <ATen/ops/addmm.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/mm.h>
#include <torch/csrc/autograd/custom_function.h>

#include "engine/autocast.h"

namespace phalanx::engine::tuning {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// Where each map's tensors are among the arguments, which have no undefined ones.
struct MapPlaces {
  MapPlaces(const std::vector<int64_t>& biased) {
    int64_t next = 1;  // behind x
    for (int64_t has_bias : biased) {
      maps.push_back({next, next + 1, next + 2, has_bias ? next + 3 : 0});
      next += has_bias ? 4 : 3;
    }
  }
  struct Map {
    int64_t weight, a, b, bias;  // bias 0: none
  };
  std::vector<Map> maps;
};

struct MapsNode : torch::autograd::Function<MapsNode> {
  static variable_list forward(AutogradContext* context, at::TensorList all, const std::vector<double>& scales,
                               const std::vector<int64_t>& biased) {
    const AutocastState autocast = autocast_of(all[0].device());
    const at::ScalarType type = autocast.on ? autocast.type : all[0].scalar_type();
    const AutocastScope as_given(all[0].device(), {false, autocast.type});
    const auto cast = [&](int64_t place) { return all[static_cast<size_t>(place)].to(type); };
    const MapPlaces places(biased);
    const at::Tensor x = cast(0);
    variable_list firsts, out;
    for (const MapPlaces::Map& map : places.maps) firsts.push_back(cast(map.a));
    const at::Tensor low = at::mm(x, at::cat(firsts).t());  // [tokens, all ranks]
    int64_t rank = 0;
    for (size_t i = 0; i < scales.size(); ++i) {
      const MapPlaces::Map& map = places.maps[i];
      const at::Tensor weight = cast(map.weight), b = cast(map.b);
      at::Tensor y = map.bias ? at::addmm(cast(map.bias), x, weight.t()) : at::mm(x, weight.t());
      y.addmm_(low.narrow(1, rank, b.size(1)), b.t(), 1, scales[i]);
      rank += b.size(1);
      out.push_back(y);
    }
    variable_list kept(all.begin(), all.end());
    kept[0] = x;
    context->save_for_backward(kept);
    context->saved_data["low"] = low;
    context->saved_data["scales"] = scales;
    context->saved_data["biased"] = biased;
    context->saved_data["type_of_x"] = static_cast<int64_t>(all[0].scalar_type());
    context->saved_data["wants_x"] = all[0].requires_grad();
    return out;
  }

  static variable_list backward(AutogradContext* context, variable_list grads) {
    const variable_list all = context->get_saved_variables();
    const std::vector<double> scales = context->saved_data["scales"].toDoubleVector();
    const MapPlaces places(context->saved_data["biased"].toIntVector());
    const at::Tensor &x = all[0], low = context->saved_data["low"].toTensor();
    const auto saved = [&](int64_t place) -> const at::Tensor& { return all[static_cast<size_t>(place)]; };
    const auto cast = [&](int64_t place) { return saved(place).to(x.scalar_type()); };
    const bool wants_x = context->saved_data["wants_x"].toBool();
    at::Tensor d_low = at::empty_like(low), d_x;
    variable_list out(all.size() + 2), firsts;
    const auto set = [&](int64_t place, const at::Tensor& gradient) {
      out[static_cast<size_t>(place)] = gradient.to(saved(place).scalar_type());
    };
    int64_t rank = 0;
    for (size_t i = 0; i < scales.size(); ++i) {
      const MapPlaces::Map& map = places.maps[i];
      const at::Tensor b = cast(map.b), d_y = grads[i].contiguous();
      d_low.narrow(1, rank, b.size(1)).addmm_(d_y, b, 0, scales[i]);
      set(map.b, at::mm(d_y.t(), low.narrow(1, rank, b.size(1))).mul_(scales[i]));
      rank += b.size(1);
      firsts.push_back(cast(map.a));
      if (wants_x) d_x = d_x.defined() ? d_x.addmm_(d_y, cast(map.weight)) : at::mm(d_y, cast(map.weight));
    }
    if (wants_x) out[0] = d_x.addmm_(d_low, at::cat(firsts)).to(static_cast<at::ScalarType>(context->saved_data["type_of_x"].toInt()));
    const at::Tensor d_a = at::mm(d_low.t(), x);
    rank = 0;
    for (const MapPlaces::Map& map : places.maps) {
      const int64_t rows = saved(map.a).size(0);
      set(map.a, d_a.narrow(0, rank, rows));
      rank += rows;
    }
    return out;
  }
};

}  // namespace

std::vector<at::Tensor> adapted_maps(const at::Tensor& x, const std::vector<AdaptedMap>& maps) {
  std::vector<at::Tensor> all{x};
  std::vector<double> scales;
  std::vector<int64_t> biased;
  for (const AdaptedMap& map : maps) {
    all.insert(all.end(), {map.weight, map.a, map.b});
    if (map.bias.defined()) all.push_back(map.bias);
    scales.push_back(map.scale);
    biased.push_back(map.bias.defined());
  }
  return MapsNode::apply(at::TensorList(all), scales, biased);
}

}  // namespace phalanx::engine::tuning
