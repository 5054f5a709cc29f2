#include "training.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <mutex>

#include "base/text.h"
#include "base/try.h"
#include "engine/train/trainer.h"
#include "os/files.h"

namespace phalanx::ranks {

using engine::comm::Group;

engine::train::Config small_config(const TempFolder& folder, const std::vector<std::string>& arguments) {
  const std::string corpus = folder / "corpus.txt";
  std::ofstream(corpus, std::ios::binary) << golden_text(16 * 40 + 1);
  const std::string yaml = fmt::format(
      "out: {}\nseed: 7\ndevice: cpu\ndata: {{corpus: {}, validation: 0}}\n"
      "model: {{layers: 2, heads: 2, width: 32, context: 16}}\ntrain: {{steps: 12, batch: 8, log_every: 1}}\n"
      "optimizer: {{lr: 3e-3, min_lr: 3e-4, warmup: 4, clip: 0.5}}\nvalidation: {{every: 0}}\n"
      "checkpoint: {{every: 0}}\nsample: {{bytes: 0}}\nmetrics: {{mfu: off}}\n",
      folder / "out", corpus);
  return engine::train::read_config(yaml, "small.yaml", arguments).value();
}

Outcome train(const engine::train::Config& config, int world, const engine::checkpoint::Attempt& attempt) {
  Outcome outcome;
  std::mutex mutex;
  run(world, [&](Group& group) {
    engine::train::Progress progress(group.rank(), config.train.log_every, -1);
    auto work = [&]() -> base::Status {
      TRY_ASSIGN(auto trainer, engine::train::Trainer::begin(config, group, progress, attempt));
      TRY(trainer->run());
      TRY(trainer->write_sample());
      std::lock_guard lock(mutex);
      for (const auto& span : trainer->parallel().spans(engine::parallel::DataParallel::Cover::kOwn)) {
        int64_t numel = 1;
        for (int64_t size : span.shape) numel *= size;
        auto& whole = outcome.parameters[span.name];
        whole.resize(static_cast<size_t>(numel), NAN);
        std::copy_n(span.data.data_ptr<float>(), span.data.numel(), whole.begin() + span.begin);
      }
      return base::ok();
    };
    base::Status status = work();
    std::lock_guard lock(mutex);
    if (!status.ok()) outcome.errors.push_back(status.error().render());
  });
  auto log = os::read_file(config.out + "/log.jsonl", 1 << 20);
  for (std::string_view line : base::split_lines(log.ok() ? std::string_view(*log) : "")) {
    base::Json json = base::parse_json(line).value();
    int64_t step = base::get_int(json, "step").value();
    if (auto loss = base::get_number(json, "loss")) outcome.loss[step] = *loss;
    if (auto norm = base::get_number(json, "grad_norm")) outcome.grad_norm[step] = *norm;
  }
  return outcome;
}

}  // namespace phalanx::ranks
