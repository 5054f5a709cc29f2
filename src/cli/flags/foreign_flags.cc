#include "cli/flags/foreign_flags.h"

#include "base/text.h"

namespace phalanx::cli {
namespace {

struct ForeignFlag {
  std::string_view name;
  std::string_view advice;
};

constexpr std::string_view kNoRank = "omit it and run phalanx once, on one machine: phalanx numbers the hosts itself";
constexpr std::string_view kNoRendezvous = "omit it: phalanx provides the store for the rendezvous";
constexpr std::string_view kNoPython = "omit it: the command is started exactly as written";
constexpr std::string_view kElastic = "write --nnodes MIN:MAX";
constexpr std::string_view kLogs = "omit it: the output of every rank is kept under --log-dir";

// torchrun: torch/distributed/run.py; DeepSpeed: deepspeed/launcher/runner.py; mpirun(1); pdsh(1).
constexpr ForeignFlag kForeign[] = {
    {"node-rank", kNoRank},
    {"rdzv-backend", kNoRendezvous},
    {"rdzv-endpoint", "write --master-addr ADDRESS and --master-port PORT, or omit it"},
    {"rdzv-id", kNoRendezvous},
    {"rdzv-conf", kNoRendezvous},
    {"rdzv-timeout", kNoRendezvous},
    {"standalone", "omit it: without hosts the job runs on this machine"},
    {"monitor-interval", "omit it: phalanx notices the exit of a rank at once"},
    {"start-method", "omit it: every rank is a separate program"},
    {"role", "omit it: there is only one role"},
    {"module", "write the interpreter: -- python -m MODULE"},
    {"m", "write the interpreter: -- python -m MODULE"},
    {"no-python", kNoPython},
    {"run-path", kNoPython},
    {"redirects", kLogs},
    {"r", kLogs},
    {"tee", kLogs},
    {"t", kLogs},
    {"enable-each-rank-log", "write --log-dir DIR"},
    {"local-ranks-filter", "omit it: identical lines of several ranks are folded (--fold)"},
    {"local-addr", "omit it, or write --master-addr ADDRESS"},
    {"force-multi", "omit it: one host and many hosts are started the same way"},
    {"no-ssh", kNoRank},
    {"no-ssh-check", "omit it: an unreachable host is an error"},
    {"ssh-port", "write --ssh-option Port=PORT, or HOST port=PORT in the hostfile"},
    {"launcher", "omit it: phalanx reaches the hosts over ssh"},
    {"launcher-args", "write --ssh-option NAME=VALUE"},
    {"no-local-rank", "omit it: the local rank is passed only in the environment (LOCAL_RANK)"},
    {"save-pid", "omit it: the record of the run is under --log-dir"},
    {"elastic-training", kElastic},
    {"min-elastic-nodes", kElastic},
    {"max-elastic-nodes", kElastic},
    {"np", "write --nproc-per-node N (ranks per host) or host:slots"},
    {"n", "write --nproc-per-node N (ranks per host) or host:slots"},
    {"x", "write --env NAME=VALUE, or --export NAME for this machine's value"},
    {"wdir", "write --workdir DIR"},
    {"f", "write --hostfile FILE"},
    {"w", "write --hosts HOST,..."},
    {"nproc", "write --nproc-per-node N"},
    {"nodes", "write --nnodes N"},
};

}  // namespace

std::optional<std::string> advice_for_foreign_flag(std::string_view name) {
  std::string dashed = base::replace_all(name, "_", "-");
  for (const ForeignFlag& flag : kForeign)
    if (flag.name == dashed) return std::string(flag.advice);
  return std::nullopt;
}

}  // namespace phalanx::cli
