// Flags about the project file (cli/project/project_file.h) and about the findings it may accept.
#include "cli/flags/flag_rows.h"

namespace phalanx::cli {
namespace {

using words::Text;

constexpr uint32_t kChecks = bit(Verb::kRun) | bit(Verb::kPlan) | bit(Verb::kTrain) | bit(Verb::kCheck) | bit(Verb::kConfig);
constexpr uint32_t kReads = kChecks | bit(Verb::kBench) | bit(Verb::kFit) | bit(Verb::kExec) | bit(Verb::kPush) | bit(Verb::kClean) |
                            bit(Verb::kLogs) | bit(Verb::kAttach) | bit(Verb::kPs) | bit(Verb::kStop) | bit(Verb::kWait) |
                            bit(Verb::kInspect) | bit(Verb::kWhy) | bit(Verb::kReport);

constexpr FlagRow kFlags[] = {
    {.flag = Flag::kAccept,
     .name = "accept",
     .kind = ValueKind::kText,
     .metavar = "CODE,...[@HOST,...]",
     .repeatable = true,
     .verbs = kChecks | bit(Verb::kInit),
     .section = Section::kRanks,
     .help = Text{"accept these findings of the checks, on these hosts or on all: check still lists them, but they neither stop the start "
                  "nor warn"}},
    {.flag = Flag::kProject,
     .name = "project",
     .kind = ValueKind::kPath,
     .metavar = "FILE|none",
     .verbs = kReads,
     .section = Section::kOther,
     .help = Text{"read the defaults of the options from this project file; none: from no file (default: the nearest phalanx.yaml in the "
                  "current directory or above it)"}},
    {.flag = Flag::kNoProject,
     .name = "no-project",
     .verbs = kReads,
     .section = Section::kOther,
     .help = Text{"read no project file, like --project none"}},
    {.flag = Flag::kFrom,
     .name = "from",
     .kind = ValueKind::kText,
     .metavar = "COMMAND|SCRIPT",
     .verbs = bit(Verb::kInit),
     .section = Section::kOther,
     .help = Text{"take the options from a command line of torchrun, accelerate, deepspeed, llamafactory-cli or python, or from a shell "
                  "script that has one"}},
    {.flag = Flag::kOrigin,
     .name = "origin",
     .verbs = bit(Verb::kConfig),
     .section = Section::kOutput,
     .help = Text{"also print where each value comes from, and the values that have their default"}},
};

}  // namespace

std::span<const FlagRow> project_flags() { return kFlags; }

}  // namespace phalanx::cli
