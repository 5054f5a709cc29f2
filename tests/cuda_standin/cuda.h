// Stand-in for a header of the CUDA toolkit (see cuda_runtime_api.h): what libtorch's headers use of the driver API.
#pragma once

#define CUDA_VERSION 11080

extern "C" {
typedef enum cudaError_enum { CUDA_SUCCESS = 0 } CUresult;
CUresult cuGetErrorString(CUresult error, const char** text);
}
