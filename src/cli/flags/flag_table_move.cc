// Flags of moving environments.
#include "cli/flags/flag_rows.h"

namespace phalanx::cli {
namespace {

using words::Text;

constexpr FlagRow kFlags[] = {
    {Flag::kOldPrefix, "old-prefix", Takes::path("PATH").repeatedly(), bit(Verb::kEnv), Section::kOther,
     Text{"where the environment was before (default: what its own files say; see env show)"}},
    {Flag::kPartial, "partial", bit(Verb::kEnv), Section::kOther,
     Text{"rehome: repair what can be repaired, and leave the files that cannot as they are"}},
};

}  // namespace

std::span<const FlagRow> move_flags() { return kFlags; }

}  // namespace phalanx::cli
