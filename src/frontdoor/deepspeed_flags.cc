// deepspeed/launcher/runner.py (edaa72212).
#include "frontdoor/peer_flags.h"

namespace phalanx::frontdoor {
namespace {

using words::Text;

constexpr Text kNear{"ranks are bound to the CPUs near their GPUs"};

constexpr PeerFlag kDeepSpeed[] = {
    {"hostfile|H", true, Answer::kHonoured, "-H"},
    {"include|i", true, Answer::kHonoured, "-H, --include"},
    {"exclude|e", true, Answer::kHonoured, "-H, --include"},
    {"num-nodes", true, Answer::kHonoured, "--nnodes"},
    {"min-elastic-nodes", true, Answer::kHonoured, "--nnodes MIN:MAX"},
    {"max-elastic-nodes", true, Answer::kHonoured, "--nnodes MIN:MAX"},
    {"num-gpus|num-accelerators", true, Answer::kHonoured, "--nproc-per-node, or the slots of -H"},
    {"master-addr", true, Answer::kHonoured, "--master-addr"},
    {"master-port", true, Answer::kHonoured, "--master-port"},
    {"node-rank", true, Answer::kHonoured, "--node-rank"},
    {"no-ssh",
     false,
     Answer::kMeaningless,
     {},
     Text{"named hosts are reached by Phalanx itself; without them every machine starts its own part, without ssh"}},
    {"ssh-port", true, Answer::kHonoured, "--ssh-option Port=N"},
    {"no-ssh-check", false, Answer::kMeaningless, {}, Text{"every host is reached before anything starts; one that cannot be is an error"}},
    {"force-multi", false, Answer::kMeaningless, {}, Text{"one host and many hosts are started the same way"}},
    {"launcher", true, Answer::kMeaningless, {}, Text{"the hosts are reached over ssh, by Phalanx's own agents"}},
    {"launcher-args",
     true,
     Answer::kRejected,
     {},
     Text{"they are for pdsh or mpirun; write --ssh-option NAME=VALUE in front of deepspeed"}},
    {"module", false, Answer::kHonoured, "python -m"},
    {"no-python", false, Answer::kHonoured, "the command as it is"},
    {"no-local-rank", false, Answer::kHonoured, "no --local_rank"},
    {"save-pid", false, Answer::kMeaningless, {}, Text{"phalanx ps lists the runs, and phalanx stop ends them"}},
    {"enable-each-rank-log", true, Answer::kHonoured, "--log-dir"},
    {"elastic-training", false, Answer::kHonoured, "--nnodes MIN:MAX"},
    {"bind-cores-to-rank", false, Answer::kMeaningless, {}, kNear},
    {"bind-core-list", true, Answer::kRejected, {}, Text{"Phalanx chooses the CPUs of a rank by its GPU; omit it"}},
    {"venv-script", true, Answer::kHonoured, "bash -c '. SCRIPT && exec ...'"},
    {"autotuning",
     true,
     Answer::kRejected,
     {},
     Text{"DeepSpeed's tuner starts runs of its own; phalanx fit computes the memory of a setup"}},
    {"quiet|q", false, Answer::kHonoured, "--quiet"},
    {"log-level", true, Answer::kMeaningless, {}, Text{"it is the level of DeepSpeed's own launcher"}},
};

}  // namespace

std::span<const PeerFlag> deepspeed_flags() { return kDeepSpeed; }

}  // namespace phalanx::frontdoor
