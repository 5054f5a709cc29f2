#include "engine/train/rank.h"

#include <c10/core/DeviceGuard.h>
#include <fmt/format.h>
#include <torch/cuda.h>

#include "base/counted.h"
#include "base/try.h"
#include "engine/comm/compat.h"
#include "engine/train/cpu.h"
#include "engine/train/trainer.h"

namespace phalanx::engine::train {
namespace {

bool have_nccl() {
#ifdef USE_C10D_NCCL
  return true;
#else
  return false;
#endif
}

base::Result<at::Device> choose_device(const std::string& wanted, const comm::RankEnv& env) {
  const int gpus = torch::cuda::is_available() ? static_cast<int>(torch::cuda::device_count()) : 0;
  const bool usable = gpus > 0 && (env.world == 1 || have_nccl());
  if (wanted == "cpu" || (wanted == "auto" && (!usable || gpus < env.local_world))) return at::Device(at::kCPU);
  if (gpus == 0) return base::fail(base::ErrorKind::kUnfit, "device is cuda, but libtorch finds no GPU here").with_hint("device=cpu");
  if (!usable)
    return base::fail(base::ErrorKind::kUnfit, "device is cuda, but this phalanx-train was built without NCCL").with_hint("device=cpu");
  if (!env.local_rank && env.world > 1)
    return base::fail(base::ErrorKind::kConfig, "LOCAL_RANK is not set").because("it selects the GPU of this rank on the host");
  const int index = env.local_rank.value_or(0);
  if (index >= gpus)
    return base::fail(base::ErrorKind::kUnfit, fmt::format("rank {} needs GPU {}, and this host has {}", env.rank, index, gpus));
  return at::Device(at::kCUDA, static_cast<at::DeviceIndex>(index));
}

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
  TRY_ASSIGN(std::unique_ptr<Trainer> trainer, Trainer::begin(config, *group, progress));
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
