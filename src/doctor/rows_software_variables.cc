// Variables of Python, torch and their libraries, and where hosts differ.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/text.h"
#include "doctor/nccl_variables.h"
#include "doctor/rows_software_parts.h"
#include "doctor/settings.h"

namespace doctor {
namespace {

size_t index_of(const Situation& s, const HostView& h) { return static_cast<size_t>(&h - s.hosts.data()); }

void check_misspelled(const Situation& s, Findings& findings) {
  auto look = [&](auto add, const std::string& name, const std::string& value) {
    std::string meant = meant_name(name);
    if (meant.empty() || meant.starts_with("NCCL_") || name.find(' ') != std::string::npos) return;
    add(Words{fmt::format("{}={} is read by nobody; {} is", name, value, meant),
              fmt::format("没有程序读取 {}={}，正确的名字是 {}", name, value, meant)},
        fmt::format("export {}={}", meant, base::shell_quote(value)));
  };
  for (const auto& [name, value] : s.job.set)
    look([&](Words words, std::string fix) { findings.job(std::move(words), std::move(fix)); }, name, value);
  for (size_t host : probed(s))
    for (const auto& variable : s.hosts[host].facts.software.environment) {
      const std::string& name = variable.first;  // clang 14 cannot capture a structured binding
      bool set = std::any_of(s.job.set.begin(), s.job.set.end(), [&](const auto& one) { return one.first == name; });
      if (!set) look([&](Words words, std::string fix) { findings.on(host, std::move(words), std::move(fix)); }, name, variable.second);
    }
}

// Variables that say the same on every host of a sound cluster; which cards are visible is another group's business.
bool must_agree(std::string_view name) {
  if (name == "CUDA_VISIBLE_DEVICES" || name.find("SOCKET_IFNAME") != std::string_view::npos || name.ends_with("_DIR") ||
      name.ends_with("_HOME") || name.ends_with("_PATH") || name.ends_with("_FILE") || name.find("ELASTIC") != std::string_view::npos ||
      name.find("VERSION") != std::string_view::npos)
    return false;
  for (std::string_view prefix : {"TORCH_", "PYTORCH_", "CUDA_", "GLOO_", "ACCELERATE_", "DEEPSPEED_", "FSDP_", "HF_DATASETS_"})
    if (name.starts_with(prefix)) return true;
  return name == "OMP_NUM_THREADS" || name == "MKL_NUM_THREADS" || name == "TOKENIZERS_PARALLELISM";
}

void tell_differences(const Situation& s, Findings& findings, const std::set<std::string>& names) {
  for (const std::string& name : names) {
    std::vector<Camp> all = camps(s, [&](const HostView& h) {
      std::optional<std::string> value = s.variable(index_of(s, h), name);
      return std::optional<std::string>(value ? name + "=" + *value : "");
    });
    odd_ones(all, [&](const std::vector<size_t>& hosts, const Camp& odd, const Camp& common) {
      auto told = [](const std::string& text, const char* none) { return text.empty() ? std::string(none) : text; };
      findings.on(hosts,
                  {fmt::format("{}: {}; {}: {}", names_of(s, odd.hosts), told(odd.value, "not set"), names_of(s, common.hosts),
                               told(common.value, "not set")),
                   fmt::format("{}：{}；{}：{}", names_of(s, odd.hosts), told(odd.value, "未设置"), names_of(s, common.hosts),
                               told(common.value, "未设置"))},
                  "export " + base::shell_quote(odd.value.empty() ? common.value : odd.value));
    });
  }
}

void check_variables_differ(const Situation& s, Findings& findings) {
  std::set<std::string> names;
  for (size_t host : probed(s))
    for (const auto& [name, value] : s.hosts[host].facts.software.environment)
      if (must_agree(name)) names.insert(name);
  tell_differences(s, findings, names);
}

void check_offline(const Situation& s, Findings& findings) {
  std::set<std::string> names;
  for (size_t host : probed(s))
    for (const char* name : {"HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "HF_DATASETS_OFFLINE", "HF_ENDPOINT"})
      if (s.hosts[host].facts.software.environment.count(name)) names.insert(name);
  tell_differences(s, findings, names);
}

void check_wandb(const Situation& s, Findings& findings) {
  for (size_t host : probed(s)) {
    const host::SoftwareFacts& f = s.hosts[host].facts.software;
    if (package(s, host, "wandb").empty() || package(s, host, "transformers").empty() || f.wandb_login || f.assumed) continue;
    if (std::find(f.secrets_set.begin(), f.secrets_set.end(), "WANDB_API_KEY") != f.secrets_set.end()) continue;
    bool told = std::any_of(s.job.set.begin(), s.job.set.end(), [](const auto& one) { return one.first == "WANDB_API_KEY"; });
    for (const std::string& word : s.job.argv) told = told || word.find("report_to") != std::string::npos;
    std::string mode = s.variable(host, "WANDB_MODE").value_or("");
    if (told || mode == "offline" || mode == "disabled" || mode == "dryrun" || is_on(s, host, "WANDB_DISABLED")) continue;
    findings.on(host, {"wandb is installed, and there is neither a key nor WANDB_MODE", "装有 wandb，但既没有密钥也没有设置 WANDB_MODE"},
                "export WANDB_MODE=offline");
  }
}

void check_tokenizers(const Situation& s, Findings& findings) {
  for (size_t host : probed(s)) {
    if (package(s, host, "tokenizers").empty() || s.variable(host, "TOKENIZERS_PARALLELISM")) continue;
    findings.on(host, {"tokenizers is installed, TOKENIZERS_PARALLELISM is not set", "装有 tokenizers，未设置 TOKENIZERS_PARALLELISM"},
                "export TOKENIZERS_PARALLELISM=false");
  }
}

void check_proxy(const Situation& s, Findings& findings) {
  if (s.hosts.size() < 2) return;
  for (size_t host : probed(s)) {
    std::string proxy, none = s.variable(host, "no_proxy").value_or(s.variable(host, "NO_PROXY").value_or(""));
    for (const char* name : {"http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"})
      if (proxy.empty() && !s.variable(host, name).value_or("").empty()) proxy = name;
    if (proxy.empty() || none == "*") continue;
    std::string missing;
    for (size_t other = 0; other < s.hosts.size(); ++other) {
      const std::string& address = s.hosts[other].address;
      if (other == host || address.empty()) continue;
      std::string net = address.substr(0, address.rfind('.'));
      if (none.find(address) == std::string::npos && none.find(net) == std::string::npos &&
          none.find(s.hosts[other].name) == std::string::npos && none.find('/') == std::string::npos)
        missing += (missing.empty() ? "" : ",") + address;
    }
    if (missing.empty()) continue;
    findings.on(host,
                {fmt::format("{} is set, and no_proxy has none of {}", proxy, missing),
                 fmt::format("设置了 {}，而 no_proxy 中没有 {}", proxy, missing)},
                fmt::format("export no_proxy={}{}", none.empty() ? "" : none + ",", missing));
  }
}

void check_omp(const Situation& s, Findings& findings) {
  for (size_t host : probed(s)) {
    std::optional<std::string> value = s.variable(host, "OMP_NUM_THREADS");
    std::optional<ReadNumber> threads = value ? read_as_nccl(*value) : std::nullopt;
    const HostView& h = s.hosts[host];
    if (!threads || !threads->whole || h.ranks <= 0 || h.facts.machine.cpus_usable <= 0 || threads->value <= 1 || threads->value > 100'000)
      continue;
    if (threads->value * h.ranks <= h.facts.machine.cpus_usable) continue;
    int64_t fair = std::max<int64_t>(1, h.facts.machine.cpus_usable / h.ranks);
    findings.on(host,
                {fmt::format("OMP_NUM_THREADS={} × {} ranks on {} cores", threads->value, h.ranks, h.facts.machine.cpus_usable),
                 fmt::format("OMP_NUM_THREADS={} × {} 个 rank，而只有 {} 个核", threads->value, h.ranks, h.facts.machine.cpus_usable)},
                fmt::format("export OMP_NUM_THREADS={}", fair));
  }
}

void check_hand_rank(const Situation& s, Findings& findings) {
  for (size_t host : probed(s)) {
    std::optional<std::string> rank = s.variable(host, "LOCAL_RANK");
    if (!rank || s.hosts[host].ranks < 2 || !s.variable(host, "RANK")) continue;
    findings.on(host,
                {fmt::format("LOCAL_RANK={} is set for all {} ranks of the host", *rank, s.hosts[host].ranks),
                 fmt::format("为本机全部 {} 个 rank 统一设置了 LOCAL_RANK={}", s.hosts[host].ranks, *rank)},
                "unset RANK LOCAL_RANK WORLD_SIZE");
  }
}

const Row kEnvironmentRows[] = {
    {"ENV-MISSPELLED",
     Severity::kWarning,
     Group::kSoftware,
     {"a variable's name is nearly a known one", "变量名与已知变量只差一两个字母"},
     {"Is every TORCH_*, CUDA_*, GLOO_* name one that is read?", "每个 TORCH_*、CUDA_*、GLOO_* 变量名都会被读取吗？"},
     {"A name that nobody reads is ignored without a word: with CUDA_VISIBLE_DEVICE=0 all cards stay visible.",
      "没有程序读取的名字会被静默忽略：设置 CUDA_VISIBLE_DEVICE=0 时所有卡仍然可见。"},
     {"Correct the name.\n$ env | grep -E '^(CUDA|TORCH|GLOO)'", "改正变量名。\n$ env | grep -E '^(CUDA|TORCH|GLOO)'"},
     "",
     check_misspelled},
    {"ENV-VARIABLES-DIFFER",
     Severity::kWarning,
     Group::kSoftware,
     {"a variable is not the same on all hosts", "某个变量在各机器上不一致"},
     {"Do all ranks get the same TORCH_*, CUDA_*, GLOO_* variables?", "所有 rank 得到的 TORCH_*、CUDA_*、GLOO_* 变量一致吗？"},
     {"A profile of one host changes its ranks only: other timeouts, other checks, other order of collectives. Ranks wait for each other "
      "and nothing names the host.",
      "某台机器的 profile 只影响它自己的 rank：超时、检查、集合通信顺序都不同。rank 互相等待，却没有任何信息指出是哪台机器。"},
     {"Set it once, for all ranks.\n$ phalanx run --env OMP_NUM_THREADS=8 -- python <script>",
      "由启动器统一设置。\n$ phalanx run --env OMP_NUM_THREADS=8 -- python <script>"},
     "",
     check_variables_differ},
    {"ENV-OFFLINE",
     Severity::kWarning,
     Group::kSoftware,
     {"some hosts may download from the hub, others not", "部分机器允许从 Hub 下载，部分不允许"},
     {"Is Hugging Face's offline mode the same on all hosts?", "各机器的 Hugging Face 离线模式一致吗？"},
     {"One host then stops with \"Cannot find the requested files in the cached path and outgoing traffic has been disabled\" or tries to "
      "reach the network until a timeout.",
      "某台机器会报 “Cannot find the requested files in the cached path and outgoing traffic has been disabled”，或一直尝试联网直到超时。"},
     {"Set it on all.\n$ phalanx run --env HF_HUB_OFFLINE=1 -- python <script>",
      "统一设置。\n$ phalanx run --env HF_HUB_OFFLINE=1 -- python <script>"},
     "huggingface_hub environment variables",
     check_offline},
    {"ENV-WANDB",
     Severity::kNote,
     Group::kSoftware,
     {"wandb may ask for a key", "wandb 可能会要求登录"},
     {"Has wandb a key, or is it offline?", "wandb 有密钥或处于离线模式吗？"},
     {"The HF Trainer reports to every tracker that is installed. Without a key wandb ends the run: \"api_key not configured (no-tty)\"; "
      "without network it stalls.",
      "HF Trainer 会向所有已安装的跟踪器上报。没有密钥时 wandb 会终止运行：“api_key not configured (no-tty)”；没有网络时会卡住。"},
     {"Keep it offline, or off.\n$ export WANDB_MODE=offline", "设为离线或关闭。\n$ export WANDB_MODE=offline"},
     "transformers integrations",
     check_wandb},
    {"ENV-TOKENIZERS",
     Severity::kNote,
     Group::kSoftware,
     {"tokenizers may warn of forks", "tokenizers 可能出现 fork 警告"},
     {"Is TOKENIZERS_PARALLELISM set?", "设置了 TOKENIZERS_PARALLELISM 吗？"},
     {"\"huggingface/tokenizers: The current process just got forked, after parallelism has already been used. Disabling parallelism to "
      "avoid deadlocks…\" from every loader process.",
      "每个加载进程都会打印 “huggingface/tokenizers: The current process just got forked, after parallelism has already been used. "
      "Disabling parallelism to avoid deadlocks…”。"},
     {"Decide it.\n$ export TOKENIZERS_PARALLELISM=false", "明确设置。\n$ export TOKENIZERS_PARALLELISM=false"},
     "huggingface/tokenizers",
     check_tokenizers},
    {"ENV-PROXY",
     Severity::kNote,
     Group::kSoftware,
     {"a proxy is set, and the other hosts are not excepted", "设置了代理，但没有排除其他机器"},
     {"Does no_proxy hold the addresses of the hosts?", "no_proxy 中包含各机器的地址吗？"},
     {"Services that ranks reach by HTTP (etcd rendezvous, model servers, dashboards) go through the proxy and fail with 403 or 503. "
      "Sockets of torch and NCCL do not use it.",
      "rank 之间通过 HTTP 访问的服务（etcd 会合、模型服务、看板）会走代理并返回 403 或 503。torch 与 NCCL 的套接字不受影响。"},
     {"Except the hosts.\n$ export no_proxy=localhost,127.0.0.1,<addresses of the hosts>",
      "把各机器加入排除列表。\n$ export no_proxy=localhost,127.0.0.1,<addresses of the hosts>"},
     "",
     check_proxy},
    {"ENV-OMP",
     Severity::kWarning,
     Group::kSoftware,
     {"more compute threads than cores", "计算线程数超过核数"},
     {"Do OMP_NUM_THREADS times the ranks of a host fit its cores?", "OMP_NUM_THREADS 乘以本机 rank 数是否不超过核数？"},
     {"Threads of all ranks fight for the cores; data loading and CPU optimizers (offload) become several times slower.",
      "各 rank 的线程争抢 CPU，数据加载和 CPU 优化器（offload）会慢好几倍。"},
     {"Divide the cores among the ranks.\n$ export OMP_NUM_THREADS=8", "把核平均分给各 rank。\n$ export OMP_NUM_THREADS=8"},
     "torch/distributed/run.py",
     check_omp},
    {"ENV-HAND-RANK",
     Severity::kWarning,
     Group::kSoftware,
     {"ranks are set by hand in the environment", "环境中手工设置了 rank"},
     {"Are RANK and LOCAL_RANK left to the launcher?", "RANK 与 LOCAL_RANK 由启动器设置吗？"},
     {"LOCAL_RANK=0 for all ranks of a host puts them all on one card; it is right only for one GPU per host. Scripts that are started "
      "without a launcher believe these values.",
      "同一台机器上所有 rank 都用 LOCAL_RANK=0 会挤到同一张卡上；只有每机一张卡时才对。不经启动器运行的脚本会相信这些值。"},
     {"Remove them.\n$ unset RANK LOCAL_RANK WORLD_SIZE", "删除它们。\n$ unset RANK LOCAL_RANK WORLD_SIZE"},
     "torch.distributed documentation",
     check_hand_rank},
};

}  // namespace

std::span<const Row> environment_rows() { return kEnvironmentRows; }

}  // namespace doctor
