#include "cli/live.h"

#include "base/try.h"
#include "logs/bar_progress.h"

#include <unistd.h>

#include <cmath>

namespace phalanx::cli {
namespace {

double seconds(os::nanoseconds duration) { return std::round(static_cast<double>(duration.count()) / 1e8) / 10; }

base::Json describe(const wire::RankProgress& p) {
  base::Json json = base::Json::object();
  if (p.step) json["step"] = *p.step;
  if (p.total) json["total"] = *p.total;
  if (p.loss && std::isfinite(*p.loss)) json["loss"] = *p.loss;
  if (p.tokens_per_s && std::isfinite(*p.tokens_per_s)) json["tokens_per_s"] = *p.tokens_per_s;
  if (p.samples_per_s && std::isfinite(*p.samples_per_s)) json["samples_per_s"] = *p.samples_per_s;
  if (!p.phase.empty()) json["phase"] = p.phase;
  return json;
}

}  // namespace

const char* phase_name(job::Phase phase) {
  switch (phase) {
    case job::Phase::kOpening: return "opening";
    case job::Phase::kChecking: return "checking";
    case job::Phase::kPreparing: return "preparing";
    case job::Phase::kReaching: return "reaching";
    case job::Phase::kRunning: return "running";
    case job::Phase::kStopping: return "stopping";
    case job::Phase::kFinishing: return "finishing";
    case job::Phase::kEnded: return "ended";
  }
  return "unknown";
}

base::Status Live::open() {
  job::ControlServer::Handlers handlers;
  handlers.status = [this] { return base::to_text(status()); };
  handlers.catch_up = [this] { return catch_up(); };
  handlers.stop = [this](std::optional<os::milliseconds> grace, bool kill) {
    if (stop_) stop_(grace, kill);
  };
  handlers.look = [this] {
    if (look_) look_();
  };
  handlers.remove = [this](const std::string& path) { files_.remove(path); };
  TRY_ASSIGN(server_, job::ControlServer::open(loop_, folder_, id_, std::move(handlers)));
  return base::ok();
}

void Live::looked(const std::string& json) {
  if (server_) server_->looked(json);
}

void Live::output(const wire::Output& output) {
  heard_ = os::mono_now();
  if (output.rank < ranks_.size()) {
    std::string& bar = ranks_[output.rank].bar;
    if (output.kind == wire::OutputKind::kProgress) bar = output.data;
    else if (std::string last(logs::last_state(bar, output.data)); !last.empty()) bar = std::move(last);
  }
  if (server_) server_->output(output);
}

void Live::progress(int rank, const wire::RankProgress& progress) {
  if (rank < 0 || static_cast<size_t>(rank) >= ranks_.size()) return;
  Rank& r = ranks_[static_cast<size_t>(rank)];
  r.reported = heard_ = os::mono_now();
  wire::RankProgress merged = progress;
  if (r.progress && r.progress->phase == progress.phase) {
    if (!merged.step) merged.step = r.progress->step;
    if (!merged.total) merged.total = r.progress->total;
    if (!merged.loss) merged.loss = r.progress->loss;
    if (!merged.tokens_per_s) merged.tokens_per_s = r.progress->tokens_per_s;
    if (!merged.samples_per_s) merged.samples_per_s = r.progress->samples_per_s;
  }
  r.progress = std::move(merged);
  if (server_) server_->progress({static_cast<uint32_t>(rank), r.reported.ns, wire::encode(progress)});
}

void Live::started(const job::State& state) {
  ranks_.clear();
  for (int r = 0; state.plan && r < state.plan->world; ++r)
    ranks_.push_back({state.plan->hosts[static_cast<size_t>(state.plan->host_of(r))].name, {}, {}, ""});
  heard_ = os::mono_now();
  phase_ = state.phase;
  if (server_) server_->status_changed();
}

void Live::event(const job::State& state) { phase_ = state.phase; }

void Live::talk(const std::string& text) {
  last_talk_ = text;
  if (server_) server_->talk(text);
}

void Live::ended(int exit_code) {
  phase_ = job::Phase::kEnded;
  if (server_) server_->end(static_cast<uint32_t>(exit_code & 255), kLastWords);
  server_.reset();
}

base::Json Live::last_progress() const {
  for (const Rank& rank : ranks_)
    if (rank.progress) return describe(*rank.progress);
  for (const Rank& rank : ranks_) {
    std::optional<logs::Bar> bar = logs::parse_bar(rank.bar);
    if (!bar || !bar->done || *bar->done < 0 || *bar->done > 1e15) continue;
    base::Json json = {{"step", static_cast<int64_t>(*bar->done)}};
    if (std::optional<double> loss = logs::loss_in(bar->postfix)) json["loss"] = *loss;
    if (bar->total && *bar->total >= 0 && *bar->total < 1e15) json["total"] = static_cast<int64_t>(*bar->total);
    return json;
  }
  return nullptr;
}

base::Json Live::status() const {
  base::Json hosts = base::Json::array();
  for (const Rank& rank : ranks_) hosts.push_back(rank.host);
  base::Json json = {{"v", 1},
                     {"id", id_},
                     {"pid", ::getpid()},
                     {"phase", phase_name(phase_)},
                     {"ranks", hosts.size()},
                     {"host_of_rank", hosts},
                     {"detached", detached_},
                     {"silent_s", seconds(os::mono_now() - heard_)}};
  if (base::Json progress = last_progress(); !progress.is_null()) json["progress"] = std::move(progress);
  for (size_t r = 0; r < ranks_.size(); ++r)
    if (ranks_[r].progress) json["reported"].push_back({{"rank", r}, {"seconds_ago", seconds(os::mono_now() - ranks_[r].reported)}});
  if (!last_talk_.empty()) json["talk"] = last_talk_;
  return json;
}

std::string Live::catch_up() const {
  std::string frames;
  for (size_t r = 0; r < ranks_.size(); ++r) {
    if (ranks_[r].progress)
      (void)wire::encode(frames, wire::Progress{static_cast<uint32_t>(r), ranks_[r].reported.ns, wire::encode(*ranks_[r].progress)});
    if (ranks_[r].bar.empty()) continue;
    wire::Output bar;
    bar.rank = static_cast<uint32_t>(r);
    bar.kind = wire::OutputKind::kProgress;
    bar.data = ranks_[r].bar;
    (void)wire::encode(frames, bar);
  }
  return frames;
}

}  // namespace phalanx::cli
