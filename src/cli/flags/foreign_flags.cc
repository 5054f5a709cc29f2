#include "cli/flags/foreign_flags.h"

#include "base/text.h"

namespace phalanx::cli {
namespace {

struct ForeignFlag {
  std::string_view name;
  std::string_view advice;
};

constexpr std::string_view kNoRank = "leave it out and run phalanx once, on one machine: it numbers the hosts itself";
constexpr std::string_view kNoRendezvous = "leave it out: phalanx serves the store the ranks meet at";
constexpr std::string_view kNoPython = "leave it out: the command is started as it is written";
constexpr std::string_view kElastic = "write --nnodes MIN:MAX";
constexpr std::string_view kLogs = "leave it out: every rank's output is kept under --log-dir";

// torchrun: torch/distributed/run.py; DeepSpeed: deepspeed/launcher/runner.py; mpirun(1); pdsh(1).
constexpr ForeignFlag kForeign[] = {
    {"node-rank", kNoRank},
    {"rdzv-backend", kNoRendezvous},
    {"rdzv-endpoint", "write --master-addr ADDRESS and --master-port PORT, or leave it out"},
    {"rdzv-id", kNoRendezvous},
    {"rdzv-conf", kNoRendezvous},
    {"rdzv-timeout", kNoRendezvous},
    {"standalone", "leave it out: without hosts the job runs on this machine"},
    {"monitor-interval", "leave it out: the end of a rank is noticed at once"},
    {"start-method", "leave it out: every rank is a program of its own"},
    {"role", "leave it out: there is one role"},
    {"module", "write the interpreter: -- python -m MODULE"},
    {"m", "write the interpreter: -- python -m MODULE"},
    {"no-python", kNoPython},
    {"run-path", kNoPython},
    {"redirects", kLogs},
    {"r", kLogs},
    {"tee", kLogs},
    {"t", kLogs},
    {"enable-each-rank-log", "write --log-dir DIR"},
    {"local-ranks-filter", "leave it out: equal lines of many ranks are folded (--fold)"},
    {"local-addr", "leave it out, or write --master-addr ADDRESS"},
    {"force-multi", "leave it out: one host and many go the same way"},
    {"no-ssh", kNoRank},
    {"no-ssh-check", "leave it out: a host that cannot be reached is an error"},
    {"ssh-port", "write --ssh-option Port=PORT, or HOST port=PORT in the hostfile"},
    {"launcher", "leave it out: hosts are reached over ssh"},
    {"launcher-args", "write --ssh-option NAME=VALUE"},
    {"no-local-rank", "leave it out: the local rank is only in the environment (LOCAL_RANK)"},
    {"save-pid", "leave it out: the run's record is under --log-dir"},
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
