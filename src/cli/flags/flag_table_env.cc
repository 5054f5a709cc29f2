// Flags that set the environment of the ranks.
#include "cli/flags/flag_rows.h"

namespace phalanx::cli {
namespace {

using words::Text;

constexpr uint32_t kSets =
    bit(Verb::kRun) | bit(Verb::kPlan) | bit(Verb::kTrain) | bit(Verb::kCheck) | bit(Verb::kExec) | bit(Verb::kConfig) | bit(Verb::kInit);

constexpr FlagRow kFlags[] = {
    {Flag::kEnv, "env", Takes{ValueKind::kAssignment, "NAME=VALUE"}.repeatedly(), kSets, Section::kEnvironment,
     Text{"set a variable for every rank; overrides --env-file and --export"}},
    {Flag::kEnvFile, "env-file", Takes::path("FILE").repeatedly(), kSets, Section::kEnvironment,
     Text{"set variables from a file of NAME=VALUE lines (.env, .deepspeed_env)"}},
    {Flag::kExport, "export", Takes{ValueKind::kGlob, "GLOB"}.repeatedly(), kSets, Section::kEnvironment,
     Text{"pass on the variables of this machine whose names match, for example 'MY_*'; passed on without it: NCCL_*, GLOO_*, "
          "TORCH_*, PYTORCH_*, TORCHINDUCTOR_*, TORCHDYNAMO_*, TRITON_*, UCX_*, FI_*, CUDA_DEVICE_ORDER, CUDA_LAUNCH_BLOCKING, "
          "CUDA_DEVICE_MAX_CONNECTIONS, CUBLAS_*, OMP_*, MKL_*, OPENBLAS_*, KMP_*, PYTHON*, HF_*, HUGGINGFACE_*, TRANSFORMERS_*, "
          "TOKENIZERS_*, ACCELERATE_*, DEEPSPEED_*, DS_*, FSDP_*, WANDB_*, MLFLOW_*, COMET_*, TQDM_*, PHALANX_LANG, LANG, "
          "LANGUAGE, LC_*, TZ"}},
    {Flag::kNoExport, "no-export", kSets, Section::kEnvironment,
     Text{"pass on no variables of this machine except those selected by --export"}},
};

}  // namespace

std::span<const FlagRow> environment_flags() { return kFlags; }

}  // namespace phalanx::cli
