#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"
#include "base/try.h"
#include "base/unicode.h"
#include "frontdoor/door.h"

namespace phalanx::frontdoor {
namespace {

using base::Status;
using words::tr;

using base::usage;

std::string upper(std::string_view name) {
  std::string out = "PET_";
  for (char c : name) out += c == '-' ? '_' : c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  return out;
}

// Options that stand in PET_<NAME> and not on the line. A switch is on where the variable is a number other than 0.
void add_from_environment(const Door& door, std::span<const PeerFlag> table, ReadFlags& read) {
  for (const PeerFlag& flag : table) {
    const std::string name = upper(flag.name());
    if (read.has(flag.name()) || flag.name() == "use-env" || flag.name() == "logs-specs" || flag.name() == "numa-binding") continue;
    std::optional<std::string> value = door.variable(name);
    if (!value || (!flag.takes_value && (value->empty() || *value == "0"))) continue;
    read.flags.push_back({&flag, name, flag.takes_value ? *value : "", value->find("${") == std::string::npos});
  }
}

Status take_nnodes(Door& door, const ReadFlags& read) {
  const GivenFlag* given = read.find("nnodes");
  if (!given) return base::ok();
  if (!given->known) return base::ok();
  const size_t colon = given->value.find(':');
  base::Result<int64_t> most =
      base::parse_int(std::string_view(given->value).substr(colon == std::string::npos ? 0 : colon + 1), 1, 65'536);
  base::Result<int64_t> least = base::parse_int(std::string_view(given->value).substr(0, colon), 1, 65'536);
  if (!most.ok() || !least.ok() || *least > *most)
    return usage(fmt::format("{} {}: neither a number of nodes nor MIN:MAX", given->typed, base::quote(given->value)),
                 "write --nnodes 2 or --nnodes 2:4");
  door.out.nodes = static_cast<int>(*most);
  if (*least < *most) door.out.least_nodes = static_cast<int>(*least);
  const std::string becomes = door.out.least_nodes ? fmt::format("--nnodes {}:{}", *least, *most) : fmt::format("--nnodes {}", *most);
  door.decide(
      typed_text(*given), becomes,
      door.out.least_nodes ? tr("a lost host does not end the run while MIN are left; more than MAX are spares") : words::Message{});
  return base::ok();
}

Status take_ranks(Door& door, const ReadFlags& read) {
  const GivenFlag* given = read.find("nproc-per-node");
  if (!given || !given->known) {
    door.out.ranks = "1";
    door.decide("--nproc-per-node", "--nproc-per-node 1", tr("not given: torchrun starts one process per node"));
    return base::ok();
  }
  const std::string& value = given->value;
  if (value != "auto" && value != "gpu" && value != "cpu" && !base::parse_int(value, 1, 4'096).ok())
    return usage(fmt::format("{} {}: neither a number from 1 to 4096 nor auto, gpu or cpu", given->typed, base::quote(value)),
                 "write --nproc-per-node 8, or --nproc-per-node gpu for one rank per GPU");
  door.out.ranks = value;
  door.decide(
      typed_text(*given), "--nproc-per-node " + value,
      value == "auto" ? tr("one rank per GPU; on a host without GPUs one rank, where torchrun starts one per CPU") : words::Message{});
  return base::ok();
}

// HOST:PORT, [IPv6]:PORT, HOST. 29400 is the port of an endpoint without one.
Status take_endpoint(Door& door, const GivenFlag& given, const ReadFlags& read) {
  std::string_view value = given.value;
  if (value.empty()) return base::ok();
  if (const GivenFlag* backend = read.find("rdzv-backend"); backend && (backend->value.starts_with("etcd") || backend->value == "zeus")) {
    door.decide(typed_text(given), "", tr("the server of another rendezvous backend, which Phalanx does not need"));
    return base::ok();
  }
  size_t colon = value.rfind(':');
  const size_t bracket = value.find(']');
  if (bracket != std::string_view::npos && colon != std::string_view::npos && colon < bracket) colon = std::string_view::npos;
  std::string host(value.substr(0, colon));
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  if (colon != std::string_view::npos) {
    GivenFlag port = given;
    port.value = std::string(value.substr(colon + 1));
    TRY(take_master_port(door, port));
  }
  take_master_address(door, typed_text(given), host, given.known);
  return base::ok();
}

Status take_restarts(Door& door, const ReadFlags& read) {
  const GivenFlag* given = read.find("max-restarts");
  if (!given) {
    if (door.out.least_nodes)
      door.decide("--max-restarts", "--max-restarts 3",
                  tr("not given: torchrun does not count the loss of a node as a restart, Phalanx does"));
    if (door.out.least_nodes) door.out.restarts = 3;
    return base::ok();
  }
  TRY_ASSIGN(int restarts, number_of(*given, 0, 10'000));
  door.out.restarts = restarts;
  door.decide(typed_text(*given), fmt::format("--max-restarts {}", restarts),
              restarts ? tr("for the whole run, not for each agent; every restart has a fresh store") : words::Message{});
  return base::ok();
}

Status check_values(const ReadFlags& read) {
  if (const GivenFlag* role = read.find("role"); role && role->value != "default")
    return usage(fmt::format("{} {}: there is only one role, \"default\"", role->typed, base::quote(role->value)),
                 "omit it; a script that reads ROLE_NAME gets \"default\"");
  if (const GivenFlag* signals = read.find("signals-to-handle"); signals)
    for (std::string_view one : base::split(signals->value, ','))
      if (one != "SIGTERM" && one != "SIGINT" && one != "SIGHUP" && one != "SIGQUIT")
        return usage(fmt::format("{}: {} is not passed on to the ranks", signals->typed, base::quote(one)),
                     "omit it, and send the signal to the ranks themselves");
  if (const GivenFlag* binding = read.find("numa-binding"); binding && binding->value != "node")
    return usage(fmt::format("{} {}: ranks are bound by NUMA node", binding->typed, base::quote(binding->value)),
                 "write --numa-binding node, or omit it");
  if (read.has("no-python") && read.has("module")) return usage("--module and --no-python cannot be combined", "keep one of them");
  return base::ok();
}

// Variables that other launchers read and torchrun does not: it sets them.
void warn_of_unread_variables(Door& door, const ReadFlags& read) {
  for (const char* name : {"MASTER_ADDR", "MASTER_PORT", "NODE_RANK", "NNODES", "NPROC_PER_NODE", "WORLD_SIZE", "RANK"}) {
    if (!door.in_prefix(name)) continue;
    door.warn(tr("torchrun does not read {}: it sets that variable for the ranks", name),
              tr("give the option instead (--nnodes, --nproc-per-node, --master-addr, --master-port)"));
    door.decide(name, "", tr("torchrun does not read it"));
  }
  const GivenFlag* nodes = read.find("nnodes");
  const GivenFlag* rank = read.find("node-rank");
  if (rank && rank->known && rank->value != "0" && (!nodes || nodes->value == "1" || nodes->value == "1:1"))
    door.warn(tr("{} without --nnodes: torchrun would see one node and refuse the rank", typed_text(*rank)),
              tr("write --nnodes with the number of hosts"));
}

}  // namespace

Status torchrun_door(Door& door, Peer peer, const std::string& launcher, std::span<const std::string> words) {
  const std::string name = peer == Peer::kTorchLaunch ? "torch.distributed.launch" : "torchrun";
  const std::vector<PeerFlag> table = flags_of(peer);
  TRY_ASSIGN(ReadFlags read, read_flags(name, table, true, words));
  add_from_environment(door, table, read);
  TRY(answer_flags(door, name, read));
  TRY(check_values(read));
  if (const GivenFlag* rank = read.find("node-rank")) TRY(take_node_rank(door, *rank));
  TRY(take_nnodes(door, read));
  TRY(take_ranks(door, read));
  TRY(take_restarts(door, read));
  if (const GivenFlag* endpoint = read.find("rdzv-endpoint")) TRY(take_endpoint(door, *endpoint, read));
  if (const GivenFlag* address = read.find("master-addr")) take_master_address(door, typed_text(*address), address->value, address->known);
  if (const GivenFlag* port = read.find("master-port")) TRY(take_master_port(door, *port));
  if (read.has("standalone") && door.out.nodes.value_or(1) > 1)
    return usage("--standalone and --nnodes cannot be combined: standalone is one node", "omit --standalone");
  take_log_folder(door, read.find("log-dir"));
  TRY(take_streams(door, read.find("redirects"), read.find("tee"), read.find("local-ranks-filter")));
  if (read.rest.empty()) return usage(fmt::format("{} needs a script", name), fmt::format("phalanx {} train.py", "torchrun"));
  const Start start = read.has("no-python") && !read.has("run-path") ? Start::kProgram
                      : read.has("module")                           ? Start::kModule
                                                                     : Start::kScript;
  const std::string python = door.variable("PYTHON_EXEC").value_or(door.python(launcher));
  door.out.argv = command_of(start, python, read.rest);
  const bool legacy = peer == Peer::kTorchLaunch && !read.has("use-env");
  if (legacy && start == Start::kProgram) return usage("torch.distributed.launch: --no-python needs --use-env", "add --use-env");
  if (legacy) {
    add_local_rank(door.out, start);
    door.decide("torch.distributed.launch", "--local_rank=${local_rank}",
                tr("without --use-env every process gets its local rank as an argument"));
  }
  const bool macro = std::any_of(door.out.argv.begin(), door.out.argv.end(),
                                 [](const std::string& word) { return word.find("${local_rank}") != std::string::npos; });
  door.out.local_rank_macro = macro;
  if (macro && !legacy) door.decide("${local_rank}", "--local-rank-macro", tr("torchrun replaces it in every argument"));
  warn_of_unread_variables(door, read);
  return base::ok();
}

}  // namespace phalanx::frontdoor
