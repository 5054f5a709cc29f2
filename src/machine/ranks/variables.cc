// The variables a rank would get that change how training starts and runs. Nothing secret leaves the machine: of a name that
// smells of a secret only the name is kept, and the login of a URL is cut.
#include <algorithm>

#include "base/text.h"
#include "machine/software/parts.h"

namespace phalanx::machine {
namespace {

constexpr size_t kMostBytes = 4096;  // of one value
constexpr size_t kMostVariables = 512;

constexpr std::string_view kPrefixes[] = {"NCCL_",  "TORCH", "PYTORCH_", "CUDA_",     "GLOO_",   "UCX_",       "OMP_",  "MKL_",
                                          "KMP_",   "GOMP_", "PYTHON",   "HF_",       "WANDB_",  "DEEPSPEED_", "DS_",   "ACCELERATE_",
                                          "OFI_",   "FI_",   "RCCL_",    "NVIDIA_",   "TRITON_", "RDZV_",      "TP_",   "TRANSFORMERS_",
                                          "SLURM_", "OMPI_", "PMI",      "OPENBLAS_", "VLLM_",   "PL_",        "FSDP_", "XDG_CACHE_"};
constexpr std::string_view kNames =
    "PATH LD_LIBRARY_PATH LD_PRELOAD HOME TMPDIR MASTER_ADDR MASTER_PORT WORLD_SIZE RANK LOCAL_RANK LOCAL_WORLD_SIZE GROUP_RANK "
    "NODE_RANK NNODES NPROC_PER_NODE FORCE_TORCHRUN MAX_RESTARTS CONDA_PREFIX VIRTUAL_ENV LANG LC_ALL SHELL USER http_proxy "
    "https_proxy all_proxy no_proxy HTTP_PROXY HTTPS_PROXY ALL_PROXY NO_PROXY TOKENIZERS_PARALLELISM";

bool matters(std::string_view name) {
  for (std::string_view prefix : kPrefixes)
    if (name.starts_with(prefix)) return true;
  return base::is_listed(name, kNames);
}

bool is_secret(const std::string& upper) {
  if (upper == "TOKENIZERS_PARALLELISM" || upper == "NCCL_SOCKET_IFNAME") return false;
  for (std::string_view word : {"KEY", "TOKEN", "SECRET", "PASS", "CREDENTIAL", "AUTH", "PWD", "COOKIE", "SIGNATURE", "WEBHOOK"})
    if (upper.find(word) != std::string::npos) return true;
  return false;
}

// "http://me:word@proxy:3128" → "http://proxy:3128", for every URL in the value. Only a proxy may lack its scheme: "me:word@proxy".
std::string without_logins(std::string value, bool proxy) {
  size_t begin = 0;
  for (;;) {
    size_t scheme = value.find("://", begin);
    if (scheme != std::string::npos) begin = scheme + 3;
    else if (begin > 0 || !proxy) return value;
    size_t end = std::min(value.find_first_of("/?# \t\n,;\"'", begin), value.size());
    size_t at = value.rfind('@', end);
    if (at != std::string::npos && at >= begin && at < end) value.erase(begin, at + 1 - begin);
    if (scheme == std::string::npos) return value;
  }
}

}  // namespace

void read_rank_variables(const Rooted& files, const ProbeRequest& request, SoftwareFacts& facts) {
  for (const auto& [name, value] : request.environment) {
    if (facts.environment.size() >= kMostVariables) break;
    if (name.size() > 256 || !matters(name)) continue;
    std::string big = base::to_upper(name);
    if (is_secret(big)) {
      if (!value.empty()) facts.secrets_set.push_back(name);
      continue;
    }
    bool proxy = big.ends_with("_PROXY") && big != "NO_PROXY";
    facts.environment[name] = without_logins(value, proxy).substr(0, kMostBytes);
  }
  auto home = request.environment.find("HOME");
  if (home == request.environment.end()) return;
  std::string netrc = files.read(home->second + "/.netrc", 64 << 10).value_or("");
  facts.wandb_login = netrc.find("wandb") != std::string::npos;
}

}  // namespace phalanx::machine
