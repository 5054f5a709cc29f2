// A scripted run for the supervisor's tests: fake hosts that answer as agents do, and a clock that moves when told.
#pragma once

#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <string>
#include <vector>

#include "job/supervisor/supervisor.h"

namespace phalanx::job::test {

inline int exited(int code) { return code << 8; }  // as waitpid encodes it

class Script {
 public:
  explicit Script(std::vector<int> slots, Job job = {}, int64_t wall_less_mono_ns = 0) {
    for (size_t h = 0; h < slots.size(); ++h) {
      HostRequest request;
      request.target = {"h" + std::to_string(h + 1), "h" + std::to_string(h + 1), 0};
      request.slots = slots[h];
      job.hosts.push_back(request);
    }
    if (job.argv.empty()) job.argv = {"true"};
    job.run_id = "test-run";
    state = initial_state(std::move(job), now, wall_less_mono_ns);
  }

  void feed(const Event& event) {
    for (Action& action : step(state, event, now)) actions.push_back(std::move(action));
  }
  void say(size_t host, FromHost message) { feed(HostSaid{host, std::move(message)}); }
  // Time passes; alive hosts answer pings and ticks come as in the loop.
  void pass(os::milliseconds duration, std::vector<size_t> silent = {}) {
    for (os::Mono end = now + duration; now < end;) {
      now = now + os::milliseconds(200);
      for (size_t h = 0; h < state.hosts.size(); ++h)
        if (state.hosts[h].open && std::find(silent.begin(), silent.end(), h) == silent.end())
          say(h, wire::Pong{state.hosts[h].nonce, now.ns + offset(h)});
      feed(Tick{});
    }
  }
  int64_t offset(size_t host) const { return static_cast<int64_t>(host + 1) * 1'000'000'000'000; }

  void hello(size_t host) {
    wire::Hello hello;
    hello.cpus = 2;
    hello.addresses = {{"eth0", "10.0.0." + std::to_string(host + 1)}};
    hello.ssh_server = "10.0.0." + std::to_string(host + 1);
    hello.now_ns = now.ns + offset(host);
    hello.fingerprint = "fingerprint of h" + std::to_string(host + 1);
    say(host, hello);
  }
  void open_all() {
    for (size_t h = 0; h < state.hosts.size(); ++h) hello(h);
  }
  void prepare_all() {
    for (size_t h = 0; h < state.hosts.size(); ++h) say(h, wire::Prepared{{}, "/bin/true"});
    say(0, wire::StoreOpened{{}, 4711});
  }
  void run_all() {
    open_all();
    prepare_all();
    for (size_t h = 1; h < state.hosts.size(); ++h) say(h, wire::Reached{{}, "eth0"});
    for (size_t r = 0; r < state.ranks.size(); ++r)
      say(static_cast<size_t>(state.plan->host_of(static_cast<int>(r))),
          wire::Started{{}, static_cast<uint32_t>(r), 100 + static_cast<uint32_t>(r)});
  }
  // at: on the launcher's clock, before now.
  void exit(int rank, int status, uint8_t stopped_by_us = 0, os::nanoseconds ago = os::nanoseconds(0), const char* last_words = "") {
    size_t host = static_cast<size_t>(state.plan->host_of(rank));
    wire::Exited m;
    m.rank = static_cast<uint32_t>(rank);
    m.status = static_cast<uint32_t>(status);
    m.stopped_by_us = stopped_by_us;
    m.at_ns = now.ns - ago.count() + offset(host);
    m.last_words = last_words;
    say(host, m);
  }
  void finish_all() {
    for (size_t h = 0; h < state.hosts.size(); ++h)
      if (!state.hosts[h].ended) say(h, wire::Finished{});
  }

  template <typename Message>
  std::vector<std::pair<size_t, Message>> sent() const {
    std::vector<std::pair<size_t, Message>> out;
    for (const Action& action : actions)
      if (auto* send = std::get_if<Send>(&action))
        if (auto* m = std::get_if<Message>(&send->message)) out.emplace_back(send->host, *m);
    return out;
  }
  template <typename NoteType>
  std::vector<NoteType> told() const {
    std::vector<NoteType> out;
    for (const Action& action : actions)
      if (auto* tell = std::get_if<Tell>(&action))
        if (auto* n = std::get_if<NoteType>(&tell->note)) out.push_back(*n);
    return out;
  }
  const Verdict* verdict() const {
    for (const Action& action : actions)
      if (auto* end = std::get_if<End>(&action)) return &end->verdict;
    return nullptr;
  }

  os::Mono now{1'000'000'000};
  State state;
  Actions actions;
};

}  // namespace phalanx::job::test
