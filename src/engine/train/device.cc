#include "engine/train/device.h"

#include <fmt/format.h>
#include <torch/cuda.h>

#include "engine/comm/compat.h"

namespace phalanx::engine::train {
namespace {

bool have_nccl() {
#ifdef USE_C10D_NCCL
  return true;
#else
  return false;
#endif
}

}  // namespace

base::Result<at::Device> choose_device(const std::string& wanted, const comm::RankEnv& env) {
  const int gpus = torch::cuda::is_available() ? static_cast<int>(torch::cuda::device_count()) : 0;
  const bool usable = gpus > 0 && (env.world == 1 || have_nccl());
  const bool enough = usable && gpus >= env.local_world && (env.local_rank || env.world == 1);
  if (wanted == "cpu" || (wanted == "auto" && !enough)) return at::Device(at::kCPU);
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

}  // namespace phalanx::engine::train
