#include "wire/rank_event.h"

#include <cmath>

#include "base/json.h"
#include "base/try.h"

namespace phalanx::wire {
namespace {

constexpr int64_t kMostSteps = 1LL << 53;

}  // namespace

std::string encode(const RankProgress& progress) {
  base::Json json = {{"v", 1}, {"type", "progress"}};
  if (progress.step) json["step"] = *progress.step;
  if (progress.total) json["total"] = *progress.total;
  if (progress.loss && std::isfinite(*progress.loss)) json["loss"] = *progress.loss;
  if (progress.tokens_per_s && std::isfinite(*progress.tokens_per_s)) json["tokens_per_s"] = *progress.tokens_per_s;
  if (progress.samples_per_s && std::isfinite(*progress.samples_per_s)) json["samples_per_s"] = *progress.samples_per_s;
  if (!progress.phase.empty()) json["phase"] = progress.phase;
  return base::to_text(json) + "\n";
}

base::Result<RankProgress> parse_rank_progress(std::string_view line) {
  TRY_ASSIGN(base::Json json, base::parse_json(line, kMaxRankEventBytes));
  if (base::get_int(json, "v") != 1 || base::get_string(json, "type") != "progress")
    return base::fail(base::ErrorKind::kConfig, "not a progress event of version 1");
  RankProgress progress;
  for (const char* key : {"step", "total"})  // steps are subtracted and divided: what no program counts to is no step
    if (int64_t n = base::get_int(json, key).value_or(0); n < -kMostSteps || n > kMostSteps)
      return base::fail(base::ErrorKind::kConfig, "a counter in a progress event is out of range");
  progress.step = base::get_int(json, "step");
  progress.total = base::get_int(json, "total");
  progress.loss = base::get_number(json, "loss");
  progress.tokens_per_s = base::get_number(json, "tokens_per_s");
  progress.samples_per_s = base::get_number(json, "samples_per_s");
  progress.phase = base::get_string(json, "phase").value_or("").substr(0, 32);
  return progress;
}

}  // namespace phalanx::wire
