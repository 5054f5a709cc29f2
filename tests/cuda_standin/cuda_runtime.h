// Stand-in for a header of the CUDA toolkit: without nvcc it is the runtime API and nothing else.
#pragma once

#include <cuda_runtime_api.h>
