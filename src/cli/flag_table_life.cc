// Flags of runs one can come back to.
#include "cli/flag_rows.h"

namespace cli {
namespace {

constexpr uint32_t kRead = bit(Verb::kLogs) | bit(Verb::kAttach);  // verbs that show what ranks print

constexpr FlagRow kFlags[] = {
    {.flag = Flag::kDetach,
     .short_name = 'd',
     .name = "detach",
     .verbs = bit(Verb::kRun) | bit(Verb::kTrain),
     .section = Section::kRanks,
     .help = {"when the ranks have started, print the run's id and leave it running without this terminal",
              "各 rank 启动后打印运行 id，然后脱离此终端继续运行"}},
    {.flag = Flag::kLogMax,
     .name = "log-max",
     .kind = ValueKind::kBytes,
     .metavar = "SIZE",
     .min = 64 << 10,
     .verbs = bit(Verb::kRun) | bit(Verb::kPlan) | bit(Verb::kTrain),
     .section = Section::kOutput,
     .help = {"keep at most this much of each rank's log, the newest part (default: 1GiB)",
              "每个 rank 的日志最多保留这么多，保留最新部分（默认：1GiB）"}},
    {.flag = Flag::kKill,
     .name = "kill",
     .verbs = bit(Verb::kStop),
     .section = Section::kRanks,
     .help = {"give the ranks no time: SIGKILL at once", "不给 rank 时间：立即 SIGKILL"}},
    {.flag = Flag::kFollow,
     .short_name = 'f',
     .name = "follow",
     .verbs = bit(Verb::kLogs),
     .section = Section::kOutput,
     .help = {"go on with what is printed until the run ends", "持续显示新的输出，直到运行结束"}},
    {.flag = Flag::kTail,
     .short_name = 'n',
     .name = "tail",
     .kind = ValueKind::kInt,
     .metavar = "N",
     .min = 0,
     .max = 1'000'000'000,
     .verbs = bit(Verb::kLogs),
     .section = Section::kOutput,
     .help = {"begin with the last N lines of each rank (default: all)", "从每个 rank 的最后 N 行开始（默认：全部）"}},
    {.flag = Flag::kRank,
     .name = "rank",
     .aliases = "ranks",
     .kind = ValueKind::kText,
     .metavar = "R[,R-R...]",
     .verbs = kRead,
     .section = Section::kOutput,
     .help = {"only these ranks, for instance 0,8-15", "只显示这些 rank，例如 0,8-15"}},
    {.flag = Flag::kOnHost,
     .name = "host",
     .kind = ValueKind::kText,
     .metavar = "HOST",
     .verbs = kRead,
     .section = Section::kOutput,
     .help = {"only the ranks of this host", "只显示该主机的 rank"}},
    {.flag = Flag::kEveryRun,
     .short_name = 'a',
     .name = "all",
     .verbs = bit(Verb::kPs),
     .section = Section::kOutput,
     .help = {"also runs that have ended", "也列出已结束的运行"}},
    {.flag = Flag::kReportFile,
     .short_name = 'o',
     .name = "output",
     .kind = ValueKind::kPath,
     .metavar = "FILE",
     .verbs = bit(Verb::kReport),
     .section = Section::kOutput,
     .help = {"write the archive here (default: phalanx-report-ID.tar.gz)", "归档文件的路径（默认：phalanx-report-ID.tar.gz）"}},
};

}  // namespace

std::span<const FlagRow> life_flags() { return kFlags; }

}  // namespace cli
