// Stand-in for a header of the CUDA toolkit (see cuda_runtime_api.h): libtorch's headers include it and use nothing of it in host code.
#pragma once
