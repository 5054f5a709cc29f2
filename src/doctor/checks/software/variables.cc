// Variables of Python, torch and their libraries, and where hosts differ.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/text.h"
#include "doctor/checks/rows.h"
#include "doctor/settings.h"
#include "doctor/views/nccl_variables.h"

namespace phalanx::doctor {
namespace {

size_t index_of(const Situation& s, const HostView& h) { return static_cast<size_t>(&h - s.hosts.data()); }

void check_misspelled(const Situation& s, Findings& findings) {
  auto look = [&](auto add, const std::string& name, const std::string& value) {
    std::string meant = meant_name(name);
    if (meant.empty() || meant.starts_with("NCCL_") || name.find(' ') != std::string::npos) return;
    add(tr("no program reads {}={}; the correct name is {}", name, value, meant),
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
      auto told = [](const std::string& text) { return text.empty() ? tr("not set") : tr("{}", text); };
      findings.on(hosts, tr("{}: {}; {}: {}", names_of(s, odd.hosts), told(odd.value), names_of(s, common.hosts), told(common.value)),
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

void check_wandb(const Situation& s, size_t h, const HostView& host, Findings& findings) {
  const machine::SoftwareFacts& f = host.facts.software;
  if (package(s, h, "wandb").empty() || package(s, h, "transformers").empty() || f.wandb_login || f.assumed) return;
  if (std::find(f.secrets_set.begin(), f.secrets_set.end(), "WANDB_API_KEY") != f.secrets_set.end()) return;
  bool told = std::any_of(s.job.set.begin(), s.job.set.end(), [](const auto& one) { return one.first == "WANDB_API_KEY"; });
  for (const std::string& word : s.job.argv) told = told || word.find("report_to") != std::string::npos;
  std::string mode = s.variable(h, "WANDB_MODE").value_or("");
  if (told || mode == "offline" || mode == "disabled" || mode == "dryrun" || is_on(s, h, "WANDB_DISABLED")) return;
  findings.on(h, tr("wandb is installed, but neither a key nor WANDB_MODE is set"), "export WANDB_MODE=offline");
}

void check_tokenizers(const Situation& s, size_t h, const HostView&, Findings& findings) {
  if (package(s, h, "tokenizers").empty() || s.variable(h, "TOKENIZERS_PARALLELISM")) return;
  findings.on(h, tr("tokenizers is installed, but TOKENIZERS_PARALLELISM is not set"), "export TOKENIZERS_PARALLELISM=false");
}

void check_proxy(const Situation& s, size_t h, const HostView&, Findings& findings) {
  if (s.hosts.size() < 2) return;
  std::string proxy, none = s.variable(h, "no_proxy").value_or(s.variable(h, "NO_PROXY").value_or(""));
  for (const char* name : {"http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"})
    if (proxy.empty() && !s.variable(h, name).value_or("").empty()) proxy = name;
  if (proxy.empty() || none == "*") return;
  std::string missing;
  for (size_t other = 0; other < s.hosts.size(); ++other) {
    const std::string& address = s.hosts[other].address;
    if (other == h || address.empty()) continue;
    std::string net = address.substr(0, address.rfind('.'));
    if (none.find(address) == std::string::npos && none.find(net) == std::string::npos &&
        none.find(s.hosts[other].name) == std::string::npos && none.find('/') == std::string::npos)
      missing += (missing.empty() ? "" : ",") + address;
  }
  if (missing.empty()) return;
  findings.on(h, tr("{} is set, but no_proxy contains none of {}", proxy, missing),
              fmt::format("export no_proxy={}{}", none.empty() ? "" : none + ",", missing));
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
    findings.on(host, tr("OMP_NUM_THREADS={} × {} ranks on {} cores", threads->value, h.ranks, h.facts.machine.cpus_usable),
                fmt::format("export OMP_NUM_THREADS={}", fair));
  }
}

void check_hand_rank(const Situation& s, size_t h, const HostView& host, Findings& findings) {
  std::optional<std::string> rank = s.variable(h, "LOCAL_RANK");
  if (!rank || host.ranks < 2 || !s.variable(h, "RANK")) return;
  findings.on(h, tr("LOCAL_RANK={} is set for all {} ranks of the host", *rank, host.ranks), "unset RANK LOCAL_RANK WORLD_SIZE");
}

void check_unset(const Situation& s, Findings& findings) {
  for (const std::string& one : s.job.unset) findings.job(tr("{} has no value here, and is not set on this machine either", one));
}

const Row kEnvironmentRows[] = {
    {"ENV-UNSET", Severity::kWarning, check_unset},
    {"ENV-MISSPELLED", Severity::kWarning, check_misspelled},
    {"ENV-VARIABLES-DIFFER", Severity::kWarning, check_variables_differ},
    {"ENV-OFFLINE", Severity::kWarning, check_offline},
    {"ENV-WANDB", Severity::kNote, check_wandb},
    {"ENV-TOKENIZERS", Severity::kNote, check_tokenizers},
    {"ENV-PROXY", Severity::kNote, check_proxy},
    {"ENV-OMP", Severity::kWarning, check_omp},
    {"ENV-HAND-RANK", Severity::kWarning, check_hand_rank},
};

}  // namespace

std::span<const Row> environment_rows() { return kEnvironmentRows; }

}  // namespace phalanx::doctor
