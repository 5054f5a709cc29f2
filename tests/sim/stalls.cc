// What agents say of ranks that run: pulses, and answers to the questions that follow a stall.
#include <algorithm>

#include "base/json_fields.h"
#include "machine/ranks/sample.h"
#include "world.h"

namespace phalanx::sim {
namespace {

// A dump of the flight recorder in which this rank has, or has not, come to the third collective.
std::string dump_of(bool came, int world) {
  std::string ranks;
  for (int r = 0; r < world; ++r) ranks += (r == 0 ? "" : ", ") + std::to_string(r);
  std::string entries;
  for (int i = 1; i <= (came ? 3 : 2); ++i)
    entries += std::string(i == 1 ? "" : ",") + R"({"record_id":)" + std::to_string(i) +
               R"(,"process_group":["0","default_pg"],"collective_seq_id":)" + std::to_string(i) +
               R"(,"profiling_name":"nccl:all_reduce","input_sizes":[[4]],"output_sizes":[[4]],"state":")" +
               (i < 3 ? "completed" : "scheduled") + R"("})";
  return R"({"version":"2.4","pg_config":{"0":{"name":"0","desc":"default_pg","ranks":"[)" + ranks + R"(]"}},"entries":[)" + entries + "]}";
}

}  // namespace

// What is told of a slow run is so: its first host loses packets, or its first rank computes while the others wait.
void World::check_slow(const job::Slow& note) {
  const diagnosis::Diagnosis& verdict = note.verdict;
  if (verdict.code == "NET-LOSS") {
    ++report_.losses;
    if (!loses() || verdict.host.value_or(0) != 0) problem("packets were told lost by a host that loses none");
  }
  if (verdict.code == "SLOW-RANK" || verdict.code == "SLOW-CPU-LIMIT") {
    ++report_.stragglers;
    if (!straggles() || verdict.ranks != std::vector<int>{0}) problem("a rank was told slow that is not");
  }
}

// What was seen of a rank's first thread: in a run with a straggler the others wait for it, else all do about the same.
void World::answer_looks(Agent& agent, const wire::Sample& m) {
  wire::Sampled answer;
  answer.id = dice_.once_in(20) ? m.id - 1 : m.id;
  machine::HostSample sample;
  for (const auto& rank : ranks_) {
    if (rank->agent != &agent || !rank->alive) continue;
    machine::RankProfile profile;
    profile.rank = dice_.once_in(50) ? 9999 : rank->rank;
    profile.looks = m.looks;
    const int64_t computes = static_cast<int64_t>(m.looks) * (straggles() && rank->rank == 0 ? 95 : 45) / 100;
    machine::ThreadSample busy, waits;
    busy.state = "R";
    waits.state = "S";
    waits.wchan = "futex_do_wait";
    waits.frames = {"libtorch_cpu.so!c10d::Work::wait"};
    profile.seen = {{computes, busy}, {profile.looks - computes, waits}};
    if (dice_.once_in(20)) profile.seen[0].times = -1;
    sample.profiles.push_back(std::move(profile));
  }
  answer.json = dice_.once_in(20) ? "{" : base::to_text(base::to_json(sample));
  say(agent, answer);
}

// A deadlock that is told as proved is one: somebody hangs, or has left the others.
void World::check_stalled(const job::Stalled& note) {
  if (note.verdict.code != "HANG-CIRCULAR") return;
  ++report_.deadlocks;
  if (!stuck()) problem("a deadlock was told of a run that goes on");
}

bool World::stuck() const {
  return std::any_of(ranks_.begin(), ranks_.end(), [&](const auto& r) { return r->number == run_.number && (r->hangs || !r->alive); });
}

void World::answer(Agent& agent, const wire::Sample& m) {
  if (dice_.once_in(10)) return;
  if (m.looks > 0) return answer_looks(agent, m);
  wire::Sampled answer;
  answer.id = dice_.once_in(20) ? m.id - 1 : m.id;
  machine::HostSample sample;
  for (const auto& rank : ranks_) {
    if (rank->agent != &agent || !rank->alive) continue;
    machine::RankSample one;
    one.rank = dice_.once_in(50) ? 9999 : rank->rank;
    machine::ThreadSample main;
    main.tid = 100 + rank->rank;
    main.name = "python3";
    main.state = rank->unkillable ? "D" : "S";
    main.wchan = rank->unkillable ? "nfs_wait" : rank->hangs ? "hrtimer_nanosleep" : "futex_do_wait";
    // In some runs who hangs waits in another collective: all wait, and nothing moves.
    const bool waits = !rank->hangs || (deadlocks() && !rank->unkillable);
    if (waits) main.wchan = "futex_do_wait";
    if (waits) main.frames = {"libc.so.6!pthread_cond_wait", "libtorch_cpu.so!c10d::Work::wait"};
    if (!stuck() && rank->rank % 2 == 0) {  // the others wait for who computes
      main.state = "R";
      main.wchan = "0";
      main.frames = {"libtorch_cpu.so!at::native::addmm"};
    }
    machine::ProcessSample process;
    process.pid = main.tid;
    process.state = main.state;
    process.threads = {main};
    one.pid = process.pid;
    one.processes = {process};
    sample.ranks.push_back(std::move(one));
  }
  if (m.gpus)
    for (const machine::RankSample& rank : sample.ranks) {
      machine::Gpu gpu;
      gpu.utilization_percent = 100;
      gpu.power_mw = 60'000;
      gpu.power_limit_mw = 400'000;
      gpu.processes = {{rank.pid, 1, "python3", "u", 1, 1, true}};
      sample.gpus.push_back(gpu);
    }
  answer.json = dice_.once_in(20) ? "{" : dice_.once_in(20) ? R"({"ranks":1})" : base::to_text(base::to_json(sample));
  if (dice_.once_in(20)) answer.outcome = {false, base::fail(base::ErrorKind::kTimeout, "sampling the ranks did not answer for 1.8 s")};
  say(agent, answer);
}

void World::answer(Agent& agent, const wire::Dig& m) {
  if (dice_.once_in(10)) return;
  wire::Dug answer;
  answer.id = dice_.once_in(20) ? m.id - 1 : m.id;
  bool recorders = dice_.once_in(3);
  for (uint32_t rank : m.ranks) {
    if (dice_.once_in(4)) continue;
    answer.pieces.push_back({dice_.once_in(30) ? 9999 : rank, wire::PieceKind::kHookStack,
                             "Current thread 0x1 (most recent call first):\n  File \"train.py\", line 42 in validate\n"});
    if (recorders)
      answer.pieces.push_back(
          {rank, wire::PieceKind::kFlightRecord, dice_.once_in(4) ? "junk" : dump_of(!dice_.once_in(3), run_.attempt.plan->world)});
  }
  if (dice_.once_in(5))
    answer.pieces.push_back({0, wire::PieceKind::kRasReport, dice_.once_in(2) ? R"({"nccl_version":"2.29.2"})" : "junk"});
  say(agent, answer);
}

// What a rank's agent passes on of it. Control frames overtake it, so it holds none of them up.
void World::report(Rank& rank, decltype(job::HostReported::report) what) {
  Agent& agent = *rank.agent;
  const Host& host = hosts_[agent.host];
  if (agent.only_pings || now_ < agent.stopped_until || !host.power) return;
  agent.last_report = std::max(agent.last_report, std::max({now_, host.cut_until, host.deaf_until}) + latency(host));
  due_.push({agent.last_report, order_++, [this, &agent, what = std::move(what)] {
               if (!agent.open) return;
               const job::HostReported event{agent.place, 100, what};
               const bool heard = agent.number == run_.number && !run_.waiting && !run_.ended;
               if (heard && !is_of_its_own(run_.attempt, event)) problem("a report on a host's own rank was refused");
               feed(event, agent.number);
             }});
}

// A step every 100 ms as long as nobody hangs; told by an event or by a line.
void World::begin_steps(Rank& rank, int64_t step) {
  later(os::milliseconds(100), [this, &rank, step] {
    if (!rank.alive || rank.hangs || rank.number != run_.number || run_.waiting) return;
    bool stuck = std::any_of(ranks_.begin(), ranks_.end(), [&](const auto& r) { return r->number == rank.number && r->hangs; });
    if (stuck) return begin_steps(rank, step);  // it waits, and goes on if it is let
    if (scenario_.seed % 2 == 0) {
      wire::RankProgress progress;
      progress.step = step;
      report(rank, job::RankAdvanced{static_cast<uint32_t>(rank.rank), progress});
    } else {
      lines_.push_back("step " + std::to_string(step) + " loss 1.0\n");
      wire::Output output;
      output.rank = static_cast<uint32_t>(rank.rank);
      output.data = lines_.back();
      report(rank, output);
    }
    begin_steps(rank, step + 1);
  });
}

// Every 2.5 seconds, as agent/looks/usage.h; one rank in some runs is held back, or computes while the others wait. Who waits uses no CPU.
void World::begin_pulses(Rank& rank) {
  later(os::milliseconds(2500), [this, &rank] {
    if (!rank.alive || rank.number != run_.number || run_.waiting) return;
    wire::Pulse pulse;
    pulse.window_ms = dice_.once_in(50) ? 0 : 2500;
    bool stuck = std::any_of(ranks_.begin(), ranks_.end(), [&](const auto& r) { return r->number == rank.number && r->hangs; });
    bool odd = straggles() && rank.rank == 0;
    pulse.ranks.push_back({static_cast<uint32_t>(rank.rank),
                           stuck ? 0u
                           : odd ? 2450u
                                 : 150u,
                           odd && scenario_.seed % 2 == 0 ? 1500u : 0u, 0, 'S', 1000});
    // Every host talks to every other; in some runs the first one loses packets.
    for (const auto& [place, peer] : connected_) {
      const bool lossy = loses() && (place == 0 || rank.agent->place == 0);
      pulse.peers.push_back(
          {own_address(peer->host), 400, lossy ? static_cast<uint32_t>(dice_.below(30)) : 0, lossy ? 25u : 1u, lossy ? 15u : 0u});
    }
    report(rank, pulse);
    begin_pulses(rank);
  });
}

}  // namespace phalanx::sim
