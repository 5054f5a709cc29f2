#include "cli/by_hand/pod_place.h"

#include <fmt/format.h>

#include "base/text.h"
#include "base/try.h"
#include "base/unicode.h"

namespace phalanx::cli {
namespace {

constexpr int kMostNodes = 65'536;

// The first of the variables that is set, and its name.
struct Found {
  std::string name, value;
};
std::optional<Found> first_of(const Pod& pod, std::initializer_list<const char*> names) {
  for (const char* name : names)
    if (std::string value = pod.variable(name); !value.empty()) return Found{name, std::move(value)};
  return std::nullopt;
}

base::Result<std::optional<int>> number_of(const std::optional<Found>& found, int min, int max) {
  if (!found) return std::optional<int>();
  base::Result<int64_t> number = base::parse_int(found->value, min, max);
  if (number.ok()) return std::optional<int>(static_cast<int>(*number));
  base::Error error = std::move(number).error();
  error.kind = base::ErrorKind::kConfig;
  error.message = fmt::format("{}: {}", found->name, error.message);
  return std::move(error).with_hint("type the option: --nnodes, --node-rank, --nproc-per-node or --master-port");
}

// What "train-3" has behind it in /etc/hosts: ".train.default.svc.cluster.local". Empty outside of a headless service.
std::string domain_of(const Pod& pod) {
  for (std::string_view line : base::split(pod.hosts_file, '\n'))
    for (std::string_view word : base::split_words(line.substr(0, line.find('#'))))
      if (word.size() > pod.hostname.size() + 1 && word.starts_with(pod.hostname) && word[pod.hostname.size()] == '.')
        return std::string(word.substr(pod.hostname.size()));
  return "";
}

// The name of the pod with the index 0.
std::string first_pod(const Pod& pod) {
  const std::string index = "-" + pod.variable("JOB_COMPLETION_INDEX");
  const std::string domain = domain_of(pod);
  if (index.size() < 2 || domain.empty() || !pod.hostname.ends_with(index)) return "";
  return pod.hostname.substr(0, pod.hostname.size() - index.size()) + "-0" + domain;
}

bool is_loopback(std::string_view address) { return address == "localhost" || address.starts_with("127.") || address == "::1"; }

std::string master_of(const Pod& pod, int node_rank) {
  const std::optional<Found> given = first_of(pod, {"PET_MASTER_ADDR", "MASTER_ADDR"});
  if (!given) return first_pod(pod);
  return node_rank == 0 && is_loopback(given->value) ? pod.hostname : given->value;  // as early PyTorchJobs name their master to itself
}

base::Result<std::optional<int>> nodes_of(const Pod& pod) {
  const std::optional<Found> given = first_of(pod, {"PET_NNODES"});
  if (given && given->value.find(':') != std::string::npos)
    return base::fail(base::ErrorKind::kUsage, fmt::format("PET_NNODES={}: pods start with a fixed number of nodes", given->value))
        .with_hint("remove elasticPolicy from the job, or write --nnodes N");
  if (given) return number_of(given, 1, kMostNodes);
  if (pod.variable("RANK").empty()) return std::optional<int>();
  return number_of(first_of(pod, {"WORLD_SIZE"}), 1, kMostNodes);
}

}  // namespace

base::Result<bool> take_pod_place(const Pod& pod, RunOptions& options) {
  if (pod.variable("KUBERNETES_SERVICE_HOST").empty()) return false;
  if (options.node_rank || options.least_nodes) return false;
  if (!options.hosts.empty() || !options.hostfile.empty() || !options.spares.empty()) return false;
  std::optional<int> nodes = options.nnodes;
  if (!nodes) { TRY_ASSIGN(nodes, nodes_of(pod)); }
  if (nodes.value_or(1) < 2) return false;
  TRY_ASSIGN(const std::optional<int> rank, number_of(first_of(pod, {"PET_NODE_RANK", "JOB_COMPLETION_INDEX", "RANK"}), 0, kMostNodes - 1));
  if (!rank) return false;
  const std::string master = options.master_addr.empty() ? master_of(pod, *rank) : options.master_addr;
  if (master.empty())
    return base::fail(base::ErrorKind::kUsage,
                      fmt::format("this pod is node {} of {}, but the address of node 0 is unknown", *rank, *nodes))
        .because("neither MASTER_ADDR is set, nor is the pod in a headless service (subdomain of its template)")
        .with_hint("give the name of the first pod: --master-addr JOB-0.SERVICE");
  TRY_ASSIGN(const std::optional<int> port, number_of(first_of(pod, {"PET_MASTER_PORT", "MASTER_PORT"}), 1, 65'535));
  const std::optional<Found> ranks = first_of(pod, {"PET_NPROC_PER_NODE"});
  options.nnodes = nodes;
  options.node_rank = rank;
  options.master_addr = master;
  if (!options.master_port) options.master_port = port;
  if (options.ranks_per_host || !ranks) return true;
  using Kind = RanksPerHost::Kind;
  if (ranks->value == "auto" || ranks->value == "gpu" || ranks->value == "cpu") {
    options.ranks_per_host = RanksPerHost{ranks->value == "auto" ? Kind::kAuto : ranks->value == "gpu" ? Kind::kGpu : Kind::kCpu, 0};
  } else {
    TRY_ASSIGN(const std::optional<int> count, number_of(ranks, 1, 4'096));
    options.ranks_per_host = RanksPerHost{Kind::kCount, *count};
  }
  return true;
}

}  // namespace phalanx::cli
