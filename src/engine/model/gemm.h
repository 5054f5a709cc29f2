// Small fp32 matrix products on strided memory, by the BLAS that libtorch itself uses: an at:: operator for a head's 64 columns costs
// as much as the product.
#pragma once

#include <cstdint>

namespace phalanx::engine::model {

struct Matrix {
  const float* data;
  int64_t stride;           // elements from row to row
  bool transposed = false;  // take the transpose of what lies there
};

// c[m, n] = alpha · a[m, k] · b[k, n] + beta · c, rows of c `c_stride` apart.
void gemm(int64_t m, int64_t n, int64_t k, float alpha, const Matrix& a, const Matrix& b, float beta, float* c, int64_t c_stride);

}  // namespace phalanx::engine::model
