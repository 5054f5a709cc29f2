#include "logs/runs/progress_log.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"

namespace phalanx::logs {

std::string encode_point(const ProgressPoint& point) {
  base::Json line = {{"t", std::round(point.t * 1000) / 1000}, {"rank", point.rank}};
  const wire::RankProgress& p = point.progress;
  if (p.step) line["step"] = *p.step;
  if (p.total) line["total"] = *p.total;
  if (p.loss && std::isfinite(*p.loss)) line["loss"] = *p.loss;
  if (p.tokens_per_s && std::isfinite(*p.tokens_per_s)) line["tokens_per_s"] = *p.tokens_per_s;
  if (p.samples_per_s && std::isfinite(*p.samples_per_s)) line["samples_per_s"] = *p.samples_per_s;
  if (!p.phase.empty()) line["phase"] = p.phase;
  return base::to_text(line) + "\n";
}

void ProgressLog::add(double t, int rank, const wire::RankProgress& progress) {
  if (rank < 0 || static_cast<size_t>(rank) >= most_ / 4) return;  // of more ranks than that the first stand for all
  if (static_cast<size_t>(rank) >= ranks_.size()) ranks_.resize(static_cast<size_t>(rank) + 1);
  Rank& r = ranks_[static_cast<size_t>(rank)];
  uint64_t number = r.seen++;
  r.last = {t, rank, progress};
  r.written = number % every_ == 0;
  if (!r.written) return;
  numbers_.push_back(number);
  keep(r.last);
  if (points_.size() >= most_) thin();
}

void ProgressLog::keep(const ProgressPoint& point) {
  points_.push_back(point);
  append(encode_point(point));
}

void ProgressLog::append(const std::string& text) {
  if (!file_) file_ = files_.log(path_, Form::kJsonLines, 0);
  files_.append(*file_, text);
}

void ProgressLog::thin() {
  // With more ranks than points one halving is not enough to make room.
  while (points_.size() * 2 > most_ && every_ < (1ULL << 40)) {
    every_ *= 2;
    size_t kept = 0;
    for (size_t i = 0; i < points_.size(); ++i) {
      if (numbers_[i] % every_ != 0) continue;
      points_[kept] = std::move(points_[i]);
      numbers_[kept++] = numbers_[i];
    }
    points_.resize(kept);
    numbers_.resize(kept);
    if (kept <= ranks_.size()) break;  // one of each rank stays
  }
  std::string text;
  for (const ProgressPoint& point : points_) text += encode_point(point);
  files_.replace(path_, text);
}

void ProgressLog::close() {
  for (Rank& rank : ranks_) {
    if (!rank.written) append(encode_point(rank.last));
    rank.written = true;
  }
}

std::vector<ProgressPoint> read_progress(std::string_view text) {
  std::vector<ProgressPoint> points;
  for (std::string_view line : base::split_lines(text)) {
    base::Result<base::Json> json = base::parse_json(line, wire::kMaxRankEventBytes);
    if (!json.ok() || !json->is_object()) continue;
    std::optional<double> t = base::get_number(*json, "t");
    std::optional<int64_t> rank = base::get_int(*json, "rank");
    if (!t || !std::isfinite(*t) || !rank || *rank < 0 || *rank >= (1 << 20)) continue;
    ProgressPoint point{*t, static_cast<int>(*rank), {}};
    point.progress.step = base::get_int(*json, "step");
    point.progress.total = base::get_int(*json, "total");
    point.progress.loss = base::get_number(*json, "loss");
    point.progress.tokens_per_s = base::get_number(*json, "tokens_per_s");
    point.progress.samples_per_s = base::get_number(*json, "samples_per_s");
    point.progress.phase = base::get_string(*json, "phase").value_or("");
    points.push_back(std::move(point));
  }
  return points;
}

}  // namespace phalanx::logs
