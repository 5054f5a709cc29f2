// Flags of runs one can come back to.
#include "cli/flags/flag_rows.h"

namespace phalanx::cli {
namespace {

using words::Text;

constexpr uint32_t kRead = bit(Verb::kLogs) | bit(Verb::kAttach);  // verbs that show what ranks print

constexpr FlagRow kFlags[] = {
    {.flag = Flag::kDetach,
     .short_name = 'd',
     .name = "detach",
     .verbs = bit(Verb::kRun) | bit(Verb::kTrain),
     .section = Section::kRanks,
     .help = Text{"print the id of the run once the ranks have started, then detach it from this terminal"}},
    {.flag = Flag::kLogMax,
     .name = "log-max",
     .kind = ValueKind::kBytes,
     .metavar = "SIZE",
     .min = 64 << 10,
     .verbs = bit(Verb::kRun) | bit(Verb::kPlan) | bit(Verb::kTrain),
     .section = Section::kOutput,
     .help = Text{"keep at most this much of each rank's log, discarding the oldest part (default: 1GiB)"}},
    {.flag = Flag::kKeepRuns,
     .name = "keep-runs",
     .kind = ValueKind::kInt,
     .metavar = "N",
     .min = 0,
     .max = 1'000'000,
     .verbs = bit(Verb::kRun) | bit(Verb::kPlan) | bit(Verb::kTrain),
     .section = Section::kOutput,
     .help = Text{"keep the directories of the newest N runs and remove older runs that have ended; 0: keep all (default: 1000)"}},
    {.flag = Flag::kKill,
     .name = "kill",
     .verbs = bit(Verb::kStop),
     .section = Section::kRanks,
     .help = Text{"send SIGKILL at once, without a grace period"}},
    {.flag = Flag::kFollow,
     .short_name = 'f',
     .name = "follow",
     .verbs = bit(Verb::kLogs),
     .section = Section::kOutput,
     .help = Text{"keep printing new output until the run ends"}},
    {.flag = Flag::kTail,
     .short_name = 'n',
     .name = "tail",
     .kind = ValueKind::kInt,
     .metavar = "N",
     .min = 0,
     .max = 1'000'000'000,
     .verbs = bit(Verb::kLogs),
     .section = Section::kOutput,
     .help = Text{"begin with the last N lines of each rank (default: all)"}},
    {.flag = Flag::kRank,
     .name = "rank",
     .aliases = "ranks",
     .kind = ValueKind::kText,
     .metavar = "R[,R-R...]",
     .verbs = kRead,
     .section = Section::kOutput,
     .help = Text{"only these ranks, for instance 0,8-15"}},
    {.flag = Flag::kOnHost,
     .name = "host",
     .kind = ValueKind::kText,
     .metavar = "HOST",
     .verbs = kRead,
     .section = Section::kOutput,
     .help = Text{"only the ranks of this host"}},
    {.flag = Flag::kEveryRun,
     .short_name = 'a',
     .name = "all",
     .verbs = bit(Verb::kPs),
     .section = Section::kOutput,
     .help = Text{"also runs that have ended"}},
    {.flag = Flag::kReportFile,
     .short_name = 'o',
     .name = "output",
     .kind = ValueKind::kPath,
     .metavar = "FILE",
     .verbs = bit(Verb::kReport),
     .section = Section::kOutput,
     .help = Text{"write the archive here (default: phalanx-report-ID.tar.gz)"}},
};

}  // namespace

std::span<const FlagRow> life_flags() { return kFlags; }

}  // namespace phalanx::cli
