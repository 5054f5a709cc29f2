// Stand-in for a header that libtorch's build generates and a libtorch without CUDA does not install (see cuda_runtime_api.h).
#pragma once

#define C10_CUDA_BUILD_SHARED_LIBS
