// The verbs: what each is for, how it is called, and examples (docs/readme runs them).
#include "cli/flags/flags.h"

namespace phalanx::cli {
namespace {

using words::Text;

constexpr VerbRow kVerbs[] = {
    {Verb::kRun, "run", Operands::kCommand, "[options] [--] command [arguments...]",
     Text{"start a training command on every host and watch it"},
     Text{"Starts the command once per rank on every host, with the environment that torch.distributed expects, and exits when all ranks "
          "have exited. If a rank fails, phalanx names the first one that failed, stops all others, and exits with its exit code. Without "
          "hosts the job runs on this machine. The first word that is not an option starts the command."},
     "phalanx run -- python train.py\n"
     "phalanx run -H gpu01,gpu02 -- python train.py --lr 3e-4\n"
     "phalanx run -H 'gpu[01-04]:8' --env HF_HUB_OFFLINE=1 -- python train.py\n"
     "phalanx run --hostfile hosts.txt --include gpu01:0,2@gpu02 -- python train.py"},
    {Verb::kPlan, "plan", Operands::kCommand, "[options] [--] command [arguments...]", Text{"print what run would do, without doing it"},
     Text{"Prints the command and the environment of every rank on every host. The same as run --dry-run."},
     "phalanx plan -H gpu01,gpu02 -- python train.py"},
    {Verb::kTrain, "train", Operands::kMixed, "config.yaml [options] [key=value...]",
     Text{"train a model with the engine included in Phalanx"},
     Text{"Runs phalanx-train with the configuration on every host. Arguments of the form key=value override values in the file."},
     "phalanx train config.yaml -H gpu01,gpu02"},
    {Verb::kSubmit, "submit", Operands::kCommand, "[options] [--] command [arguments...]",
     Text{"write a job for Slurm or Kubernetes and submit it"},
     Text{"The job runs the command on all of its nodes, as phalanx run does. The command may also be a whole phalanx run or phalanx train "
          "line with its options. Without --image it is a job script, handed to sbatch; with --image a Service and an Indexed Job, handed "
          "to kubectl create, whose pods share the token of the Secret phalanx-token. --dry-run prints the text instead."},
     "phalanx submit --nodes 4 --gpus-per-node 8 --sbatch time=24:00:00 -- python train.py\n"
     "phalanx submit --nodes 4 --image registry/llm:3 --volume code:/code -- python /code/train.py\n"
     "phalanx submit --nodes 6 --requeue -- phalanx run --nnodes 4:4 -- python train.py"},
    {Verb::kCheck, "check", Operands::kSplit, "[hosts] [options] [-- command [arguments...]]",
     Text{"probe the hosts, compare them, and report what would fail"},
     Text{"Checks every host (GPUs, network, software, storage, limits, clocks), lets the hosts connect to each other, and prints each "
          "problem with the command that fixes it. Given a command, it also checks the script, the configuration files and the paths in "
          "that command. It starts nothing and changes nothing. Exits with code 3 if a job would fail."},
     "phalanx check gpu01,gpu02\n"
     "phalanx check 'gpu[01-08]' -- torchrun train.py --data /data/corpus\n"
     "phalanx check --hostfile hosts.txt --json"},
    {Verb::kBench, "bench", Operands::kSplit, "fabric [hosts] [options]", Text{"measure the network between the hosts"},
     Text{"Measures the latency and bandwidth of TCP between the hosts, pair by pair and in both directions, and marks slow links."},
     "phalanx bench fabric gpu01,gpu02,gpu03\n"
     "phalanx bench fabric --hostfile hosts.txt --seconds 3 --json"},
    {Verb::kFit, "fit", Operands::kMixed, "model/config.json [options]",
     Text{"compute the memory a model needs per rank, and the cheapest setup that fits"},
     Text{"Counts the parameters of a Hugging Face config.json (Llama, Mistral, Qwen2, Qwen3, GPT-2) and shows, for DDP and ZeRO 1 to 3, "
          "with and without offload and activation checkpointing, the bytes on one rank and on one host. fit probes the GPUs of the given "
          "hosts; --gpu-memory describes GPUs that you do not have yet. Exits with code 3 if nothing fits."},
     "phalanx fit model/config.json -H gpu01,gpu02\n"
     "phalanx fit --params 7B --gpu-memory 24GiB --nproc-per-node 8"},
    {Verb::kPs, "ps", Operands::kNone, "[options]", Text{"list the runs of this machine"},
     Text{"Lists the runs that were started on this machine and have not ended: attached to a terminal, detached, and those whose launcher "
          "has died (lost). --all also lists runs that have ended."},
     "phalanx ps\n"
     "phalanx ps -a"},
    {Verb::kLogs, "logs", Operands::kMixed, "[RUN] [options]", Text{"print the output of a run's ranks"},
     Text{"Prints the complete log of every rank, rank by rank, each line with its host and rank. --follow keeps printing new output until "
          "the run ends. RUN is an id, a prefix of it, its last four characters, or latest (the default)."},
     "phalanx logs\n"
     "phalanx logs -f --tail 20\n"
     "phalanx logs --rank 0,2-3"},
    {Verb::kAttach, "attach", Operands::kMixed, "[RUN] [options]", Text{"watch a run as if it had been started in this terminal"},
     Text{"Shows the output of the ranks from now on, with the progress bar, until the run ends, and exits with the exit code of the run. "
          "Ctrl-C detaches; the run continues. RUN is an id, a prefix of it, its last four characters, or latest (the default)."},
     ""},
    {Verb::kStop, "stop", Operands::kMixed, "[RUN...] [options]", Text{"stop runs, and verify on every host that nothing is left"},
     Text{"Asks the launcher to stop the run as Ctrl-C would, waits for it to end, then logs in to every host again, looks for processes "
          "of the run and the GPU memory they hold, and kills what is left. This also works when the launcher is dead. Without RUN, stops "
          "the only run that has not ended. Exits with code 3 if a process cannot be killed."},
     ""},
    {Verb::kWait, "wait", Operands::kMixed, "[RUN...] [options]", Text{"wait until runs have ended, and exit with their exit code"},
     Text{"Prints each run with its state and exit code when all have ended, and exits with the first exit code that is not 0. The runs "
          "continue if this command is interrupted. RUN is an id, a prefix of it, its last four characters, a name, or latest (the "
          "default)."},
     ""},
    {Verb::kInspect, "inspect", Operands::kMixed, "[RUN] [options]",
     Text{"show the command, the plan of every rank, and the environment of a run"},
     Text{"Prints, from the record of a run, its command and working directory, which rank ran where and why, the variables that each rank "
          "was given, and the names of the variables that were passed on, by origin. RUN is an id, a prefix of it, its last four "
          "characters, a name, or latest (the default)."},
     "phalanx inspect\n"
     "phalanx inspect --json"},
    {Verb::kExec, "exec", Operands::kCommand, "[options] [--] command [arguments...]",
     Text{"run a command once on every host and compare the results"},
     Text{"Runs the command once per host, in the environment a rank would have, and prints what it printed; hosts with the same output "
          "and exit code are shown together. Nothing is checked before and no run is recorded. The command starts on all hosts or on none. "
          "Exits with 0 if all hosts did, otherwise with the first other exit code."},
     "phalanx exec -H gpu01,gpu02 -- nvidia-smi -L\n"
     "phalanx exec --hostfile hosts.txt -- sha256sum train.py"},
    {Verb::kPush, "push", Operands::kMixed, "DIR [hosts] [options]", Text{"copy a directory to every host, sending only what is missing"},
     Text{
         "Copies all of DIR to the same path on every host, or to the path given with --to: also what .gitignore excludes, with modes, "
         "times and symbolic links. Files that are as an earlier push left them are not sent again. A file on a host is replaced only when "
         "everything has arrived there, and whole. After an interruption, the same command sends the rest. Exits with 0 if every host has "
         "everything."},
     "phalanx push data gpu01,gpu02\n"
     "phalanx push models gpu01,gpu02 --to /opt/models --delete"},
    {Verb::kClean, "clean", Operands::kNone, "[options]", Text{"list or remove old builds, records of ended runs, and ssh connections"},
     Text{"Lists what Phalanx has left on this machine: builds that were not used for two days, ended runs except the newest 20, and the "
          "ssh connections kept for the next start. With --yes it removes them. With hosts, does the same for the builds in the cache of "
          "each host. Only what is provably written by Phalanx for this user is listed or removed."},
     "phalanx clean"},
    {Verb::kEnv, "env", Operands::kMixed, "show|push|pack|unpack|verify|diff|rehome ENV [hosts] [options]",
     Text{"move a Python environment to hosts or to another path, verify it, or repair it"},
     Text{"push sends a conda, mamba, pixi, venv, virtualenv or uv environment to hosts, rewrites every path in its files for the place "
          "there, "
          "and verifies it. Only what a host lacks is sent; what is there stays as it is until everything has arrived. pack writes it into "
          "one "
          "file, unpack FILE DIR makes an environment of that. verify looks for what is wrong, here or on hosts, and exits with code 3 if "
          "programs will fail. diff compares the packages on several hosts and exits with code 1 if they differ. show prints what an "
          "environment contains. rehome repairs one that was moved by other means, for instance with tar. ENV is a directory, or the name "
          "of "
          "an environment of conda or virtualenvwrapper. Neither Python nor conda is needed."},
     "phalanx env show llm\n"
     "phalanx env push llm gpu01,gpu02\n"
     "phalanx env push llm gpu01,gpu02 --to /data/envs/llm\n"
     "phalanx env pack llm -o llm.run\n"
     "phalanx env diff /data/envs/llm gpu01,gpu02\n"
     "phalanx env rehome /data/envs/llm --dry-run"},
    {Verb::kConfig, "config", Operands::kMixed, "show [options]", Text{"show the options in effect and where they come from"},
     Text{"Prints the options that phalanx run would use in this directory: those of the project file (phalanx.yaml) and those given here. "
          "--origin also prints the file and line of each value, and the defaults. The values of variables are not printed."},
     "phalanx config show\n"
     "phalanx config show --origin --json"},
    {Verb::kInit, "init", Operands::kNone, "[options]", Text{"write a project file with the given options"},
     Text{"Writes phalanx.yaml into the current directory: the options that are given, and examples as comments. phalanx then uses it here "
          "and in all directories below. A file that exists is never overwritten, and values of secrets are not written."},
     "phalanx init -H gpu01:8,gpu02:8 --env NCCL_DEBUG=WARN\n"
     "phalanx init --from 'torchrun --nnodes 2 --nproc_per_node 8 train.py'"},
    {Verb::kWhy, "why", Operands::kMixed, "[RUN] [options]", Text{"explain why a run ended, or what it is doing"},
     Text{"Prints the verdict with its evidence and the last events. A run that has not ended is inspected now: what each rank does and in "
          "which line of Python, who waits for whom, since which step. RUN is an id, a prefix of it, its last four characters, or latest "
          "(the default)."},
     "phalanx why\n"
     "phalanx why --watch 5s\n"
     "phalanx why --json"},
    {Verb::kStacks, "stacks", Operands::kMixed, "[RUN] [options]", Text{"print where every rank of a running job is in its code"},
     Text{"Asks every host what its ranks do now, and prints for each process the Python functions, files and lines of all threads, what "
          "they wait for in the kernel, and the native functions below. Nothing is stopped, and the hosts need no tool: the stacks of "
          "CPython 3.8 to 3.14 are read from memory. RUN is an id, a prefix of it, its last four characters, or latest (the default)."},
     "phalanx stacks\n"
     "phalanx stacks --rank 0,8-15\n"
     "phalanx stacks --json"},
    {Verb::kReport, "report", Operands::kMixed, "[RUN] [options]",
     Text{"pack a run into one archive for a bug report, with a page to read"},
     Text{"Writes a .tar.gz with the record, the events, the logs (long logs shortened), the facts about the hosts, and report.html, a "
          "page with verdict, timeline and curves that needs no network. Tokens, passwords, keys and values of variables are redacted."},
     "phalanx report"},
    {Verb::kExplain, "explain", Operands::kMixed, "FILE...|-|RUN|CODE...", Text{"read logs and name the first failure; or explain a code"},
     Text{"Reads the logs of a failed or hung job from any source (torchrun, DeepSpeed, Slurm, the kernel log, phalanx itself; plain, "
          "interleaved or gzipped) and names the first cause, the rank, the host, the lines that prove it, and what to do. - is standard "
          "input, a directory stands for all logs in it, and latest or the id of a run for the logs of that run. NCCL's INFO lines become "
          "a table of which ranks communicate over which transport. Dumps of PyTorch's flight recorder (nccl_trace_rank_N, or their "
          "directory) and reports of NCCL's RAS are recognised by their content and compared. Exits with code 0 if a cause was found, "
          "otherwise 1. Given a code, or the prefix of a group like NET, prints the pages of these codes. No network is needed."},
     "phalanx explain train.log\n"
     "phalanx explain logs/\n"
     "dmesg -T | phalanx explain - train.log.gz\n"
     "phalanx explain latest\n"
     "phalanx explain /tmp/nccl_trace_rank_*\n"
     "phalanx explain net"},
    {Verb::kHelp, "help", Operands::kMixed, "[verb]", Text{"print help for a verb and its options"},
     Text{"Without a verb, lists all verbs. PHALANX_LANG, LC_ALL, LC_MESSAGES or LANG selects the language."},
     "phalanx help run\nphalanx help --man | man -l -"},
    {Verb::kCompletion, "completion", Operands::kMixed, "bash|zsh|fish", Text{"print a completion script for a shell"},
     Text{"Prints a completion script; load it as shown below."}, "source <(phalanx completion bash)"},
    {Verb::kVersion, "version", Operands::kNone, "", Text{"print the version"}, Text{"Prints the version and the hash of this build."}, ""},
    {.verb = Verb::kAgent,
     .name = "agent",
     .operands = Operands::kRaw,
     .usage = "",
     .summary = Text{"the process that phalanx starts on each host"},
     .description = {},
     .examples = {},
     .hidden = true},
};

}  // namespace

std::span<const VerbRow> verb_table() { return kVerbs; }

}  // namespace phalanx::cli
