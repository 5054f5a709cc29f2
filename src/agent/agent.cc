// The agent's life: say Hello; answer Prepare, OpenStore and Reach; Start the ranks; ship output until Finish. One loop, no waits
// outside it but one: end_everything(), which is the last thing the process does.
#include "agent/agent.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <optional>
#include <set>

#include <fmt/format.h>

#include "agent/environment.h"
#include "agent/guard.h"
#include "agent/outbox.h"
#include "agent/ranks.h"
#include "agent/reach.h"
#include "agent/scratch.h"
#include "host/identity.h"
#include "host/sockets.h"
#include "os/build_id.h"
#include "os/files.h"
#include "os/family.h"
#include "os/process.h"
#include "os/program.h"
#include "store/server.h"
#include "wire/frame.h"

namespace agent {
namespace {

using base::ErrorKind;

constexpr os::milliseconds kLeaseTick{500};
constexpr os::milliseconds kStoreWatchPeriod{500};
constexpr os::milliseconds kFinishStep{5};
constexpr os::milliseconds kPoliteEnd{500};  // from SIGTERM to SIGKILL for what a finished rank left running

class Agent {
 public:
  Agent(os::Loop& loop, os::Fd lifeline)
      : loop_(loop), lifeline_(std::move(lifeline)),
        outbox_(loop, STDOUT_FILENO, [this] { ranks_.resume_reading(); }, [this] { end_everything("the launcher is gone"); }),
        ranks_(loop, outbox_), host_environment_(parse_environment(environ)) {}

  base::Status open();
  int code() const { return code_; }

 private:
  void say_hello();
  void read_input();
  void handle(const wire::Frame& frame);
  void prepare(wire::Prepare message);
  wire::Prepared check_job();
  void open_store(const wire::OpenStore& message);
  void reach(const wire::Reach& message);
  void start(const wire::Start& message);
  void signal(int signal_number);
  void finish();
  void finish_step();
  void watch_store();
  void check_lease();
  void end_everything(const std::string& why);

  os::Loop& loop_;
  os::Fd lifeline_;
  Outbox outbox_;
  Ranks ranks_;
  Environment host_environment_;
  wire::FrameReader reader_;
  std::optional<wire::Prepare> job_;
  Environment job_environment_;
  std::string program_;
  std::optional<Scratch> scratch_;
  std::unique_ptr<store::Server> store_;
  os::Endpoint store_endpoint_;
  std::unique_ptr<ReachCheck> reach_;
  std::set<uint32_t> not_connected_;
  os::Mono heard_ = os::mono_now();
  os::Mono last_tick_ = heard_;
  uint32_t cpus_ = 1;
  std::optional<os::Mono> finishing_since_;
  uint32_t killed_ = 0;
  int code_ = 0;
};

base::Status Agent::open() {
  TRY(os::set_nonblocking(STDIN_FILENO));
  TRY(os::set_nonblocking(STDOUT_FILENO));
  TRY(loop_.on_child([this](pid_t pid, int status) { ranks_.on_exit(pid, status); }));
  for (int s : {SIGTERM, SIGINT, SIGHUP, SIGQUIT})
    TRY(loop_.on_signal(s, [this, s](const signalfd_siginfo&) { end_everything(os::signal_name(s) + " to the agent"); }));
  TRY(loop_.watch(STDIN_FILENO, EPOLLIN, [this](uint32_t) { read_input(); }));
  TRY(loop_.watch(lifeline_.get(), EPOLLIN, [this](uint32_t) { end_everything("phalanx-guard was killed"); }));
  loop_.every(kLeaseTick, [this] { check_lease(); });
  say_hello();
  return base::ok();
}

void Agent::say_hello() {
  const char* visible = ::getenv("CUDA_VISIBLE_DEVICES");
  host::Identity id = host::identify("", visible);
  cpus_ = id.cpus;
  wire::Hello hello;
  hello.build = os::build_id();
  hello.hostname = id.hostname;
  hello.user = id.user;
  hello.pid = static_cast<uint32_t>(::getpid());
  hello.cpus = id.cpus;
  hello.gpus = id.gpus;
  for (const os::InterfaceAddress& a : id.addresses) hello.addresses.push_back({a.interface, a.address});
  // "client port server port", as sshd sets it
  std::string ssh = os::environment_value("SSH_CONNECTION");
  std::vector<std::string> parts;
  for (size_t begin = 0; begin < ssh.size();) {
    size_t end = std::min(ssh.find(' ', begin), ssh.size());
    parts.push_back(ssh.substr(begin, end - begin));
    begin = end + 1;
  }
  if (parts.size() == 4) { hello.ssh_client = parts[0]; hello.ssh_server = parts[2]; }
  hello.now_ns = os::mono_now().ns;
  outbox_.magic();
  outbox_.control(hello);
}

void Agent::read_input() {
  static std::string buffer(256 << 10, '\0');
  os::IoStep step = os::read_step(STDIN_FILENO, buffer.data(), buffer.size());
  if (step.kind == os::IoStep::kWouldBlock) return;
  if (step.kind != os::IoStep::kBytes) return end_everything("the launcher is gone");
  heard_ = os::mono_now();
  reader_.feed(std::string_view(buffer.data(), step.bytes));
  while (!loop_.stopped()) {
    base::Result<std::optional<wire::Frame>> frame = reader_.next();
    if (!frame.ok()) return end_everything("the launcher's stream is broken: " + frame.error().message);
    if (!frame->has_value()) return;
    handle(**frame);
  }
}

// A frame that cannot be decoded means that the two sides are not the same program: nothing safe can be done with it.
template <typename Message, typename Function>
bool with(const wire::Frame& frame, Function function) {
  base::Result<Message> message = wire::decode<Message>(frame.payload);
  if (message.ok()) function(std::move(message).value());
  return message.ok();
}

void Agent::handle(const wire::Frame& frame) {
  bool good = false;
  switch (frame.type) {
    case wire::FrameType::kPrepare: good = with<wire::Prepare>(frame, [&](wire::Prepare m) { prepare(std::move(m)); }); break;
    case wire::FrameType::kOpenStore: good = with<wire::OpenStore>(frame, [&](const wire::OpenStore& m) { open_store(m); }); break;
    case wire::FrameType::kReach: good = with<wire::Reach>(frame, [&](const wire::Reach& m) { reach(m); }); break;
    case wire::FrameType::kStart: good = with<wire::Start>(frame, [&](const wire::Start& m) { start(m); }); break;
    case wire::FrameType::kSignal: good = with<wire::Signal>(frame, [&](const wire::Signal& m) { signal(m.signal); }); break;
    case wire::FrameType::kPing:
      good = with<wire::Ping>(frame, [&](const wire::Ping& m) { outbox_.control(wire::Pong{m.nonce, os::mono_now().ns}); });
      break;
    case wire::FrameType::kFinish: good = with<wire::Finish>(frame, [&](const wire::Finish&) { finish(); }); break;
    default: break;
  }
  if (!good) end_everything(fmt::format("a frame of type {} makes no sense", static_cast<int>(frame.type)));
}

void Agent::prepare(wire::Prepare message) {
  job_ = std::move(message);
  outbox_.control(check_job());
}

wire::Prepared Agent::check_job() {
  wire::Prepared answer;
  if (!os::is_folder(job_->directory)) {
    answer.outcome = {false, base::fail(ErrorKind::kUnfit, "the working directory " + job_->directory + " does not exist")
                                 .with_hint("create or mount it there, or name another with --workdir")};
    return answer;
  }
  if (::access(job_->directory.c_str(), X_OK) != 0) {
    base::Error denied = base::system_error("enter", job_->directory);
    denied.kind = ErrorKind::kUnfit;
    answer.outcome = {false, std::move(denied)};
    return answer;
  }
  job_environment_ = job_environment(host_environment_, *job_, os::is_folder(job_->path_prefix));
  base::Result<std::string> program = os::find_program(job_->argv[0], job_environment_["PATH"], job_->directory);
  if (!program.ok()) {
    base::Error error = std::move(program).error();
    error.kind = ErrorKind::kUnfit;
    answer.outcome = {false, std::move(error)};
    return answer;
  }
  program_ = answer.program = *program;
  scratch_ = Scratch::create(job_->run_id);
  return answer;
}

void Agent::open_store(const wire::OpenStore& message) {
  wire::StoreOpened answer;
  store_.reset();
  base::Result<os::Listener> listener = os::listen_tcp({message.address, static_cast<uint16_t>(message.port)});
  if (!listener.ok()) {
    base::Error error = std::move(listener).error();
    error.kind = ErrorKind::kUnfit;
    answer.outcome = {false, std::move(error)};
  } else if (message.serve) {
    answer.port = listener->endpoint.port;
    store_endpoint_ = listener->endpoint;
    store::ServerOptions options;
    options.token = job_ ? job_->token : "";
    base::Result<std::unique_ptr<store::Server>> server = store::Server::start(loop_, std::move(listener).value(), options);
    if (server.ok()) {
      store_ = std::move(server).value();
      store_->allow(message.address);
      store_->allow("127.0.0.1");
      store_->allow("::1");
      for (const os::InterfaceAddress& a : host::identify("", nullptr).addresses) store_->allow(a.address);
    } else {
      answer.outcome = {false, std::move(server).error()};
    }
  } else {
    answer.port = listener->endpoint.port;  // rank 0 will bind it itself; the listener is closed here
  }
  outbox_.control(answer);
}

void Agent::reach(const wire::Reach& message) {
  reach_ = std::make_unique<ReachCheck>(loop_, os::Endpoint{message.address, static_cast<uint16_t>(message.port)}, job_ ? job_->token : "",
                                        os::milliseconds(message.timeout_ms), [this](wire::Reached result) { outbox_.control(result); });
}

void Agent::start(const wire::Start& message) {
  if (!job_) return end_everything("Start came before Prepare");
  store_endpoint_ = {message.store_address, static_cast<uint16_t>(message.store_port)};
  for (const auto& [name, value] : message.defaults) job_environment_.emplace(name, value);
  RankCommand command{program_, job_->argv, job_->directory, scratch_ ? scratch_->path() : ""};
  for (const wire::RankSpec& spec : message.ranks) {
    RankPlace place;
    place.cpus = cpus_;
    place.local_world = static_cast<uint32_t>(message.ranks.size());
    ranks_.start(spec, job_environment_, command, place);
    not_connected_.insert(spec.rank);
  }
  if (message.store_port != 0) loop_.every(kStoreWatchPeriod, [this] { watch_store(); });
}

// Which ranks hold a connection to the store. Seen from the ranks' side, so it works for every dialect and for rank 0 as host.
void Agent::watch_store() {
  if (not_connected_.empty() || finishing_since_) return;
  std::set<uint64_t> sockets = host::sockets_to(store_endpoint_);
  if (sockets.empty()) return;
  for (const Ranks::Living& rank : ranks_.living()) {
    if (!not_connected_.count(rank.rank)) continue;
    std::vector<pid_t> family{rank.pid};
    for (const os::ProcessInfo& p : os::descendants(rank.pid)) family.push_back(p.pid);
    if (!host::holds_socket(family, sockets)) continue;
    not_connected_.erase(rank.rank);
    outbox_.control(wire::Connected{rank.rank});
  }
}

void Agent::signal(int signal_number) {
  ranks_.signal(signal_number);
  if (signal_number != SIGKILL) return;
  for (const os::ProcessInfo& p : os::descendants(::getpid())) {
    if (p.state == 'Z') continue;
    ::kill(p.pid, SIGKILL);
    ++killed_;
  }
}

// Ends what ranks left behind: politely first, since it may be a logger that still flushes.
void Agent::finish() {
  if (finishing_since_) return;
  finishing_since_ = os::mono_now();
  finish_step();
}

void Agent::finish_step() {
  std::vector<os::ProcessInfo> left = os::descendants(::getpid());
  std::erase_if(left, [](const os::ProcessInfo& p) { return p.state == 'Z' || p.state == 'X'; });
  os::nanoseconds passed = os::mono_now() - *finishing_since_;
  bool over = passed > os::milliseconds(kKillMilliseconds) + kPoliteEnd;
  if (!left.empty() && !over) {
    bool first = killed_ == 0 && passed < kFinishStep;
    if (first) killed_ = static_cast<uint32_t>(left.size());
    if (first || passed >= kPoliteEnd)
      for (const os::ProcessInfo& p : left) ::kill(p.pid, first ? SIGTERM : SIGKILL);
    loop_.after(kFinishStep, [this] { finish_step(); });
    return;
  }
  ranks_.drain();
  store_.reset();
  if (scratch_) scratch_->remove();
  outbox_.output(wire::Finished{killed_, static_cast<uint32_t>(left.size())});  // behind all output: whoever has it has everything
  loop_.every(os::milliseconds(1), [this] { if (outbox_.empty()) loop_.stop(); });
}

void Agent::check_lease() {
  os::Mono now = os::mono_now();
  bool slept = now - last_tick_ > 4 * kLeaseTick;  // this process did not run: it cannot judge the launcher
  last_tick_ = now;
  if (slept) heard_ = now;
  if (job_ && job_->lease_ms > 0 && now - heard_ > os::milliseconds(job_->lease_ms) && !finishing_since_)
    end_everything(fmt::format("nothing was heard from the launcher for {} ms", job_->lease_ms));
}

// The last act. Blocks at most kKillMilliseconds.
void Agent::end_everything(const std::string& why) {
  if (loop_.stopped()) return;
  loop_.stop();
  os::KillOutcome outcome = os::kill_descendants(std::chrono::milliseconds(kKillMilliseconds));
  if (scratch_) scratch_->remove();
  std::string text = fmt::format("phalanx-agent: {}; {} processes were ended\n", why, outcome.killed);
  ::fcntl(STDERR_FILENO, F_SETFL, ::fcntl(STDERR_FILENO, F_GETFL) | O_NONBLOCK);
  if (::write(STDERR_FILENO, text.data(), text.size()) < 0) {}
  code_ = 1;
}

}  // namespace

int run_agent(os::Fd lifeline) {
  base::Status reaper = os::become_subreaper();
  base::Result<std::unique_ptr<os::Loop>> loop = os::Loop::create();
  if (!reaper.ok() || !loop.ok()) return base::exit_code(ErrorKind::kInternal);
  Agent agent(**loop, std::move(lifeline));
  base::Status opened = agent.open();
  if (!opened.ok()) {
    std::fputs(opened.error().render().c_str(), stderr);
    return base::exit_code(opened.error().kind);
  }
  (*loop)->run();
  return agent.code();
}

}  // namespace agent
