// From a config to the parts of a training. One function per part; trainer_setup.cc puts them together.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "engine/comm/group.h"
#include "engine/data/open_set.h"
#include "engine/data/step_loader.h"
#include "engine/model/gpt.h"
#include "engine/optim/optimizer.h"
#include "engine/optim/schedule.h"
#include "engine/parallel/options.h"
#include "engine/train/config.h"
#include "engine/train/precision.h"

namespace phalanx::engine::train {

struct TrainingData {
  data::OpenedSet set;
  std::unique_ptr<data::StepLoader> training;
  std::unique_ptr<data::StepLoader> validation;  // may be null: none is asked for
  int64_t validation_steps = 0;                  // of one validation
  int64_t vocabulary = 256;                      // tokens the model has to know
  int64_t steps = 0;                             // of the whole training
};
// Errors (kConfig): the data's; a batch that cannot be shared; data too short for a step; tokens beyond model.vocabulary.
base::Result<TrainingData> open_data(const Config& config, int rank, int world);

// Without values yet.
model::Gpt make_model(const Config& config, int64_t vocabulary);
parallel::Options parallel_options(const Config& config, const Precision& precision, at::Device device);
std::unique_ptr<optim::Optimizer> make_optimizer(const Config& config, std::vector<optim::Row> rows, std::vector<optim::Group> groups);
optim::Schedule make_schedule(const Config& config, int64_t steps);

}  // namespace phalanx::engine::train
