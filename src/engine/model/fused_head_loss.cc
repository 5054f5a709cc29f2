#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/exp.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ge.h>
#include <ATen/ops/logical_and.h>
#include <ATen/ops/logsumexp.h>
#include <ATen/ops/lt.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/ne.h>
#include <ATen/ops/tanh.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <vector>

#include "engine/autocast.h"
#include "engine/model/fused.h"
#include "engine/model/loops.h"

namespace phalanx::engine::model {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

void check_targets(const at::Tensor& targets, int64_t classes, int64_t ignore) {
  const int64_t* ids = targets.data_ptr<int64_t>();
  for (int64_t i = 0; i < targets.numel(); ++i)
    TORCH_CHECK_INDEX(ids[i] == ignore || (ids[i] >= 0 && ids[i] < classes), "Target ", ids[i], " is out of bounds.");
}

// Of one row in fp32, with its cap.
double loss_of_row(float* values, int64_t classes, int64_t target, bool want_grad, float cap, std::vector<float>* slopes) {
  if (cap <= 0) return cross_entropy_of_row(values, classes, target, want_grad);
  slopes->resize(static_cast<size_t>(classes));
  cap_row(values, classes, cap, slopes->data());
  const double loss = cross_entropy_of_row(values, classes, target, want_grad);
  if (want_grad) multiply_row(values, slopes->data(), classes);
  return loss;
}

// The logits of some tokens become their derivatives; returns the sum of their losses, in the order of the tokens.
double loss_of_logits(const at::Tensor& logits, const int64_t* targets, int64_t ignore, bool want_grad, float cap) {
  const int64_t rows = logits.size(0), classes = logits.size(1);
  std::vector<double> losses(static_cast<size_t>(rows));
  at::parallel_for(0, rows, 16, [&](int64_t begin, int64_t end) {
    std::vector<float> wide(logits.scalar_type() == at::kFloat ? 0 : static_cast<size_t>(classes)), slopes;
    for (int64_t row = begin; row < end; ++row) {
      const int64_t target = targets[row];
      double& loss = losses[static_cast<size_t>(row)];
      if (logits.scalar_type() == at::kFloat) {
        float* values = logits.data_ptr<float>() + row * classes;
        if (target == ignore) std::fill(values, values + classes, 0.0f);
        else loss = loss_of_row(values, classes, target, want_grad, cap, &slopes);
      } else {
        auto* values = static_cast<uint16_t*>(logits.data_ptr()) + row * classes;
        if (target == ignore) {
          std::fill(values, values + classes, uint16_t{0});
        } else if (cap > 0) {
          widen(values, wide.data(), classes);
          loss = loss_of_row(wide.data(), classes, target, want_grad, cap, &slopes);
          narrow(wide.data(), values, classes);
        } else {
          loss = cross_entropy_of_row(values, classes, target, want_grad, wide.data());
        }
      }
    }
  });
  double sum = 0;
  for (double loss : losses) sum += loss;
  return sum;
}

// The same on another device, by at:: operators: the sum stays there, and nothing is waited for.
at::Tensor loss_of_logits_there(const at::Tensor& logits, const at::Tensor& targets, int64_t ignore, bool want_grad, double cap) {
  const int64_t rows = logits.size(0), classes = logits.size(1);
  at::Tensor values = logits.to(at::kFloat), slopes;
  if (cap > 0) {
    const at::Tensor bent = at::tanh(values / cap);
    if (want_grad) slopes = 1 - bent * bent;
    values = bent * cap;
  }
  const at::Tensor counts = at::ne(targets, ignore), classes_of = at::where(counts, targets, 0);
  // What is no class has no place: reading it stops the program.
  const at::Tensor valid = at::logical_and(at::ge(classes_of, 0), at::lt(classes_of, classes));
  const at::Tensor places = at::where(valid, at::arange(rows, targets.options()) * classes + classes_of, rows * classes);
  const at::Tensor log_sums = at::logsumexp(values, {1}), wanted = values.view({-1}).index_select(0, places);
  const at::Tensor sum = at::where(counts, log_sums - wanted, 0.0).sum();
  if (!want_grad) return sum;
  values = values.sub_(log_sums.unsqueeze(1)).exp_();
  values.view({-1}).index_copy_(0, places, at::exp(wanted - log_sums) - 1);
  values.mul_(counts.unsqueeze(1));
  if (cap > 0) values.mul_(slopes);
  logits.copy_(values);
  return sum;
}

// Logits beside which a GPU has room for the rest.
int64_t loss_rows_there(int64_t classes) { return std::clamp<int64_t>((int64_t{1} << 27) / classes, 64, 1 << 14); }

struct HeadLoss : torch::autograd::Function<HeadLoss> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& weight, const at::Tensor& targets,
                            int64_t ignore, bool want_x, bool want_weight, double cap) {
    const AutocastState autocast = autocast_of(x.device());
    const at::ScalarType type = autocast.on ? autocast.type : x.scalar_type();
    const at::Tensor inputs = x.to(type), weights = weight.to(type);
    const int64_t tokens = x.size(0), classes = weight.size(0), most_rows = x.is_cpu() ? loss_rows(classes) : loss_rows_there(classes);
    at::Tensor buffer = at::empty({std::min(tokens, most_rows), classes}, inputs.options());
    at::Tensor d_x = want_x ? at::empty({tokens, x.size(1)}, inputs.options()) : at::Tensor(), d_weight;
    const bool want = want_x || want_weight;
    double sum = 0;
    at::Tensor sum_there = x.is_cpu() ? at::Tensor() : at::zeros({}, x.options().dtype(at::kFloat));
    for (int64_t first = 0; first < tokens; first += most_rows) {
      const int64_t rows = std::min(most_rows, tokens - first);
      at::Tensor part = inputs.narrow(0, first, rows), logits = buffer.narrow(0, 0, rows);
      at::mm_out(logits, part, weights.t());
      if (x.is_cpu()) sum += loss_of_logits(logits, targets.data_ptr<int64_t>() + first, ignore, want, static_cast<float>(cap));
      else sum_there += loss_of_logits_there(logits, targets.narrow(0, first, rows), ignore, want, cap);
      if (want_x) {
        at::Tensor place = d_x.narrow(0, first, rows);
        at::mm_out(place, logits, weights);
      }
      if (want_weight) add_weight_grad(d_weight, logits, part);
    }
    if (want_x) context->saved_data["d_x"] = d_x.to(x.scalar_type());
    if (want_weight) context->saved_data["d_weight"] = d_weight.to(weight.scalar_type());
    return x.is_cpu() ? at::full({}, sum, x.options().dtype(at::kFloat)) : sum_there;
  }

  // Sums of 16-bit products are made in fp32.
  static void add_weight_grad(at::Tensor& sum, const at::Tensor& d_logits, const at::Tensor& inputs) {
    if (!sum.defined()) sum = at::mm(d_logits.t(), inputs).to(at::kFloat);
    else if (d_logits.scalar_type() == at::kFloat) sum.addmm_(d_logits.t(), inputs);
    else sum.add_(at::mm(d_logits.t(), inputs));
  }

  static variable_list backward(AutogradContext* context, variable_list grads) {
    auto scaled = [&](const char* name) {
      auto found = context->saved_data.find(name);
      if (found == context->saved_data.end()) return at::Tensor();
      at::Tensor value = found->second.toTensor();
      TORCH_CHECK(value.defined(), "the loss can be differentiated only once");
      found->second = at::Tensor();  // its memory goes on as the gradient
      return value.mul_(grads[0]);
    };
    at::Tensor d_x = scaled("d_x"), d_weight = scaled("d_weight");
    return {d_x, d_weight, at::Tensor(), at::Tensor(), at::Tensor(), at::Tensor(), at::Tensor()};
  }
};

}  // namespace

// 512 for a small vocabulary (docs/design/kernels.md), and for a large one so many that their logits take 32 MB: they should not outweigh
// the model's other activations, nor leave the cache before they are read again.
int64_t loss_rows(int64_t classes) {
  constexpr int64_t kMost = 512, kFewest = 64, kElements = 8 << 20;
  return std::clamp(kElements / classes, kFewest, kMost);
}

bool can_fuse_head(const at::Tensor& x) {
  if (x.is_cpu()) return can_fuse(x);
  const AutocastState autocast = autocast_of(x.device());
  return x.is_contiguous() && x.numel() > 0 && (autocast.on ? autocast.type : x.scalar_type()) != at::kHalf;
}

at::Tensor fused_head_loss(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& targets, int64_t ignore, double cap) {
  if (targets.is_cpu()) check_targets(targets, weight.size(0), ignore);  // a GPU: loss_of_logits_there
  const bool grad = at::GradMode::is_enabled();
  return HeadLoss::apply(x, weight, targets, ignore, grad && x.requires_grad(), grad && weight.requires_grad(), cap);
}

}  // namespace phalanx::engine::model
