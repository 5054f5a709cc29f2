#include "engine/model/gemm.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/mm.h>
#include <dlfcn.h>

namespace phalanx::engine::model {
namespace {

using Sgemm = void (*)(const char* trans_a, const char* trans_b, const int* m, const int* n, const int* k, const float* alpha,
                       const float* a, const int* lda, const float* b, const int* ldb, const float* beta, float* c, const int* ldc);

// Null where libtorch keeps its BLAS to itself (MKL inside it).
Sgemm sgemm() {
  static const auto found = reinterpret_cast<Sgemm>(dlsym(RTLD_DEFAULT, "sgemm_"));
  return found;
}

at::Tensor view(const float* data, int64_t rows, int64_t columns, int64_t stride, bool transposed) {
  at::IntArrayRef sizes{rows, columns};
  const std::array<int64_t, 2> shape = {rows, columns};
  const std::array<int64_t, 2> strides = transposed ? std::array<int64_t, 2>{1, stride} : std::array<int64_t, 2>{stride, 1};
  return at::from_blob(const_cast<float*>(data), shape, strides);
}

}  // namespace

void gemm(int64_t m, int64_t n, int64_t k, float alpha, const Matrix& a, const Matrix& b, float beta, float* c, int64_t c_stride) {
  if (!sgemm()) {
    at::NoGradGuard no_grad;
    at::Tensor out = view(c, m, n, c_stride, false);
    at::Tensor product = at::mm(view(a.data, m, k, a.stride, a.transposed), view(b.data, k, n, b.stride, b.transposed)).mul_(alpha);
    out.copy_(beta == 0 ? product : product.add_(out, beta));
    return;
  }
  // Fortran's matrices stand in columns, so it is asked for the transpose: cᵀ = bᵀ · aᵀ.
  const int rows = static_cast<int>(n), columns = static_cast<int>(m), inner = static_cast<int>(k);
  const int lda = static_cast<int>(b.stride), ldb = static_cast<int>(a.stride), ldc = static_cast<int>(c_stride);
  sgemm()(b.transposed ? "T" : "N", a.transposed ? "T" : "N", &rows, &columns, &inner, &alpha, b.data, &lda, a.data, &ldb, &beta, c, &ldc);
}

}  // namespace phalanx::engine::model
