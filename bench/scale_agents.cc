#include "scale_agents.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <set>

#include <fmt/format.h>

#include "base/json_fields.h"
#include "base/try.h"
#include "machine/ranks/sample.h"
#include "os/local_socket.h"
#include "scale_facts.h"

namespace phalanx::scale {
namespace {

constexpr const char* kTraceback =
    "Traceback (most recent call last):\n  File \"/home/train/work/train.py\", line 42, in <module>\n    main()\n"
    "ValueError: loss is not a number\n";
constexpr int kFailed = 1 << 8;  // as from waitpid
constexpr os::milliseconds kMeetsStore{500}, kPulseEvery{5000};
constexpr int64_t kRoundTrip_ns = 60'000, kBytesPerSecond = 4'000'000'000;
constexpr uint32_t kMeshPort = 41'000, kStorePort = 29'500;
constexpr uint64_t kRankMemory_kb = 4 << 20;

}  // namespace

struct Agents::Agent {
  int place = 0;
  os::Fd ssh, in, out;  // the stand-in; the launcher's words; ours
  os::WatchId ssh_watch = 0, in_watch = 0, out_watch = 0;
  wire::FrameReader reader;
  std::string outgoing;
  std::set<uint32_t> ranks;  // living
  uint64_t start_bytes = 0, bytes = 0, ping_bytes = 0;
  bool started = false, finishing = false;
};

Agents::Agents(os::Loop& loop, int hosts) : loop_(loop), hosts_(static_cast<size_t>(hosts)) {
  for (int h = 0; h < hosts; ++h) places_[host_name(h)] = h;
}

Agents::~Agents() {
  if (listener_watch_) loop_.unwatch(listener_watch_);
  for (auto& agent : agents_) close(*agent);
}

base::Result<std::unique_ptr<Agents>> Agents::create(os::Loop& loop, const std::string& folder, int hosts) {
  std::unique_ptr<Agents> agents(new Agents(loop, hosts));
  TRY_ASSIGN(agents->listener_, os::listen_local(folder, kSocket));
  TRY_ASSIGN(agents->listener_watch_, loop.watch(agents->listener_.get(), EPOLLIN, [a = agents.get()](uint32_t) { a->accept(); }));
  return agents;
}

void Agents::accept() {
  while (true) {
    base::Result<os::Fd> socket = os::accept_local(listener_.get());
    if (!socket.ok()) broken_ = socket.error().message;
    if (!socket.ok() || !socket->valid()) return;
    meet(std::move(socket).value());
  }
}

// The stand-in writes its message right after it has connected, so waiting for it here holds nobody up.
void Agents::meet(os::Fd socket) {
  static char words[64 << 10];
  int fds[2] = {-1, -1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(fds))];
  iovec text{words, sizeof(words)};
  msghdr message{};
  message.msg_iov = &text;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  int flags = ::fcntl(socket.get(), F_GETFL);
  ::fcntl(socket.get(), F_SETFL, flags & ~O_NONBLOCK);
  ssize_t size = ::recvmsg(socket.get(), &message, MSG_CMSG_CLOEXEC);
  cmsghdr* header = size > 0 ? CMSG_FIRSTHDR(&message) : nullptr;
  if (!header || header->cmsg_type != SCM_RIGHTS || header->cmsg_len != CMSG_LEN(sizeof(fds))) return;
  std::memcpy(fds, CMSG_DATA(header), sizeof(fds));
  auto agent = std::make_unique<Agent>();
  agent->ssh = std::move(socket);
  agent->in = os::Fd(fds[0]);
  agent->out = os::Fd(fds[1]);
  std::string_view said(words, static_cast<size_t>(size));
  size_t end = said.find('\0');
  auto place = end == said.npos ? places_.end() : places_.find(std::string(said.substr(0, end)));
  if (place == places_.end()) return;
  agent->place = place->second;
  Agent& a = *agent;
  for (int fd : {a.in.get(), a.out.get(), a.ssh.get()}) (void)os::set_nonblocking(fd);
  auto watch = [&](int fd, auto call) {
    base::Result<os::WatchId> id = loop_.watch(fd, EPOLLIN, call);
    return id.ok() ? *id : 0;
  };
  a.in_watch = watch(a.in.get(), [this, &a](uint32_t) { read(a); });
  a.ssh_watch = watch(a.ssh.get(), [this, &a](uint32_t) { close(a); });  // the launcher has killed its ssh
  agents_.push_back(std::move(agent));
  hello(a, said.substr(end + 1));
}

// command: that a host's login shell would run; it names the build of the launcher, which an agent must be of.
void Agents::hello(Agent& agent, std::string_view command) {
  constexpr std::string_view kFolder = ".cache/phalanx/";
  size_t at = command.find(kFolder);
  if (at == command.npos) return close(agent);
  command.remove_prefix(at + kFolder.size());
  wire::Hello hello;
  hello.build = command.substr(0, command.find('/'));
  hello.hostname = host_name(agent.place);
  hello.user = "train";
  hello.pid = 1000;
  hello.cpus = 64;
  hello.gpus = 8;
  hello.addresses = addresses_of(agent.place);
  hello.ssh_server = hello.addresses.front().address;
  hello.ssh_client = "10.1.255.1";
  hello.now_ns = os::mono_now().ns;
  hello.wall_ns = os::wall_now_ns();
  hello.fingerprint = fmt::format("{:032x}", agent.place + 1);
  agent.outgoing = wire::kStreamMagic;
  say(agent, hello);
}

void Agents::read(Agent& agent) {
  static char buffer[64 << 10];
  os::IoStep step = os::read_step(agent.in.get(), buffer, sizeof(buffer));
  if (step.kind == os::IoStep::kWouldBlock) return;
  if (step.kind != os::IoStep::kBytes) return close(agent);
  agent.bytes += step.bytes;
  agent.reader.feed(std::string_view(buffer, step.bytes));
  while (agent.in.valid()) {
    base::Result<std::optional<wire::Frame>> frame = agent.reader.next();
    if (!frame.ok()) broken_ = frame.error().message;
    if (!frame.ok() || !frame->has_value()) return;
    take(agent, **frame);
  }
}

void Agents::take(Agent& agent, const wire::Frame& frame) {
  uint64_t size = wire::kFrameHeaderBytes + frame.payload.size();
  if (frame.type == wire::FrameType::kPing) agent.ping_bytes += size;
  else if (!agent.started) agent.start_bytes += size;
  auto with = [&]<typename Message>(Message*) {
    base::Result<Message> message = wire::decode<Message>(frame.payload);
    if (message.ok()) answer(agent, *message);
    else broken_ = message.error().message;
  };
  switch (frame.type) {
    case wire::FrameType::kPrepare: return with(static_cast<wire::Prepare*>(nullptr));
    case wire::FrameType::kOpenStore: return with(static_cast<wire::OpenStore*>(nullptr));
    case wire::FrameType::kReach: return with(static_cast<wire::Reach*>(nullptr));
    case wire::FrameType::kStart: return with(static_cast<wire::Start*>(nullptr));
    case wire::FrameType::kSignal: return with(static_cast<wire::Signal*>(nullptr));
    case wire::FrameType::kPing: return with(static_cast<wire::Ping*>(nullptr));
    case wire::FrameType::kFinish: return with(static_cast<wire::Finish*>(nullptr));
    case wire::FrameType::kProbe: return with(static_cast<wire::Probe*>(nullptr));
    case wire::FrameType::kListen: return with(static_cast<wire::Listen*>(nullptr));
    case wire::FrameType::kDial: return with(static_cast<wire::Dial*>(nullptr));
    case wire::FrameType::kSample: return with(static_cast<wire::Sample*>(nullptr));
    case wire::FrameType::kDig: return with(static_cast<wire::Dig*>(nullptr));
    default: broken_ = fmt::format("frame type {}", static_cast<int>(frame.type));
  }
}

void Agents::answer(Agent& agent, const wire::Prepare&) { say(agent, wire::Prepared{{}, "/opt/conda/envs/llm/bin/python"}); }

void Agents::answer(Agent& agent, const wire::OpenStore& m) { say(agent, wire::StoreOpened{{}, m.port != 0 ? m.port : kStorePort}); }

void Agents::answer(Agent& agent, const wire::Reach&) { say(agent, wire::Reached{{}, "bond0"}); }

void Agents::answer(Agent& agent, const wire::Ping& m) { say(agent, wire::Pong{m.nonce, os::mono_now().ns}); }

void Agents::answer(Agent& agent, const wire::Probe& m) { say(agent, wire::Probed{{}, facts_of(agent.place, m)}); }

void Agents::answer(Agent& agent, const wire::Listen& m) {
  wire::Listening answer;
  for (const wire::Place& place : m.places) answer.places.push_back({{}, place.port != 0 ? place.port : kMeshPort});
  say(agent, answer);
}

void Agents::answer(Agent& agent, const wire::Dial& m) {
  wire::Dialed answer{m.round, {}};
  for (const wire::DialTarget& target : m.targets) {
    wire::DialedLink link;
    link.to = target.to;
    link.master_port = target.master_port;
    link.outcome = wire::LinkOutcome::kOk;
    link.connect_ns = link.round_trip_ns = kRoundTrip_ns;
    link.bytes_per_second = m.burst_ms > 0 ? kBytesPerSecond : 0;
    link.segments = 10;
    link.local_address = addresses_of(agent.place).front().address;
    answer.links.push_back(link);
  }
  say(agent, answer);
}

void Agents::answer(Agent& agent, const wire::Start& m) {
  agent.started = true;
  for (const wire::RankSpec& spec : m.ranks) {
    agent_of_rank_[spec.rank] = &agent;
    agent.ranks.insert(spec.rank);
    ++living_;
    say(agent, wire::Started{{}, spec.rank, 2000 + spec.local_rank});
    std::string line = fmt::format("rank {}: {} of {}\n", spec.rank, host_name(agent.place), hosts_);
    say(agent, wire::Output{spec.rank, wire::Stream::kStdout, wire::OutputKind::kLines, os::mono_now().ns, line});
  }
  loop_.after(kMeetsStore, [this, &agent] {
    for (uint32_t rank : agent.ranks) say(agent, wire::Connected{rank});
  });
  loop_.after(kPulseEvery, [this, &agent] { pulse(agent); });
  if (++started_ == hosts_ && started_call_) started_call_();
}

void Agents::pulse(Agent& agent) {
  if (!agent.in.valid() || agent.finishing || agent.ranks.empty()) return;
  wire::Pulse message;
  message.at_ns = os::mono_now().ns;
  message.window_ms = static_cast<uint32_t>(kPulseEvery.count());
  for (uint32_t rank : agent.ranks) message.ranks.push_back({rank, message.window_ms, 0, 0, 'R', kRankMemory_kb});
  say(agent, message);
  loop_.after(kPulseEvery, [this, &agent] { pulse(agent); });
}

void Agents::answer(Agent& agent, const wire::Sample& m) {
  machine::HostSample sample;
  for (uint32_t rank : agent.ranks) sample.ranks.emplace_back().rank = rank;
  wire::Sampled answer;
  answer.id = m.id;
  answer.json = base::to_text(base::to_json(sample));
  say(agent, answer);
}

void Agents::answer(Agent& agent, const wire::Dig& m) {
  wire::Dug answer;
  answer.id = m.id;
  say(agent, answer);
}

void Agents::answer(Agent& agent, const wire::Signal& m) {
  for (uint32_t rank : std::set<uint32_t>(agent.ranks)) end_rank(agent, rank, m.signal, m.signal, "");
}

void Agents::answer(Agent& agent, const wire::Finish&) {
  agent.finishing = true;
  say(agent, wire::Finished{static_cast<uint32_t>(agent.ranks.size()), 0});
  living_ -= agent.ranks.size();
  agent.ranks.clear();
  if (agent.outgoing.empty()) close(agent);
}

void Agents::end_rank(Agent& agent, uint32_t rank, int status, int by_us, const std::string& last_words) {
  if (agent.ranks.erase(rank) == 0) return;
  --living_;
  wire::Exited exited;
  exited.rank = rank;
  exited.status = static_cast<uint32_t>(status);
  exited.at_ns = os::mono_now().ns;
  exited.stopped_by_us = static_cast<uint8_t>(by_us);
  exited.last_words = last_words;
  say(agent, exited);
}

void Agents::fail(int rank) {
  auto found = agent_of_rank_.find(static_cast<uint32_t>(rank));
  if (found == agent_of_rank_.end()) return;
  Agent& agent = *found->second;
  say(agent, wire::Output{static_cast<uint32_t>(rank), wire::Stream::kStderr, wire::OutputKind::kLines, os::mono_now().ns, kTraceback});
  end_rank(agent, static_cast<uint32_t>(rank), kFailed, 0, kTraceback);
}

template <typename Message>
void Agents::say(Agent& agent, const Message& message) {
  if (!agent.out.valid()) return;
  base::Status encoded = wire::encode(agent.outgoing, message);
  if (!encoded.ok()) broken_ = encoded.error().message;
  write(agent);
}

void Agents::write(Agent& agent) {
  while (!agent.outgoing.empty()) {
    os::IoStep step = os::write_step(agent.out.get(), agent.outgoing.data(), agent.outgoing.size());
    if (step.kind == os::IoStep::kBytes) {
      agent.outgoing.erase(0, step.bytes);
      continue;
    }
    if (step.kind != os::IoStep::kWouldBlock) return close(agent);
    if (agent.out_watch) return;
    base::Result<os::WatchId> watch = loop_.watch(agent.out.get(), EPOLLOUT, [this, &agent](uint32_t) { write(agent); });
    if (watch.ok()) agent.out_watch = *watch;
    return;
  }
  if (agent.out_watch) loop_.unwatch(agent.out_watch);
  agent.out_watch = 0;
  if (agent.finishing) close(agent);
}

// As when an agent has ended: its ssh ends with its code. What the launcher has not read yet stays in the pipe.
void Agents::close(Agent& agent) {
  for (os::WatchId* watch : {&agent.ssh_watch, &agent.in_watch, &agent.out_watch})
    if (os::WatchId id = std::exchange(*watch, 0)) loop_.unwatch(id);
  living_ -= agent.ranks.size();
  agent.ranks.clear();
  agent.in.reset();
  agent.out.reset();
  unsigned char code = agent.finishing ? 0 : 1;
  if (agent.ssh.valid()) (void)!::send(agent.ssh.get(), &code, 1, MSG_NOSIGNAL);
  agent.ssh.reset();
}

Agents::Sent Agents::sent() const {
  Sent all;
  for (const auto& agent : agents_) {
    all.start_bytes += agent->start_bytes;
    all.most_start_bytes = std::max(all.most_start_bytes, agent->start_bytes);
    all.bytes += agent->bytes - agent->ping_bytes;
    all.ping_bytes += agent->ping_bytes;
  }
  return all;
}

}  // namespace phalanx::scale
