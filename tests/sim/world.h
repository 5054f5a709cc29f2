// A cluster in memory for one run: hosts that are switched off, links that are cut, agents that are killed, ranks that crash or hang, all
// on a virtual clock. It performs the actions of job::step as the runner does, and answers as agents do. After every event the invariants
// are checked that hold for any run, whatever happens:
//   no two attempts have ranks alive at once · every rank is started once per attempt, and is gone when the run and a lease are over ·
//   budgets are kept · the run ends when its operator wants it to · the verdict is what was injected.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <queue>
#include <string>
#include <vector>

#include "agent/lease.h"
#include "job/run.h"
#include "scenario.h"

namespace phalanx::sim {

struct Report {
  std::vector<std::string> problems;  // broken invariants
  std::optional<job::Verdict> verdict;
  int64_t events = 0;  // fed to the supervisor
  int attempts = 0;
  int deadlocks = 0;               // told as proved
  int stragglers = 0, losses = 0;  // told
  bool struck_in_stage = false;    // a fault that is tied to a stage
};

class World {
 public:
  World(const Scenario& scenario, bool trace);
  Report play();

 private:
  struct Host {  // of the pool
    bool power = true;
    int64_t clock_offset = 0;
    os::Mono cut_until, deaf_until, slow_until;  // kCut; kOneWay; kSlow
    std::optional<os::Mono> unreachable_until;
  };
  struct Agent {  // one connection of one attempt
    int number = 0;
    size_t place = 0;  // in the attempt's host list
    size_t host = 0;   // of the pool
    bool alive = false, open = true /* the launcher's end */, finishing = false, mad = false, only_pings = false, hostile = false;
    bool said_hello = false;
    os::Mono last_up, last_down, last_report;
    os::Mono stopped_until, guard_stopped_until;  // kAgentStopped, kGuardStopped
    agent::Lease lease;
    int64_t orders = 0;                     // given to the guard; the last one counts
    std::optional<os::Mono> waiting_since;  // for the guard to answer one
  };
  struct Rank {
    int number = 0;  // of the attempt
    int rank = 0;
    Agent* agent = nullptr;
    bool alive = true, deaf = false, unkillable = false, hangs = false;
    uint8_t stopped_by_us = 0;
    std::string said;  // on its stderr, before we stopped it
  };
  struct Due {
    os::Mono at;
    int64_t order;
    std::function<void()> call;
    bool operator<(const Due& other) const { return at != other.at ? at > other.at : order > other.order; }
  };

  // world.cc: time, connections, the launcher's side
  void later(os::nanoseconds after, std::function<void()> call);
  void feed(job::Event event, int number);
  void perform(const job::Action& action);
  void open_hosts();
  void close(Agent& agent);
  void down(Agent& agent, std::function<void()> arrives);  // launcher to agent
  void deliver(Agent& agent, const std::function<void()>& arrives);
  void up(Agent& agent, std::function<void()> arrives);  // agent to launcher
  void say(Agent& agent, job::FromHost message);
  os::nanoseconds latency(const Host& host);
  bool asleep() const { return now_ < asleep_until_; }
  void tick();
  void trace(const std::string& text);
  void problem(const std::string& text);

  // agents.cc: what agents and ranks do
  void hear(Agent& agent, const job::ToHost& message);
  void answer(Agent& agent, const wire::Prepare& m);
  void answer(Agent& agent, const wire::OpenStore& m);
  void answer(Agent& agent, const wire::Reach& m);
  void answer(Agent& agent, const wire::Start& m);
  void answer(Agent& agent, const wire::Signal& m);
  void answer(Agent& agent, const wire::Ping& m);
  void answer(Agent& agent, const wire::Finish& m);
  void answer(Agent& agent, const wire::Probe& m);
  void answer(Agent& agent, const wire::Listen& m);
  void answer(Agent& agent, const wire::Dial& m);
  bool deadlocks() const { return scenario_.seed % 5 < 2; }
  bool straggles() const { return scenario_.seed % 3 == 0; }  // its first rank
  bool loses() const { return scenario_.seed % 7 == 2; }      // packets: the attempt's first host
  static std::string own_address(size_t host) { return "10.0." + std::to_string(host / 250) + "." + std::to_string(host % 250 + 1); }
  void check_stalled(const job::Stalled& note);
  void check_slow(const job::Slow& note);
  void answer_looks(Agent& agent, const wire::Sample& m);
  bool stuck() const;  // somebody hangs, or has left the others
  void answer(Agent& agent, const wire::Sample& m);
  void answer(Agent& agent, const wire::Dig& m);
  void begin_pulses(Rank& rank);
  void begin_steps(Rank& rank, int64_t step);
  void report(Rank& rank, decltype(job::HostReported::report) what);
  void start_rank(Agent& agent, const wire::RankSpec& spec);
  void end_rank(Rank& rank, int status, const std::string& last_words);
  void die_slowly(Rank& rank);
  void lose_peers(const Rank& rank);
  void end_agent(Agent& agent, bool says_so);
  void power_off(size_t host);
  os::Mono clock_of(const Agent& agent) const { return now_ + os::nanoseconds(hosts_[agent.host].clock_offset); }
  void prove(size_t host, int number);
  bool sweep_host(size_t host);  // false: something cannot be ended
  void watch_lease(Agent& agent);
  void order_guard(Agent& agent);
  void guard_acts(Agent& agent, int64_t order);
  void rave(Agent& agent);
  void rave_in_values(Agent& agent);
  void be_hostile(Agent& agent);
  void make_hostile(wire::Hello& hello);

  // faults.cc
  bool now_faulty(Fault::Kind kind, size_t target) const;
  void begin_faults();
  void begin_rank_faults(Rank& rank);
  void strike(const Fault& fault);
  std::optional<Stage> stage() const;
  void enter_stage();

  // invariants.cc
  void check_start(const Agent& agent, const wire::Start& m);
  void check_run();
  void check_end(const job::Verdict& verdict);
  void check_single_fault(const job::Verdict& verdict);
  void check_nothing_left();

  const Scenario& scenario_;
  Dice dice_;
  bool trace_;
  os::Mono now_{1'000'000'000'000};
  int64_t order_ = 0;
  std::priority_queue<Due> due_;
  job::Run run_;
  std::vector<Host> hosts_;
  std::vector<std::unique_ptr<Agent>> agents_;
  std::vector<std::unique_ptr<Rank>> ranks_;
  std::deque<std::string> lines_;       // of output, as long as the events that show them
  std::map<size_t, Agent*> connected_;  // by place, of the current attempt
  os::Mono asleep_until_;
  int sigints_ = 0;
  std::vector<size_t> checked_members_;       // of the last attempt that was looked at
  std::map<int, std::vector<bool>> started_;  // per attempt, which ranks
  bool struck_ = false;                       // a fault has taken effect
  std::optional<Stage> stage_;                // that the supervisor was in after the last event
  std::vector<bool> armed_;                   // by fault: its stage has begun
  Report report_;
};

}  // namespace phalanx::sim
