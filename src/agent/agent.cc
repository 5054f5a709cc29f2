// The agent's life: say Hello; answer Prepare, OpenStore and Reach; Start the ranks; ship output until Finish. One loop, no waits
// outside it but one: end_everything(), which is the last thing the process does.
#include "agent/agent.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>

#include <fmt/format.h>

#include "agent/guard.h"
#include "agent/life.h"
#include "agent/ranks/rank_group.h"
#include "base/counted.h"
#include "base/text.h"
#include "base/try.h"
#include "machine/identity.h"
#include "os/family.h"
#include "os/files.h"
#include "os/process.h"
#include "wire/bounds.h"

namespace phalanx::agent {
using base::ErrorKind;

namespace {

constexpr size_t kReadBytes = 256 << 10;
constexpr os::milliseconds kLeaseTick{250};
constexpr int kMostReads = 64;  // in one look for pings that wait to be read
constexpr os::milliseconds kFinishStep{5};
constexpr os::milliseconds kProbeEnd{100};   // for what a probe has started, which was killed: it ends at once or cannot
constexpr os::milliseconds kPoliteEnd{500};  // from SIGTERM to SIGKILL for what a finished rank left running

// A frame that cannot be decoded means that the two sides are not the same program: nothing safe can be done with it.
template <typename Message, typename Function>
bool with(const wire::Frame& frame, Function function) {
  base::Result<Message> message = wire::decode<Message>(frame.payload);
  if (message.ok()) function(std::move(message).value());
  return message.ok();
}

}  // namespace

base::Status Agent::open() {
  TRY(os::set_nonblocking(STDIN_FILENO));
  TRY(os::set_nonblocking(STDOUT_FILENO));
  TRY(loop_.on_child([this](pid_t pid, int status) { ranks_.on_exit(pid, status); }));
  // Where SIGTERM was ignored at the start (hosts/connect/slurm.h), it means the whole job, and the launcher ends the ranks in order.
  for (int s : {SIGTERM, SIGINT, SIGHUP, SIGQUIT})
    if (s != SIGTERM || !os::is_ignored(s))
      TRY(loop_.on_signal(s, [this, s](const signalfd_siginfo&) { end_everything(os::signal_name(s) + " to the agent"); }));
  TRY(loop_.watch(STDIN_FILENO, EPOLLIN, [this](uint32_t) { read_input(); }));
  TRY(guard_.open());
  TRY(container_.open(loop_, machine::parse_outside(os::environment_value(machine::kOutsideVariable)),
                      [this] { end_everything("the container has stopped"); }));
  loop_.every(kLeaseTick, [this] { check_lease(); });
  say_hello();
  return base::ok();
}

void Agent::say_hello() {
  const char* visible = ::getenv("CUDA_VISIBLE_DEVICES");
  machine::Identity id = machine::identify("", visible);
  cpus_ = id.cpus;
  addresses_ = id.addresses;
  wire::Hello hello;
  hello.build = build_;
  hello.hostname = id.hostname;
  hello.user = id.user;
  hello.pid = static_cast<uint32_t>(::getpid());
  hello.cpus = id.cpus;
  hello.gpus = id.gpus;
  for (const os::InterfaceAddress& a : id.addresses)
    if (hello.addresses.size() < wire::kMostAddresses) hello.addresses.push_back({a.interface, a.address});
  std::string ssh = os::environment_value("SSH_CONNECTION");  // "client port server port", as sshd sets it
  std::vector<std::string_view> parts = base::split(ssh, ' ');
  if (parts.size() == 4) {
    hello.ssh_client = parts[0];
    hello.ssh_server = parts[2];
  }
  hello.now_ns = os::mono_now().ns;
  hello.wall_ns = os::wall_now_ns();
  hello.fingerprint = machine::fingerprint(id, environ);
  outbox_.magic();
  outbox_.control(hello);
}

bool Agent::read_input() {
  static const auto buffer = std::make_unique_for_overwrite<char[]>(kReadBytes);  // only pages that are used become memory
  os::IoStep step = os::read_step(STDIN_FILENO, buffer.get(), kReadBytes);
  if (step.kind == os::IoStep::kWouldBlock) return false;
  auto end = [this](const std::string& why) {
    end_everything(why);
    return false;
  };
  if (step.kind != os::IoStep::kBytes) return end("the launcher has exited");
  reader_.feed(std::string_view(buffer.get(), step.bytes));
  while (!loop_.stopped()) {
    base::Result<std::optional<wire::Frame>> frame = reader_.next();
    if (!frame.ok()) return end(fmt::format("the launcher's stream is broken: {}", frame.error().message));
    if (!frame->has_value()) return true;
    handle(**frame);
  }
  return false;
}

void Agent::handle(const wire::Frame& frame) {
  bool good = false;
  switch (frame.type) {
    case wire::FrameType::kPrepare: good = with<wire::Prepare>(frame, [&](wire::Prepare m) { prepare(std::move(m)); }); break;
    case wire::FrameType::kOpenStore: good = with<wire::OpenStore>(frame, [&](const wire::OpenStore& m) { open_store(m); }); break;
    case wire::FrameType::kReach: good = with<wire::Reach>(frame, [&](const wire::Reach& m) { reach(m); }); break;
    case wire::FrameType::kStart: good = with<wire::Start>(frame, [&](const wire::Start& m) { start(m); }); break;
    case wire::FrameType::kSignal: good = with<wire::Signal>(frame, [&](const wire::Signal& m) { signal(m.signal); }); break;
    case wire::FrameType::kProbe: good = with<wire::Probe>(frame, [&](const wire::Probe& m) { probe_.start(m, host_environment_); }); break;
    case wire::FrameType::kListen:
      good = with<wire::Listen>(frame, [&](const wire::Listen& m) { outbox_.control(mesh_listener_.listen(m)); });
      break;
    case wire::FrameType::kDial: good = with<wire::Dial>(frame, [&](wire::Dial m) { mesh_dialer_.dial(std::move(m)); }); break;
    case wire::FrameType::kSweep: good = with<wire::Sweep>(frame, [&](const wire::Sweep& m) { sweep_.start(m); }); break;
    case wire::FrameType::kCopyBegin:
      os::widen_pipe(STDIN_FILENO);
      good = with<wire::CopyBegin>(frame, [&](wire::CopyBegin m) { copy_.begin(std::move(m)); });
      break;
    case wire::FrameType::kCopyBytes:
    case wire::FrameType::kCopyPacked: good = copy_.take(frame); break;
    case wire::FrameType::kCopyListen: good = with<wire::CopyListen>(frame, [&](const wire::CopyListen& m) { copy_.listen(m); }); break;
    case wire::FrameType::kCopyPassOn: good = with<wire::CopyPassOn>(frame, [&](const wire::CopyPassOn& m) { copy_.pass_on(m); }); break;
    case wire::FrameType::kCopyRelease:
      good = with<wire::CopyRelease>(frame, [&](wire::CopyRelease m) { copy_.release(std::move(m)); });
      break;
    case wire::FrameType::kSample: good = with<wire::Sample>(frame, [&](const wire::Sample& m) { sample(m); }); break;
    case wire::FrameType::kDig: good = with<wire::Dig>(frame, [&](const wire::Dig& m) { dig_into(m); }); break;
    case wire::FrameType::kPing:
      good = with<wire::Ping>(frame, [&](const wire::Ping& m) {
        outbox_.control(wire::Pong{m.nonce, os::mono_now().ns});
        renew_lease(m);
      });
      break;
    case wire::FrameType::kFinish: good = with<wire::Finish>(frame, [&](const wire::Finish&) { finish(); }); break;
    default: break;
  }
  if (!good) end_everything(fmt::format("malformed frame of type {}", static_cast<int>(frame.type)));
}

// Ends what ranks left behind: politely first, since it may be a logger that still flushes.
void Agent::finish() {
  if (finishing_since_) return;
  finishing_since_ = os::mono_now();
  probe_.kill();
  prepare_look_.kill();
  sample_look_.kill();
  asked_look_.kill();
  profile_look_.kill();
  dig_look_.kill();
  builds_look_.kill();
  pulse_.stop();
  mesh_dialer_.stop();
  mesh_listener_.close();
  finish_step();
}

// What ranks have started and still lives. What a probe has left in a dead file system is not theirs, and nobody can end it.
std::vector<os::ProcessInfo> Agent::rank_family(bool& probe_left, std::string* unseen) const {
  std::vector<os::ProcessInfo> left = os::descendants(::getpid(), unseen);
  std::erase_if(left, [](const os::ProcessInfo& p) { return p.state == 'Z' || p.state == 'X'; });
  size_t all = left.size();
  std::erase_if(left, [this](const os::ProcessInfo& p) { return ours(p); });
  probe_left = left.size() < all;
  return left;
}

bool Agent::ours(const os::ProcessInfo& process) const {
  for (pid_t group : {probe_.group(), prepare_look_.group(), sample_look_.group(), asked_look_.group(), profile_look_.group(),
                      dig_look_.group(), builds_look_.group(), sweep_.group()})
    if (group > 0 && process.group == group) return true;
  return process.group > 0 && ranks_.reads_for_rank(process.group);
}

void Agent::finish_step() {
  bool probe_left = false;
  std::string unseen;
  std::vector<os::ProcessInfo> left = rank_family(probe_left, &unseen);
  os::nanoseconds passed = os::mono_now() - *finishing_since_;
  bool over = passed > os::milliseconds(kKillMilliseconds) + kPoliteEnd;
  const std::string hidden = hidden_in(cgroup_path(), left.empty());
  if (!hidden.empty()) {
    unseen = hidden;
    if (passed >= kPoliteEnd) machine::OwnCgroup::kill(cgroup_path());
  }
  if ((!left.empty() || !unseen.empty()) && !over) {
    const bool first = !left.empty() && killed_ == 0;
    if (first) killed_ = static_cast<uint32_t>(left.size());
    if (first || passed >= kPoliteEnd)
      for (const os::ProcessInfo& p : left) os::signal_process(p.pid, p.start, first ? SIGTERM : SIGKILL);
    loop_.after(kFinishStep, [this] { finish_step(); });
    return;
  }
  if (probe_left && passed < kProbeEnd) {
    loop_.after(kFinishStep, [this] { finish_step(); });
    return;
  }
  ranks_.drain();
  store_.reset();
  machine::OwnCgroup::remove(cgroup_path());
  if (scratch_ && left.empty() && unseen.empty()) scratch_->remove();  // else it says what to look for
  if (!unseen.empty()) outbox_.output(wire::Trouble{fmt::format("cannot determine which processes the ranks left behind: {}", unseen)});
  outbox_.output(wire::Finished{killed_, static_cast<uint32_t>(std::max<size_t>(
                                             left.size(), unseen.empty() ? 0 : 1))});  // behind all output: whoever has it has everything
  if (outbox_.empty()) return loop_.stop();
  loop_.every(os::milliseconds(1), [this] {
    if (outbox_.empty()) loop_.stop();
  });
}

// A launcher on this machine is suspended together with us, and so is its clock; any other one goes on, and may have started the ranks
// again elsewhere by the time this machine wakes.
void Agent::begin_lease() {
  if (job_->lease_ms == 0) return;
  os::Mono before = lease_now();
  if (!job_->boot_id.empty() && job_->boot_id == os::boot_id()) lease_clock_ = CLOCK_MONOTONIC;
  os::Mono now = lease_now();
  lease_.begin(os::milliseconds(job_->lease_ms), now, now - before);
  order_guard();
}

void Agent::renew_lease(const wire::Ping& ping) {
  lease_.heard(ping.sent_ns, lease_now());
  if (lease_.begun() && !lease_.over(lease_now())) order_guard();
}

void Agent::order_guard() {
  GuardOrder order;
  order.end_ns = lease_.end().ns;
  order.clock = lease_clock_;
  if (scratch_ && scratch_->path().size() < order.scratch.size())
    std::copy(scratch_->path().begin(), scratch_->path().end(), order.scratch.begin());
  if (std::string group = cgroup_path(); group.size() < order.cgroup.size()) std::copy(group.begin(), group.end(), order.cgroup.begin());
  guard_.order(order);
}

// After a time in which this process did not run, pings may be waiting: they are read first, and only one that was sent a short while ago
// helps.
void Agent::check_lease() {
  if (lease_.over(lease_now()))
    for (int i = 0; i < kMostReads && read_input();) ++i;
  if (loop_.stopped()) return;
  os::Mono now = lease_now();
  if (lease_.over(now)) return end_everything(fmt::format("no contact with the launcher for {} ms", lease_.length().count()));
  lease_.ran(now);
  if (lease_.begun()) guard_.check(lease_.length(), [this](const std::string& text) { outbox_.control(wire::Trouble{text}); });
}

// The last act. Blocks at most kKillMilliseconds.
void Agent::end_everything(const std::string& why) {
  if (loop_.stopped()) return;
  loop_.stop();
  os::KillOutcome outcome = kill_family(cgroup_path(), std::chrono::milliseconds(kKillMilliseconds));
  if (scratch_ && outcome.left == 0) scratch_->remove();
  guard_.end_guard();
  std::string text = base::counted("phalanx-agent: {}; {} processes were killed\n", why, outcome.killed);
  ::fcntl(STDERR_FILENO, F_SETFL, ::fcntl(STDERR_FILENO, F_GETFL) | O_NONBLOCK);
  if (::write(STDERR_FILENO, text.data(), text.size()) < 0) {}
  code_ = 1;
}

int run_agent(os::Fd orders, os::Fd answers, const std::string& build) {
  base::Status reaper = os::become_subreaper();
  base::Result<std::unique_ptr<os::Loop>> loop = os::Loop::create();
  if (!reaper.ok() || !loop.ok()) return base::exit_code(ErrorKind::kInternal);
  Agent agent(**loop, std::move(orders), std::move(answers), build);
  base::Status opened = agent.open();
  if (!opened.ok()) {
    std::fputs(opened.error().render().c_str(), stderr);
    return base::exit_code(opened.error().kind);
  }
  (*loop)->run();
  return agent.code();
}

}  // namespace phalanx::agent
