// Launchers and their configurations: DeepSpeed, accelerate, LLaMA-Factory, Lightning, Slurm.
#include "diagnosis/signature.h"

namespace diagnosis {
namespace {

constexpr Signature kLauncherSignatures[] = {
    {"CMD-TORCH-LAUNCH", Role::kRoot, "unrecognized arguments: --local", "error: unrecognized arguments: --local[-_]rank",
     "train.py: error: unrecognized arguments: --local-rank=0", "unrecognized arguments: --lr 3"},
    {"ENV-NO-PROGRAM", Role::kRoot, "command not found",
     R"((bash|sh|zsh|pdsh@\S+|line \d+|gpu\S*|node\S*|ssh): .*command not found|: )"
     "(torchrun|python3?|accelerate|deepspeed|llamafactory-cli): command not found",
     "bash: line 1: torchrun: command not found", R"(echo "command not found")"},
    {"ENV-NO-PROGRAM", Role::kRoot, "No such file or directory",
     R"((python3?|torchrun): can't open file '?(?P<path>[^':]+)'?: \[Errno 2\] No such file or directory)",
     "python: can't open file '/job/train.py': [Errno 2] No such file or directory", "ls: cannot access 'x': No such file or directory"},
    {"ENV-NO-PROGRAM", Role::kRoot, "execve(): ", R"(execve\(\): (?P<path>\S+): No such file or directory)",
     "slurmstepd: error: execve(): python3.10: No such file or directory", "strace: execve() = 0"},
    {"RDZV-LAUNCHER-MISSING", Role::kRoot, " not installed.", R"(RuntimeError: launcher '(?P<name>\w+)' not installed)",
     "RuntimeError: launcher 'pdsh' not installed.", "wandb not installed."},
    {"CMD-HOSTFILE", Role::kRoot, "Hostfile ",
     "Hostfile (contains (a bad entry|multiple entries for)|is (empty or )?not formatted correctly|contains duplicate "
     "hosts)",
     "ValueError: Hostfile contains a bad entry: gpu01 8, unable to proceed with launching", "Hostfile: /job/hostfile"},
    {"CMD-HOSTFILE", Role::kRoot, "Hostfile", "Hostfile is (empty|not formatted correctly)",
     "RuntimeError: Hostfile is empty or not formatted correctly, unable to proceed with launching.", "[INFO] Hostfile has 2 lines"},
    {"CMD-HOSTFILE", Role::kBenign, "Unable to find hostfile",
     "Unable to find hostfile, will proceed with training with local resources only",
     "[2024-03-05 10:20:31,884] [WARNING] [runner.py:202:fetch_hostfile] Unable to find hostfile, will proceed with "
     "training with local resources only.",
     "Unable to find hostfile, stopping"},
    {"CMD-ARGUMENTS", Role::kRoot, "unrecognized arguments", "error: unrecognized arguments: (?P<arguments>.*)",
     "train.py: error: unrecognized arguments: --gradient_checkpoint", "warning: unrecognized arguments are ignored"},
    {"CMD-ARGUMENTS", Role::kRoot, "the following arguments are required", "error: the following arguments are required: ",
     "train.py: error: the following arguments are required: --data", "all the following arguments are required reading"},
    {"CMD-ARGUMENTS", Role::kRoot, "error: argument ", R"(error: argument \S+: (invalid|expected))",
     "train.py: error: argument --lr: invalid float value: '1e-4f'", "error: argument of the two parties"},
    {"CMD-LLAMAFACTORY-KEY", Role::kRoot, "Some keys are not used by the HfArgumentParser",
     "Some keys are not used by the HfArgumentParser: (?P<keys>.*)",
     "ValueError: Some keys are not used by the HfArgumentParser: ['preprocessing_num_works']", "HfArgumentParser: some keys are not used"},
    {"CMD-LLAMAFACTORY-KEY", Role::kRoot, "Some specified arguments are not used by",
     "ValueError: Some specified arguments are not used by the HfArgumentParser",
     "ValueError: Some specified arguments are not used by the HfArgumentParser: ['--finetuning_typ', 'lora']",
     "Some specified arguments are not used by anyone"},
    {"CMD-ACCELERATE-KEY", Role::kRoot, "had unknown keys", R"(The config file at (?P<path>\S+) had unknown keys)",
     "ValueError: The config file at /opt/hf/accelerate/default_config.yaml had unknown keys (['num_procs']), please "
     "try upgrading your `accelerate` version",
     "the dict had unknown keys"},
    {"CMD-DEEPSPEED-BATCH", Role::kRoot, "Check batch related parameters",
     R"(Check batch related parameters\. train_batch_size is not equal to micro_batch_per_gpu)",
     "AssertionError: Check batch related parameters. train_batch_size is not equal to micro_batch_per_gpu * "
     "gradient_acc_step * world_size 256 != 8 * 1 * 16",
     "Check batch related parameters in the file"},
    {"CMD-DEEPSPEED-CONFIG", Role::kRoot, "DeepSpeedConfigError", R"(^(\S+\.)?DeepSpeedConfigError: )",
     "deepspeed.runtime.config.DeepSpeedConfigError: Expected a string path to an existing deepspeed config, or a "
     "dictionary or a valid base64",
     "except DeepSpeedConfigError:"},
    {"CMD-DEEPSPEED-CONFIG", Role::kRoot, "Please correct the following DeepSpeed config",
     "Please correct the following DeepSpeed config values that mismatch TrainingArguments values",
     "ValueError: Please correct the following DeepSpeed config values that mismatch TrainingArguments values:",
     "Please correct the following DeepSpeed config typo"},
    {"CMD-DEEPSPEED-CONFIG", Role::kRoot, "DeepSpeed Zero-3 is not compatible", "DeepSpeed Zero-3 is not compatible with",
     "ValueError: DeepSpeed Zero-3 is not compatible with `low_cpu_mem_usage=True` or with passing a `device_map`.",
     "DeepSpeed Zero-3 is compatible with most models"},
    {"CMD-CONFIG-SYNTAX", Role::kRoot, "yaml.scanner.ScannerError", R"(^yaml\.(scanner|parser)\.(Scanner|Parser)Error)",
     "yaml.scanner.ScannerError: mapping values are not allowed here", "except yaml.scanner.ScannerError as e:"},
    {"CMD-CONFIG-SYNTAX", Role::kRoot, "JSONDecodeError: ", R"(^json\.decoder\.JSONDecodeError: )",
     "json.decoder.JSONDecodeError: Expecting property name enclosed in double quotes: line 4 column 3 (char 61)",
     "requests JSONDecodeError: none"},
    {"RUN-TIME-LIMIT", Role::kRoot, "DUE TO TIME LIMIT",
     R"((slurmstepd|srun): error: \*\*\* (JOB|STEP) \S+ ON (?P<host>\S+) CANCELLED AT \S+ DUE TO TIME LIMIT)",
     "slurmstepd: error: *** JOB 81234 ON gpu01 CANCELLED AT 2024-03-05T12:00:00 DUE TO TIME LIMIT ***",
     "sacct shows jobs that end DUE TO TIME LIMIT"},
    {"RUN-PREEMPTED", Role::kRoot, "DUE TO PREEMPTION", R"(CANCELLED AT \S+ DUE TO PREEMPTION)",
     "slurmstepd: error: *** JOB 81234 ON gpu01 CANCELLED AT 2024-03-05T12:00:00 DUE TO PREEMPTION ***", "jobs may end DUE TO PREEMPTION"},
    {"RUN-OOM-CGROUP", Role::kRoot, "oom_kill event", R"(Detected (?P<count>\d+) oom[_-]kill event)",
     "slurmstepd: error: Detected 1 oom_kill event in StepId=81234.0. Some of the step tasks have been OOM Killed.",
     "grep oom_kill event log"},
    {"RUN-OOM-CGROUP", Role::kRoot, "oom-kill event(s)", R"(Detected \d+ oom-kill event\(s\) in)",
     "slurmstepd: error: Detected 1 oom-kill event(s) in StepId=81234.batch cgroup. Some of your processes may have "
     "been killed by the cgroup out-of-memory handler.",
     "oom-kill event(s): 0"},
    {"RUN-OOM-CGROUP", Role::kRoot, "OOMKilled", R"([Rr]eason"?:\s+"?OOMKilled)", "    Reason:       OOMKilled",
     "if OOMKilled is seen, raise the limit"},
    {"HOST-LOST", Role::kRoot, "DUE TO NODE FAILURE", R"(CANCELLED AT \S+ DUE TO NODE FAILURE)",
     "slurmstepd: error: *** JOB 81234 ON gpu03 CANCELLED AT 2024-03-05T12:00:00 DUE TO NODE FAILURE, SEE SLURMCTLD "
     "LOG FOR DETAILS ***",
     "jobs requeue DUE TO NODE FAILURE"},
    {"HOST-LOST", Role::kRoot, "Node failure on", R"(srun: error: Node failure on (?P<host>\S+))", "srun: error: Node failure on gpu03",
     "Node failure on purpose"},
    {"RUN-TERMINATED", Role::kSymptom, "CANCELLED AT",
     R"((slurmstepd|srun): error: \*\*\* (JOB|STEP) \S+ ON (?P<host>\S+) CANCELLED AT \S+ \*\*\*)",
     "slurmstepd: error: *** STEP 81234.0 ON gpu01 CANCELLED AT 2024-03-05T12:00:00 ***",
     "slurmstepd: error: *** JOB 81234 ON gpu01 CANCELLED AT 2024-03-05T12:00:00 DUE TO TIME LIMIT ***"},
    {"LOG-HARMLESS", Role::kContext, "distributed_backend=", R"(distributed_backend=\w+)", "distributed_backend=nccl",
     "distributed backend nccl"},
    {"LOG-HARMLESS", Role::kContext, "All distributed processes registered",
     R"(All distributed processes registered\. Starting with (?P<nranks>\d+) processes)",
     "All distributed processes registered. Starting with 2 processes", "All distributed processes registered."},
};

}  // namespace

std::span<const Signature> launcher_signatures() { return kLauncherSignatures; }

}  // namespace diagnosis
