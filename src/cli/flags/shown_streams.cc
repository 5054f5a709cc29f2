#include "cli/flags/shown_streams.h"

#include <fmt/format.h>

#include "base/text.h"
#include "base/unicode.h"

namespace phalanx::cli {

base::Result<ShownStreams> parse_shown_streams(std::string_view text) {
  constexpr int kMostLocalRanks = 4'096;
  ShownStreams out;
  bool given = false;
  for (std::string_view one : base::split(text, ',')) {
    const size_t colon = one.find(':');
    const base::Result<int64_t> streams = base::parse_int(one.substr(colon == std::string_view::npos ? 0 : colon + 1), 0, 3);
    const base::Result<int64_t> rank =
        colon == std::string_view::npos ? base::Result<int64_t>(0) : base::parse_int(one.substr(0, colon), 0, kMostLocalRanks - 1);
    const bool twice = colon == std::string_view::npos ? given : rank.ok() && out.of.count(static_cast<int>(*rank)) > 0;
    if (!streams.ok() || !rank.ok() || twice)
      return base::fail(base::ErrorKind::kUsage,
                        fmt::format("{} is not STREAMS[,LOCAL:STREAMS,...] with 0, 1, 2 or 3 for STREAMS", base::quote(text)))
          .with_hint("0 is nothing, 1 standard output, 2 standard error, 3 both: --show 0,0:3 shows only the first rank of each host");
    if (colon == std::string_view::npos) {
      out.others = static_cast<int>(*streams);
      given = true;
    } else {
      out.of[static_cast<int>(*rank)] = static_cast<int>(*streams);
    }
  }
  return out;
}

}  // namespace phalanx::cli
