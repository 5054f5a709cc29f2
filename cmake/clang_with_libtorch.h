// Comes first, and precompiled, where Clang compiles against libtorch 1.13 (src/engine/CMakeLists.txt).
//
// ATen/core/List.h uses a std::vector<IValue> where IValue is only declared. Such a vector's members are instantiated late by GCC, but
// by Clang at once if they are constexpr, as libstdc++ makes them in C++20. So they, and with them the algorithms they call, are
// plain inline here; a string literal's "s" follows the strings. The allocator stays constexpr: fmt has constants with one.
#pragma once

#include <bits/allocator.h>
#undef _GLIBCXX20_CONSTEXPR
#define _GLIBCXX20_CONSTEXPR
#undef __cpp_lib_is_constant_evaluated

#include <ATen/Context.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>
#include <torch/nn/module.h>

#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <torch/csrc/distributed/c10d/Types.hpp>
