// When the faults of a scenario take effect.
#include "world.h"

#include <signal.h>

#include <algorithm>

#include <fmt/format.h>

namespace phalanx::sim {
namespace {

using Kind = Fault::Kind;

bool of_a_rank(Kind kind) { return kind <= Kind::kUnkillable; }

}  // namespace

bool World::now_faulty(Kind kind, size_t target) const {
  return std::any_of(scenario_.faults.begin(), scenario_.faults.end(),
                     [&](const Fault& f) { return f.kind == kind && f.target == target && (f.attempt < 0 || f.attempt == run_.restarts); });
}

// Called when an attempt's hosts are opened.
void World::begin_faults() {
  for (const Fault& fault : scenario_.faults) {
    if (fault.during || of_a_rank(fault.kind) || (fault.attempt >= 0 && fault.attempt != run_.restarts)) continue;
    if (fault.kind == Kind::kUnreachable) {
      hosts_[fault.target].unreachable_until = now_ + fault.lasts;
      continue;
    }
    later(fault.at, [this, &fault] { strike(fault); });
  }
}

std::optional<Stage> World::stage() const {
  if (run_.ended) return std::nullopt;
  if (run_.waiting) return Stage::kBetween;
  switch (run_.attempt.phase) {
    case job::Phase::kOpening: return Stage::kOpening;
    case job::Phase::kChecking: return Stage::kChecks;
    case job::Phase::kPreparing:
    case job::Phase::kReaching: return Stage::kLaunching;
    case job::Phase::kRunning: return Stage::kRunning;
    case job::Phase::kStopping:
    case job::Phase::kFinishing: return Stage::kStopping;
    default: return std::nullopt;
  }
}

// Called after every event.
void World::enter_stage() {
  const std::optional<Stage> now = stage();
  if (now == stage_) return;
  stage_ = now;
  armed_.resize(scenario_.faults.size());
  for (size_t f = 0; f < scenario_.faults.size(); ++f) {
    const Fault& fault = scenario_.faults[f];
    if (!now || fault.during != now || armed_[f]) continue;
    armed_[f] = true;
    later(fault.at, [this, &fault] {
      if (stage() != fault.during) return;
      report_.struck_in_stage = report_.struck_in_stage || &fault == &scenario_.faults[0];
      strike(fault);
    });
  }
}

void World::strike(const Fault& fault) {
  if (run_.ended) return;
  auto agent_of = [&](size_t host) -> Agent* {
    for (auto& [place, agent] : connected_)
      if (agent->host == host) return agent;
    for (auto agent = agents_.rbegin(); agent != agents_.rend() && fault.during; ++agent)  // cut off, and alive
      if ((*agent)->host == host && (*agent)->alive) return agent->get();
    return nullptr;
  };
  trace(fmt::format("fault: {} of {}", name(fault.kind), fault.target));
  Agent* agent = agent_of(fault.target);
  bool in_use = agent != nullptr;  // even while it is being logged in to
  switch (fault.kind) {
    case Kind::kPowerOff:
      power_off(fault.target);
      later(fault.lasts, [this, h = fault.target] { hosts_[h].power = true; });
      break;
    case Kind::kAgentKilled:
      if (agent) end_agent(*agent, false);
      break;
    case Kind::kAgentStopped:
      if (agent) agent->stopped_until = now_ + fault.lasts;
      break;
    case Kind::kGuardStopped:
      if (agent) agent->guard_stopped_until = now_ + fault.lasts;
      break;
    case Kind::kOnlyPings:
      if (agent) agent->only_pings = true;
      break;
    case Kind::kHostile:
      if (agent && !agent->hostile) {
        agent->mad = agent->hostile = true;
        be_hostile(*agent);
      }
      break;
    case Kind::kUnreachable: hosts_[fault.target].unreachable_until = now_ + fault.lasts; break;
    case Kind::kCut: hosts_[fault.target].cut_until = now_ + fault.lasts; break;
    case Kind::kOneWay: hosts_[fault.target].deaf_until = now_ + fault.lasts; break;
    case Kind::kSlow: hosts_[fault.target].slow_until = now_ + fault.lasts; break;
    case Kind::kMad:
      if (agent && !agent->mad) {
        agent->mad = true;
        rave(*agent);
      }
      break;
    case Kind::kOperator:
      ++sigints_;
      feed(job::OperatorSignal{SIGINT}, run_.number);
      in_use = true;
      break;
    case Kind::kAsleep:
      asleep_until_ = std::max(asleep_until_, now_ + std::min(fault.lasts, scenario_.job.lease * 3 / 2));
      // Its timers may come before what has waited to be read.
      later(asleep_until_ - now_, [this] {
        if (!run_.ended && !asleep()) feed(job::Tick{}, run_.number);
      });
      in_use = true;
      break;
    default: return;  // kBlocked: the launcher neither waits for readers nor for disks
  }
  struck_ = struck_ || in_use;
}

void World::begin_rank_faults(Rank& rank) {
  for (const Fault& fault : scenario_.faults) {
    if (!of_a_rank(fault.kind) || static_cast<int>(fault.target) != rank.rank) continue;
    if (fault.attempt >= 0 && fault.attempt != run_.restarts) continue;
    switch (fault.kind) {
      case Kind::kHang: rank.hangs = struck_ = true; break;
      case Kind::kDeaf: rank.deaf = true; break;
      case Kind::kUnkillable: rank.unkillable = rank.hangs = struck_ = true; break;
      default:
        later(fault.at, [this, &rank, &fault] {
          if (!rank.alive || rank.stopped_by_us != 0 || rank.hangs || rank.unkillable) return;
          struck_ = true;
          trace(fmt::format("fault: {} of rank {}", name(fault.kind), rank.rank));
          if (fault.kind == Kind::kCrash && scenario_.dies_slowly) return die_slowly(rank);
          if (fault.kind == Kind::kLeave) rank.hangs = true;  // its end is too early for the others
          end_rank(rank, fault.kind == Kind::kLeave ? 0 : fault.status, "");
        });
    }
  }
}

}  // namespace phalanx::sim
