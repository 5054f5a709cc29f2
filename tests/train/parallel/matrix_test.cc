// One rank on the whole batch is the truth: every stage, number of ranks and number of micro-batches gives the same parameters.
#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>

#include <mutex>

#include "engine/optim/adamw.h"
#include "engine/parallel/data_parallel.h"
#include "forwarding_group.h"
#include "net.h"
#include "ranks.h"

using namespace phalanx;

namespace {

using engine::comm::Group;
using engine::parallel::DataParallel;
using engine::parallel::Options;
using engine::parallel::Reduce;
using engine::parallel::Stage;
namespace optim = engine::optim;

constexpr int64_t kRows = 12, kSteps = 4;

struct Outcome {
  std::map<std::string, std::vector<float>> parameters;  // whole, put together from all ranks' own spans
  std::vector<double> norms;
};

struct Case {
  Stage stage = Stage::kDdp;
  int world = 1;
  int pieces = 1;
  bool deterministic = false;
  bool share = false;
  int shareable = 1000;  // units that there is common memory for
  at::ScalarType compute = at::kFloat;
};

// Has common memory a few times.
class ShortOfMemory final : public ForwardingGroup {
 public:
  ShortOfMemory(Group& inner, int times) : ForwardingGroup(inner), left_(times) {}
  std::optional<at::Tensor> common(int64_t elements, at::ScalarType dtype) override {
    return left_-- > 0 ? ForwardingGroup::common(elements, dtype) : std::nullopt;
  }

 private:
  int left_;
};

Options options_of(const Case& one) {
  Options options;
  options.stage = one.stage;
  options.reduce = Reduce::kSum;
  options.first_bucket_bytes = 600;
  options.bucket_bytes = 4000;
  options.deterministic = one.deterministic;
  options.share_parameters = one.share;
  options.compute = one.compute;
  options.persistent_elements = 100;
  options.groups = {{"decayed", 1, 0.1}, {"not", 1, 0}};
  options.group_of = [](std::string_view, const at::Tensor& value) { return value.dim() > 1 ? 0 : 1; };
  return options;
}

void gather_own(DataParallel& parallel, std::mutex& mutex, Outcome& outcome) {
  std::lock_guard lock(mutex);
  for (const auto& span : parallel.spans(DataParallel::Cover::kOwn)) {
    int64_t numel = 1;
    for (int64_t size : span.shape) numel *= size;
    auto& whole = outcome.parameters[span.name];
    whole.resize(static_cast<size_t>(numel), NAN);
    for (int64_t i = 0; i < span.data.numel(); ++i) whole[static_cast<size_t>(span.begin + i)] = span.data[i].item<float>();
  }
}

Outcome train(const Case& one) {
  Outcome outcome;
  std::mutex mutex;
  ranks::run(one.world, [&](Group& whole_group) {
    ShortOfMemory group(whole_group, one.shareable);
    net::Net model;
    model->init(static_cast<uint64_t>(group.rank()) + 5);  // rank 0's values count
    auto parallel = DataParallel::wrap(*model, group, options_of(one)).value();
    EXPECT_EQ(parallel->describe().find("one copy of the parameters") != std::string::npos, one.share && one.shareable >= 1000);
    optim::AdamW adamw(parallel->rows(), parallel->groups(), {});
    const int64_t mine = kRows / one.world, piece = mine / one.pieces;
    for (int64_t step = 0; step < kSteps; ++step) {
      at::Tensor share = net::tokens(kRows, step).narrow(0, group.rank() * mine, mine);
      for (int64_t p = 0; p < one.pieces; ++p)
        parallel->backward(model->loss(share.narrow(0, p * piece, piece), step % 2 == 1) / static_cast<double>(kRows), p + 1 == one.pieces);
      auto result = parallel->step(adamw, {.lr = 1e-2, .max_norm = 0.5});
      EXPECT_TRUE(result.finite);
      if (group.rank() == 0) outcome.norms.push_back(result.norm);
    }
    gather_own(*parallel, mutex, outcome);
  });
  return outcome;
}

double furthest(const Outcome& a, const Outcome& b) {
  double most = 0;
  EXPECT_EQ(a.parameters.size(), b.parameters.size());
  for (const auto& [name, values] : a.parameters) {
    const auto& others = b.parameters.at(name);
    EXPECT_EQ(values.size(), others.size()) << name;
    for (size_t i = 0; i < values.size(); ++i) {
      const double apart = std::abs(static_cast<double>(values[i]) - others[i]);
      most = apart <= most ? most : apart;  // a NaN, where nobody gave an element, counts as furthest
    }
  }
  return most;
}

TEST(Matrix, EveryStageAndCutGivesTheSameParameters) {
  const Outcome truth = train({});
  ASSERT_EQ(truth.norms.size(), static_cast<size_t>(kSteps));
  for (Stage stage : {Stage::kDdp, Stage::kZero1, Stage::kZero2, Stage::kZero3})
    for (int world : {1, 2, 3, 4})
      for (int pieces : {1, 2, 4}) {
        if (kRows / world % pieces != 0) continue;
        SCOPED_TRACE(testing::Message() << name_of(stage) << ", " << world << " ranks, " << pieces << " pieces");
        const Outcome outcome = train({stage, world, pieces});
        EXPECT_LT(furthest(outcome, truth), 2e-5);
        for (size_t i = 0; i < truth.norms.size(); ++i) EXPECT_NEAR(outcome.norms[i], truth.norms[i], 1e-5 * truth.norms[i]);
      }
}

TEST(Matrix, StagesAreEqualBitForBitWhenDeterministic) {
  for (int world : {2, 3, 4})
    for (int pieces : {1, 3}) {
      if (kRows / world % pieces != 0) continue;
      const Outcome ddp = train({Stage::kDdp, world, pieces, true});
      for (Stage stage : {Stage::kZero1, Stage::kZero2, Stage::kZero3}) {
        SCOPED_TRACE(testing::Message() << name_of(stage) << ", " << world << " ranks, " << pieces << " pieces");
        const Outcome outcome = train({stage, world, pieces, true});
        EXPECT_EQ(outcome.parameters, ddp.parameters);
        EXPECT_EQ(outcome.norms, ddp.norms);
      }
      const Outcome shared = train({Stage::kDdp, world, pieces, true, true});
      EXPECT_EQ(shared.parameters, ddp.parameters) << "shared parameters";
      for (int units : {0, 1, 3}) {
        const Outcome some = train({Stage::kDdp, world, pieces, true, true, units});
        EXPECT_EQ(some.parameters, ddp.parameters) << "common memory for " << units << " units only";
      }
    }
}

TEST(Matrix, ShortComputeKeepsFullMasters) {
  const Outcome truth = train({});
  const Outcome ddp = train({Stage::kDdp, 2, 1, true, false, 1000, at::kBFloat16});
  EXPECT_GT(furthest(ddp, truth), 1e-6) << "bf16 was used";
  EXPECT_LT(furthest(ddp, truth), 0.05);
  for (Stage stage : {Stage::kZero1, Stage::kZero2, Stage::kZero3})
    EXPECT_EQ(train({stage, 2, 1, true, false, 1000, at::kBFloat16}).parameters, ddp.parameters) << name_of(stage);
}

}  // namespace
