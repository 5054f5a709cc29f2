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
    {Flag::kAccept, "accept", Takes::text("CODE,...[@HOST,...]").repeatedly(), kChecks | bit(Verb::kInit), Section::kRanks,
     Text{"accept these findings of the checks, on these hosts or on all: check still lists them, but they neither stop the start "
          "nor warn"}},
    {Flag::kProject, "project", Takes::path("FILE|none"), kReads, Section::kOther,
     Text{"read the defaults of the options from this project file; none: from no file (default: the nearest phalanx.yaml in the "
          "current directory or above it)"}},
    {Flag::kNoProject, "no-project", kReads, Section::kOther, Text{"read no project file, like --project none"}},
    {Flag::kFrom, "from", Takes::text("COMMAND|SCRIPT"), bit(Verb::kInit), Section::kOther,
     Text{"take the options from a command line of torchrun, accelerate, deepspeed, llamafactory-cli or python, or from a shell "
          "script that has one"}},
    {Flag::kOrigin, "origin", bit(Verb::kConfig), Section::kOutput,
     Text{"also print where each value comes from, and the values that have their default"}},
};

}  // namespace

std::span<const FlagRow> project_flags() { return kFlags; }

}  // namespace phalanx::cli
