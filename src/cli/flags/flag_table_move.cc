// Flags of moving environments.
#include "cli/flags/flag_rows.h"

namespace phalanx::cli {
namespace {

using words::Text;

constexpr FlagRow kFlags[] = {
    {.flag = Flag::kOldPrefix,
     .name = "old-prefix",
     .kind = ValueKind::kPath,
     .metavar = "PATH",
     .repeatable = true,
     .verbs = bit(Verb::kEnv),
     .section = Section::kOther,
     .help = Text{"where the environment was before (default: what its own files say; see env show)"}},
    {.flag = Flag::kPartial,
     .name = "partial",
     .verbs = bit(Verb::kEnv),
     .section = Section::kOther,
     .help = Text{"rehome: repair what can be repaired, and leave the files that cannot as they are"}},
};

}  // namespace

std::span<const FlagRow> move_flags() { return kFlags; }

}  // namespace phalanx::cli
