#include "world.h"

#include <signal.h>

#include <algorithm>
#include <cstdio>

#include <fmt/format.h>

namespace phalanx::sim {
namespace {

constexpr milliseconds kTickEvery{200};
constexpr milliseconds kAfterLease{6'000};  // longer than the margin of a lease
constexpr int64_t kMostEvents = 400'000;

}  // namespace

World::World(const Scenario& scenario, bool trace) : scenario_(scenario), dice_(scenario.seed ^ 0x9e3779b97f4a7c15), trace_(trace) {
  hosts_.resize(scenario.job.hosts.size() + scenario.job.spares.size());
  for (Host& host : hosts_) host.clock_offset = dice_.between(-1'000'000'000'000'000, 1'000'000'000'000'000);
}

void World::trace(const std::string& text) {
  if (trace_) std::printf("%10.3f  %s\n", static_cast<double>(now_.ns) / 1e9 - 1000, text.c_str());
}

void World::problem(const std::string& text) {
  trace("PROBLEM: " + text);
  report_.problems.push_back(fmt::format("at {:.3f} s: {}", static_cast<double>(now_.ns) / 1e9 - 1000, text));
}

void World::later(os::nanoseconds after, std::function<void()> call) { due_.push({now_ + after, order_++, std::move(call)}); }

os::nanoseconds World::latency(const Host& host) {
  os::nanoseconds base(scenario_.links_slow ? dice_.between(1'000'000, 200'000'000) : dice_.between(50'000, 2'000'000));
  return now_ < host.slow_until ? base + milliseconds(1000) : base;
}

// Bytes of one connection arrive in order; what a cut holds up arrives when it heals.
void World::down(Agent& agent, std::function<void()> arrives) {
  const Host& host = hosts_[agent.host];
  os::Mono at = std::max({now_, host.cut_until, agent.last_down}) + latency(host);
  agent.last_down = at;
  due_.push({at, order_++, [this, &agent, arrives = std::move(arrives)] { deliver(agent, arrives); }});
}

// A stopped agent finds it when it runs again.
void World::deliver(Agent& agent, const std::function<void()>& arrives) {
  if (!agent.alive || !hosts_[agent.host].power) return;
  if (now_ < agent.stopped_until) due_.push({agent.stopped_until, order_++, [this, &agent, arrives] { deliver(agent, arrives); }});
  else arrives();
}

void World::up(Agent& agent, std::function<void()> arrives) {
  const Host& host = hosts_[agent.host];
  if (!host.power) return;
  os::Mono at = std::max({now_, host.cut_until, host.deaf_until, agent.last_up}) + latency(host);
  agent.last_up = at;
  due_.push({at, order_++, std::move(arrives)});
}

// Through the bytes of a frame, as on a real connection: what does not decode cuts the host off, as the runner does.
void World::say(Agent& agent, job::FromHost message) {
  if (agent.only_pings && !std::holds_alternative<wire::Pong>(message)) return;
  if (now_ < agent.stopped_until)
    return later(agent.stopped_until - now_, [this, &agent, message = std::move(message)] {
      if (agent.alive && hosts_[agent.host].power) say(agent, message);
    });
  up(agent, [this, &agent, message = std::move(message)] {
    if (!agent.open) return;
    std::optional<job::FromHost> heard;
    std::visit(
        [&]<typename Message>(const Message& m) {
          std::string frame;
          if (!wire::encode(frame, m).ok()) return;
          base::Result<Message> back = wire::decode<Message>(std::string_view(frame).substr(wire::kFrameHeaderBytes));
          if (back.ok()) heard = std::move(back).value();
        },
        message);
    if (heard) return feed(job::HostSaid{agent.place, *std::move(heard)}, agent.number);
    if (!agent.mad) problem("a frame of a sane agent was refused");
    close(agent);
    feed(job::HostEnded{agent.place, base::fail(base::ErrorKind::kInternal, "protocol error: the agent sent a malformed frame")},
         agent.number);
  });
}

// The launcher may be asleep: then what arrives waits, in order.
void World::feed(job::Event event, int number) {
  if (asleep() && !std::holds_alternative<job::Tick>(event)) {
    due_.push({asleep_until_, order_++, [this, event = std::move(event), number] { feed(event, number); }});
    return;
  }
  ++report_.events;
  job::Actions actions = job::step(run_, event, now_, number);
  for (size_t i = 0; i < actions.size(); ++i) {
    if (std::holds_alternative<job::End>(actions[i]) && i + 1 != actions.size()) problem("End is not the last action");
    perform(actions[i]);
  }
  if (!run_.ended) check_run();
  enter_stage();
}

void World::perform(const job::Action& action) {
  if (auto* send = std::get_if<job::Send>(&action)) {
    if (std::holds_alternative<wire::Start>(send->message) &&
        std::any_of(run_.attempt.hosts.begin(), run_.attempt.hosts.end(), [](const job::HostState& host) { return host.ended; }))
      problem("ranks are started though a host is known to be lost");
    auto found = connected_.find(send->host);
    if (found == connected_.end() || !found->second->open) return;
    Agent& agent = *found->second;
    down(agent, [this, &agent, message = send->message] { hear(agent, message); });
  } else if (auto* cut = std::get_if<job::CutHost>(&action)) {
    if (connected_.count(cut->host)) close(*connected_[cut->host]);
  } else if (std::holds_alternative<job::AbandonOpening>(action)) {
    for (auto& [place, agent] : connected_) {
      if (agent->said_hello || !agent->open) continue;
      close(*agent);
      later(os::nanoseconds(0), [this, place = place, number = agent->number] {
        feed(job::HostEnded{place, base::fail(base::ErrorKind::kInterrupted, "not opened")}, number);
      });
    }
  } else if (auto* tell = std::get_if<job::Tell>(&action)) {
    if (auto* r = std::get_if<job::Restarting>(&tell->note))
      trace(fmt::format("restarting in {} ms ({} left)", r->wait.count(), r->restarts_left));
    if (auto* stalled = std::get_if<job::Stalled>(&tell->note)) check_stalled(*stalled);
    if (auto* slow = std::get_if<job::Slow>(&tell->note)) check_slow(*slow);
    if (auto* k = std::get_if<job::KillingRanks>(&tell->note); k && k->awaited.empty()) problem("SIGKILL to no rank");
  } else if (std::holds_alternative<job::CloseHosts>(action)) {
    for (auto& [place, agent] : connected_) close(*agent);
    connected_.clear();
  } else if (auto* ask = std::get_if<job::ProveEmpty>(&action)) {
    for (size_t candidate : ask->candidates) later(dice_.ms(5, 500), [this, candidate, number = run_.number] { prove(candidate, number); });
  } else if (std::holds_alternative<job::OpenHosts>(action)) {
    open_hosts();
  } else if (auto* end = std::get_if<job::End>(&action)) {
    check_end(end->verdict);
    report_.verdict = end->verdict;
    for (auto& [place, agent] : connected_) close(*agent);
  }
}

// The launcher's end of the connection is gone; the agent sees that when the bytes get through.
void World::close(Agent& agent) {
  if (!agent.open) return;
  agent.open = false;
  down(agent, [this, &agent] {
    if (!agent.only_pings) end_agent(agent, false);
  });
}

void World::open_hosts() {
  ++report_.attempts;
  connected_.clear();
  begin_faults();
  for (size_t place = 0; place < run_.members.size(); ++place) {
    auto agent = std::make_unique<Agent>();
    agent->number = run_.number;
    agent->place = place;
    agent->host = run_.members[place];
    connected_[place] = agent.get();
    Agent& a = *agent;
    agents_.push_back(std::move(agent));
    Host& host = hosts_[a.host];
    milliseconds login = dice_.ms(5, scenario_.links_slow ? 3000 : 300);
    later(login, [this, &a, &host] {
      bool reached =
          host.power && now_ >= host.cut_until && now_ >= host.deaf_until && !(host.unreachable_until && now_ < *host.unreachable_until);
      if (!a.open) return;
      if (reached && !a.only_pings) {
        a.alive = a.said_hello = true;
        wire::Hello hello;
        hello.cpus = 2;
        hello.gpus = scenario_.machines == 0 ? 0 : 8;
        hello.wall_ns = dice_.once_in(4) ? 0 : now_.ns + 1'700'000'000'000'000'000;
        const std::string own = fmt::format("{}.{}", a.host / 250, a.host % 250 + 1);
        hello.addresses = {{"eth0", own_address(a.host)}, {"eth1", "10.1." + own}};
        hello.now_ns = now_.ns + host.clock_offset;
        hello.fingerprint = scenario_.changed ? "of another boot" : kFingerprint;
        if (a.hostile || (a.mad && dice_.once_in(2))) make_hostile(hello);
        say(a, hello);
        watch_lease(a);
        if (a.mad && !a.hostile) rave(a);
        return;
      }
      later(dice_.ms(0, 5000), [this, &a] {
        bool was_open = a.open;
        a.open = false;
        if (was_open) feed(job::HostEnded{a.place, base::fail(base::ErrorKind::kUnreachable, "no route")}, a.number);
      });
    });
  }
}

void World::tick() {
  if (run_.ended) return;
  if (now_ >= asleep_until_) feed(job::Tick{}, run_.number);
  later(kTickEvery, [this] { tick(); });
}

Report World::play() {
  run_ = job::begin_run(scenario_.job, now_);
  open_hosts();
  enter_stage();
  later(kTickEvery, [this] { tick(); });
  os::Mono give_up = now_ + scenario_.patience;
  for (int i = 0; i < 3; ++i)
    due_.push({give_up + milliseconds(5000 * i), order_++, [this] {
                 ++sigints_;
                 trace("the operator gives up");
                 feed(job::OperatorSignal{SIGINT}, run_.number);
               }});
  os::Mono must_end = give_up + scenario_.job.grace + milliseconds(70'000);
  std::optional<os::Mono> ended_at;
  while (!due_.empty() && report_.events < kMostEvents) {
    Due next = due_.top();
    if (ended_at && next.at > *ended_at + scenario_.job.lease + kAfterLease) break;
    due_.pop();
    now_ = next.at;
    if (!run_.ended && now_ > must_end) {
      problem("the run does not end though its operator wants it to");
      break;
    }
    next.call();
    if (run_.ended && !ended_at) ended_at = now_;
  }
  if (!report_.verdict && report_.problems.empty()) problem("the run does not end");
  check_nothing_left();
  return report_;
}

}  // namespace phalanx::sim
