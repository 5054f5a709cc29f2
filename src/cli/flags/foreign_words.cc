#include "cli/flags/foreign_words.h"

#include <fmt/format.h>

#include "base/text.h"
#include "base/unicode.h"
#include "frontdoor/peer_flags.h"
#include "words/message.h"

namespace phalanx::cli {
namespace {

constexpr ForeignWord kVerbs[] = {
    {"docker, kubectl, Slurm", "kill", "phalanx stop RUN, or phalanx stop --kill RUN without a grace period"},
    {"Slurm, kubectl", "cancel", "phalanx stop RUN"},
    {"Slurm", "scancel", "phalanx stop RUN"},
    {"kubectl", "delete", "phalanx stop RUN for a run; phalanx clean for its files"},
    {"docker", "rm", "phalanx clean"},
    {"docker", "rmi", "phalanx clean"},
    {"docker", "prune", "phalanx clean"},
    {"docker", "system", "phalanx clean"},
    {"uv, cargo", "cache", "phalanx clean"},
    {"pip, apt", "uninstall", "phalanx clean --all, and remove the program itself"},
    {"kubectl", "status", "phalanx ps"},
    {"kubectl", "get", "phalanx ps"},
    {"docker", "list", "phalanx ps"},
    {"docker", "ls", "phalanx ps"},
    {"docker", "container", "phalanx ps"},
    {"kubectl", "jobs", "phalanx ps"},
    {"Slurm", "squeue", "phalanx ps"},
    {"Slurm", "sacct", "phalanx ps --all"},
    {"Slurm", "sstat", "phalanx ps"},
    {"docker", "history", "phalanx ps --all"},
    {"Slurm", "sinfo", "phalanx check HOSTS"},
    {"kubectl", "options", "phalanx help"},
    {"docker", "context", "phalanx config"},
    {"kubectl", "edit", "edit phalanx.yaml; phalanx config shows what holds"},
    {"kubectl", "set", "edit phalanx.yaml; phalanx config shows what holds"},
    {"kubectl", "patch", "edit phalanx.yaml; phalanx config shows what holds"},
    {"docker", "compose", "phalanx init, then phalanx run -- COMMAND with its phalanx.yaml"},
    {"docker", "up", "phalanx run -- COMMAND"},
    {"docker", "down", "phalanx stop RUN"},
    {"kubectl", "replace", "phalanx stop RUN, then phalanx run -- COMMAND"},
    {"Slurm", "srun", "phalanx run -H HOSTS -- COMMAND"},
    {"Slurm", "sbatch", "phalanx submit -- COMMAND"},
    {"Slurm", "salloc", "phalanx submit -- COMMAND, or phalanx run -- COMMAND inside the allocation"},
    {"Slurm", "scrontab", "phalanx submit -- COMMAND"},
    {"Slurm", "scontrol", "phalanx inspect RUN for a run; phalanx check HOSTS for hosts"},
    {"Slurm", "sattach", "phalanx attach RUN"},
    {"accelerate, torchrun", "launch", "phalanx accelerate launch train.py, or phalanx run -- python train.py"},
    {"docker", "start", "phalanx run -- COMMAND"},
    {"docker", "create", "phalanx run -- COMMAND"},
    {"kubectl", "apply", "phalanx run -- COMMAND"},
    {"docker, kubectl", "restart", "phalanx run --max-restarts N -- COMMAND"},
    {"kubectl", "rollout", "phalanx run --max-restarts N -- COMMAND"},
    {"kubectl", "scale", "phalanx run --nnodes MIN:MAX -- COMMAND"},
    {"kubectl", "autoscale", "phalanx run --nnodes MIN:MAX -- COMMAND"},
    {"kubectl", "taint", "phalanx run --exclude HOST -- COMMAND"},
    {"kubectl", "uncordon", "phalanx run -- COMMAND without --exclude HOST"},
    {"kubectl", "cordon", "phalanx run --exclude HOST -- COMMAND"},
    {"kubectl", "drain", "phalanx run --exclude HOST -- COMMAND"},
    {"kubectl", "describe", "phalanx inspect RUN"},
    {"docker", "info", "phalanx check HOSTS for hosts; phalanx inspect RUN for a run"},
    {"kubectl", "cluster-info", "phalanx check HOSTS"},
    {"docker", "show", "phalanx inspect RUN"},
    {"docker, kubectl", "events", "phalanx why RUN"},
    {"kubectl", "debug", "phalanx why RUN"},
    {"", "diagnose", "phalanx why RUN for a run; phalanx explain FILE for a log"},
    {"docker, kubectl", "stats", "phalanx ps"},
    {"docker, kubectl", "top", "phalanx ps"},
    {"", "tail", "phalanx logs --follow"},
    {"docker", "rename", "phalanx run --name NAME -- COMMAND"},
    {"kubectl", "label", "phalanx run --name NAME -- COMMAND"},
    {"ssh", "ssh", "phalanx exec -H HOSTS -- COMMAND"},
    {"pdsh", "pdsh", "phalanx exec -H HOSTS -- COMMAND"},
    {"docker, kubectl", "cp", "phalanx push DIR HOSTS"},
    {"Slurm", "sbcast", "phalanx push DIR HOSTS"},
    {"ssh", "scp", "phalanx push DIR HOSTS"},
    {"rsync", "rsync", "phalanx push DIR HOSTS"},
    {"rsync", "sync", "phalanx push DIR HOSTS, or phalanx run --sync -- COMMAND"},
    {"conda-pack", "conda-unpack", "phalanx env rehome ENV"},
    {"py-spy", "py-spy", "phalanx stacks RUN"},
    {"py-spy", "dump", "phalanx stacks RUN"},
    {"gdb", "gdb", "phalanx stacks RUN"},
    {"gdb", "backtrace", "phalanx stacks RUN"},
    {"NVIDIA", "nvidia-smi", "phalanx check HOSTS, or phalanx exec -H HOSTS -- nvidia-smi"},
    {"brew, flutter", "doctor", "phalanx check HOSTS"},
    {"DeepSpeed", "ds_report", "phalanx check HOSTS"},
    {"DeepSpeed", "ds_ssh", "phalanx exec -H HOSTS -- COMMAND"},
    {"accelerate", "test", "phalanx check HOSTS"},
    {"accelerate", "estimate-memory", "phalanx fit model/config.json"},
    {"accelerate", "merge-weights", "phalanx-train merge"},
    {"DeepSpeed", "ds_bench", "phalanx bench fabric HOSTS"},
    {"", "memory", "phalanx fit model/config.json"},
    {"", "benchmark", "phalanx bench fabric HOSTS"},
    {"docker", "save", "phalanx report RUN"},
    {"docker", "export", "phalanx report RUN"},
    {"docker", "network", "phalanx check HOSTS, or phalanx bench fabric HOSTS"},
    {"docker", "node", "phalanx check HOSTS"},
    {"docker", "service", "phalanx run -H HOSTS -- COMMAND"},
    {"docker", "stack", "phalanx run -H HOSTS -- COMMAND"},
    {"docker", "swarm", "phalanx run -H HOSTS -- COMMAND"},
    {"docker", "secret", "phalanx run --env-file FILE -- COMMAND"},
    {"docker", "port", "phalanx inspect RUN"},
    {"docker", "tag", "phalanx run --name NAME -- COMMAND"},
    {"kubectl", "annotate", "phalanx run --name NAME -- COMMAND"},
    {"kubectl", "diff", "phalanx plan -- COMMAND"},
    {"kubectl", "api-resources", "phalanx help"},
    {"DeepSpeed", "ds", "phalanx deepspeed train.py, or phalanx run -- python train.py"},
    {"DeepSpeed", "ds_elastic", "phalanx run --nnodes MIN:MAX -- COMMAND"},
};

constexpr std::string_view kNoRank = "omit it and run phalanx once, on one machine: phalanx numbers the hosts itself";
constexpr std::string_view kNoRendezvous = "omit it: phalanx provides the store for the rendezvous";
constexpr std::string_view kNoPython = "omit it: the command is started exactly as written";
constexpr std::string_view kModule = "write the interpreter: -- python -m MODULE";
constexpr std::string_view kModuleOrMemory = "write the interpreter: -- python -m MODULE; phalanx sets no limit on memory";
constexpr std::string_view kElastic = "write --nnodes MIN:MAX";
constexpr std::string_view kStreams =
    "the output of every rank is kept under --log-dir; for torchrun's files and its choice of output write --split-logs and --show";
constexpr std::string_view kLogs = "omit it: the output of every rank is kept under --log-dir";
constexpr std::string_view kRanks = "write --nproc-per-node N (ranks per host) or host:slots";
constexpr std::string_view kRanksPerHost = "write --nproc-per-node N";
constexpr std::string_view kOwnSetting = "use phalanx accelerate launch, which takes it, or set it in your program";

// torchrun: torch/distributed/run.py; accelerate: commands/launch.py; DeepSpeed: deepspeed/launcher/runner.py; mpirun(1); pdsh(1);
// docker run, docker logs; kubectl run, kubectl logs; srun(1).
constexpr ForeignWord kOptions[] = {
    {"torchrun", "rdzv-backend", kNoRendezvous},
    {"torchrun", "rdzv-endpoint", "write --master-addr ADDRESS and --master-port PORT, or omit it"},
    {"torchrun", "rdzv-id", kNoRendezvous},
    {"torchrun", "rdzv-conf", kNoRendezvous},
    {"torchrun", "rdzv-timeout", kNoRendezvous},
    {"torchrun", "standalone", "omit it: without hosts the job runs on this machine"},
    {"torchrun", "monitor-interval", "omit it: phalanx notices the exit of a rank at once"},
    {"torchrun", "start-method", "omit it: every rank is a separate program"},
    {"torchrun", "role", "omit it: there is only one role"},
    {"torchrun, accelerate, DeepSpeed", "module", kModule},
    {"torchrun, accelerate, docker", "m", kModuleOrMemory},
    {"torchrun, accelerate, DeepSpeed", "no-python", kNoPython},
    {"torchrun", "run-path", kNoPython},
    {"torchrun", "redirects", kStreams},
    {"torchrun", "r", kStreams},
    {"torchrun", "tee", kStreams},
    {"torchrun, docker", "t", kStreams},
    {"torchrun", "logs-specs", kLogs},
    {"DeepSpeed", "enable-each-rank-log", "write --log-dir DIR"},
    {"torchrun", "local-ranks-filter", "write --show 0,RANK:3 for each local rank"},
    {"torchrun", "local-addr", "omit it, or write --master-addr ADDRESS"},
    {"torchrun", "nprocs", kRanksPerHost},
    {"torchrun", "nproc", kRanksPerHost},
    {"torchrun", "processes", kRanksPerHost},
    {"torchrun", "nodes", "write --nnodes N"},
    {"torchrun", "hosts-file", "write --hostfile FILE"},
    {"accelerate", "num-processes", "write --nproc-per-node N: the ranks of one host, not of all hosts"},
    {"accelerate", "num-machines", "write --nnodes N"},
    {"accelerate", "main-process-ip", "write --master-addr ADDRESS, or omit it"},
    {"accelerate", "main-process-port", "write --master-port PORT, or omit it"},
    {"accelerate", "multi-gpu", "omit it: there is one rank per GPU unless --nproc-per-node says otherwise"},
    {"accelerate", "cpu", "write --nproc-per-node N"},
    {"accelerate", "gpu-ids", "write --gpus HOST:INDEX,..."},
    {"accelerate", "same-network", "omit it: phalanx tests how the hosts reach each other"},
    {"accelerate", "mixed-precision", kOwnSetting},
    {"accelerate", "dynamo-backend", kOwnSetting},
    {"accelerate", "use-deepspeed", kOwnSetting},
    {"accelerate", "use-fsdp", kOwnSetting},
    {"accelerate", "gradient-accumulation-steps", kOwnSetting},
    {"accelerate", "config-file", "use phalanx accelerate launch, which takes it"},
    {"accelerate", "deepspeed-hostfile", "write --hostfile FILE"},
    {"accelerate", "num-cpu-threads-per-process", "write --env OMP_NUM_THREADS=N"},
    {"accelerate", "mpirun-ccl", "write --env CCL_WORKER_COUNT=N"},
    {"accelerate", "debug", "write --verbose"},
    {"DeepSpeed", "force-multi", "omit it: one host and many hosts are started the same way"},
    {"DeepSpeed", "no-ssh", kNoRank},
    {"DeepSpeed", "no-ssh-check", "omit it: an unreachable host is an error"},
    {"DeepSpeed", "ssh-port", "write --ssh-option Port=PORT, or HOST port=PORT in the hostfile"},
    {"DeepSpeed", "launcher", "omit it: phalanx reaches the hosts over ssh"},
    {"DeepSpeed", "launcher-args", "write --ssh-option NAME=VALUE"},
    {"DeepSpeed", "no-local-rank", "omit it: the local rank is passed only in the environment (LOCAL_RANK)"},
    {"DeepSpeed", "save-pid", "omit it: the record of the run is under --log-dir"},
    {"DeepSpeed", "elastic-training", kElastic},
    {"DeepSpeed", "min-elastic-nodes", kElastic},
    {"DeepSpeed", "max-elastic-nodes", kElastic},
    {"DeepSpeed", "bind-cores-to-rank", "omit it: ranks are bound to CPUs near their GPUs"},
    {"DeepSpeed", "bind-core-list", "omit it: ranks are bound to CPUs near their GPUs"},
    {"DeepSpeed", "autotuning", "use phalanx fit model/config.json for the memory"},
    {"DeepSpeed", "venv-script", "activate the environment before phalanx run: it is used on every host"},
    {"mpirun", "np", kRanks},
    {"mpirun", "n", kRanks},
    {"Slurm", "ntasks", kRanks},
    {"Slurm", "ntasks-per-node", kRanksPerHost},
    {"Slurm", "gpus-per-node", "write --gpus N"},
    {"Slurm", "gres", "write --gpus N"},
    {"Slurm", "nodelist", "write --hosts HOST,..."},
    {"Slurm", "time", "write --timeout DURATION"},
    {"Slurm", "job-name", "write --name NAME"},
    {"Slurm", "partition", "omit it: phalanx uses the hosts that you name"},
    {"Slurm", "array", "run phalanx submit once for each job"},
    {"Slurm", "chdir", "write --workdir DIR"},
    {"Slurm", "cpus-per-task", "write --env OMP_NUM_THREADS=N for the threads of a rank"},
    {"Slurm", "exclusive", "omit it: phalanx uses the hosts that you name"},
    {"Slurm", "gpus-per-task", "omit it: there is one rank per GPU unless --nproc-per-node says otherwise"},
    {"Slurm", "mem", "omit it: phalanx sets no limit on memory"},
    {"Slurm", "wrap", "phalanx submit -- COMMAND"},
    {"Slurm", "requeue", "phalanx submit --requeue -- COMMAND"},
    {"Slurm", "error", kLogs},
    {"Slurm, kubectl", "output|o", "write --json for a program to read; the output of every rank is kept under --log-dir"},
    {"Slurm", "open-mode", kLogs},
    {"Slurm", "input", "omit it: ranks have no standard input"},
    {"Slurm", "unbuffered", "omit it: every line is shown as soon as it is printed"},
    {"Slurm", "kill-on-bad-exit", "omit it: the first rank that fails ends the run"},
    {"Slurm, kubectl", "wait", "phalanx wait RUN"},
    {"mpirun", "bind-to", "omit it: ranks are bound to CPUs near their GPUs"},
    {"mpirun", "map-by", "omit it: ranks are bound to CPUs near their GPUs"},
    {"mpirun", "tag-output", "omit it: every line is shown with its rank"},
    {"mpirun", "timestamp-output", "phalanx logs --timestamps RUN"},
    {"mpirun", "allow-run-as-root", "omit it: root may start runs"},
    {"mpirun", "ppn", kRanksPerHost},
    {"mpirun", "genv", "write --env NAME=VALUE"},
    {"mpirun", "x", "write --env NAME=VALUE, or --export NAME for this machine's value"},
    {"mpirun", "wdir", "write --workdir DIR"},
    {"mpirun", "f", "write --hostfile FILE"},
    {"mpirun", "mca", "set the variable instead: --env NAME=VALUE"},
    {"pdsh, docker", "w", "write --hosts HOST,... for hosts, --workdir DIR for a directory"},
    {"docker", "rm", "omit it: nothing is left on the hosts after a run"},
    {"docker", "entrypoint", "omit it: the command after -- is started, not the entrypoint of the image"},
    {"docker", "shm-size", "omit it: phalanx check shows the size of /dev/shm on every host"},
    {"docker", "ulimit", "omit it: phalanx check shows the limits of every host"},
    {"docker, kubectl", "image", "write --container docker-image:IMAGE, or podman-image:IMAGE"},
    {"docker", "user|u", "write user@host in --hosts"},
    {"docker", "network", "write --iface NAME"},
    {"docker", "net", "write --iface NAME"},
    {"docker", "hostname", "write --hosts HOST,..."},
    {"docker", "stop-signal", "omit it: SIGTERM, then SIGKILL after --grace"},
    {"docker", "device", "write --gpus N"},
    {"docker", "runtime", "write --gpus N"},
    {"docker", "cpus", "omit it: phalanx sets no limit on processors"},
    {"docker", "memory", "omit it: phalanx sets no limit on memory"},
    {"docker", "cpuset-cpus", "omit it: ranks are bound to CPUs near their GPUs"},
    {"docker", "init", "omit it: the agent on every host ends what the ranks leave behind"},
    {"docker", "pull", "omit it: phalanx copies itself to the hosts, and --sync copies your code"},
    {"docker", "cidfile", "write --name NAME, and use it in place of the id"},
    {"docker", "restart", "write --max-restarts N"},
    {"docker, kubectl", "stop-timeout", "write --grace DURATION"},
    {"docker, kubectl", "grace-period", "write --grace DURATION"},
    {"docker", "log-driver", "write --log-dir DIR"},
    {"docker", "log-opt", "write --log-max SIZE"},
    {"kubectl", "replicas", "write --nproc-per-node N for ranks, --nnodes N for hosts"},
    {"kubectl", "namespace", "omit it: phalanx ps lists your runs of this machine"},
    {"kubectl", "command", "write the command after --"},
    {"kubectl", "watch", "phalanx attach RUN"},
    {"kubectl", "context", "write --hosts HOST,..."},
    {"kubectl", "kubeconfig", "write --hosts HOST,..."},
    {"kubectl", "cascade", "omit it: a run ends with all its ranks"},
    {"kubectl", "limits", "omit it: phalanx sets no limits"},
    {"kubectl", "requests", "write --gpus N"},
    {"docker, kubectl", "format", "write --json"},
    {"kubectl", "output-format", "write --json"},
};

// What a front door makes of an option that has no row above: it takes --zero-stage, and says why there is no --tpu.
std::optional<std::string> advice_of_a_door(std::string_view name) {
  struct Door {
    std::string_view line;
    std::span<const frontdoor::PeerFlag> flags;
  };
  const Door doors[] = {{"torchrun", frontdoor::torchrun_flags()},
                        {"python -m torch.distributed.launch", frontdoor::launch_flags()},
                        {"accelerate launch", frontdoor::accelerate_flags()},
                        {"deepspeed", frontdoor::deepspeed_flags()}};
  for (const Door& door : doors)
    for (const frontdoor::PeerFlag& flag : door.flags)
      for (std::string_view known : base::split(flag.names, '|'))
        if (known == name && name.size() > 1)
          return flag.answer == frontdoor::Answer::kHonoured ? fmt::format("use phalanx {}, which takes it", door.line)
                                                             : std::string(flag.why.english);
  return std::nullopt;
}

// Whether all options that an advice names are options of this verb; those behind "phalanx logs", of that one.
bool holds_for(Verb verb, std::string_view advice) {
  std::string_view before;
  for (std::string_view word : base::split_words(advice)) {
    const size_t at = word.find("--");
    const VerbRow* named = before == "phalanx" ? find_verb(word) : nullptr;
    if (named) verb = named->verb;
    before = word;
    if (at > 1 || at + 2 >= word.size()) continue;
    if (!find_flag(verb, word.substr(at + 2, word.find_first_of(",;:)=", at) - at - 2))) return false;
  }
  return true;
}

bool is_named(std::string_view names, std::string_view word) {
  for (std::string_view name : base::split(names, '|'))
    if (name == word) return true;
  return false;
}

const ForeignWord* find_in(std::span<const ForeignWord> table, std::string_view word, uint32_t verb = 0) {
  for (const ForeignWord& row : table)
    if ((row.verbs & verb) == verb && is_named(row.word, word)) return &row;
  return nullptr;
}

}  // namespace

std::span<const ForeignWord> foreign_verbs() { return kVerbs; }
std::span<const ForeignWord> foreign_options() { return kOptions; }

std::optional<std::string> advice_for_foreign_verb(std::string_view word) {
  const ForeignWord* row = find_in(kVerbs, word);
  return row ? std::optional(std::string(row->advice)) : std::nullopt;
}

std::optional<std::string> advice_for_foreign_option(Verb verb, std::string_view name) {
  const std::string dashed = base::replace_all(name, "_", "-");
  const ForeignWord* row = find_in(foreign_options_of_verbs(), dashed, bit(verb));
  if (!row) row = find_in(kOptions, dashed);
  if (row) return holds_for(verb, row->advice) ? std::optional(std::string(row->advice)) : std::nullopt;
  constexpr uint32_t kStarts = bit(Verb::kRun) | bit(Verb::kPlan) | bit(Verb::kTrain) | bit(Verb::kSubmit) | bit(Verb::kInit);
  return (kStarts & bit(verb)) != 0 ? advice_of_a_door(dashed) : std::nullopt;
}

std::optional<ForeignValue> advice_for_foreign_value(const FlagRow& flag, std::string_view typed, std::string_view value) {
  const std::string given = base::quote(value);
  if (flag.flag == Flag::kInclude && typed == "-i" && (value == "t" || value == "-t"))
    return ForeignValue{fmt::format("{} {}: a terminal, not a host", typed, given), "omit it: the output is shown here; -i is --include"};
  const bool path = value.starts_with('/') || value.starts_with('.') || value.starts_with('~');
  if (flag.flag == Flag::kVerbose && typed == "-v" && path && value.find(':') != std::string_view::npos)
    return ForeignValue{
        fmt::format("{} {}: a volume, not a command", typed, given),
        fmt::format("write it in --container-args, beside --container docker-image:IMAGE: --container-args {}; -v is --verbose",
                    base::shell_quote(fmt::format("-v {}", base::printable(value))))};
  if (flag.flag != Flag::kExclude || typed != "-e") return std::nullopt;
  const size_t equals = value.find('=');
  if (equals == 0 || equals == std::string_view::npos) return std::nullopt;  // no name of a host has this character
  return ForeignValue{fmt::format("{} {}: a variable, not a host", typed, given),
                      fmt::format("write --env {}; -e is --exclude", base::shell_quote(base::printable(value)))};
}

}  // namespace phalanx::cli
