// Linear maps of the same x, each with an adapter, as one node of the graph: y = W x + b + scale · B (A x). x is kept once for all of them,
// the adapters' first halves are one product, and the second ones are added in place.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace phalanx::engine::tuning {

struct AdaptedMap {
  at::Tensor weight;  // [out, in]; frozen: it gets no gradient
  at::Tensor bias;    // [out], frozen; undefined: none
  at::Tensor a;       // [rank, in]
  at::Tensor b;       // [out, rank]
  double scale = 0;
};

// x [tokens, in] -> [tokens, out] of each. Under autocast the products are in its type, and so are the results.
std::vector<at::Tensor> adapted_maps(const at::Tensor& x, const std::vector<AdaptedMap>& maps);

}  // namespace phalanx::engine::tuning
