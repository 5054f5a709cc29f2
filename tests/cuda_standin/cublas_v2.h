// Stand-in for a header of the CUDA toolkit (see cuda_runtime_api.h): cuBLAS, of which libtorch's headers name only the handle.
#pragma once

extern "C" {
typedef struct cublasContext* cublasHandle_t;
typedef enum { CUBLAS_STATUS_SUCCESS = 0 } cublasStatus_t;
}
