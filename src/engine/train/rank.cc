#include "engine/train/rank.h"

#include <c10/core/DeviceGuard.h>
#include <fmt/format.h>

#include "base/counted.h"
#include "base/try.h"
#include "engine/comm/compat.h"
#include "engine/train/cpu.h"
#include "engine/train/device.h"
#include "engine/train/trainer.h"

namespace phalanx::engine::train {
namespace {

base::Result<int> train_as(const Config& config, const comm::RankEnv& env) {
  if (config.parallel.mode == "zero3") return_freed_memory();
  else keep_freed_memory();
  const int threads = use_threads(env);
  Progress progress(env.rank, config.train.log_every, event_descriptor());
  progress.phase("load");
  TRY_ASSIGN(at::Device device, choose_device(config.device, env));
  c10::DeviceGuard on_device(device);
  if (auto warning = device.is_cpu() ? slow_blas_warning() : std::nullopt) progress.note(*warning);

  TRY_ASSIGN(std::unique_ptr<comm::Group> group, comm::join(env, device));
  progress.note(base::counted("phalanx-train on libtorch {}.{}.{}: {} ranks, {}; {}; {} threads per rank", TORCH_VERSION_MAJOR,
                              TORCH_VERSION_MINOR, TORCH_VERSION_PATCH, group->world(), device.str(), group->describe(), threads));
  TRY_ASSIGN(std::unique_ptr<Trainer> trainer, Trainer::begin(config, *group, progress, {env.run, env.restarts}));
  TRY_ASSIGN(int signal, trainer->run());
  if (signal == 0) TRY(trainer->write_sample());
  group->leave();
  progress.phase("done");
  return signal == 0 ? 0 : 128 + signal;
}

}  // namespace

base::Result<int> run_rank(const Config& config, const comm::RankEnv& env) {
  try {
    return train_as(config, env);
  } catch (const std::exception& failure) {
    base::Error error = base::fail(base::ErrorKind::kJobFailed, fmt::format("rank {} of {} cannot continue", env.rank, env.world))
                            .because(comm::reason(failure));
    if (dynamic_cast<const comm::PeerExited*>(&failure)) error.hint = "another rank exited first; its own message gives the cause";
    return error;
  }
}

}  // namespace phalanx::engine::train
