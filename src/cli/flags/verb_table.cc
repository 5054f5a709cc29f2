// The verbs: what each is for, how it is called, and examples (docs/readme runs them).
#include "cli/flags/flags.h"

namespace phalanx::cli {
namespace {

constexpr VerbRow kVerbs[] = {
    {Verb::kRun,
     "run",
     Operands::kCommand,
     "[options] [--] command [arguments...]",
     {"start a training command on every host and watch it", "在每台主机上启动训练命令并全程监视"},
     {"Starts the command once per rank on every host, with the environment that torch.distributed expects, and exits when all ranks have "
      "exited. If a rank fails, phalanx names the first one that failed, stops all others, and exits with its exit code. Without hosts the "
      "job runs on this machine. The first word that is not an option starts the command.",
      "在每台主机上按 rank 各启动一次命令，设置好 torch.distributed 所需的环境变量，直到所有 rank 结束。若有 rank 失败，则指出最先失败的 "
      "rank，停止其余 rank，并以它的退出码退出。不指定主机时在本机运行。第一个不是选项的词及其后的内容都属于用户命令。"},
     "phalanx run -- python train.py\n"
     "phalanx run -H gpu01,gpu02 -- python train.py --lr 3e-4\n"
     "phalanx run -H 'gpu[01-04]:8' --env HF_HUB_OFFLINE=1 -- python train.py\n"
     "phalanx run --hostfile hosts.txt --include gpu01:0,2@gpu02 -- python train.py"},
    {Verb::kPlan,
     "plan",
     Operands::kCommand,
     "[options] [--] command [arguments...]",
     {"print what run would do, without doing it", "只打印 run 将要执行的操作，不执行"},
     {"Prints the command and the environment of every rank on every host. The same as run --dry-run.",
      "按主机和 rank 打印将要执行的命令及其环境变量。等同于 run --dry-run。"},
     "phalanx plan -H gpu01,gpu02 -- python train.py"},
    {Verb::kTrain,
     "train",
     Operands::kMixed,
     "config.yaml [options] [key=value...]",
     {"train a model with the engine included in Phalanx", "用 Phalanx 自带的训练引擎训练模型"},
     {"Runs phalanx-train with the configuration on every host. Arguments of the form key=value override values in the file.",
      "在每台主机上用该配置运行 phalanx-train。以 key=value 给出的值会覆盖文件中的值。"},
     "phalanx train config.yaml -H gpu01,gpu02"},
    {Verb::kCheck,
     "check",
     Operands::kSplit,
     "[hosts] [options] [-- command [arguments...]]",
     {"probe the hosts, compare them, and report what would fail", "探测并比较各主机，指出会导致失败的问题"},
     {"Checks every host (GPUs, network, software, storage, limits, clocks), lets the hosts connect to each other, and prints each problem "
      "with the command that fixes it. Given a command, it also checks the script, the configuration files and the paths in that command. "
      "It starts nothing and changes nothing. Exits with code 3 if a job would fail.",
      "检查每台主机（GPU、网络、软件、存储、资源限制、时钟），让主机之间互相连接，列出问题和可直接键入的修复命令。"
      "给出命令时还会检查脚本、配置文件以及命令中涉及的路径。不启动也不修改任何东西。若任务必定失败则以 3 退出。"},
     "phalanx check gpu01,gpu02\n"
     "phalanx check 'gpu[01-08]' -- torchrun train.py --data /data/corpus\n"
     "phalanx check --hostfile hosts.txt --json"},
    {Verb::kBench,
     "bench",
     Operands::kSplit,
     "fabric [hosts] [options]",
     {"measure the network between the hosts", "测量主机之间的网络"},
     {"Measures the latency and bandwidth of TCP between the hosts, pair by pair and in both directions, and marks slow links.",
      "逐对、双向测量主机之间 TCP 的延迟与带宽，并标出慢的链路。"},
     "phalanx bench fabric gpu01,gpu02,gpu03\n"
     "phalanx bench fabric --hostfile hosts.txt --seconds 3 --json"},
    {Verb::kFit,
     "fit",
     Operands::kMixed,
     "model/config.json [options]",
     {"compute the memory a model needs per rank, and the cheapest setup that fits",
      "计算模型在每个 rank 上的内存需求以及放得下的最省方案"},
     {"Counts the parameters of a Hugging Face config.json (Llama, Mistral, Qwen2, Qwen3, GPT-2) and shows, for DDP and ZeRO 1 to 3, with "
      "and without offload and activation checkpointing, the bytes on one rank and on one host. fit probes the GPUs of the given hosts; "
      "--gpu-memory describes GPUs that you do not have yet. Exits with code 3 if nothing fits.",
      "统计 Hugging Face config.json（Llama、Mistral、Qwen2、Qwen3、GPT-2）的参数量，并列出 DDP 与 ZeRO 1–3 "
      "在有无卸载、有无激活重计算时单个 rank 和单台主机所需的字节数。GPU 取自被探测的主机；--gpu-memory 用于尚不存在的 GPU。都放不下时以 3 "
      "退出。"},
     "phalanx fit model/config.json -H gpu01,gpu02\n"
     "phalanx fit --params 7B --gpu-memory 24GiB --nproc-per-node 8"},
    {Verb::kPs,
     "ps",
     Operands::kNone,
     "[options]",
     {"list the runs of this machine", "列出本机的运行"},
     {"Lists the runs that were started on this machine and have not ended: attached to a terminal, detached, and those whose launcher has "
      "died (lost). --all also lists runs that have ended.",
      "列出在本机启动且尚未结束的运行：有终端的、已脱离终端的，以及启动器已死亡的（lost）。--all 也列出已结束的运行。"},
     "phalanx ps\n"
     "phalanx ps -a"},
    {Verb::kLogs,
     "logs",
     Operands::kMixed,
     "[RUN] [options]",
     {"print the output of a run's ranks", "打印一次运行中各 rank 的输出"},
     {"Prints the complete log of every rank, rank by rank, each line with its host and rank. --follow keeps printing new output until the "
      "run ends. RUN is an id, a prefix of it, its last four characters, or latest (the default).",
      "逐个 rank 打印完整日志，每行带主机名与 rank 号。使用 --follow 时持续打印新的输出，直到运行结束。"
      "RUN 可为 id、id 的开头、id 的最后四个字符，或 latest（默认）。"},
     "phalanx logs\n"
     "phalanx logs -f --tail 20\n"
     "phalanx logs --rank 0,2-3"},
    {Verb::kAttach,
     "attach",
     Operands::kMixed,
     "[RUN] [options]",
     {"watch a run as if it had been started in this terminal", "在此终端上观看一次运行，如同在此启动"},
     {"Shows the output of the ranks from now on, with the progress bar, until the run ends, and exits with the exit code of the run. "
      "Ctrl-C detaches; the run continues. RUN is an id, a prefix of it, its last four characters, or latest (the default).",
      "显示从现在起各 rank 的输出和进度条，直到运行结束，并以它的退出码退出。Ctrl-C 只断开连接，运行继续。RUN 可为 id、id 的开头、id "
      "的最后四个字符，或 latest（默认）。"},
     ""},
    {Verb::kStop,
     "stop",
     Operands::kMixed,
     "[RUN...] [options]",
     {"stop runs, and verify on every host that nothing is left", "停止运行，并在每台主机上确认没有残留"},
     {"Asks the launcher to stop the run as Ctrl-C would, waits for it to end, then logs in to every host again, looks for processes of "
      "the run and the GPU memory they hold, and kills what is left. This also works when the launcher is dead. Without RUN, stops the "
      "only run that has not ended. Exits with code 3 if a process cannot be killed.",
      "请求启动器像 Ctrl-C "
      "一样结束运行，等待结束，然后再次登录每台主机，查找该运行的进程及其占用的显存；残留的进程会被杀死。启动器已死亡时同样有效。不给出 "
      "RUN 时指唯一尚未结束的运行。若有进程无法杀死则以退出码 3 退出。"},
     ""},
    {Verb::kWhy,
     "why",
     Operands::kMixed,
     "[RUN] [options]",
     {"explain why a run ended, or what it is doing", "说明一次运行为何结束，或正在做什么"},
     {"Prints the verdict with its evidence and the last events or, for a run that has not ended, what it is doing now. RUN is an id, a "
      "prefix of it, its last four characters, or latest (the default).",
      "打印结论、证据和最后的事件；若运行仍在继续，则说明它正在做什么。RUN 可为 id、id 的开头、id 的最后四个字符，或 latest（默认）。"},
     "phalanx why\n"
     "phalanx why --json"},
    {Verb::kReport,
     "report",
     Operands::kMixed,
     "[RUN] [options]",
     {"pack a run into one archive for a bug report, with a page to read", "把一次运行打包成一个文件用于报告问题，内含可浏览的页面"},
     {"Writes a .tar.gz with the record, the events, the logs (long logs shortened), the facts about the hosts, and report.html, a page "
      "with verdict, timeline and curves that needs no network. Tokens, passwords, keys and values of variables are redacted.",
      "生成 .tar.gz，包含记录、事件、日志（过长则截短）、主机信息，以及无需联网的页面 "
      "report.html（结论、时间线、曲线）。令牌、密码、密钥和变量的值会被隐去。"},
     "phalanx report"},
    {Verb::kExplain,
     "explain",
     Operands::kMixed,
     "FILE...|-|RUN|CODE...",
     {"read logs and name the first failure; or explain a code", "读取日志并指出最先出错的原因；或解释一个代码"},
     {"Reads the logs of a failed or hung job from any source (torchrun, DeepSpeed, Slurm, the kernel log, phalanx itself; plain, "
      "interleaved or gzipped) and names the first cause, the rank, the host, the lines that prove it, and what to do. - is standard "
      "input, a directory stands for all logs in it, and latest or the id of a run for the logs of that run. NCCL's INFO lines become a "
      "table of which ranks communicate over which transport. Dumps of PyTorch's flight recorder (nccl_trace_rank_N, or their directory) "
      "and reports of NCCL's RAS are recognised by their content and compared. Exits with code 0 if a cause was found, otherwise 1. Given "
      "a code, or the prefix of a group like NET, prints the pages of these codes. No network is needed.",
      "读取失败或挂起任务的日志（torchrun、DeepSpeed、Slurm、内核日志、phalanx 自己的运行；纯文本、交错、gzip；- "
      "表示标准输入；目录表示其中全部日志；latest 或运行 id 表示该次运行的日志），指出最先的原因、rank、主机、证据行和处理办法。"
      "NCCL INFO 日志会整理成通信拓扑表；PyTorch flight recorder 转储（nccl_trace_rank_N 或其目录）与 NCCL RAS 报告按内容识别并比较。"
      "找到原因以 0 退出，没有找到以 1 退出。给出代码或组名（如 NET）时打印相应说明。全程无需联网。"},
     "phalanx explain train.log\n"
     "phalanx explain logs/\n"
     "dmesg -T | phalanx explain - train.log.gz\n"
     "phalanx explain latest\n"
     "phalanx explain /tmp/nccl_trace_rank_*\n"
     "phalanx explain net"},
    {Verb::kHelp,
     "help",
     Operands::kMixed,
     "[verb]",
     {"print help for a verb and its options", "解释一个子命令及其选项"},
     {"Without a verb, lists all verbs. PHALANX_LANG, LC_ALL, LC_MESSAGES or LANG selects the language.",
      "不带子命令时列出全部子命令。语言由 PHALANX_LANG、LC_ALL、LC_MESSAGES 或 LANG 决定。"},
     "phalanx help run\nphalanx help --man | man -l -"},
    {Verb::kCompletion,
     "completion",
     Operands::kMixed,
     "bash|zsh|fish",
     {"print a completion script for a shell", "打印 shell 补全脚本"},
     {"Prints a completion script; load it as shown below.", "打印补全脚本；按下面的方式加载。"},
     "source <(phalanx completion bash)"},
    {Verb::kVersion,
     "version",
     Operands::kNone,
     "",
     {"print the version", "打印版本号"},
     {"Prints the version and the hash of this build.", "打印版本号和本次构建的哈希。"},
     ""},
    {.verb = Verb::kAgent,
     .name = "agent",
     .operands = Operands::kRaw,
     .usage = "",
     .summary = {"the process that phalanx starts on each host", "phalanx 在每台主机上启动的程序"},
     .description = {},
     .examples = {},
     .hidden = true},
};

}  // namespace

std::span<const VerbRow> verb_table() { return kVerbs; }

}  // namespace phalanx::cli
