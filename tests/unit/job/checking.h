// Scripted runs whose hosts answer the checks before a start (script.h).
#pragma once

#include <functional>

#include "base/json_fields.h"
#include "script.h"

namespace phalanx::job::test {

inline Job checked(bool only) {
  Job job;
  job.check_only = only;
  job.preflight = Preflight::kStrict;
  if (only) job.argv = {};
  return job;
}

inline machine::Facts facts_of(size_t host) {
  machine::Facts facts;
  machine::Interface eth;
  eth.name = "eth0";
  eth.kind = "physical";
  eth.state = "up";
  eth.up = eth.running = eth.carrier = true;
  eth.mtu = 1500;
  eth.speed_mbps = 10'000;
  eth.addresses = {{"10.0.0." + std::to_string(host + 1), 24, false}};
  facts.network.interfaces = {eth};
  facts.machine.hostname = "h" + std::to_string(host + 1);
  return facts;
}

inline wire::Probed probed(const machine::Facts& facts) { return {{}, base::to_text(base::to_json(facts))}; }

// A script whose hosts answer the checks as healthy ones do, until `dial` says otherwise.
struct Checking : Script {
  Checking(std::vector<int> slots, Job job, int64_t wall_less_mono_ns = 0) : Script(std::move(slots), std::move(job), wall_less_mono_ns) {
    open_all();
  }

  void probe_all() {
    for (size_t h = 0; h < state.hosts.size(); ++h) say(h, probed(facts_of(h)));
  }
  // Everything sent since the last call, answered.
  void answer_listens(uint32_t port = 4000) {
    auto listens = sent<wire::Listen>();
    for (size_t i = listens_seen; i < listens.size(); ++i) {
      wire::Listening answer;
      for (size_t p = 0; p < listens[i].second.places.size(); ++p) answer.places.push_back({{}, port + static_cast<uint32_t>(p)});
      if (!listens[i].second.places.empty()) say(listens[i].first, answer);
    }
    listens_seen = listens.size();
  }
  bool answer_dials(const std::function<void(size_t from, wire::DialedLink&)>& change = {}) {
    auto dials = sent<wire::Dial>();
    size_t from_index = dials_seen;
    dials_seen = dials.size();
    for (size_t i = from_index; i < dials.size(); ++i) {
      const auto& [from, dial] = dials[i];
      wire::Dialed answer;
      answer.round = dial.round;
      for (const wire::DialTarget& target : dial.targets) {
        wire::DialedLink link;
        link.to = target.to;
        link.master_port = target.master_port;
        link.outcome = wire::LinkOutcome::kOk;
        link.round_trip_ns = 100'000;
        link.bytes_per_second = dial.burst_ms > 0 ? 1'000'000'000 : 0;
        link.local_address = "10.0.0." + std::to_string(from + 1);
        if (change) change(from, link);
        answer.links.push_back(std::move(link));
      }
      say(from, answer);
    }
    return dials.size() > from_index;
  }
  size_t listens_seen = 0, dials_seen = 0;
};

// Two hosts, and a program that starts.
struct Starting : Checking {
  explicit Starting(Job job) : Checking({1, 1}, std::move(job)) {}
  void start() {
    probe_all();
    answer_listens();
    while (answer_dials()) {}
    prepare_all();
    say(1, wire::Reached{{}, "eth0"});
  }
};

}  // namespace phalanx::job::test
