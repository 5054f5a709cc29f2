// torch/distributed/run.py (main of 2026) and launch.py.
#include "frontdoor/peer_flags.h"

namespace phalanx::frontdoor {
namespace {

using words::Text;

constexpr Text kServes{"Phalanx serves the rendezvous itself, whatever the backend"};
constexpr Text kKept{"the output of every rank is shown and kept in a file of its own"};

constexpr PeerFlag kTorchrun[] = {
    {"nnodes", true, Answer::kHonoured, "--nnodes"},
    {"nproc-per-node", true, Answer::kHonoured, "--nproc-per-node"},
    {"rdzv-backend", true, Answer::kMeaningless, {}, kServes},
    {"rdzv-endpoint", true, Answer::kHonoured, "--master-addr, --master-port"},
    {"rdzv-id", true, Answer::kMeaningless, {}, Text{"every run has an id and a key of its own"}},
    {"rdzv-conf", true, Answer::kMeaningless, {}, kServes},
    {"standalone", false, Answer::kMeaningless, {}, Text{"without hosts the job runs on this machine, on a free port"}},
    {"max-restarts", true, Answer::kHonoured, "--max-restarts"},
    {"monitor-interval", true, Answer::kMeaningless, {}, Text{"the exit of a rank is noticed at once"}},
    {"start-method", true, Answer::kMeaningless, {}, Text{"every rank is a separate program"}},
    {"event-log-handler", true, Answer::kMeaningless, {}, Text{"the record of the run has its events"}},
    {"role", true, Answer::kHonoured, "ROLE_NAME=default"},
    {"module|m", false, Answer::kHonoured, "python -m"},
    {"no-python", false, Answer::kHonoured, "the command as it is"},
    {"run-path", false, Answer::kHonoured, "python SCRIPT"},
    {"log-dir", true, Answer::kHonoured, "--log-dir, --split-logs"},
    {"redirects|r", true, Answer::kHonoured, "--split-logs, --show"},
    {"tee|t", true, Answer::kHonoured, "--split-logs, --show"},
    {"local-ranks-filter", true, Answer::kHonoured, "--show"},
    {"duplicate-stdout-filters", true, Answer::kMeaningless, {}, kKept},
    {"duplicate-stderr-filters", true, Answer::kMeaningless, {}, kKept},
    {"node-rank", true, Answer::kHonoured, "--node-rank"},
    {"master-addr", true, Answer::kHonoured, "--master-addr"},
    {"master-port", true, Answer::kHonoured, "--master-port"},
    {"local-addr", true, Answer::kMeaningless, {}, Text{"Phalanx tests over which addresses the hosts reach each other"}},
    {"logs-specs", true, Answer::kRejected, {}, Text{"it names Python code that runs inside torchrun; omit it"}},
    {"numa-binding", true, Answer::kMeaningless, {}, Text{"ranks are bound to the CPUs near their GPUs"}},
    {"signals-to-handle", true, Answer::kMeaningless, {}, Text{"every signal that ends the launcher stops the ranks first"}},
    {"virtual-local-rank", false, Answer::kRejected, {}, Text{"every rank sees the GPUs of its host; use LOCAL_RANK and omit it"}},
};

constexpr PeerFlag kLaunch[] = {
    {"use-env", false, Answer::kHonoured, "no --local_rank"},
};

}  // namespace

std::span<const PeerFlag> torchrun_flags() { return kTorchrun; }
std::span<const PeerFlag> launch_flags() { return kLaunch; }

std::vector<PeerFlag> flags_of(Peer peer) {
  auto all = [](std::span<const PeerFlag> rows) { return std::vector<PeerFlag>(rows.begin(), rows.end()); };
  std::vector<PeerFlag> out;
  switch (peer) {
    case Peer::kTorchrun: out = all(kTorchrun); break;
    case Peer::kTorchLaunch:
      out = all(kTorchrun);
      out.insert(out.end(), std::begin(kLaunch), std::end(kLaunch));
      break;
    case Peer::kAccelerate: out = all(accelerate_flags()); break;
    case Peer::kDeepSpeed: out = all(deepspeed_flags()); break;
    case Peer::kLlamaFactory: out = all(llamafactory_variables()); break;
    case Peer::kPython: break;
  }
  return out;
}

}  // namespace phalanx::frontdoor
