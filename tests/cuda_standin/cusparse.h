// Stand-in for a header of the CUDA toolkit (see cuda_runtime_api.h): cuSPARSE, of which libtorch's headers name only the handle.
#pragma once

#define CUSPARSE_VERSION 11700

extern "C" {
typedef struct cusparseContext* cusparseHandle_t;
typedef enum { CUSPARSE_STATUS_SUCCESS = 0 } cusparseStatus_t;
const char* cusparseGetErrorString(cusparseStatus_t status);
}
