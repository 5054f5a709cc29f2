#include "engine/parallel/refuse.h"

#include <fmt/format.h>

#include "base/counted.h"

namespace phalanx::engine::parallel {

std::string_view name_of(Stage stage) {
  switch (stage) {
    case Stage::kDdp: return "ddp";
    case Stage::kZero1: return "zero1";
    case Stage::kZero2: return "zero2";
    case Stage::kZero3: return "zero3";
  }
  return "";
}

std::string show(const Options& o, const GroupTraits& around) {
  return base::counted(
      "stage {}, reduce {}, first_bucket_bytes {}, bucket_bytes {}, share_parameters {}, compute {}, gradients {}, deterministic {}, "
      "repeated_gradients {}, persistent_elements {}, live_units {}, prefetch {}, broadcast_buffers {}, offload {}, groups {}; {} ranks "
      "on {}",
      name_of(o.stage), o.reduce == Reduce::kMean ? "mean" : "sum", o.first_bucket_bytes, o.bucket_bytes, o.share_parameters,
      at::toString(o.compute), at::toString(o.gradients), o.deterministic, o.repeated_gradients, o.persistent_elements, o.live_units,
      o.prefetch, o.broadcast_buffers, o.offload, o.groups.size(), around.world, around.on_cpu ? "CPU" : "GPU");
}

base::Status refuse_impossible(const Options& o, const GroupTraits& around) {
  auto refuse = [&](std::string_view what, std::string_view hint) {
    return base::Status(base::fail(base::ErrorKind::kConfig, std::string(what))
                            .because(fmt::format("the configuration is: {}", show(o, around)))
                            .with_hint(std::string(hint)));
  };
  const bool short_compute = o.compute == at::kBFloat16 || o.compute == at::kHalf;
  if (o.compute != at::kFloat && !short_compute) return refuse("parameters can be fp32, bf16 or fp16", "choose one of them for compute");
  if (o.gradients != at::kFloat && o.gradients != at::kBFloat16)
    return refuse("gradients are summed in fp32 or bf16", "leave gradients at fp32");
  if (o.share_parameters && o.stage == Stage::kZero3)
    return refuse("share_parameters keeps every parameter whole, while zero3 shards the parameters",
                  "choose zero1 or zero2 with share_parameters, or zero3 without");
  if (o.share_parameters && !around.on_cpu)
    return refuse("share_parameters works only for ranks on CPUs: GPUs have no common memory", "omit share_parameters");
  if (o.offload && around.on_cpu)
    return refuse("nothing to offload: the model is already in host memory", "omit offload, or train on a GPU");
  if (o.deterministic && !around.ordered_sums)
    return refuse("deterministic needs sums over ranks in a fixed order, which this group's backend does not promise",
                  "train on CPUs, or omit deterministic");
  if (o.first_bucket_bytes < 1 || o.bucket_bytes < o.first_bucket_bytes)
    return refuse("bucket_bytes must be at least first_bucket_bytes, and that at least 1", "leave both at their defaults");
  if (o.live_units < 1) return refuse("live_units must be at least 1", "leave live_units at its default");
  if (o.live_units < 2 && o.prefetch && o.stage == Stage::kZero3)
    return refuse("prefetch needs room for two units: the one in use and the next", "live_units = 2, or prefetch = false");
  return base::ok();
}

}  // namespace phalanx::engine::parallel
