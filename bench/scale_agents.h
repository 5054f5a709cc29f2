// All agents of a run in one process: what src/agent answers, frame for frame, without the doing. A stand-in for ssh (scale_ssh.cc) brings
// each one's connection to the launcher. Ranks say one line, hold a connection to the store, and live until they are told otherwise.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "os/fd.h"
#include "os/loop.h"
#include "wire/check_messages.h"
#include "wire/sample_messages.h"

namespace phalanx::scale {

class Agents {
 public:
  struct Sent {                     // by the launcher, to all agents together
    uint64_t start_bytes = 0;       // until the agent had Start, pings left out
    uint64_t most_start_bytes = 0;  // the agent that got most
    uint64_t bytes = 0;             // in all, pings left out
    uint64_t ping_bytes = 0;
  };

  // Listens in `folder` (mode 0700) under kSocket.
  static base::Result<std::unique_ptr<Agents>> create(os::Loop& loop, const std::string& folder, int hosts);
  ~Agents();
  static constexpr const char* kSocket = "agents";

  void on_started(std::function<void()> call) { started_call_ = std::move(call); }  // every agent has had Start
  void fail(int rank);                                                              // it ends with code 1, as a Python program that raised
  size_t living() const { return living_; }                                         // ranks
  Sent sent() const;
  const std::string& broken() const { return broken_; }  // what made no sense, and why; else empty

 private:
  struct Agent;
  Agents(os::Loop& loop, int hosts);

  void accept();
  void meet(os::Fd socket);
  void hello(Agent& agent, std::string_view command);
  void read(Agent& agent);
  void take(Agent& agent, const wire::Frame& frame);
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
  void answer(Agent& agent, const wire::Sample& m);
  void answer(Agent& agent, const wire::Dig& m);
  void end_rank(Agent& agent, uint32_t rank, int status, int by_us, const std::string& last_words);
  void pulse(Agent& agent);
  template <typename Message>
  void say(Agent& agent, const Message& message);
  void write(Agent& agent);
  void close(Agent& agent);

  os::Loop& loop_;
  size_t hosts_;
  os::Fd listener_;
  os::WatchId listener_watch_ = 0;
  std::map<std::string, int> places_;           // by name
  std::vector<std::unique_ptr<Agent>> agents_;  // every connection there was
  std::map<uint32_t, Agent*> agent_of_rank_;
  std::function<void()> started_call_;
  size_t started_ = 0, living_ = 0;
  std::string broken_;
};

}  // namespace phalanx::scale
