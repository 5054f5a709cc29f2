// A plain `python train.py`: either one process that starts its own (mp.spawn, Lightning, a notebook's script), or one line per node or per
// process with the rank in the environment, as Lightning and DDP scripts are started by hand.
#include <array>

#include <fmt/format.h>

#include "base/text.h"
#include "base/try.h"
#include "frontdoor/door.h"

namespace phalanx::frontdoor {
namespace {

using words::tr;

// The block that Phalanx sets and a process that starts its own ranks must not see.
constexpr std::array kBlock = {"RANK",      "LOCAL_RANK",  "WORLD_SIZE",  "LOCAL_WORLD_SIZE",    "GROUP_RANK",
                               "NODE_RANK", "MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RUN_ID", "TORCHELASTIC_USE_AGENT_STORE"};

base::Result<std::optional<int>> count_in(const Door& door, const char* name, int min) {
  for (const auto& [known, value] : door.line.prefix) {
    if (known != name || value.find("${") != std::string::npos) continue;
    base::Result<int64_t> number = base::parse_int(value, min, 65'536);
    if (!number.ok()) {
      base::Error error = std::move(number).error();
      error.message = fmt::format("{}: {}", name, error.message);
      return error;
    }
    return std::optional<int>(static_cast<int>(*number));
  }
  return std::optional<int>();
}

// One process per line: NODE_RANK or RANK says which.
base::Status take_ranks(Door& door) {
  const bool nodes = door.in_prefix("NODE_RANK");
  TRY_ASSIGN(std::optional<int> world, count_in(door, "WORLD_SIZE", 1));
  const bool one_each = door.in_prefix("LOCAL_RANK") || !nodes;
  TRY_ASSIGN(std::optional<int> local, count_in(door, "LOCAL_RANK", 0));
  for (const char* name : {"NODE_RANK", "RANK", "LOCAL_RANK"}) {
    if (!door.in_prefix(name)) continue;
    // A line for the second process of a host is no line for a node.
    TRY_ASSIGN(std::optional<int> number, count_in(door, name, 0));
    if (number && local.value_or(0) == 0 && name == std::string_view(nodes ? "NODE_RANK" : "RANK"))
      door.out.line_rank = LineRank{*number, door.out.decisions.size()};
    door.decide(name, "", tr("Phalanx numbers the ranks itself"));
  }
  if (world) {
    door.out.nodes = *world;
    door.decide(fmt::format("WORLD_SIZE={}", *world), fmt::format("--nnodes {}", *world),
                one_each ? tr("every line starts one process, on a host of its own") : tr("the lines are numbered by node"));
  }
  door.out.ranks = one_each ? "1" : "auto";
  door.decide(
      one_each ? "LOCAL_RANK" : "NODE_RANK", "--nproc-per-node " + door.out.ranks,
      one_each ? tr("one process per line") : tr("one rank per GPU: Lightning starts none itself where a launcher has set the ranks"));
  if (door.in_prefix("LOCAL_RANK") && nodes)
    door.warn(tr("LOCAL_RANK is the same on every line: the line can use one GPU per node only"),
              tr("for all GPUs of a node omit LOCAL_RANK and WORLD_SIZE, and give --nproc-per-node"));
  if (!nodes && world)
    door.warn(tr("WORLD_SIZE={} and RANK: each process was started by hand", *world),
              tr("with several GPUs per host give --nnodes and --nproc-per-node in front of python instead"));
  return base::ok();
}

}  // namespace

void add_from_pod(Line& line, const Surroundings& around) {
  if (!around.variable("KUBERNETES_SERVICE_HOST") || !around.variable("RANK") || !around.variable("WORLD_SIZE")) return;
  for (const auto& [name, value] : line.prefix)
    if (name == "RANK" || name == "NODE_RANK" || name == "LOCAL_RANK") return;
  for (const char* name : {"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"})
    if (std::optional<std::string> value = around.variable(name)) line.prefix.emplace_back(name, std::move(*value));
}

base::Status python_door(Door& door, std::span<const std::string> words) {
  if (words.size() < 2) return base::fail(base::ErrorKind::kUsage, "python needs a script").with_hint("phalanx python train.py");
  door.out.argv.assign(words.begin(), words.end());
  const bool ranked = door.in_prefix("RANK") || door.in_prefix("LOCAL_RANK") || door.in_prefix("NODE_RANK");
  if (ranked) {
    TRY(take_ranks(door));
    for (const auto& [name, value] : door.line.prefix) {
      const bool known = value.find("${") == std::string::npos;
      if (name == "MASTER_ADDR") take_master_address(door, "MASTER_ADDR=" + value, value, known);
      if (name != "MASTER_PORT") continue;
      static constexpr PeerFlag kPort{"MASTER_PORT", true};
      TRY(take_master_port(door, {&kPort, "MASTER_PORT", value, known}));
    }
    return base::ok();
  }
  door.out.ranks = "1";
  door.out.no_store = true;
  std::vector<std::string> wrapped = {"env"};
  for (const char* name : kBlock) wrapped.insert(wrapped.end(), {"-u", name});
  for (const auto& [name, value] : door.line.prefix)
    if (name == "MASTER_ADDR" || name == "MASTER_PORT" || name == "WORLD_SIZE") wrapped.push_back(name + "=" + value);
  door.out.argv.insert(door.out.argv.begin(), wrapped.begin(), wrapped.end());
  door.decide("python", "--nproc-per-node 1 -- env -u RANK ...",
              tr("one process, without a launcher's variables: it may start others itself (mp.spawn, Lightning, DataParallel)"));
  door.warn(tr("one process on one host: torch.nn.DataParallel or mp.spawn, if the script uses them, stay on this host"),
            tr("for one rank per GPU, on any number of hosts: phalanx run -H HOST,... -- python SCRIPT"));
  return base::ok();
}

}  // namespace phalanx::frontdoor
