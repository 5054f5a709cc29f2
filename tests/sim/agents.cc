// What agents and ranks do, as src/agent does it, without the doing.
#include <signal.h>

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/json_fields.h"
#include "machine/facts.h"
#include "situations.h"
#include "world.h"

namespace phalanx::sim {
namespace {

constexpr const char* kVictim = "RuntimeError: [gloo/transport/tcp/pair.cc:598] Connection closed by peer [10.0.0.1]:4711\n";
// What a rank says that ends by an exception, by one that a signature knows, by one that is a symptom, or that has caught one and goes on.
constexpr const char* kLastWords[] = {
    "Traceback (most recent call last):\n  File \"t.py\", line 3, in f\n    g()\nValueError: bad batch\n",
    "Traceback (most recent call last):\n  File \"t.py\", line 3, in f\n    g()\nOSError: [Errno 28] No space left on device: 'a'\n",
    ("Traceback (most recent call last):\n  File \"t.py\", line 3, in f\n    g()\n"
     "RuntimeError: DataLoader worker (pid(s) 33) exited unexpectedly\n")};
constexpr const char* kCaught = "Traceback (most recent call last):\n  File \"t.py\", line 3, in f\n    g()\nKeyError: 1\nstep 4\n";
constexpr int kFailed = 1 << 8;
constexpr uint32_t kFirstPid = 1000;  // of rank 0

// The driver still counts memory as that of ranks that are dead.
machine::Facts with_held_memory(machine::Facts facts) {
  for (machine::Gpu& gpu : facts.gpus.devices) {
    machine::GpuProcess dead;
    dead.pid = kFirstPid;
    gpu.processes.push_back(dead);
  }
  return facts;
}

// The facts of healthy machines, as their agents would send them.
const std::string& facts_of(int machines, size_t host, bool held) {
  using Texts = std::vector<std::vector<std::string>>;
  static const std::array<Texts, 2> texts = [] {
    std::array<Texts, 2> both;
    for (const doctor::Situation& s :
         {doctor::test::plain_ethernet(), doctor::test::bond_infiniband(), doctor::test::docker_host_network()})
      for (Texts& all : both) {
        all.emplace_back();
        for (const doctor::HostView& view : s.hosts)
          all.back().push_back(base::to_text(base::to_json(&all == &both[1] ? with_held_memory(view.facts) : view.facts)));
      }
    return both;
  }();
  const std::vector<std::string>& list = texts[held ? 1 : 0][static_cast<size_t>(machines)];
  return list[host % list.size()];
}

wire::Outcome unfit(const char* why) { return {false, base::fail(base::ErrorKind::kUnfit, why)}; }

}  // namespace

void World::hear(Agent& agent, const job::ToHost& message) {
  if (agent.only_pings && !std::holds_alternative<wire::Ping>(message)) return;
  std::visit([&](const auto& m) { answer(agent, m); }, message);
}

void World::answer(Agent& agent, const wire::Prepare& m) {
  agent.lease.begin(milliseconds(m.lease_ms), clock_of(agent));
  order_guard(agent);
  wire::Prepared answer;
  if (now_faulty(Fault::Kind::kRefuses, agent.host)) answer.outcome = unfit("the working directory does not exist");
  say(agent, answer);
}

void World::answer(Agent& agent, const wire::OpenStore& m) {
  wire::StoreOpened answer{{}, m.port != 0 ? m.port : 4711};
  if (now_faulty(Fault::Kind::kNoStore, agent.host) && (m.address.starts_with("10.0.") || dice_.once_in(3)))
    answer.outcome = unfit("cannot bind");
  if (!answer.outcome.ok && m.port != 0 && dice_.once_in(2)) answer.holder = 4242;
  say(agent, answer);
}

void World::answer(Agent& agent, const wire::Reach&) {
  wire::Reached answer{{}, "eth0"};
  if (now_faulty(Fault::Kind::kNoStore, agent.host)) answer.outcome = unfit("cannot connect");
  say(agent, answer);
}

void World::answer(Agent& agent, const wire::Ping& m) {
  say(agent, wire::Pong{m.nonce, clock_of(agent).ns});
  agent.lease.heard(m.sent_ns, clock_of(agent));
  if (agent.lease.begun() && !agent.lease.over(clock_of(agent))) order_guard(agent);
}

void World::answer(Agent& agent, const wire::Probe&) {
  if (now_faulty(Fault::Kind::kSilentProbe, agent.host)) return;
  wire::Probed answer;
  answer.json = facts_of(scenario_.machines, agent.host, scenario_.job.max_restarts > 0 && dice_.once_in(3));
  if (now_faulty(Fault::Kind::kUnfit, agent.host)) {
    if (dice_.once_in(2)) answer.outcome = unfit("the probe broke");
    else answer.json = dice_.once_in(2) ? "{" : "[]";
  }
  say(agent, answer);
}

void World::answer(Agent& agent, const wire::Listen& m) {
  if (m.places.empty()) return;
  wire::Listening answer;
  for (const wire::Place& place : m.places) {
    answer.places.push_back({{}, place.port != 0 ? place.port : 40'000});
    if (now_faulty(Fault::Kind::kBrokenLink, agent.host) && dice_.once_in(3)) answer.places.back().outcome = unfit("cannot bind");
  }
  if (now_faulty(Fault::Kind::kSilentProbe, agent.host)) return;
  say(agent, answer);
}

void World::answer(Agent& agent, const wire::Dial& m) {
  wire::Dialed answer{m.round, {}};
  for (const wire::DialTarget& target : m.targets) {
    wire::DialedLink link;
    link.to = target.to;
    link.master_port = target.master_port;
    bool broken = now_faulty(Fault::Kind::kBrokenLink, agent.host) ||
                  (target.to < run_.members.size() && now_faulty(Fault::Kind::kBrokenLink, run_.members[target.to]));
    link.outcome = broken && !dice_.once_in(4) ? (dice_.once_in(2) ? wire::LinkOutcome::kTimeout : wire::LinkOutcome::kRefused)
                                               : wire::LinkOutcome::kOk;
    link.round_trip_ns = 200'000;
    link.bytes_per_second = 1'000'000'000;
    answer.links.push_back(link);
  }
  if (dice_.once_in(20)) answer.links.push_back({99, false, wire::LinkOutcome::kOk, 0, 0, 0, 0, 0, 0, ""});
  if (now_faulty(Fault::Kind::kBrokenLink, agent.host) && dice_.once_in(4)) return;
  say(agent, answer);
}

void World::answer(Agent& agent, const wire::Start& m) {
  if (agent.finishing) return problem("Start after Finish");
  check_start(agent, m);
  for (const wire::RankSpec& spec : m.ranks) start_rank(agent, spec);
}

void World::start_rank(Agent& agent, const wire::RankSpec& spec) {
  wire::Started started{{}, spec.rank, kFirstPid + spec.rank};
  if (now_faulty(Fault::Kind::kNoStart, agent.host) && (spec.local_rank == 0 || scenario_.seed % 2 == 0)) {
    struck_ = true;
    started.outcome = unfit("exec format error");
    return say(agent, started);
  }
  auto owned = std::make_unique<Rank>();
  Rank& rank = *owned;
  rank.number = agent.number;
  rank.rank = static_cast<int>(spec.rank);
  rank.agent = &agent;
  ranks_.push_back(std::move(owned));
  say(agent, started);
  begin_rank_faults(rank);
  if (scenario_.job.stall.threshold) {
    begin_pulses(rank);
    if (scenario_.seed % 4 != 0) begin_steps(rank, 1);
  }
  if (!rank.hangs)
    later(dice_.ms(20, 400), [this, &rank] {
      if (rank.alive) say(*rank.agent, wire::Connected{static_cast<uint32_t>(rank.rank)});
    });
  if (dice_.once_in(2))
    later(scenario_.work / 2, [this, &rank] {
      wire::RankProgress progress;
      if (dice_.once_in(4) || rank.number != run_.number || run_.waiting) return;
      if (!dice_.once_in(8)) progress.step = scenario_.work.count() / 100;
      report(rank, job::RankAdvanced{static_cast<uint32_t>(rank.rank), progress});
    });
  later(scenario_.work + dice_.ms(0, 30), [this, &rank] {
    bool waits = std::any_of(ranks_.begin(), ranks_.end(), [&](const auto& other) {
      return other->number == rank.number && !other->alive && other->stopped_by_us == 0 && other->hangs;
    });
    if (rank.alive && !rank.hangs && !waits) end_rank(rank, 0, "");
  });
}

// The end of a process; its peers notice.
void World::end_rank(Rank& rank, int status, const std::string& last_words) {
  if (!rank.alive) return;
  rank.alive = false;
  Agent& agent = *rank.agent;
  if (agent.alive && hosts_[agent.host].power) {
    wire::Exited exited;
    exited.rank = static_cast<uint32_t>(rank.rank);
    exited.status = static_cast<uint32_t>(status);
    exited.at_ns = now_.ns + hosts_[agent.host].clock_offset;
    exited.stopped_by_us = rank.stopped_by_us;
    exited.last_words = last_words;
    say(agent, exited);
  }
  bool too_early = status != 0 || rank.hangs;  // kLeave marks itself so
  if (too_early && rank.stopped_by_us == 0) lose_peers(rank);
}

// Python unwinds, closes its connections, and ends later than its peers notice.
void World::die_slowly(Rank& rank) {
  rank.said = kLastWords[dice_.below(std::size(kLastWords))];
  rank.hangs = true;
  lose_peers(rank);
  later(dice_.ms(20, 1000), [this, &rank] { end_rank(rank, kFailed, rank.said); });
}

void World::lose_peers(const Rank& rank) {
  for (const auto& other : ranks_) {
    if (other.get() == &rank || other->number != rank.number || !other->alive || other->hangs) continue;
    other->hangs = true;  // it waits for who is gone
    if (scenario_.peers_die)
      later(os::nanoseconds(dice_.between(1'000'000, 300'000'000)), [this, &peer = *other] { end_rank(peer, kFailed, kVictim); });
  }
}

void World::answer(Agent& agent, const wire::Signal& m) {
  for (const auto& owned : ranks_) {
    Rank& rank = *owned;
    if (rank.agent != &agent || !rank.alive) continue;
    if (rank.stopped_by_us == 0 && rank.said.empty() && dice_.once_in(4)) rank.said = dice_.once_in(2) ? kVictim : kCaught;
    rank.stopped_by_us = m.signal;
    bool ends = !rank.unkillable && (m.signal == SIGKILL || !rank.deaf);
    if (!ends) continue;
    bool well = m.signal != SIGKILL && rank.said.empty() && dice_.once_in(8);  // it cleans up and ends with 0
    os::nanoseconds takes = m.signal == SIGKILL ? dice_.ms(0, 5) : dice_.ms(0, 400);
    later(takes, [this, &rank, status = well ? 0 : static_cast<int>(m.signal)] { end_rank(rank, status, rank.said); });
  }
}

void World::answer(Agent& agent, const wire::Finish&) {
  if (agent.finishing) return;
  agent.finishing = true;
  bool polite = false, stuck = false;
  uint32_t living = 0;
  for (const auto& owned : ranks_) {
    if (owned->agent != &agent || !owned->alive) continue;
    ++living;
    stuck = stuck || owned->unkillable;
    polite = polite || owned->deaf;
  }
  os::nanoseconds takes = stuck ? milliseconds(2500) : polite ? milliseconds(520) : living > 0 ? milliseconds(6) : milliseconds(0);
  later(takes, [this, &agent, living] {
    if (!agent.alive || !hosts_[agent.host].power) return;
    uint32_t left = 0;
    for (const auto& owned : ranks_) {
      if (owned->agent != &agent || !owned->alive) continue;
      if (owned->unkillable) ++left;
      else {
        if (owned->stopped_by_us == 0) owned->stopped_by_us = SIGKILL;
        end_rank(*owned, SIGKILL, "");
      }
    }
    say(agent, wire::Finished{living, left});
    end_agent(agent, true);
  });
}

// It kills what is its own, or its guard does.
void World::end_agent(Agent& agent, bool says_so) {
  if (!agent.alive) return;
  for (const auto& owned : ranks_)
    if (owned->agent == &agent && owned->alive && !owned->unkillable) owned->alive = false;
  agent.alive = false;
  if (!hosts_[agent.host].power) return;
  up(agent, [this, &agent, says_so] {
    bool was_open = agent.open;
    agent.open = false;
    auto guard = says_so ? std::nullopt : std::optional(wire::GuardEnd::kAgentKilled);
    if (was_open)
      feed(job::HostEnded{agent.place, base::fail(base::ErrorKind::kUnreachable, "lost contact with the host"), guard}, agent.number);
  });
}

void World::power_off(size_t host) {
  hosts_[host].power = false;
  for (const auto& agent : agents_)
    if (agent->host == host) agent->alive = false;
  for (const auto& rank : ranks_)
    if (rank->agent->host == host) rank->alive = false;
}

void World::watch_lease(Agent& agent) {
  if (!agent.alive || agent.only_pings) return;  // its guard has the lease's end too
  // What has waited for it to run is read first.
  if (now_ < agent.stopped_until) return later(agent.stopped_until - now_ + os::nanoseconds(1), [this, &agent] { watch_lease(agent); });
  if (now_ >= agent.guard_stopped_until) agent.waiting_since.reset();
  bool unguarded = agent.waiting_since && now_ - *agent.waiting_since > agent.lease.length();
  if (agent.lease.over(clock_of(agent)) || unguarded) return end_agent(agent, false);
  agent.lease.ran(clock_of(agent));
  later(milliseconds(250), [this, &agent] { watch_lease(agent); });
}

void World::order_guard(Agent& agent) {
  if (now_ < agent.guard_stopped_until && !agent.waiting_since) agent.waiting_since = now_;
  os::nanoseconds left = agent.lease.end() - clock_of(agent);
  later(left + milliseconds(600), [this, &agent, order = ++agent.orders] { guard_acts(agent, order); });
}

// The lease is over and the agent is still there: it does not run.
void World::guard_acts(Agent& agent, int64_t order) {
  if (!agent.alive || order != agent.orders) return;
  if (now_ < agent.guard_stopped_until) return later(agent.guard_stopped_until - now_, [this, &agent, order] { guard_acts(agent, order); });
  later(dice_.ms(0, 300), [this, &agent] { end_agent(agent, false); });
}

void World::make_hostile(wire::Hello& hello) {
  switch (dice_.below(6)) {
    case 0: hello.gpus = INT32_MAX; break;
    case 1: hello.cpus = 50'000'000; break;
    case 2: hello.addresses.assign(15, {"eth0", std::string(1'100'000, '1')}); break;
    case 3: hello.addresses.assign(100'000, {"e", "10.0.0.1"}); break;
    case 4: hello.now_ns = INT64_MIN; break;
    default: hello.gpus = hello.cpus = 4096; break;  // within bounds, and a lie
  }
}

// Well formed, and the values are hostile: what decode() refuses, and what it lets pass at the edge.
void World::rave_in_values(Agent& agent) {
  constexpr int64_t kEdge = 1LL << 60;
  switch (dice_.below(8)) {
    case 0: return say(agent, wire::Pong{1, dice_.once_in(2) ? INT64_MAX : kEdge});
    case 1: return say(agent, wire::Exited{UINT32_MAX, UINT32_MAX, INT64_MIN, 255, "", "", {}});
    case 2: return say(agent, wire::Listening{std::vector<wire::ListenedPlace>(dice_.once_in(2) ? 16 : 10'000, {{}, 65'535})});
    case 3:
      return say(agent, wire::Dialed{0, std::vector<wire::DialedLink>(dice_.once_in(2) ? 100 : 20'000,
                                                                      {0, false, wire::LinkOutcome::kOk, 0, -kEdge, kEdge, 0, 0, 0, ""})});
    case 4:
      return say(agent, wire::Probed{{}, R"({"gpus":{"devices":[{"index":-7}]},"clock":{"wall_ns":-1,"mono_ns":9223372036854775807}})"});
    case 5: return say(agent, wire::Trouble{std::string(dice_.once_in(2) ? 1000 : 1 << 20, '\x1b')});
    case 6: return say(agent, wire::Dug{1, {{UINT32_MAX, wire::PieceKind::kFlightRecord, ""}}});
    default: return say(agent, wire::Sampled{1, {}, "[[[[[[[["});
  }
}

void World::be_hostile(Agent& agent) {
  if (!agent.open || (agent.said_hello && !agent.alive)) return;
  if (agent.alive) rave_in_values(agent);
  later(dice_.ms(1, 300), [this, &agent] { be_hostile(agent); });
}

// A new login to a host that has not said its end: everything of the run is killed there, whether its agent runs or not.
void World::prove(size_t host, int number) {
  using Proof = job::HostProved::Proof;
  auto answer = [this, host, number](Proof proof) {
    if (run_.waiting && run_.number == number) feed(job::HostProved{proof, host}, number);
  };
  if (!run_.waiting || run_.number != number) return;
  Host& h = hosts_[host];
  bool reached = h.power && now_ >= h.cut_until && now_ >= h.deaf_until && !(h.unreachable_until && now_ < *h.unreachable_until);
  if (!reached) return later(dice_.ms(0, 10'000), [answer] { answer(Proof::kUnknown); });
  answer(Proof::kAsked);
  if (dice_.once_in(20)) return;  // it hangs
  later(dice_.ms(2, 3000), [this, answer, host, number] {
    if (!run_.waiting || run_.number != number) return;  // the connection is closed, and its agent ended with it
    bool empty = sweep_host(host);
    os::Mono arrives = std::max({now_, hosts_[host].cut_until, hosts_[host].deaf_until}) + latency(hosts_[host]);
    Proof proof = dice_.once_in(20) ? Proof::kUnknown : empty ? Proof::kEmpty : Proof::kLeft;
    later(arrives - now_, [answer, proof] { answer(proof); });
  });
}

bool World::sweep_host(size_t host) {
  for (const auto& agent : agents_)
    if (agent->host == host) end_agent(*agent, false);
  return std::none_of(ranks_.begin(), ranks_.end(), [&](const auto& rank) { return rank->agent->host == host && rank->alive; });
}

// Frames that are well formed and make no sense.
void World::rave(Agent& agent) {
  if (!agent.alive) return;
  if (dice_.once_in(20)) rave_in_values(agent);
  uint32_t rank = static_cast<uint32_t>(dice_.between(0, 12));
  switch (dice_.below(9)) {
    case 0:
      say(agent, wire::Exited{rank, static_cast<uint32_t>(dice_.between(0, 700)), dice_.between(-(1LL << 60), 1LL << 60), 0, "", "", {}});
      break;
    case 1: say(agent, wire::Started{{}, rank, 1}); break;
    case 2: say(agent, wire::Started{unfit("no"), rank, 1}); break;
    case 3: say(agent, wire::Pong{static_cast<uint64_t>(dice_.between(0, 20)), dice_.between(-(1LL << 60), 1LL << 60)}); break;
    case 4: say(agent, wire::Prepared{dice_.once_in(2) ? wire::Outcome{} : unfit("no"), ""}); break;
    case 5: say(agent, wire::StoreOpened{dice_.once_in(2) ? wire::Outcome{} : unfit("no"), 1}); break;
    case 6: say(agent, wire::Reached{dice_.once_in(2) ? wire::Outcome{} : unfit("no"), "lo"}); break;
    case 7: say(agent, wire::Trouble{"?"}); break;
    default: say(agent, wire::Connected{rank}); break;
  }
  if (dice_.once_in(40)) say(agent, wire::Finished{static_cast<uint32_t>(dice_.between(0, 3)), static_cast<uint32_t>(dice_.between(0, 1))});
  if (dice_.once_in(20)) say(agent, wire::Listening{{{{}, 1}}});
  if (dice_.once_in(20)) say(agent, wire::Dialed{0, {{7, false, wire::LinkOutcome::kOk, 0, 0, 0, 0, 0, 0, ""}}});
  if (dice_.once_in(20)) say(agent, wire::Probed{{}, "{}"});
  if (dice_.once_in(20)) say(agent, wire::Hello{});
  later(dice_.ms(1, 400), [this, &agent] { rave(agent); });
}

}  // namespace phalanx::sim
