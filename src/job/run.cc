#include "job/run.h"

#include <algorithm>
#include <cstdlib>

#include <fmt/format.h>

#include "base/sha256.h"

namespace phalanx::job {
namespace {

using Kind = Verdict::Kind;

// Who belongs to one attempt is known by a token of its own: a rank that outlived its attempt cannot join the next.
std::string token_of(const Job& job, int number) {
  if (number == 0) return job.token;
  return base::hmac_sha256(job.token, fmt::format("attempt {}", number)).substr(0, job.token.size());
}

Job job_of(const Run& run) {
  Job job = run.job;
  job.attempt = run.restarts;
  job.token = token_of(run.job, run.number);
  job.hosts.clear();
  job.spares.clear();
  for (size_t m : run.members) job.hosts.push_back(run.pool[m].request);
  return job;
}

size_t wanted(const Run& run) { return run.job.hosts.size(); }
size_t least(const Run& run) { return run.job.least_hosts > 0 ? static_cast<size_t>(run.job.least_hosts) : wanted(run); }

os::milliseconds backoff(int in_a_row) {
  os::milliseconds wait = kFirstBackoff;
  for (int i = 1; i < in_a_row && wait < kLongestBackoff; ++i) wait *= 2;
  return std::min(wait, kLongestBackoff);
}

// What ended, before anything new is begun.
struct Ended {
  Run& run;
  const Verdict& verdict;
  os::Mono now;
  Actions actions;

  bool ran() const { return !run.attempt.ranks.empty() && run.attempt.started_at.ns != 0; }

  void end(std::optional<NotRestarting::Why> why) {
    if (why && run.job.max_restarts > 0) actions.push_back(Tell{NotRestarting{*why, run.restarts}});
    run.ended = true;
    Verdict last = verdict;
    last.attempt = run.restarts;
    actions.push_back(End{std::move(last)});
  }

  void note_pids() {
    for (Candidate& candidate : run.pool) candidate.request.former_pids.clear();
    for (size_t r = 0; r < run.attempt.ranks.size(); ++r)
      if (uint32_t pid = run.attempt.ranks[r].pid; pid > 0)
        run.pool[run.members[static_cast<size_t>(run.attempt.plan->host_of(static_cast<int>(r)))]].request.former_pids.push_back(pid);
  }

  // Marks who is lost or unfit, and until when an agent that we no longer hear may live on.
  void mark_hosts() {
    for (size_t h : verdict.unfit_hosts) run.pool[run.members[h]].out_since = now;
    for (size_t h = 0; h < run.attempt.hosts.size(); ++h) {
      const HostState& host = run.attempt.hosts[h];
      Candidate& candidate = run.pool[run.members[h]];
      if (host.left > 0) candidate.out_since = now;  // with what cannot be killed on it
      // What an agent or its guard says when it dies is text on a login's stderr, where anything may stand: only a new login proves.
      if (host.open && !host.finished) candidate.busy_until = (host.ended ? host.ended_at : now) + run.job.lease + kLeaseMargin;
    }
  }

  bool same_as_before() {
    std::optional<Fingerprint> before = std::move(run.last_failure);
    run.last_failure.reset();
    if (verdict.kind != Kind::kRankFailed) return false;
    Fingerprint print = fingerprint(run.attempt, verdict);
    // No step is known: after so long it was hardly the same one.
    if (!print.step && ran() && now - run.attempt.started_at >= kLongAttempt) return false;
    run.last_failure = std::move(print);
    return before && *before == *run.last_failure;
  }

  void decide() {
    bool interrupted = run.attempt.operator_signals > 0;
    bool failed = verdict.kind == Kind::kRankFailed || verdict.kind == Kind::kHostLost || verdict.kind == Kind::kRefused ||
                  (verdict.kind == Kind::kHung && run.job.stall.action == OnStall::kRestart);
    if (!failed || interrupted || run.job.check_only || run.job.dry_run) return end(std::nullopt);
    mark_hosts();
    note_pids();
    bool repeats = same_as_before();
    std::vector<size_t> members = next_members(run.pool, run.members, wanted(run), least(run));
    bool others = members != run.members;
    // Before a rank has run, another host may stand in at no cost; that ends, for each try puts one more host out.
    bool free = !ran() && others && !verdict.unfit_hosts.empty() &&
                std::none_of(members.begin(), members.end(), [&](size_t m) { return run.pool[m].out_since.has_value(); });
    if (!free && verdict.kind == Kind::kRefused && run.number == 0) return end(std::nullopt);  // it never ran: what is wrong stays wrong
    if (!free && verdict.kind == Kind::kRefused && verdict.unfit_hosts.empty()) return end(std::nullopt);
    if (!free && run.restarts >= run.job.max_restarts) return end(NotRestarting::Why::kBudget);
    if (repeats && !others) return end(NotRestarting::Why::kRepeats);
    restart(std::move(members), free);
  }

  void restart(std::vector<size_t> members, bool free) {
    Restarting note;
    note.ended = verdict;
    note.before_start = free;
    if (ran() && now - run.attempt.started_at >= kLongAttempt) run.in_a_row = 0;
    if (!free) {
      ++run.restarts;
      note.wait = backoff(++run.in_a_row);
    }
    ++run.number;
    run.restart_at = now + note.wait;
    ProveEmpty ask;
    os::Mono latest = run.restart_at;
    for (size_t m = 0; m < run.pool.size(); ++m) {
      if (!run.pool[m].busy_until) continue;
      latest = std::max(latest, *run.pool[m].busy_until);
      ask.candidates.push_back(m);
    }
    note.wait = std::chrono::duration_cast<os::milliseconds>(latest - now);
    note.sooner = latest > run.restart_at;
    note.attempt = run.restarts;
    note.restarts_left = run.job.max_restarts - run.restarts;
    std::vector<size_t> gone, come;
    for (size_t m : run.members)
      if (std::find(members.begin(), members.end(), m) == members.end()) gone.push_back(m);
    for (size_t m : members)
      if (std::find(run.members.begin(), run.members.end(), m) == run.members.end()) come.push_back(m);
    for (size_t i = 0; i < gone.size(); ++i)
      note.replaced.push_back({run.pool[gone[i]].request.target.name, i < come.size() ? run.pool[come[i]].request.target.name : ""});
    run.members = std::move(members);
    run.waiting = true;
    actions.push_back(Tell{std::move(note)});
    actions.push_back(CloseHosts{});
    if (!ask.candidates.empty()) actions.push_back(std::move(ask));
  }
};

void begin_attempt(Run& run, os::Mono now) {
  run.waiting = false;
  for (Candidate& candidate : run.pool) {
    candidate.busy_until.reset();
    candidate.asked_until.reset();
  }
  for (size_t m : run.members) run.pool[m].out_since.reset();
  run.attempt = initial_state(job_of(run), now, run.attempt.wall_less_mono_ns);
}

// The answer of a host counts more than the time that has passed: one that is being asked is waited for.
bool may_be_alive(const Candidate& candidate, os::Mono now) {
  return candidate.busy_until && (now < *candidate.busy_until || (candidate.asked_until && now < *candidate.asked_until));
}

void take(Run& run, const HostProved& event, os::Mono now) {
  Candidate& candidate = run.pool[event.candidate];
  if (!candidate.busy_until) return;
  candidate.asked_until.reset();
  switch (event.proof) {
    case HostProved::Proof::kAsked: candidate.asked_until = now + kProofPatience; break;
    case HostProved::Proof::kLeft: candidate.out_since = now; [[fallthrough]];
    case HostProved::Proof::kEmpty: candidate.busy_until.reset(); break;
    case HostProved::Proof::kUnknown: break;
  }
}

Actions step_waiting(Run& run, const Event& event, os::Mono now) {
  Actions actions;
  if (std::holds_alternative<OperatorSignal>(event)) {
    Verdict verdict;
    verdict.kind = Kind::kInterrupted;
    verdict.exit_code = base::exit_code(base::ErrorKind::kInterrupted);
    verdict.attempt = run.restarts;
    run.ended = true;
    actions.push_back(End{std::move(verdict)});
  } else if (auto* proved = std::get_if<HostProved>(&event)) {
    take(run, *proved, now);
  } else if (std::holds_alternative<Tick>(event) && now >= run.restart_at) {
    if (std::any_of(run.pool.begin(), run.pool.end(), [&](const Candidate& c) { return may_be_alive(c, now); })) return actions;
    begin_attempt(run, now);
    actions.push_back(OpenHosts{});
  }
  return actions;
}

}  // namespace

Run begin_run(Job job, os::Mono now, int64_t wall_less_mono_ns) {
  Run run;
  for (const std::vector<HostRequest>* list : {&job.hosts, &job.spares})
    for (const HostRequest& request : *list) run.pool.push_back({request, std::nullopt, std::nullopt});
  for (size_t h = 0; h < job.hosts.size(); ++h) run.members.push_back(h);
  run.job = std::move(job);
  run.attempt = initial_state(job_of(run), now, wall_less_mono_ns);
  return run;
}

Actions step(Run& run, const Event& event, os::Mono now, int number) {
  bool of_a_host =
      std::holds_alternative<HostSaid>(event) || std::holds_alternative<HostReported>(event) || std::holds_alternative<HostEnded>(event);
  if (of_a_host && (number != run.number || run.waiting)) return {};
  return step(run, event, now);
}

Actions step(Run& run, const Event& event, os::Mono now) {
  if (run.ended) return {};
  if (run.waiting) return step_waiting(run, event, now);
  Actions actions = step(run.attempt, event, now);
  if (actions.empty() || !std::holds_alternative<End>(actions.back())) return actions;
  Verdict verdict = std::get<End>(std::move(actions.back())).verdict;
  actions.pop_back();
  Ended ended{run, verdict, now, {}};
  ended.decide();
  std::move(ended.actions.begin(), ended.actions.end(), std::back_inserter(actions));
  return actions;
}

std::vector<size_t> next_members(const std::vector<Candidate>& pool, const std::vector<size_t>& members, size_t wanted, size_t least) {
  auto there = [](const std::vector<size_t>& list, size_t m) { return std::find(list.begin(), list.end(), m) != list.end(); };
  std::vector<size_t> spare;
  for (size_t m = 0; m < pool.size(); ++m)
    if (!pool[m].out_since && !there(members, m)) spare.push_back(m);
  std::vector<size_t> next;
  auto fresh = spare.begin();
  for (size_t m : members) {
    if (!pool[m].out_since) next.push_back(m);
    else if (fresh != spare.end()) next.push_back(*fresh++);
  }
  while (next.size() < wanted && fresh != spare.end()) next.push_back(*fresh++);
  std::vector<size_t> again;
  for (size_t m = 0; m < pool.size(); ++m)
    if (pool[m].out_since) again.push_back(m);
  std::stable_sort(again.begin(), again.end(), [&](size_t a, size_t b) { return *pool[a].out_since < *pool[b].out_since; });
  if (next.size() < least) again.resize(std::min(again.size(), least - next.size()));
  else again.clear();
  // In their old places, so that a rank keeps its host where it can.
  std::vector<size_t> all;
  auto kept = next.begin();
  for (size_t m : members) {
    if (there(again, m)) all.push_back(m);
    else if (kept != next.end()) all.push_back(*kept++);
  }
  all.insert(all.end(), kept, next.end());
  for (size_t m : again)
    if (!there(all, m)) all.push_back(m);
  return all;
}

bool Fingerprint::operator==(const Fingerprint& other) const {
  if (what != other.what || step.has_value() != other.step.has_value()) return false;
  return !step || std::abs(*step - *other.step) <= (own && other.own ? 0 : 1);
}

Fingerprint fingerprint(const State& state, const Verdict& verdict) {
  Fingerprint print{fmt::format("{} ", verdict.status), state.ranks[static_cast<size_t>(verdict.rank)].step};
  print.own = print.step.has_value();
  // Only some programs report the steps of each rank. Most print them, and often on rank 0 alone: then the highest of any rank counts.
  for (size_t r = 0; r < state.ranks.size() && !print.own; ++r)
    print.step = std::max({print.step, state.ranks[r].step, state.stall.movement.last_step(static_cast<int>(r))});
  for (char c : verdict.evidence)  // addresses, ports and times differ from try to try
    if (c < '0' || c > '9') print.what += c;
  return print;
}

}  // namespace phalanx::job
