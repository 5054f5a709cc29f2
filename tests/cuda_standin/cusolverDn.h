// Stand-in for a header of the CUDA toolkit (see cuda_runtime_api.h): cuSOLVER, of which libtorch's headers name the handle and the status.
#pragma once

extern "C" {
typedef struct cusolverDnContext* cusolverDnHandle_t;
typedef enum { CUSOLVER_STATUS_SUCCESS = 0, CUSOLVER_STATUS_INVALID_VALUE = 3, CUSOLVER_STATUS_EXECUTION_FAILED = 6 } cusolverStatus_t;
}
