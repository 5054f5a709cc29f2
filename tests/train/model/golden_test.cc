// Twenty steps of the model and AdamW against PyTorch's numbers (tools/make_golden.py): losses to 4 decimals, every parameter's
// gradient within 1e-5 of its norm, and 3e-5 after nineteen steps (parallel/golden_test.cc says why); ragged targets in one batch and in
// micro-batches, fused and plain, kept and recomputed.
#include <ATen/TensorOperators.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros_like.h>
#include <gtest/gtest.h>

#include <cmath>

#include "engine/model/gpt.h"
#include "engine/optim/adamw.h"
#include "engine/optim/schedule.h"
#include "ranks.h"

using namespace phalanx;

namespace {

using namespace phalanx::engine;

class Repetition {
 public:
  Repetition(const base::Json& golden, const model::GptExecution& execution) : run_(golden["ranks_run"]) {
    const base::Json& s = golden["shape"];
    gpt_ = model::Gpt(model::GptShape{s["vocabulary"], s["context"], s["layers"], s["heads"], s["width"]}, execution);
    gpt_->init(run_["seed"].get<uint64_t>());
    std::vector<optim::Row> rows;
    for (auto& parameter : gpt_->parameters()) {
      parameter.mutable_grad() = at::zeros_like(parameter);
      rows.push_back(
          {parameter.detach().view({-1}), parameter.grad().view({-1}), {}, {{0, parameter.numel(), parameter.dim() > 1 ? 0 : 1}}});
    }
    optimizer_ = std::make_unique<optim::AdamW>(rows, std::vector<optim::Group>{{"decayed", 1, run_["weight_decay"]}, {"plain", 1, 0}},
                                                optim::AdamWOptions{run_["beta1"], run_["beta2"], run_["epsilon"]});
    const std::string text = ranks::golden_text(run_["text_bytes"]);
    text_ = at::tensor(std::vector<int64_t>(text.begin(), text.end()));
  }

  int64_t steps() const { return run_["steps"]; }

  // One step's loss; its gradients stay until the next. `pieces`: micro-batches.
  double step(int64_t step, int64_t pieces) {
    for (auto& parameter : gpt_->parameters()) parameter.mutable_grad().zero_();
    const int64_t context = gpt_->shape.context, batch = run_["batch"], windows = (text_.numel() - 1) / context;
    std::vector<at::Tensor> tokens, targets;
    int64_t count = 0;
    for (int64_t i = 0; i < batch; ++i) {
      const int64_t row = (step * batch + i) % windows, length = 1 + (7 * step + 5 * i) % context;
      tokens.push_back(text_.narrow(0, row * context, context));
      at::Tensor wanted = text_.narrow(0, row * context + 1, context).clone();
      wanted.narrow(0, length, context - length).fill_(model::GptImpl::kNoTarget);
      targets.push_back(wanted);
      count += length;
    }
    double sum = 0;
    int64_t seen = 0;
    for (int64_t first = 0; first < batch; first += batch / pieces) {
      auto part = [&](const std::vector<at::Tensor>& all) { return at::stack(at::TensorList(all).slice(first, batch / pieces)); };
      const model::SummedLoss loss = gpt_->loss(part(tokens), part(targets));
      (loss.sum / static_cast<double>(count)).backward();
      sum += loss.sum.item<double>();
      seen += loss.targets;
    }
    EXPECT_EQ(seen, count);
    const optim::Schedule schedule{optim::Curve::kCosine, run_["lr"], run_["min_lr"], run_["warmup"], run_["steps"]};
    optimizer_->step(schedule.at(step));
    return sum / static_cast<double>(count);
  }

  void expect_grads(const base::Json& golden, double tolerance, const std::string& when) {
    const auto parameters = gpt_->named_parameters();
    ASSERT_EQ(golden.size(), parameters.size());
    for (const auto& [name, truth] : golden.items())
      EXPECT_LT(ranks::apart(parameters[name].grad().view({-1}), truth), tolerance) << name << " " << when;
  }

 private:
  const base::Json run_;
  model::Gpt gpt_{nullptr};
  std::unique_ptr<optim::AdamW> optimizer_;
  at::Tensor text_;
};

TEST(Golden, RaggedTargetsHoweverTheBatchIsCut) {
  const base::Json golden = ranks::golden();
  const base::Json& truth = golden["ragged"];
  for (model::Kernels kernels : {model::Kernels::kFused, model::Kernels::kPlain})
    for (bool recompute : {false, true})
      for (int64_t pieces : {1, 2, 4, 12}) {
        const std::string which = std::string(kernels == model::Kernels::kFused ? "fused" : "plain") +
                                  (recompute ? ", recomputed, " : ", ") + std::to_string(pieces) + " pieces, ";
        Repetition run(golden, {kernels, recompute});
        for (int64_t step = 0; step < run.steps(); ++step) {
          EXPECT_NEAR(run.step(step, pieces), truth["losses"][static_cast<size_t>(step)].get<double>(), 5e-5) << which << "step " << step;
          if (step == 0) run.expect_grads(truth["first_grads"], 1e-5, which + "first step");
        }
        run.expect_grads(truth["last_grads"], 3e-5, which + "last step");
      }
}

}  // namespace
