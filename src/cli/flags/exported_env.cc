#include "cli/flags/exported_env.h"

#include <algorithm>

#include "base/glob.h"
#include "base/text.h"
#include "base/try.h"

namespace phalanx::cli {
namespace {

constexpr std::string_view kDefaults =
    "NCCL_* GLOO_* TORCH_* PYTORCH_* TORCHINDUCTOR_* TORCHDYNAMO_* TRITON_* UCX_* FI_* CUDA_DEVICE_ORDER CUDA_LAUNCH_BLOCKING "
    "CUDA_DEVICE_MAX_CONNECTIONS CUBLAS_* OMP_* MKL_* OPENBLAS_* KMP_* PYTHON* HF_* HUGGINGFACE_* TRANSFORMERS_* TOKENIZERS_* "
    "ACCELERATE_* DEEPSPEED_* DS_* FSDP_* WANDB_* MLFLOW_* COMET_* TQDM_* PHALANX_LANG LANG LANGUAGE LC_* TZ";

constexpr std::string_view kLanguage = "PHALANX_LANG";

// The same rank block under every spelling in use, then the launchers' own.
constexpr std::string_view kStale =
    "RANK LOCAL_RANK WORLD_SIZE LOCAL_WORLD_SIZE GROUP_RANK GROUP_WORLD_SIZE NODE_RANK NNODES NPROC_PER_NODE ROLE_RANK "
    "ROLE_WORLD_SIZE ROLE_NAME CROSS_RANK CROSS_SIZE LOCAL_SIZE MASTER_ADDR MASTER_PORT TORCHELASTIC_* PET_* FORCE_TORCHRUN OMPI_* "
    "PMI_* PMIX_* PRTE_* MV2_COMM_* MPI_LOCALRANKID MPI_LOCALNRANKS HYDRA_* SSH_CONNECTION SSH_CLIENT SSH_TTY PHALANX_*";

constexpr std::string_view kDevices = "CUDA_VISIBLE_DEVICES";

}  // namespace

std::span<const std::string_view> default_exports() {
  static const std::vector<std::string_view> kAll = base::split(kDefaults, ' ');
  return kAll;
}

std::vector<std::string> stale_variables() {
  const std::vector<std::string_view> all = base::split(kStale, ' ');
  return {all.begin(), all.end()};
}

base::Result<wire::Variables> select_exports(const char* const* environ_block, const ExportRules& rules) {
  std::vector<base::Glob> globs;
  if (rules.defaults)
    for (std::string_view pattern : default_exports()) {
      TRY_ASSIGN(base::Glob glob, base::Glob::compile(pattern));
      globs.push_back(std::move(glob));
    }
  for (const std::string& pattern : rules.globs) {
    TRY_ASSIGN(base::Glob glob, base::Glob::compile(pattern));
    globs.push_back(std::move(glob));
  }
  bool devices = std::find(rules.globs.begin(), rules.globs.end(), kDevices) != rules.globs.end();
  std::vector<std::string> stale = stale_variables();
  wire::Variables out;
  for (const char* const* e = environ_block; e && *e; ++e) {
    std::string_view entry(*e);
    size_t equals = entry.find('=');
    if (equals == std::string_view::npos || equals == 0) continue;
    std::string name(entry.substr(0, equals));
    bool wanted =
        name == kDevices ? devices : std::any_of(globs.begin(), globs.end(), [&](const base::Glob& g) { return g.matches(name); });
    // Of Phalanx's own variables only the language of messages is the user's: the engine speaks it too.
    if (wanted && name == kLanguage) out.emplace_back(name, entry.substr(equals + 1));
    if (!wanted || std::any_of(stale.begin(), stale.end(), [&](const std::string& s) { return base::glob_match(s, name); })) continue;
    out.emplace_back(std::move(name), entry.substr(equals + 1));
  }
  return out;
}

}  // namespace phalanx::cli
