// The ranks of one run, or some of them, and the collective operations the engine needs. Models and optimizers never see it.
//
// Every rank calls the same operations in the same order, from one thread, and waits for them in the order in which it started them.
// A failed operation (a rank is gone, a deadline passed) throws; the rank's top turns that into an Error. Tensors are 1-D or any
// contiguous shape, on device(), and must not be touched between start_… and wait().
//
// Order of sums: an element's sum over the ranks is made in the order of the ranks, ((r0 + r1) + r2) + …, in fp32 for 16-bit
// types, whatever operation made it and whatever its place in a tensor. So all_reduce equals reduce_scatter bit for bit, and a run
// equals its repetition. Over several hosts it is the sum of the
// hosts' sums, in the order of the hosts. (NCCL chooses an order of its own; describe() says which group is in use, ordered_sums() whether
// this holds.)
//
// A label ("grads unit 3") says what an operation is for: errors, the ring of recent operations (docs/formats/flight-recorder.md)
// and the mismatch check speak of it.
#pragma once

#include <ATen/core/Tensor.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "engine/comm/env.h"

namespace phalanx::engine::comm {

// An operation that was started.
class Pending {
 public:
  virtual ~Pending() = default;
  virtual void wait() = 0;
  // Whether this rank has begun its part: a group may begin at start_…, later in a thread of its own, or not before wait(). On GPUs an
  // operation has begun when NCCL has put it into its stream; the host cannot tell more without waiting.
  virtual bool begun() const = 0;
};

enum class Reduction { kSum, kMax };

class Group {
 public:
  virtual ~Group() = default;
  virtual int rank() const = 0;
  virtual int world() const = 0;
  virtual at::Device device() const = 0;
  virtual std::string describe() const = 0;  // "shared memory of 2 ranks", for people
  virtual bool ordered_sums() const = 0;

  // In place. fp32, fp64, bf16, fp16, int64, int32, uint8.
  virtual std::unique_ptr<Pending> start_all_reduce(at::Tensor tensor, Reduction reduction, std::string_view label) = 0;
  // input: world() equal pieces; output: the sum over the ranks of piece rank(). output may be input's own piece.
  // Where ordered_sums(): of a 16-bit input the output may be fp32, the sum before it is rounded.
  virtual std::unique_ptr<Pending> start_reduce_scatter(at::Tensor output, at::Tensor input, std::string_view label) = 0;
  // output: world() equal pieces, piece r is rank r's input. input may be output's own piece.
  virtual std::unique_ptr<Pending> start_all_gather(at::Tensor output, at::Tensor input, std::string_view label) = 0;
  virtual std::unique_ptr<Pending> start_broadcast(at::Tensor tensor, int root, std::string_view label) = 0;
  // Returns when every rank has come. Throws after `deadline`, naming the barrier and the ranks that never came where the group can
  // know them.
  virtual void barrier(std::string_view name, std::chrono::milliseconds deadline) = 0;

  // A zeroed 1-D tensor on device() on which this group's operations are cheapest: between ranks of one host it lies in memory they
  // share, so operations on it or on narrow()ed pieces of it copy nothing. Collective; every rank asks for the same. It may also
  // be ordinary memory. Freed with its last tensor, and with its process however that ends.
  virtual at::Tensor window(int64_t elements, at::ScalarType dtype) = 0;
  // All ranks' tensors behind the same window, in the order of the ranks, this rank's own among them; empty if this process cannot
  // address them. Reading one needs a barrier (or a finished operation) after its owner's write.
  virtual std::vector<at::Tensor> peers(const at::Tensor& window) = 0;
  // One zeroed tensor for all ranks together, the same memory in every one of them; nullopt if they cannot have that. Collective.
  virtual std::optional<at::Tensor> common(int64_t elements, at::ScalarType dtype) = 0;

  // The ranks that give the same color form a group of their own, ordered by (key, rank). Collective over this group, which must
  // outlive it.
  virtual std::unique_ptr<Group> split(int color, int key) = 0;
  // The last call: returns when every rank has called it and the store is no longer needed by anyone.
  virtual void leave() = 0;

  void all_reduce(at::Tensor tensor, Reduction reduction, std::string_view label) {
    start_all_reduce(std::move(tensor), reduction, label)->wait();
  }
  void reduce_scatter(at::Tensor output, at::Tensor input, std::string_view label) {
    start_reduce_scatter(std::move(output), std::move(input), label)->wait();
  }
  void all_gather(at::Tensor output, at::Tensor input, std::string_view label) {
    start_all_gather(std::move(output), std::move(input), label)->wait();
  }
  void broadcast(at::Tensor tensor, int root, std::string_view label) { start_broadcast(std::move(tensor), root, label)->wait(); }
};

// Joins the group that `env` describes; a world of 1 needs nothing and nobody. On CPU, shared memory between ranks of one host and
// Gloo between hosts; NCCL on GPUs. Sets stdout to line buffering: a rank's output is a pipe, and what stdio holds back in blocks is lost
// when the rank is stopped.
base::Result<std::unique_ptr<Group>> join(const RankEnv& env, at::Device device);

// Every rank's text, in the order of the ranks; at most 1 MiB each. Collective.
std::vector<std::string> exchange(Group& group, std::string_view text, std::string_view label);

// All ranks must hold the same value, else every rank gets the same Error naming the ranks that differ from rank 0
// (kConfig). `what` says what it is a fingerprint of: "the config", "the corpus".
base::Status require_same(Group& group, std::string_view what, uint64_t fingerprint);

// Fails on every rank if `mine` fails on any: a rank's own Error stays its own, the others get one naming the ranks that failed and the
// first one's message. So no rank waits in a later operation for one that gave up.
base::Status agree(Group& group, base::Status mine, std::string_view doing);

// What an exception says, in one line and without a backtrace.
std::string reason(const std::exception& failure);

// Another rank is gone: whatever this one was doing failed because of that, and the other rank's message gives the cause.
class PeerExited : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Throws "<doing>: <reason>". A PeerExited stays one; so does an exception of the network library that reports a connection closed by its
// peer.
[[noreturn]] void fail_within(const std::string& doing, const std::exception& failure);

}  // namespace phalanx::engine::comm
