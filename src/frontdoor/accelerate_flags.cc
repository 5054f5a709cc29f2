// accelerate/commands/launch.py (16cb6eb8). Options that only set a variable stand in accelerate_variables.cc.
#include "frontdoor/accelerate_variables.h"
#include "frontdoor/peer_flags.h"

namespace phalanx::frontdoor {
namespace {

using words::Text;

constexpr Text kTpu{"Phalanx starts no TPU jobs"};
constexpr Text kTpuOnly{"it is for TPUs only"};
constexpr Text kCloud{"Phalanx starts no SageMaker jobs"};
constexpr Text kRemoved{"accelerate has removed it; omit it"};
constexpr Text kServes{"Phalanx serves the rendezvous itself, whatever the backend"};

constexpr Text kNowhere{"accelerate launch reads it and passes it nowhere; write it in the DeepSpeed configuration"};

constexpr PeerFlag kKeys[] = {
    {"compute_environment", true, Answer::kHonoured, "LOCAL_MACHINE; anything else is an error"},
    {"distributed_type", true, Answer::kHonoured, "which of DeepSpeed, FSDP and Megatron-LM is on"},
    {"use_cpu", true, Answer::kHonoured, "ACCELERATE_USE_CPU"},
    {"fp16", true, Answer::kHonoured, "ACCELERATE_MIXED_PRECISION"},
    {"use_mps_device", true, Answer::kMeaningless, {}, Text{"it is for macOS only"}},
    {"command_file", true, Answer::kMeaningless, {}, kTpuOnly},
    {"commands", true, Answer::kMeaningless, {}, kTpuOnly},
    {"tpu_name", true, Answer::kRejected, {}, kTpu},
    {"tpu_zone", true, Answer::kRejected, {}, kTpu},
    {"tpu_use_cluster", true, Answer::kRejected, {}, kTpu},
    {"tpu_use_sudo", true, Answer::kRejected, {}, kTpu},
    {"tpu_vm", true, Answer::kRejected, {}, kTpu},
    {"tpu_env", true, Answer::kRejected, {}, kTpu},
};

constexpr PeerFlag kFlags[] = {
    {"config-file", true, Answer::kHonoured, "the keys of the file"},
    {"quiet|q", false, Answer::kHonoured, "--quiet"},
    {"cpu", false, Answer::kHonoured, "ACCELERATE_USE_CPU"},
    {"multi-gpu", false, Answer::kMeaningless, {}, Text{"every start is a distributed one"}},
    {"tpu", false, Answer::kRejected, {}, kTpu},
    {"ipex", false, Answer::kRejected, {}, kRemoved},
    {"use-xpu", false, Answer::kRejected, {}, kRemoved},
    {"mixed-precision", true, Answer::kHonoured, "ACCELERATE_MIXED_PRECISION"},
    {"num-processes", true, Answer::kHonoured, "--nproc-per-node: the total, divided by the machines"},
    {"num-machines", true, Answer::kHonoured, "--nnodes"},
    {"num-cpu-threads-per-process", true, Answer::kHonoured, "OMP_NUM_THREADS"},
    {"enable-cpu-affinity", false, Answer::kHonoured, "ACCELERATE_CPU_AFFINITY"},
    {"use-deepspeed", false, Answer::kHonoured, "ACCELERATE_USE_DEEPSPEED"},
    {"use-fsdp", false, Answer::kHonoured, "ACCELERATE_USE_FSDP"},
    {"use-parallelism-config", false, Answer::kHonoured, "ACCELERATE_USE_PARALLELISM_CONFIG"},
    {"use-megatron-lm", false, Answer::kHonoured, "ACCELERATE_USE_MEGATRON_LM"},
    {"gpu-ids", true, Answer::kHonoured, "CUDA_VISIBLE_DEVICES"},
    {"same-network", false, Answer::kMeaningless, {}, Text{"Phalanx tests over which addresses the hosts reach each other"}},
    {"machine-rank", true, Answer::kHonoured, "--node-rank"},
    {"main-process-ip", true, Answer::kHonoured, "--master-addr"},
    {"main-process-port", true, Answer::kHonoured, "--master-port"},
    {"tee|t", true, Answer::kHonoured, "--split-logs, --show"},
    {"log-dir", true, Answer::kHonoured, "--log-dir, --split-logs"},
    {"role", true, Answer::kMeaningless, {}, Text{"there is only one role"}},
    {"rdzv-backend", true, Answer::kMeaningless, {}, kServes},
    {"rdzv-conf", true, Answer::kMeaningless, {}, kServes},
    {"max-restarts", true, Answer::kHonoured, "--max-restarts"},
    {"monitor-interval", true, Answer::kMeaningless, {}, Text{"the exit of a rank is noticed at once"}},
    {"module|m", false, Answer::kHonoured, "python -m"},
    {"no-python", false, Answer::kHonoured, "the command as it is"},
    {"tpu-cluster", false, Answer::kRejected, {}, kTpu},
    {"no-tpu-cluster", false, Answer::kMeaningless, {}, kTpuOnly},
    {"tpu-use-sudo", false, Answer::kRejected, {}, kTpu},
    {"vm", true, Answer::kRejected, {}, kTpu},
    {"env", true, Answer::kRejected, {}, Text{"it sets variables on TPU pods; write --env NAME=VALUE in front of accelerate"}},
    {"main-training-function", true, Answer::kMeaningless, {}, kTpuOnly},
    {"downcast-bf16", false, Answer::kMeaningless, {}, kTpuOnly},
    {"offload-optimizer-nvme-path", true, Answer::kRejected, {}, kNowhere},
    {"offload-param-nvme-path", true, Answer::kRejected, {}, kNowhere},
    {"deepspeed-hostfile", true, Answer::kHonoured, "-H"},
    {"deepspeed-exclusion-filter", true, Answer::kHonoured, "-H, --include"},
    {"deepspeed-inclusion-filter", true, Answer::kHonoured, "-H, --include"},
    {"deepspeed-multinode-launcher", true, Answer::kMeaningless, {}, Text{"the hosts are reached over ssh, by Phalanx's own agents"}},
    {"fp8-override-linear-precision", true, Answer::kHonoured, "ACCELERATE_FP8_OVERRIDE_FPROP, _DGRAD, _WGRAD"},
    {"aws-access-key-id", true, Answer::kRejected, {}, kCloud},
    {"aws-secret-access-key", true, Answer::kRejected, {}, kCloud},
    {"debug", false, Answer::kHonoured, "ACCELERATE_DEBUG_MODE"},
    {"mpirun-hostfile", true, Answer::kHonoured, "--hostfile"},
};

}  // namespace

std::span<const PeerFlag> accelerate_keys() { return kKeys; }
std::span<const PeerFlag> accelerate_flags() {
  static const std::vector<PeerFlag> all = [] {
    std::vector<PeerFlag> rows(std::begin(kFlags), std::end(kFlags));
    for (const AccelerateVariable& one : accelerate_variables())
      rows.push_back({one.flag, !one.is_switch, Answer::kHonoured, one.variable, {}});
    return rows;
  }();
  return all;
}

}  // namespace phalanx::frontdoor
