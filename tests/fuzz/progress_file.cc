// Any bytes as the file of a framework: what is read from them is an event that can be sent and read again as the same.
#include <cmath>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "logs/progress_file.h"

using namespace phalanx;

namespace {

void check(const std::optional<wire::RankProgress>& progress) {
  if (!progress) return;
  PHALANX_CHECK(progress->step && *progress->step >= 0 && progress->loss && std::isfinite(*progress->loss));
  const std::string line = wire::encode(*progress);
  PHALANX_CHECK(line.size() <= wire::kMaxRankEventBytes && line.find('\n') == line.size() - 1);
  const base::Result<wire::RankProgress> again = wire::parse_rank_progress(line);
  PHALANX_CHECK(again.ok() && again->step == progress->step && again->total == progress->total);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  check(logs::progress_in_json_lines(text));
  check(logs::progress_in_csv(text, text));
  check(logs::progress_in_csv(text, text.substr(size / 2)));
  return 0;
}
