// Data parallel training of a plain torch::nn::Module: every rank computes on its share of a batch, all ranks take the same step. DDP and
// ZeRO's stages 1 to 3 are one path through the same code, which differ in what a rank keeps (options.h, gradients.h,
// engine/parallel/param_gather.h).
//
//   auto parallel = DataParallel::wrap(*module, group, {.stage = Stage::kZero2}).value();
//   optim::AdamW adamw(parallel->rows(), parallel->groups(), {});
//   for (...) { parallel->backward(loss_of(module(batch))); parallel->step(adamw, {.lr = 1e-3}); }
//
// The module stays plain: its parameters keep their names, shapes and identity, and become views of flat buffers. Move it to its device
// before, not after. Several modules may be wrapped in one program (a GAN's two), each with its own DataParallel; every rank
// then makes the same calls in the same order. Gradients that reach a module's parameters outside its own backward() are dropped by the
// next.
#pragma once

#include <torch/nn/module.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/comm/group.h"
#include "engine/optim/optimizer.h"
#include "engine/parallel/gradients.h"
#include "engine/parallel/layout.h"
#include "engine/parallel/options.h"
#include "engine/parallel/param_gather.h"

namespace phalanx::engine::parallel {

// A run of elements of a parameter, or of something that lies as the parameters do (an optimizer's state).
struct Span {
  std::string name;            // the parameter's
  std::vector<int64_t> shape;  // of the whole parameter
  int64_t begin = 0;           // element of the flattened parameter
  at::Tensor data;             // 1-D, a view
};

struct StepOptions {
  double lr = 0;
  double max_norm = 0;    // of all gradients of all ranks together; 0: no limit
  double loss_scale = 1;  // what the loss was multiplied with
};
struct StepResult {
  double norm = 0;     // Euclidean norm of the gradients before clipping, without loss_scale
  bool finite = true;  // false: a gradient is infinite or not a number, and the step was skipped; the same on all ranks
};

// Bytes this rank holds, by what for.
struct MemoryUse {
  int64_t parameters = 0;  // with master weights; stage 3: the slice, the small ones, and the peak of what was gathered at a time
  int64_t gradients = 0;   // buffers; stages 2 and 3: the slice
  int64_t carriers = 0;    // stages 2 and 3: what carries a unit to its reduction
};

class DataParallel {
 public:
  // Collective. All ranks must have the same parameters by name, shape and group (kConfig names the ranks that differ); then all
  // take rank 0's values. Combinations that cannot work are refused (kConfig) with the whole configuration shown.
  static base::Result<std::unique_ptr<DataParallel>> wrap(torch::nn::Module& module, comm::Group& group, const Options& options);
  ~DataParallel();  // stage 3: the module's parameters are empty from now on

  // Runs `fill`, which writes parameters of a module that was made without values (at::empty, as our layers are), so that stage 3
  // never holds the whole model. All ranks must run the same operations; rank 0's values count.
  void initialise(const std::function<void()>& fill);

  // loss.backward() and the reduction of gradients over the ranks. `last` is false for all but the last micro-batch of a step. An
  // undefined loss is a rank without data: it takes part and adds nothing (stages 0 to 2; in stage 3 a rank without data computes on
  // any batch and multiplies the loss by 0, because the others' forward needs its slices).
  void backward(const at::Tensor& loss, bool last = true);
  StepResult step(optim::Optimizer& optimizer, const StepOptions& options);  // and the gradients are cleared
  void clear();                                                              // forgets the gradients without a step

  // Stage 3: throws if parameters could not be gathered since the last call of any of these (a rank is gone). For who only computes
  // forward: until then its results are of no meaning.
  void check() const;

  // What the optimizer is to be made with. The rows' tensors stay the same for the life of this object.
  const std::vector<optim::Row>& rows() const { return rows_; }
  const std::vector<optim::Group>& groups() const { return options_.groups; }

  // `per_row`: tensors as long as the rows (an optimizer's states), or none for the parameters themselves, in fp32. kOwn: so that all
  // ranks together give every element once, for saving; kHeld: all that this rank has to be given back.
  enum class Cover { kOwn, kHeld };
  std::vector<Span> spans(Cover cover, const std::vector<at::Tensor>& per_row = {}) const;
  void loaded();  // collective: kHeld spans of the parameters have been written, spread them

  // The same by way of rank 0, for a disk that only it has. Collective; one unit at a time, so rank 0 needs memory for what it keeps
  // only. gathered(): whole parameters at rank 0, nothing elsewhere. scattered(): rank 0 fills spans of whole parameters, every rank
  // gets what it holds; an Error of `fill` is every rank's.
  std::vector<Span> gathered(const std::vector<at::Tensor>& per_row = {});
  base::Status scattered(const std::vector<at::Tensor>& per_row, const std::function<base::Status(const Span&)>& fill);

  // Collective: `use` runs on rank 0 while every parameter is whole there, for writing the model to a disk; its Error is every rank's.
  base::Status with_whole_model(const std::function<base::Status()>& use);

  // Name and shape of every trained parameter.
  std::vector<std::pair<std::string, std::vector<int64_t>>> shapes() const;

  std::string describe() const;  // "zero2 over 4 ranks, 14 units"
  MemoryUse memory() const;
  const Options& options() const { return options_; }
  const std::vector<Unit>& units() const { return units_; }
  int64_t parameter_count() const;                                   // elements of the whole model that are trained
  double waited_seconds() const { return queue_.waited_seconds(); }  // for other ranks and their bytes, since the beginning
  size_t overlapped() const { return gradients_->overlapped(); }     // reductions of the last backward that began while it ran

 private:
  struct Param {
    std::string name;
    at::Tensor value;
  };
  struct Place {                     // of a unit
    at::Tensor whole;                // parameters in the compute dtype; stage 3: without memory
    at::Tensor own;                  // this rank's slice in the compute dtype
    std::optional<size_t> resident;  // number in param_gather_
  };
  // Units with the parameters that lie in them.
  struct Placed {
    std::vector<Param> params;
    std::vector<Unit> units;
    std::vector<Place> places;
  };
  DataParallel(torch::nn::Module& module, comm::Group& group, Options options)
      : module_(module), group_(group), options_(std::move(options)) {}
  base::Status collect();
  base::Status agree();
  void lay_out();
  int live_units() const;
  void share_memory();
  void lay_out_frozen();
  void place(size_t unit);
  void place_frozen(size_t unit);
  void shard(const Unit& unit, const std::vector<Param>& params, Place& place);
  void make_row(size_t unit);
  void make_gradients();
  at::Tensor from_rank_zero(const Unit& unit, const std::vector<Param>& params, at::ScalarType type);
  void whole_on_rank_zero(const std::vector<Param>& params, const Unit& unit, const Place& place);
  void share_values();
  void take_masters();
  double grad_norm();
  void spread(size_t unit);
  void finish_spreading();
  void sync_buffers();
  void copy_for_offload(bool to_host);
  // What the unit's row stands for, in the compute dtype.
  const at::Tensor& held(size_t unit) const { return shares_optimizer() ? places_[unit].own : places_[unit].whole; }
  Slice own(size_t unit) const { return slice_of(units_[unit], group_.rank(), group_.world()); }
  Slice row_of(size_t unit) const { return shares_optimizer() ? own(unit) : Slice{0, units_[unit].elements}; }
  // A rank's rows are its slices, else all of every unit.
  bool shares_optimizer() const { return options_.stage != Stage::kDdp || shared_; }

  torch::nn::Module& module_;
  comm::Group& group_;
  Options options_;
  bool shared_ = false;  // one copy of the parameters for all ranks
  std::vector<Param> params_;
  std::vector<Unit> units_;
  std::vector<Place> places_;
  Placed frozen_;  // stage 3: fp32 parameters that require no gradient, sharded like the trained ones
  std::vector<optim::Row> rows_;
  InOrder queue_;
  std::unique_ptr<ParamGather> param_gather_;
  std::unique_ptr<Gradients> gradients_;
};

}  // namespace phalanx::engine::parallel
