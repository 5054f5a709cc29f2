// What most sources of the engine include of libtorch and others, precompiled where GCC compiles (src/engine/CMakeLists.txt).
#pragma once

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include <functional>
#include <map>
#include <nlohmann/json.hpp>
