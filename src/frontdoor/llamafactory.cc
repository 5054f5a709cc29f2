// llamafactory/launcher.py (ff6d4d12e): `llamafactory-cli train` starts torchrun, which starts llamafactory/launcher.py. Under another
// launcher that nests torchrun; here the ranks run the module that torchrun would run.
#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"
#include "base/try.h"
#include "base/unicode.h"
#include "frontdoor/door.h"

namespace phalanx::frontdoor {
namespace {

using base::Status;
using words::Text;
using words::tr;

constexpr Text kOther{"it replaces torchrun by another launcher; start that one"};

constexpr PeerFlag kVariables[] = {
    {"NNODES", true, Answer::kHonoured, "--nnodes"},
    {"NODE_RANK", true, Answer::kHonoured, "--node-rank"},
    {"NPROC_PER_NODE", true, Answer::kHonoured, "--nproc-per-node"},
    {"MASTER_ADDR", true, Answer::kHonoured, "--master-addr"},
    {"MASTER_PORT", true, Answer::kHonoured, "--master-port"},
    {"MAX_RESTARTS", true, Answer::kHonoured, "--max-restarts"},
    {"MIN_NNODES", true, Answer::kHonoured, "--nnodes MIN:MAX"},
    {"MAX_NNODES", true, Answer::kHonoured, "--nnodes MIN:MAX"},
    {"RDZV_ID", true, Answer::kHonoured, "--nnodes MIN:MAX"},
    {"FORCE_TORCHRUN", true, Answer::kMeaningless, {}, Text{"the ranks are started by Phalanx; a torchrun in each would start them twice"}},
    {"OPTIM_TORCH", true, Answer::kHonoured, "PYTORCH_CUDA_ALLOC_CONF, TORCH_NCCL_AVOID_RECORD_STREAMS"},
    {"USE_V1", true, Answer::kHonoured, "python -m llamafactory.v1.launcher"},
    {"USE_MCA", true, Answer::kHonoured, "--env"},
    {"USE_MEGATRON_BRIDGE", true, Answer::kHonoured, "--env"},
    {"ALLOW_EXTRA_ARGS", true, Answer::kHonoured, "--env"},
    {"DISABLE_VERSION_CHECK", true, Answer::kHonoured, "--env"},
    {"RECORD_VRAM", true, Answer::kHonoured, "--env"},
    {"LLAMABOARD_ENABLED", true, Answer::kHonoured, "--env"},
    {"LLAMABOARD_WORKDIR", true, Answer::kHonoured, "--env"},
    {"USE_RAY", true, Answer::kRejected, {}, kOther},
    {"USE_KT", true, Answer::kRejected, {}, kOther},
};

bool is_on(const std::optional<std::string>& value) {
  if (!value) return false;
  const std::string lower = base::to_lower(*value);
  return lower == "1" || lower == "true" || lower == "y";
}

ReadFlags read_variables(const Door& door) {
  ReadFlags read;
  for (const PeerFlag& row : kVariables) {
    std::optional<std::string> value = door.variable(std::string(row.names));
    if (!value || value->empty()) continue;
    read.flags.push_back({&row, std::string(row.names), *value, value->find("${") == std::string::npos});
  }
  // Off is as if it were not there.
  std::erase_if(read.flags, [](const GivenFlag& given) { return given.flag->answer == Answer::kRejected && !is_on(given.value); });
  return read;
}

Status take_nodes(Door& door, const ReadFlags& read) {
  auto count = [&](const char* name) -> base::Result<std::optional<int>> {
    const GivenFlag* given = read.find(name);
    if (!given || !given->known) return std::optional<int>();
    TRY_ASSIGN(int number, number_of(*given, 1, 65'536));
    return std::optional<int>(number);
  };
  TRY_ASSIGN(door.out.nodes, count("NNODES"));
  TRY_ASSIGN(std::optional<int> least, count("MIN_NNODES"));
  TRY_ASSIGN(std::optional<int> most, count("MAX_NNODES"));
  if (door.out.nodes) door.decide(fmt::format("NNODES={}", *door.out.nodes), fmt::format("--nnodes {}", *door.out.nodes));
  if (!read.has("RDZV_ID")) {
    if (least || most) door.warn(tr("MIN_NNODES and MAX_NNODES have no effect without RDZV_ID"), tr("set RDZV_ID=NAME as well"));
    return base::ok();
  }
  if (!least && !most) return base::ok();
  const int highest = most.value_or(door.out.nodes.value_or(1)), lowest = least.value_or(door.out.nodes.value_or(1));
  if (lowest > highest)
    return base::fail(base::ErrorKind::kUsage, fmt::format("MIN_NNODES={} is larger than MAX_NNODES={}", lowest, highest));
  door.out.nodes = highest;
  if (lowest < highest) door.out.least_nodes = lowest;
  door.decide("RDZV_ID, MIN_NNODES, MAX_NNODES", fmt::format("--nnodes {}:{}", lowest, highest));
  return base::ok();
}

Status take_rendezvous(Door& door, const ReadFlags& read) {
  const bool several = door.out.nodes.value_or(1) > 1;
  const GivenFlag* address = read.find("MASTER_ADDR");
  if (address) take_master_address(door, typed_text(*address), address->value, address->known);
  else if (several) take_master_address(door, "MASTER_ADDR", "127.0.0.1", true);
  if (const GivenFlag* port = read.find("MASTER_PORT")) TRY(take_master_port(door, *port));
  else if (several)
    door.warn(tr("MASTER_PORT is not set: llamafactory-cli takes a random port on each node, and the nodes never meet"),
              tr("nothing to do: Phalanx chooses one port for all"));
  if (several && door.in_prefix("RANK") && !door.in_prefix("NODE_RANK"))
    door.warn(tr("RANK is not read by llamafactory-cli (since 0.9): every node would be node 0"),
              tr("the variable is NODE_RANK; Phalanx needs neither"));
  if (door.in_prefix("RANK")) door.decide("RANK", "", tr("Phalanx numbers the ranks itself"));
  return base::ok();
}

}  // namespace

std::span<const PeerFlag> llamafactory_variables() { return kVariables; }

Status llamafactory_door(Door& door, const std::string& launcher, std::span<const std::string> words) {
  const std::string verb = words.empty() ? "" : words[0];
  if (verb != "train") {
    return base::fail(base::ErrorKind::kUsage,
                      fmt::format("llamafactory-cli {} is not training", verb.empty() ? "without a verb" : base::quote(verb)))
        .with_hint("only llamafactory-cli train is started on the hosts; run the others without phalanx");
  }
  const ReadFlags read = read_variables(door);
  TRY(answer_flags(door, "llamafactory-cli:", read));
  if (const GivenFlag* rank = read.find("NODE_RANK")) TRY(take_node_rank(door, *rank));
  TRY(take_nodes(door, read));
  const GivenFlag* ranks = read.find("NPROC_PER_NODE");
  if (ranks && ranks->known) {
    TRY_ASSIGN(int number, number_of(*ranks, 1, 4'096));
    door.out.ranks = std::to_string(number);
    door.decide(typed_text(*ranks), "--nproc-per-node " + door.out.ranks);
  } else {
    door.out.ranks = "auto";
    door.decide("NPROC_PER_NODE", "--nproc-per-node auto", tr("not set: one rank per GPU of each host"));
    if (door.out.nodes.value_or(1) > 1)
      door.warn(tr("NPROC_PER_NODE is not set: each node counts its own visible GPUs, and CUDA_VISIBLE_DEVICES on one node makes the "
                   "counts differ"),
                tr("nothing to do: Phalanx counts on every host and numbers the ranks by those counts"));
  }
  TRY(take_rendezvous(door, read));
  if (const GivenFlag* restarts = read.find("MAX_RESTARTS"); restarts && restarts->known) {
    TRY_ASSIGN(int number, number_of(*restarts, 0, 10'000));
    door.out.restarts = number;
    door.decide(typed_text(*restarts), fmt::format("--max-restarts {}", number));
  }
  const std::optional<std::string> optimized = door.variable("OPTIM_TORCH");
  if (!optimized || is_on(optimized)) {
    if (!door.variable("PYTORCH_CUDA_ALLOC_CONF")) door.set("PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True");
    if (!door.variable("TORCH_NCCL_AVOID_RECORD_STREAMS")) door.set("TORCH_NCCL_AVOID_RECORD_STREAMS", "1");
    door.decide("OPTIM_TORCH", "--env PYTORCH_CUDA_ALLOC_CONF, TORCH_NCCL_AVOID_RECORD_STREAMS",
                tr("llamafactory-cli sets them unless OPTIM_TORCH=0"));
  }
  for (const GivenFlag& given : read.flags) {
    if (given.flag->becomes != "--env" || !given.known || door.in_prefix(given.typed)) continue;
    door.set(given.typed, given.value);
    door.decide(typed_text(given), "--env " + given.typed, tr("llamafactory's own, for the ranks"));
  }
  if (words.size() < 2)
    return base::fail(base::ErrorKind::kUsage, "llamafactory-cli train needs a configuration")
        .with_hint("phalanx llamafactory-cli train config.yaml");
  std::vector<std::string> rest(words.begin() + 1, words.end());
  rest.insert(rest.begin(), is_on(door.variable("USE_V1")) ? "llamafactory.v1.launcher" : "llamafactory.launcher");
  door.out.argv = command_of(Start::kModule, door.python(launcher), std::move(rest));
  door.decide("llamafactory-cli train", fmt::format("python -m {}", door.out.argv[2]),
              tr("what its torchrun would run; torchrun within a rank would start every rank again"));
  const bool blanks =
      std::any_of(words.begin() + 1, words.end(), [](const std::string& word) { return word.find(' ') != std::string::npos; });
  if (blanks) door.warn(tr("llamafactory-cli splits arguments that hold blanks"), tr("nothing to do: Phalanx keeps them whole"));
  return base::ok();
}

}  // namespace phalanx::frontdoor
