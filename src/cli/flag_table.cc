// The rows. Help is written for people who know torchrun and ssh and nothing of us.
#include "cli/flags.h"

namespace cli {
namespace {

constexpr uint32_t kJob = bit(Verb::kRun) | bit(Verb::kPlan) | bit(Verb::kTrain);
constexpr uint32_t kAll = kJob | bit(Verb::kHelp) | bit(Verb::kCompletion) | bit(Verb::kVersion);
constexpr int64_t kMostHosts = 65'536;
constexpr int64_t kMostRanksPerHost = 4'096;
constexpr int64_t kHour = 3'600'000;  // in milliseconds

constexpr VerbRow kVerbs[] = {
    {Verb::kRun, "run", Operands::kCommand, "[options] [--] command [arguments...]",
     {"start a training command on every host and watch it", "在每台主机上启动训练命令并全程监视"},
     {"Starts the command once per rank on every host, with the environment torch.distributed expects, and ends when all "
      "ranks have ended. If one fails, the first to fail is named, all others are stopped, and its exit code becomes "
      "ours. Without hosts the job runs on this machine. Everything from the first word that is not an option belongs "
      "to the command.",
      "在每台主机上按 rank 各启动一次命令，设置好 torch.distributed 所需的环境变量，直到所有 rank 结束。"
      "任何一个 rank 失败时，指出最先失败的那个，停止其余全部 rank，并以它的退出码退出。"
      "不指定主机时在本机运行。第一个不是选项的词及其后的内容都属于用户命令。"},
     "phalanx run -- python train.py\n"
     "phalanx run -H gpu01,gpu02 -- python train.py --lr 3e-4\n"
     "phalanx run -H 'gpu[01-04]:8' --env HF_HUB_OFFLINE=1 -- python train.py\n"
     "phalanx run --hostfile hosts.txt --include gpu01:0,2@gpu02 -- python train.py"},
    {Verb::kPlan, "plan", Operands::kCommand, "[options] [--] command [arguments...]",
     {"print what run would do, and do nothing", "只打印 run 将要做的事，不执行"},
     {"Prints, per host and rank, what would be executed and with which environment. The same as run --dry-run.",
      "按主机和 rank 打印将要执行的命令及其环境变量。等同于 run --dry-run。"},
     "phalanx plan -H gpu01,gpu02 -- python train.py"},
    {Verb::kTrain, "train", Operands::kMixed, "config.yaml [options] [key=value...]",
     {"train a model with the engine that comes with Phalanx", "用 Phalanx 自带的训练引擎训练模型"},
     {"Runs phalanx-train with the configuration on every host. Values given as key=value replace those of the file.",
      "在每台主机上用该配置运行 phalanx-train。以 key=value 给出的值会覆盖文件中的值。"},
     "phalanx train config.yaml -H gpu01,gpu02"},
    {Verb::kHelp, "help", Operands::kMixed, "[verb]",
     {"explain a verb and its options", "解释一个子命令及其选项"},
     {"Without a verb: all verbs. The language follows PHALANX_LANG, LC_ALL, LC_MESSAGES or LANG.",
      "不带子命令时列出全部子命令。语言由 PHALANX_LANG、LC_ALL、LC_MESSAGES 或 LANG 决定。"},
     "phalanx help run\nphalanx help --man | man -l -"},
    {Verb::kCompletion, "completion", Operands::kMixed, "bash|zsh|fish",
     {"print a completion script for a shell", "打印 shell 补全脚本"},
     {"Prints a script for the shell to read.", "打印供 shell 读取的脚本。"},
     "source <(phalanx completion bash)"},
    {Verb::kVersion, "version", Operands::kNone, "",
     {"print the version", "打印版本号"},
     {"Prints the version and the hash of this build.", "打印版本号和本次构建的哈希。"},
     ""},
    {.verb = Verb::kAgent, .name = "agent", .operands = Operands::kRaw, .usage = "",
     .summary = {"what phalanx starts on each host", "phalanx 在每台主机上启动的程序"},
     .description = {}, .examples = {}, .hidden = true},
};

constexpr FlagRow kFlags[] = {
    {.flag = Flag::kHosts, .short_name = 'H', .name = "hosts", .aliases = "host", .kind = ValueKind::kText,
     .metavar = "HOST[:SLOTS],...", .verbs = kJob, .section = Section::kHosts,
     .help = {"hosts to run on, in rank order: names, ssh aliases, user@host, [IPv6]:slots, ranges like gpu[01-04,7]:8",
              "运行的主机，按 rank 顺序：主机名、ssh 别名、user@host、[IPv6]:slots，或范围如 gpu[01-04,7]:8"}},
    {.flag = Flag::kHostfile, .name = "hostfile", .aliases = "machinefile", .kind = ValueKind::kPath, .metavar = "FILE",
     .verbs = kJob, .section = Section::kHosts,
     .help = {"read the hosts from a DeepSpeed or Open MPI hostfile", "从 DeepSpeed 或 Open MPI 格式的 hostfile 读取主机"}},
    {.flag = Flag::kInclude, .short_name = 'i', .name = "include", .kind = ValueKind::kText,
     .metavar = "HOST[:SLOT,...][@...]", .verbs = kJob, .section = Section::kHosts,
     .help = {"use only these hosts and slots, for instance gpu01:0,2@gpu02 (gpu02 with all its slots)",
              "只使用这些主机和 slot，例如 gpu01:0,2@gpu02（gpu02 使用全部 slot）"}},
    {.flag = Flag::kExclude, .short_name = 'e', .name = "exclude", .kind = ValueKind::kText,
     .metavar = "HOST[:SLOT,...][@...]", .verbs = kJob, .section = Section::kHosts,
     .help = {"use all but these hosts and slots; not together with --include", "排除这些主机和 slot；不能与 --include 同用"}},
    {.flag = Flag::kNnodes, .name = "nnodes", .aliases = "num-nodes", .kind = ValueKind::kNodes, .metavar = "N", .min = 1,
     .max = kMostHosts, .verbs = kJob, .section = Section::kHosts,
     .help = {"use the first N hosts of the list; an error if there are fewer", "使用列表中的前 N 台主机；不足 N 台则报错"}},

    {.flag = Flag::kNproc, .name = "nproc-per-node", .aliases = "num-gpus", .kind = ValueKind::kRanks,
     .metavar = "N|auto|gpu|cpu", .choices = "auto|gpu|cpu", .min = 1, .max = kMostRanksPerHost, .verbs = kJob,
     .section = Section::kRanks,
     .help = {"ranks per host: a number, one per GPU, or one per CPU core (default: the host's slots, else auto: one per "
              "GPU, or one where there is none)",
              "每台主机的 rank 数：数字、每 GPU 一个或每 CPU 核一个（默认取主机的 slot 数，否则 auto：每 GPU 一个，无 GPU 则一个）"}},
    {.flag = Flag::kWorkdir, .short_name = 'C', .name = "workdir", .aliases = "chdir", .kind = ValueKind::kDirectory,
     .metavar = "DIR", .verbs = kJob, .section = Section::kRanks,
     .help = {"working directory of the ranks, on every host (default: this one)", "每台主机上 rank 的工作目录（默认：当前目录）"}},
    {.flag = Flag::kMasterAddr, .name = "master-addr", .kind = ValueKind::kText, .metavar = "ADDRESS", .verbs = kJob,
     .section = Section::kRanks,
     .help = {"address of rank 0's host at which the others reach the store (default: found by trying)",
              "rank 0 主机供其他主机访问 store 的地址（默认：自动试探得出）"}},
    {.flag = Flag::kMasterPort, .name = "master-port", .kind = ValueKind::kInt, .metavar = "PORT", .min = 1, .max = 65'535,
     .verbs = kJob, .section = Section::kRanks,
     .help = {"port of the store (default: a free one)", "store 的端口（默认：任选空闲端口）"}},
    {.flag = Flag::kNoStore, .name = "no-store", .verbs = kJob, .section = Section::kRanks,
     .help = {"let rank 0 serve the store, as torchrun's static mode does", "由 rank 0 提供 store，与 torchrun 的 static 模式相同"}},
    {.flag = Flag::kGrace, .name = "grace", .kind = ValueKind::kDuration, .metavar = "DURATION", .min = 0, .max = kHour,
     .verbs = kJob, .section = Section::kRanks,
     .help = {"time a rank has to end after SIGTERM before it is killed, like 500ms, 10s, 2m (default: 10s)",
              "发送 SIGTERM 后等待 rank 结束的时间，超时强制终止，如 500ms、10s、2m（默认：10s）"}},
    {.flag = Flag::kDryRun, .name = "dry-run", .verbs = kJob, .section = Section::kRanks,
     .help = {"print what would be done and do nothing, as the verb plan does", "只打印将要做的事而不执行，同子命令 plan"}},

    {.flag = Flag::kEnv, .name = "env", .kind = ValueKind::kAssignment, .metavar = "NAME=VALUE", .repeatable = true,
     .verbs = kJob, .section = Section::kEnvironment,
     .help = {"set a variable for every rank; wins over --env-file and --export", "为所有 rank 设置变量；优先于 --env-file 和 --export"}},
    {.flag = Flag::kEnvFile, .name = "env-file", .kind = ValueKind::kPath, .metavar = "FILE", .repeatable = true,
     .verbs = kJob, .section = Section::kEnvironment,
     .help = {"set the variables of a file of NAME=VALUE lines (.env, .deepspeed_env)",
              "按文件中的 NAME=VALUE 行设置变量（.env、.deepspeed_env）"}},
    {.flag = Flag::kExport, .name = "export", .kind = ValueKind::kGlob, .metavar = "GLOB", .repeatable = true,
     .verbs = kJob, .section = Section::kEnvironment,
     .help = {"pass on this machine's variables whose names match, for instance 'HF_*'", "传递本机中名称匹配的变量，例如 'HF_*'"}},
    {.flag = Flag::kNoExport, .name = "no-export", .verbs = kJob, .section = Section::kEnvironment,
     .help = {"pass on no variable of this machine but those of --export", "除 --export 指定的外，不传递本机的任何变量"}},

    {.flag = Flag::kConnectTimeout, .name = "connect-timeout", .kind = ValueKind::kDuration, .metavar = "DURATION",
     .min = 100, .max = kHour, .verbs = kJob, .section = Section::kConnection,
     .help = {"time one attempt to reach a host may take (default: 10s)", "每次尝试连接一台主机的时限（默认：10s）"}},
    {.flag = Flag::kFanout, .name = "fanout", .kind = ValueKind::kInt, .metavar = "N", .min = 1, .max = kMostRanksPerHost,
     .verbs = kJob, .section = Section::kConnection,
     .help = {"logins under way at once; lower it if a jump host drops connections",
              "同时进行的登录数；若跳板机丢弃连接请调小"}},
    {.flag = Flag::kSshOption, .name = "ssh-option", .kind = ValueKind::kSshOption, .metavar = "NAME=VALUE",
     .repeatable = true, .verbs = kJob, .section = Section::kConnection,
     .help = {"an option for ssh -o, for instance ProxyJump=bastion or Port=2222",
              "传给 ssh -o 的选项，例如 ProxyJump=bastion 或 Port=2222"}},

    {.flag = Flag::kLogDir, .name = "log-dir", .kind = ValueKind::kDirectory, .metavar = "DIR", .verbs = kJob,
     .section = Section::kOutput,
     .help = {"write the run's record and every rank's log here (default: a new folder under ~/.local/state/phalanx)",
              "运行记录和各 rank 日志的目录（默认：~/.local/state/phalanx 下的新目录）"}},
    {.flag = Flag::kFold, .name = "fold", .kind = ValueKind::kChoice, .metavar = "auto|on|off", .choices = "auto|on|off",
     .verbs = kJob, .section = Section::kOutput,
     .help = {"show a line that many ranks print once, with their number (auto: on a terminal)",
              "多个 rank 打印的相同行只显示一次并标出数量（auto：仅在终端上）"}},
    {.flag = Flag::kColor, .name = "color", .aliases = "colour", .kind = ValueKind::kChoice, .metavar = "auto|always|never",
     .choices = "auto|always|never", .verbs = kJob, .section = Section::kOutput,
     .help = {"use colour (auto: on a terminal and without NO_COLOR)", "使用颜色（auto：在终端上且未设置 NO_COLOR）"}},
    {.flag = Flag::kJson, .name = "json", .verbs = kJob, .section = Section::kOutput,
     .help = {"print the report as JSON on standard output", "以 JSON 格式在标准输出打印报告"}},
    {.flag = Flag::kQuiet, .short_name = 'q', .name = "quiet", .verbs = kJob, .section = Section::kOutput,
     .help = {"say nothing but errors and what the ranks print", "只显示错误和各 rank 的输出"}},
    {.flag = Flag::kVerbose, .short_name = 'v', .name = "verbose", .verbs = kJob, .section = Section::kOutput,
     .help = {"also say what is being done on each host", "同时显示每台主机上正在做的事"}},

    {.flag = Flag::kMan, .name = "man", .verbs = bit(Verb::kHelp), .help = {"print the manual page (roff)", "打印手册页（roff）"}},
    {.flag = Flag::kMarkdown, .name = "markdown", .verbs = bit(Verb::kHelp),
     .help = {"print the reference as Markdown (docs/cli.md)", "以 Markdown 打印参考手册（docs/cli.md）"}},
    {.flag = Flag::kHelp, .short_name = 'h', .name = "help", .verbs = kAll, .help = {"explain the verb", "显示帮助"}},
};

}  // namespace

std::span<const VerbRow> verb_table() { return kVerbs; }
std::span<const FlagRow> flag_table() { return kFlags; }

}  // namespace cli
