#include "doctor/views/nccl_variables.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <vector>

#include "base/text.h"

namespace phalanx::doctor {
namespace {

constexpr size_t kMostName = 64;

constexpr std::string_view kOthersPrefixes[] = {"NCCL_SHARP_",     "NCCL_IBEXT_",     "NCCL_UCX_",    "NCCL_FASTRAK_", "NCCL_GPUDIRECTTCP",
                                                "NCCL_TESTS_",     "NCCL_INSPECTOR_", "NCCL_PROFILE", "NCCL_EP_",      "NCCL_AWS_",
                                                "NCCL_TELEMETRY_", "NCCL_SHIMNET_",   "NCCL_CTRAN_",  "NCCL_GIN_",     "NCCL_PARAM_"};
constexpr std::string_view kOthers[] = {"NCCL_VERSION",      "NCCL_ROOT",         "NCCL_ROOT_DIR",
                                        "NCCL_HOME",         "NCCL_DIR",          "NCCL_PATH",
                                        "NCCL_LIB",          "NCCL_LIBS",         "NCCL_LIB_DIR",
                                        "NCCL_LIBRARY",      "NCCL_LIBRARIES",    "NCCL_INCLUDE",
                                        "NCCL_INCLUDE_DIR",  "NCCL_LIBRARY_PATH", "NCCL_LIB_PATH",
                                        "NCCL_INSTALL_PATH", "NCCL_PLUGIN_P2P",   "NCCL_TUNER_CONFIG_PATH",
                                        "NCCL_SOURCE_DIR",   "NCCL_VERSIONS",     "NCCL_NET_PLUGIN_VERSION",
                                        "NCCL_PREFIX",       "NCCL_SO_PATH"};

constexpr std::string_view kTorchNccl[] = {"BLOCKING_WAIT",
                                           "ASYNC_ERROR_HANDLING",
                                           "DESYNC_DEBUG",
                                           "ENABLE_TIMING",
                                           "USE_COMM_NONBLOCKING",
                                           "AVOID_RECORD_STREAMS",
                                           "TRACE_BUFFER_SIZE",
                                           "DUMP_ON_TIMEOUT",
                                           "ENABLE_MONITORING",
                                           "HEARTBEAT_TIMEOUT_SEC",
                                           "USE_TENSOR_REGISTER_ALLOCATOR_HOOK"};

// Names of torch, CUDA and the launchers that people set by hand.
constexpr std::string_view kKnown[] = {"TORCH_NCCL_BLOCKING_WAIT",
                                       "TORCH_NCCL_ASYNC_ERROR_HANDLING",
                                       "TORCH_NCCL_DESYNC_DEBUG",
                                       "TORCH_NCCL_ENABLE_TIMING",
                                       "TORCH_NCCL_TRACE_BUFFER_SIZE",
                                       "TORCH_NCCL_DUMP_ON_TIMEOUT",
                                       "TORCH_NCCL_DEBUG_INFO_TEMP_FILE",
                                       "TORCH_NCCL_DEBUG_INFO_PIPE_FILE",
                                       "TORCH_NCCL_TRACE_CPP_STACK",
                                       "TORCH_NCCL_ENABLE_MONITORING",
                                       "TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC",
                                       "TORCH_NCCL_WAIT_TIMEOUT_DUMP_MILSEC",
                                       "TORCH_NCCL_COORD_CHECK_MILSEC",
                                       "TORCH_NCCL_PROPAGATE_ERROR",
                                       "TORCH_NCCL_RETHROW_CUDA_ERRORS",
                                       "TORCH_NCCL_NAN_CHECK",
                                       "TORCH_NCCL_LOG_CPP_STACK_ON_UNCLEAN_SHUTDOWN",
                                       "TORCH_NCCL_CUDA_EVENT_CACHE",
                                       "TORCH_NCCL_RANKS_PER_ROOT",
                                       "TORCH_NCCL_HIGH_PRIORITY",
                                       "TORCH_NCCL_USE_COMM_NONBLOCKING",
                                       "TORCH_NCCL_NONBLOCKING_TIMEOUT",
                                       "TORCH_NCCL_AVOID_RECORD_STREAMS",
                                       "TORCH_NCCL_USE_TENSOR_REGISTER_ALLOCATOR_HOOK",
                                       "TORCH_NCCL_SHOW_EAGER_INIT_P2P_SERIALIZATION_WARNING",
                                       "TORCH_NCCL_BCAST_UNIQUEID",
                                       "TORCH_NCCL_EXTRA_DUMP_ON_EXEC",
                                       "TORCH_FR_BUFFER_SIZE",
                                       "TORCH_FR_DUMP_TEMP_FILE",
                                       "TORCH_FR_CPP_STACK",
                                       "TORCH_DISTRIBUTED_DEBUG",
                                       "TORCH_CPP_LOG_LEVEL",
                                       "TORCH_SHOW_CPP_STACKTRACES",
                                       "TORCH_CUDA_ARCH_LIST",
                                       "TORCH_EXTENSIONS_DIR",
                                       "TORCHELASTIC_ERROR_FILE",
                                       "PYTORCH_CUDA_ALLOC_CONF",
                                       "PYTORCH_ALLOC_CONF",
                                       "CUDA_VISIBLE_DEVICES",
                                       "CUDA_DEVICE_ORDER",
                                       "CUDA_LAUNCH_BLOCKING",
                                       "CUDA_MODULE_LOADING",
                                       "CUDA_DEVICE_MAX_CONNECTIONS",
                                       "CUDA_HOME",
                                       "CUDA_PATH",
                                       "GLOO_SOCKET_IFNAME",
                                       "TP_SOCKET_IFNAME",
                                       "GLOO_DEVICE_TRANSPORT",
                                       "OMP_NUM_THREADS",
                                       "MKL_NUM_THREADS",
                                       "MASTER_ADDR",
                                       "MASTER_PORT",
                                       "TOKENIZERS_PARALLELISM",
                                       "WANDB_DISABLED",
                                       "WANDB_MODE",
                                       "HF_HUB_OFFLINE",
                                       "TRANSFORMERS_OFFLINE",
                                       "LD_LIBRARY_PATH",
                                       "PYTHONPATH",
                                       "FORCE_TORCHRUN"};

constexpr Folklore kFolklore[] = {
    {"NCCL_TIMEOUT", words::Text{"the timeout is torch's: init_process_group(timeout=…), or --ddp_timeout of the HF Trainer"}},
    {"TORCH_DISTRIBUTED_TIMEOUT", words::Text{"the timeout is an argument: init_process_group(timeout=…)"}},
    {"NCCL_INFO", words::Text{"use NCCL_DEBUG=INFO"}},
    {"NCC_INFO", words::Text{"use NCCL_DEBUG=INFO"}},
    {"NCCL_LOG_LEVEL", words::Text{"use NCCL_DEBUG"}},
    {"NCCL_DEBUG_LEVEL", words::Text{"use NCCL_DEBUG"}},
    {"NCCL_INTERFACE", words::Text{"use NCCL_SOCKET_IFNAME"}},
    {"NCCL_IFNAME", words::Text{"use NCCL_SOCKET_IFNAME"}},
    {"NCCL_MIN_CHANNELS", words::Text{"use NCCL_MIN_NCHANNELS, or NCCL_MIN_CTAS since 2.17"}},
    {"NCCL_MAX_CHANNELS", words::Text{"use NCCL_MAX_NCHANNELS, or NCCL_MAX_CTAS since 2.17"}},
};

struct Choices {
  std::string_view name, words, separators;
};
constexpr Choices kChoices[] = {
    {"NCCL_DEBUG", " version warn info abort trace ", ""},
    {"NCCL_DEBUG_SUBSYS", " init coll p2p shm net graph tuning env alloc call proxy nvls bootstrap reg profile ras all alloc_host destroy ",
     ","},
    {"NCCL_ALGO", " tree ring collnet collnetdirect collnetchain nvls nvlstree pat allreduce broadcast reduce allgather reducescatter ",
     ",;:"},
    {"NCCL_PROTO", " ll ll128 simple allreduce broadcast reduce allgather reducescatter sendrecv ", ",;:"},
    {"NCCL_P2P_LEVEL", " loc nvl pix pxb pxn p2c phb node sys 0 1 2 3 4 5 ", ""},
    {"NCCL_NET_GDR_LEVEL", " loc nvl pix pxb pxn p2c phb node sys 0 1 2 3 4 5 ", ""},
    {"NCCL_SOCKET_FAMILY", " af_inet af_inet6 ", ""},
    {"NCCL_LAUNCH_MODE", " parallel group ", ""},
};

}  // namespace

const NcclVariable* find_nccl_variable(std::string_view name) {
  auto all = nccl_variables();
  auto at = std::lower_bound(all.begin(), all.end(), name, [](const NcclVariable& v, std::string_view n) { return v.name < n; });
  return at != all.end() && at->name == name ? &*at : nullptr;
}

bool is_others_nccl_name(std::string_view name) {
  for (std::string_view prefix : kOthersPrefixes)
    if (name.starts_with(prefix)) return true;
  return std::find(std::begin(kOthers), std::end(kOthers), name) != std::end(kOthers);
}

std::string_view torch_name_of(std::string_view name) {
  if (!name.starts_with("NCCL_")) return "";
  for (std::string_view known : kKnown)
    if (known.starts_with("TORCH_NCCL_") && known.substr(6) == name &&
        std::find(std::begin(kTorchNccl), std::end(kTorchNccl), name.substr(5)) != std::end(kTorchNccl))
      return known;
  return "";
}

const Folklore* find_folklore(std::string_view name) {
  for (const Folklore& f : kFolklore)
    if (f.name == name) return &f;
  return nullptr;
}

bool is_known_name(std::string_view name) {
  return find_nccl_variable(name) || is_others_nccl_name(name) || !torch_name_of(name).empty() ||
         std::find(std::begin(kKnown), std::end(kKnown), name) != std::end(kKnown);
}

std::string meant_name(std::string_view name) {
  if (name.size() < 6 || name.size() > kMostName || is_known_name(name)) return "";
  std::string upper(base::trim(name));
  for (char& c : upper)
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  if (is_known_name(upper)) return upper;
  std::string best;
  int nearest = upper.size() >= 12 ? 3 : 2;  // short names have neighbours that are names too: WANDB_MODE, WANDB_NAME
  auto consider = [&](std::string_view known) {
    if (known.size() > upper.size() + 2 || upper.size() > known.size() + 2 || known.size() < 8) return;
    int distance = base::edit_distance(upper, known);
    if (distance >= nearest) return;
    nearest = distance;
    best = known;
  };
  for (const NcclVariable& v : nccl_variables())
    if (v.removed == 0) consider(v.name);
  for (std::string_view known : kKnown) consider(known);
  return best;
}

std::optional<ReadNumber> read_as_nccl(std::string_view value) {
  if (value.empty()) return std::nullopt;
  std::string text(value);
  char* end = nullptr;
  errno = 0;
  ReadNumber read;
  read.value = std::strtoll(text.c_str(), &end, 0);
  if (errno != 0) return std::nullopt;
  read.whole = end != text.c_str() && *end == '\0';
  std::string_view digits = base::trim(value);
  if (!digits.empty() && (digits[0] == '-' || digits[0] == '+')) digits.remove_prefix(1);
  read.octal = read.whole && digits.size() > 1 && digits[0] == '0' && digits[1] >= '0' && digits[1] <= '9' &&
               digits.find_first_not_of('0') != std::string_view::npos;
  return read;
}

std::string unknown_word(std::string_view name, std::string_view value) {
  for (const Choices& choices : kChoices) {
    if (choices.name != name || value.empty()) continue;
    std::string lower = base::to_lower(value);
    for (char separator : choices.separators) std::replace(lower.begin(), lower.end(), separator, ',');
    for (std::string_view word : base::split(lower, choices.separators.empty() ? '\0' : ',')) {
      while (!choices.separators.empty() && word.starts_with('^')) word.remove_prefix(1);
      if (!word.empty() && choices.words.find(" " + std::string(word) + " ") == std::string_view::npos) return std::string(word);
    }
  }
  return "";
}

int nccl_minor(std::string_view version) {
  if (!version.starts_with("2.")) return -1;
  int minor = 0;
  size_t i = 2;
  for (; i < version.size() && version[i] >= '0' && version[i] <= '9' && minor < 1000; ++i) minor = minor * 10 + (version[i] - '0');
  return i == 2 ? -1 : minor;
}

}  // namespace phalanx::doctor
