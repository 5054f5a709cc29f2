// Variables that the launchers read themselves, beside those that stand for options: torch/distributed/run.py and
// elastic/agent/server/local_elastic_agent.py, accelerate/commands/config/config_args.py, deepspeed/launcher/runner.py and
// multinode_runner.py; and of plain Python what scripts are started with by hand.
#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"
#include "frontdoor/door.h"

namespace phalanx::frontdoor {
namespace {

using words::Text;

constexpr Text kPdsh{"pdsh does not reach the hosts here; write --ssh-option NAME=VALUE in front of deepspeed"};

constexpr PeerFlag kTorchrun[] = {
    {"PET_NNODES", true, Answer::kHonoured, "the option of that name; so PET_* for every option"},
    {"PYTHON_EXEC", true, Answer::kHonoured, "the interpreter of the ranks"},
    {"TORCHELASTIC_ERROR_FILE", true, Answer::kHonoured, "the file that gets the cause of a failure"},
    {"TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE", true, Answer::kMeaningless, {}, Text{"every line is shown with its host and rank"}},
    {"TORCHELASTIC_HEALTH_CHECK_PORT", true, Answer::kMeaningless, {}, Text{"phalanx ps --json tells how the run is"}},
    {"TORCHELASTIC_ENABLE_FILE_TIMER", true, Answer::kRejected, {}, Text{"ranks that hang are found without timers (--stall); omit it"}},
    {"TORCH_DISABLE_SHARE_RDZV_TCP_STORE", true, Answer::kMeaningless, {}, Text{"every start has an empty store at MASTER_PORT"}},
    {"LOGLEVEL", true, Answer::kMeaningless, {}, Text{"it is the level of torchrun's own messages"}},
};

constexpr PeerFlag kAccelerate[] = {
    {"HF_HOME", true, Answer::kHonoured, "the directory of accelerate/default_config.yaml"},
    {"XDG_CACHE_HOME", true, Answer::kHonoured, "the directory of huggingface/accelerate/default_config.yaml"},
};

constexpr PeerFlag kDeepSpeed[] = {
    {"DS_ENV_FILE", true, Answer::kHonoured, "--env-file, instead of .deepspeed_env"},
    {"PDSH_SSH_ARGS", true, Answer::kMeaningless, {}, kPdsh},
    {"PDSH_SSH_ARGS_APPEND", true, Answer::kMeaningless, {}, kPdsh},
    {"PDSH_RCMD_TYPE", true, Answer::kMeaningless, {}, kPdsh},
};

constexpr PeerFlag kPython[] = {
    {"NODE_RANK", true, Answer::kHonoured, "--node-rank"},        {"RANK", true, Answer::kHonoured, "--node-rank"},
    {"LOCAL_RANK", true, Answer::kHonoured, "one rank per line"}, {"WORLD_SIZE", true, Answer::kHonoured, "--nnodes"},
    {"MASTER_ADDR", true, Answer::kHonoured, "--master-addr"},    {"MASTER_PORT", true, Answer::kHonoured, "--master-port"},
};

}  // namespace

std::span<const PeerFlag> variables_of(Peer peer) {
  switch (peer) {
    case Peer::kTorchrun: return kTorchrun;
    case Peer::kAccelerate: return kAccelerate;
    case Peer::kDeepSpeed: return kDeepSpeed;
    case Peer::kPython: return kPython;
    case Peer::kTorchLaunch: return kTorchrun;
    case Peer::kLlamaFactory: break;
  }
  return {};
}

base::Status answer_variables(Door& door, Peer peer) {
  for (const PeerFlag& row : variables_of(peer)) {
    const std::string name(row.names);
    const std::optional<std::string> value = row.answer == Answer::kHonoured ? std::nullopt : door.variable(name);
    if (!value || value->empty() || (row.answer == Answer::kRejected && *value != "1")) continue;
    if (row.answer == Answer::kRejected)
      return base::fail(base::ErrorKind::kUsage, fmt::format("{}={} cannot be used here", name, *value))
          .because(std::string(row.why.english));
    door.decide(name + "=" + *value, "", message_of(row.why));
  }
  return base::ok();
}

bool is_answered(Peer peer, std::string_view name) {
  const std::span<const PeerFlag> rows = variables_of(peer);
  return std::any_of(rows.begin(), rows.end(),
                     [&](const PeerFlag& row) { return row.names == name && row.answer == Answer::kMeaningless; });
}

}  // namespace phalanx::frontdoor
