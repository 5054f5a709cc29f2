// The ranks of one run, and the few collective operations the engine needs. Models and optimizers never see it.
//
// Every rank calls the same operations in the same order, from one thread. A failed operation (a rank is gone, a
// timeout) throws; the rank's top turns that into an Error. Tensors are contiguous and on device().
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "engine/comm/env.h"

namespace engine::comm {

// An operation under way. The tensor it works on must not be touched until wait() returned.
class Pending {
 public:
  virtual ~Pending() = default;
  virtual void wait() = 0;
};

class Group {
 public:
  virtual ~Group() = default;
  virtual int rank() const = 0;
  virtual int world() const = 0;
  virtual at::Device device() const = 0;
  virtual std::string describe() const = 0;  // "gloo on 10.0.0.1", for people

  virtual std::unique_ptr<Pending> start_sum(at::Tensor tensor) = 0;  // in place: the sum over all ranks
  virtual void broadcast(at::Tensor tensor, int root) = 0;            // in place
  // The last call: returns when every rank has called it and the store is no longer needed by anyone.
  virtual void leave() = 0;

  void sum(at::Tensor tensor) { start_sum(std::move(tensor))->wait(); }
};

// Joins the group that `env` describes; a world of 1 needs nothing and nobody. Gloo on CPU, NCCL on a GPU.
base::Result<std::unique_ptr<Group>> join(const RankEnv& env, at::Device device);

// All ranks must hold the same value, else every rank gets the same Error naming the ranks that differ from rank 0
// (kConfig). `what` says what it is a fingerprint of: "the config", "the corpus".
base::Status require_same(Group& group, std::string_view what, uint64_t fingerprint);

// What an exception says, in one line and without a backtrace.
std::string reason(const std::exception& failure);

}  // namespace engine::comm
