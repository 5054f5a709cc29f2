// Everything that differs between the libtorch versions we build against (1.13 of Debian to 2.14), in one place.
//
//   to 1.13   a backend derives from ProcessGroup, from 2.0 on from Backend; the collectives have the same names
//   from 2.2  TCPStoreOptions::useLibUV, true by default, throws where libtorch was built without libuv
//   wheels    ship no gloo headers: then there is no Gloo here (PHALANX_GLOO is set by CMake where they are)
#pragma once

#include "engine/torch_version.h"

#ifdef PHALANX_GLOO
#define USE_C10D_GLOO
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#endif
#ifdef USE_C10D_NCCL
#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>
#endif
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#if PHALANX_TORCH_SINCE(2, 0)
#include <torch/csrc/distributed/c10d/Backend.hpp>
#endif

namespace phalanx::engine::comm::compat {

#if PHALANX_TORCH_SINCE(2, 0)
using Backend = c10d::Backend;
#else
using Backend = c10d::ProcessGroup;
#endif

// Options of a TCPStore that works in every version: the classic server, as torch makes it for env://.
inline c10d::TCPStoreOptions tcp_store_options() {
  c10d::TCPStoreOptions options;
  options.multiTenant = true;
#if PHALANX_TORCH_SINCE(2, 2)
  options.useLibUV = false;
#endif
  return options;
}

}  // namespace phalanx::engine::comm::compat
