// A run that stands still: all hosts are asked what their ranks do, twice with a second between, then some ranks where they are; then the
// judge's verdict is told, and what was asked for is done. Every question has a deadline: a host that does not answer is missing evidence.
#include "job/attempt/step.h"
#include "job/facts_bounds.h"

#include <signal.h>

#include <algorithm>
#include <array>
#include <set>

#include "base/json_fields.h"
#include "diagnosis/hang/deadlock.h"
#include "diagnosis/hang/flight_recorder.h"

namespace phalanx::job {
namespace {

using Stage = Stall::Stage;
constexpr os::milliseconds kSlept{2500};  // between two ticks: we did not run
// Where nobody stands out there may be nothing to tell: a long save, a long evaluation.
constexpr int kPatienceOfUnknown = 3;  // times the threshold, unless the user has set it

}  // namespace

void AttemptStep::check_stall() {
  Stall& stall = s.stall;
  if (s.phase != Phase::kRunning) return;
  bool blind = now - stall.ticked > kSlept;  // what passed until now says nothing
  if (blind && stall.stage == Stage::kWatching) stall.movement.pause(now);
  stall.ticked = now;
  std::optional<os::nanoseconds> threshold = stall.movement.threshold(job.stall);
  if (!threshold) return;
  os::nanoseconds still = stall.movement.still(now);
  if (stall.stage != Stage::kWatching && os::Mono{now.ns - still.count()} > stall.moved_before) {  // it goes on
    if (stall.told) tell(GoesOn{now - stall.moved_before - still});
    stall.told = false;
    stall.stage = Stage::kWatching;
    stall.again_at = {};
    return;
  }
  switch (stall.stage) {
    case Stage::kWatching:
      stall.early = still < *threshold;
      if (stall.early ? early_look_is_due() : now >= stall.again_at) ask_samples(Stage::kFirst);
      break;
    case Stage::kFirst:
    case Stage::kThen:
      if (now >= stall.deadline) samples_done();
      break;
    case Stage::kBetween:
      if (now - stall.first_at >= kBetweenSamples) ask_samples(Stage::kThen);
      break;
    case Stage::kDigging:
      if (now >= stall.deadline) tell_stall();
      break;
    case Stage::kTold: break;
  }
}

// GPUs work unseen: there, nothing can be proved.
bool AttemptStep::early_look_is_due() const {
  const Stall& stall = s.stall;
  if (stall.movement.still(now) < kEarlyStall || !stall.idleness.due(now)) return false;
  return stall.idleness.all_idle(awaited()) && !devices();
}

// What is certain whatever the ranks do next, and that somebody should see to: where it is only told.
bool AttemptStep::told_early(const diagnosis::Diagnosis& verdict) const {
  if (job.stall.action != OnStall::kReport || s.stall.movement.still(now) < kEarlyTold) return false;
  static constexpr std::array<std::string_view, 4> kTold = {"HANG-STOPPED", "HANG-TRACED", "HANG-LINK", "NET-MTU-HOLE"};
  return std::find(kTold.begin(), kTold.end(), verdict.code) != kTold.end();
}

bool AttemptStep::devices() const {
  return std::any_of(hosts.begin(), hosts.end(), [](const auto& host) { return host.hello.gpus > 0; });
}

void AttemptStep::ask_samples(Stage stage) {
  Stall& stall = s.stall;
  bool again = stage == Stage::kThen;
  if (!again) {
    stall.first.clear();
    stall.unanswered.clear();
    stall.stacks.clear();
    stall.records.clear();
    stall.ras.reset();
    stall.first_at = now;
    stall.moved_before = os::Mono{now.ns - stall.movement.still(now).count()};
  }
  stall.then.clear();
  stall.stage = stage;
  stall.between_s = static_cast<double>((now - stall.first_at).count()) / 1e9;
  stall.deadline = now + kSamplePatience + kWireReserve;
  stall.awaited.assign(hosts.size(), false);
  ++stall.id;
  for (size_t h = 0; h < hosts.size(); ++h) {
    if (!alive(h)) continue;
    stall.awaited[h] = true;
    send(h, wire::Sample{stall.id, again, again && hosts[h].hello.gpus > 0, static_cast<uint32_t>(kSamplePatience.count())});
  }
}

bool AttemptStep::stall_answered(size_t h, uint32_t id, Stage stage) {
  Stall& stall = s.stall;
  if (s.phase != Phase::kRunning || id != stall.id || stall.stage != stage || h >= stall.awaited.size() || !stall.awaited[h]) return false;
  stall.awaited[h] = false;
  return true;
}

void AttemptStep::take(size_t h, const wire::Sampled& m) {
  if ((m.id & kGpuQuestion) != 0) return take_gpus(h, m);
  if ((m.id & kSharesQuestion) != 0) return take_shares(h, m);
  Stall& stall = s.stall;
  Stage stage = stall.stage;
  if ((stage != Stage::kFirst && stage != Stage::kThen) || !stall_answered(h, m.id, stage)) return;
  if (!m.outcome.ok) {
    stall.unanswered[h] = m.outcome.error.message;
  } else {
    base::Result<base::Json> json = parse_from_host(m.json);
    base::Result<machine::HostSample> sample = json.ok() ? base::from_json<machine::HostSample>(*json) : std::move(json).error();
    if (sample.ok()) (stage == Stage::kFirst ? stall.first : stall.then)[h] = std::move(sample).value();
    else stall.unanswered[h] = sample.error().message;
  }
  if (std::none_of(stall.awaited.begin(), stall.awaited.end(), [](bool b) { return b; })) samples_done();
}

void AttemptStep::samples_done() {
  Stall& stall = s.stall;
  for (size_t h = 0; h < stall.awaited.size(); ++h)
    if (stall.awaited[h]) stall.unanswered[h] = "no answer in time";
  stall.awaited.assign(hosts.size(), false);
  if (stall.stage == Stage::kFirst) {
    stall.stage = Stage::kBetween;
    return;
  }
  diagnosis::HangInput input = hang_input();
  stall.verdict = diagnosis::judge_hang(input);
  if (stall.early && !diagnosis::proved_deadlock(input) && !told_early(*stall.verdict)) {
    stall.idleness.proved_nothing(now);
    stall.stage = Stage::kWatching;
    return;
  }
  ask_stacks();
}

void AttemptStep::ask_stacks() {
  Stall& stall = s.stall;
  stall.stage = Stage::kDigging;
  stall.deadline = now + kDigPatience + kWireReserve;
  ++stall.id;
  std::map<size_t, std::vector<uint32_t>> by_host;
  for (int rank : diagnosis::ranks_to_ask(hang_input(), *stall.verdict))
    by_host[static_cast<size_t>(s.plan->host_of(rank))].push_back(static_cast<uint32_t>(rank));
  for (auto& [h, ranks] : by_host) {
    if (!alive(h)) continue;
    stall.awaited[h] = true;
    send(h, wire::Dig{stall.id, std::move(ranks), !stall.verdict->certain(), static_cast<uint32_t>(kDigPatience.count())});
  }
  if (std::none_of(stall.awaited.begin(), stall.awaited.end(), [](bool b) { return b; })) tell_stall();
}

void AttemptStep::take(size_t h, const wire::Dug& m) {
  Stall& stall = s.stall;
  if (!stall_answered(h, m.id, Stage::kDigging)) return;
  for (const wire::Piece& piece : m.pieces) {
    if (piece.kind != wire::PieceKind::kRasReport && !is_rank_of(h, piece.rank)) continue;
    int rank = static_cast<int>(piece.rank);
    switch (piece.kind) {
      case wire::PieceKind::kRasReport:
        if (base::Result<diagnosis::RasReport> report = diagnosis::read_ras(piece.bytes); report.ok()) stall.ras = std::move(*report);
        break;
      case wire::PieceKind::kFlightRecord:
        if (base::Result<diagnosis::RankRecord> record = diagnosis::read_flight_recorder(rank, piece.bytes); record.ok())
          stall.records.push_back(std::move(record).value());
        break;
      case wire::PieceKind::kHookStack:
      case wire::PieceKind::kToolStack: stall.stacks[rank] = piece.bytes; break;
    }
  }
  if (std::none_of(stall.awaited.begin(), stall.awaited.end(), [](bool b) { return b; })) tell_stall();
}

diagnosis::HangInput AttemptStep::hang_input() const {
  const Stall& stall = s.stall;
  diagnosis::HangInput input;
  for (const HostRequest& host : job.hosts) input.hosts.push_back(host.target.name);
  input.unanswered = stall.unanswered;
  input.silent_s = static_cast<double>(stall.movement.still(now).count()) / 1e9;
  input.between_s = stall.between_s;
  input.devices = devices();
  input.early = stall.early;
  for (size_t r = 0; r < s.ranks.size(); ++r) {
    diagnosis::RankView view;
    view.rank = static_cast<int>(r);
    view.host = static_cast<size_t>(s.plan->host_of(view.rank));
    view.exited = s.ranks[r].over();
    view.exit_code = s.ranks[r].status;
    view.exited_ago_s = static_cast<double>((now - s.ranks[r].at).count()) / 1e9;
    view.step = stall.movement.last_step(view.rank);
    if (auto found = stall.stacks.find(view.rank); found != stall.stacks.end()) view.stack = found->second;
    input.ranks.push_back(std::move(view));
  }
  auto place = [&](const std::map<size_t, machine::HostSample>& samples, auto member) {
    for (const auto& [h, sample] : samples)
      for (const machine::RankSample& rank : sample.ranks)
        if (rank.rank >= 0 && is_rank_of(h, static_cast<uint32_t>(rank.rank))) input.ranks[static_cast<size_t>(rank.rank)].*member = rank;
  };
  place(stall.first, &diagnosis::RankView::first);
  place(stall.then, &diagnosis::RankView::then);
  input.records = stall.records;
  input.ras = stall.ras ? &*stall.ras : nullptr;
  return input;
}

void AttemptStep::tell_stall() {
  Stall& stall = s.stall;
  stall.verdict = diagnosis::judge_hang(hang_input());
  os::nanoseconds still = stall.movement.still(now);
  std::optional<os::nanoseconds> threshold = stall.movement.threshold(job.stall);
  bool set = job.stall.threshold.has_value() && stall.movement.steps_known();
  if (!stall.verdict->certain() && !set && threshold && still < kPatienceOfUnknown * *threshold) {
    stall.stage = Stage::kWatching;
    stall.again_at = now + std::max<os::nanoseconds>(*threshold / 2, kBetweenSamples);
    return;
  }
  stall.stage = Stage::kTold;
  stall.told = true;
  tell(Stalled{*stall.verdict, still, stall.movement.steps_known(), job.stall.action});
  if (job.stall.action != OnStall::kReport) stop_stalled();
}

// The verdict decides the end; whether another attempt follows is the run's business (run.cc).
void AttemptStep::stop_stalled() {
  Verdict verdict;
  verdict.kind = Verdict::Kind::kHung;
  verdict.exit_code = base::exit_code(base::ErrorKind::kTimeout);
  verdict.hang = s.stall.verdict;
  verdict.code = verdict.hang->code;
  verdict.evidence = verdict.hang->evidence.english;
  if (!verdict.hang->ranks.empty()) verdict.rank = verdict.hang->ranks.front();
  if (verdict.hang->host) verdict.host = *verdict.hang->host;
  // A host whose storage or memory fails has another put in its place, where there is one.
  if (verdict.hang->host && (verdict.hang->code == "HANG-DISK" || verdict.hang->code == "HANG-SWAPPING"))
    verdict.unfit_hosts = {*verdict.hang->host};
  if (!s.verdict) s.verdict = std::move(verdict);
  stop(SIGTERM, false);
}

}  // namespace phalanx::job
