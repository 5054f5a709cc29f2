#include "job/runner.h"

#include <signal.h>

#include <fmt/format.h>

#include "base/counted.h"
#include "base/try.h"

namespace phalanx::job {
namespace {

constexpr os::milliseconds kTick{200};

template <typename Message>
base::Result<FromHost> decoded(const wire::Frame& frame) {
  TRY_ASSIGN(Message message, wire::decode<Message>(frame.payload));
  return FromHost(std::move(message));
}

base::Result<FromHost> decode_any(const wire::Frame& frame) {
  switch (frame.type) {
    case wire::FrameType::kHello: return decoded<wire::Hello>(frame);
    case wire::FrameType::kPrepared: return decoded<wire::Prepared>(frame);
    case wire::FrameType::kStoreOpened: return decoded<wire::StoreOpened>(frame);
    case wire::FrameType::kReached: return decoded<wire::Reached>(frame);
    case wire::FrameType::kStarted: return decoded<wire::Started>(frame);
    case wire::FrameType::kExited: return decoded<wire::Exited>(frame);
    case wire::FrameType::kConnected: return decoded<wire::Connected>(frame);
    case wire::FrameType::kPong: return decoded<wire::Pong>(frame);
    case wire::FrameType::kFinished: return decoded<wire::Finished>(frame);
    case wire::FrameType::kTrouble: return decoded<wire::Trouble>(frame);
    case wire::FrameType::kProbed: return decoded<wire::Probed>(frame);
    case wire::FrameType::kListening: return decoded<wire::Listening>(frame);
    case wire::FrameType::kSampled: return decoded<wire::Sampled>(frame);
    case wire::FrameType::kDug: return decoded<wire::Dug>(frame);
    case wire::FrameType::kDialed: return decoded<wire::Dialed>(frame);
    default: return base::fail(base::ErrorKind::kInternal, "an agent does not send frames of this type");
  }
}

base::Error another_hosts_rank() { return base::fail(base::ErrorKind::kInternal, "it reports on a rank of another host"); }

}  // namespace

Runner::~Runner() {
  if (tick_) loop_.cancel(tick_);
  if (look_.timer) loop_.cancel(look_.timer);
}

base::Result<Verdict> Runner::run(Job job, const std::vector<const hosts::Transport*>& transports, hosts::Payload& payload,
                                  hosts::OpenerOptions options) {
  PHALANX_CHECK(transports.size() == job.hosts.size() + job.spares.size());
  payload_ = &payload;
  transports_ = transports;
  options_ = options;
  run_ = std::make_unique<Run>(begin_run(std::move(job), os::mono_now(), os::wall_now_ns() - os::mono_now().ns));
  TRY(loop_.on_child([this](pid_t pid, int status) { on_child(pid, status); }));
  for (int s : {SIGINT, SIGTERM, SIGHUP, SIGQUIT})
    TRY(loop_.on_signal(s, [this, s](const signalfd_siginfo&) {
      if (s != SIGHUP || !hangup_ignored_) feed(OperatorSignal{s});
    }));
  TRY(loop_.on_signal(SIGTSTP, [this](const signalfd_siginfo&) { audience_.note(state(), NotSuspended{}); }));
  tick_ = loop_.every(kTick, [this] {
    std::erase_if(closing_, [](const auto& opener) { return opener->over(); });
    feed(Tick{});
  });
  open_hosts();
  loop_.run();
  opener_.reset();
  prover_.reset();
  closing_.clear();
  PHALANX_CHECK(verdict_.has_value());
  return *std::move(verdict_);
}

void Runner::open_hosts() {
  end_proof();
  std::vector<hosts::Opener::Host> hosts;
  for (size_t m : run_->members) hosts.push_back({run_->pool[m].request.target, transports_[m]});
  uint32_t seed = 0;
  for (char c : state().job.token) seed = seed * 31 + static_cast<unsigned char>(c);
  opener_ = std::make_unique<hosts::Opener>(
      loop_, *payload_, std::move(hosts), options_,
      hosts::Opener::Handlers{[this, number = run_->number](size_t host, const wire::Frame& frame) { on_frame(number, host, frame); },
                              [this, number = run_->number](size_t host, base::Error error, std::optional<wire::GuardEnd> guard) {
                                feed(HostEnded{host, std::move(error), guard}, number);
                              }},
      seed);
  opener_->start();
}

void Runner::close_hosts() {
  opener_->shut();
  closing_.push_back(std::move(opener_));
}

void Runner::on_child(pid_t pid, int status) {
  if (opener_ && opener_->on_child(pid, status)) return;
  if (prover_ && prover_->on_child(pid, status)) return;
  for (const auto& opener : closing_)
    if (opener->on_child(pid, status)) return;
}

void Runner::on_frame(int number, size_t host, const wire::Frame& frame) {
  if (number != run_->number || run_->waiting) return;  // what an attempt's connections still say after its end
  if (frame.type == wire::FrameType::kOutput || frame.type == wire::FrameType::kProgress || frame.type == wire::FrameType::kPulse)
    return on_report(host, frame);
  base::Result<FromHost> message = decode_any(frame);
  if (auto* sampled = message.ok() ? std::get_if<wire::Sampled>(&*message) : nullptr; sampled && look_.is_answer(sampled->id))
    return on_looked(host, *sampled);
  if (!message.ok()) return cut_for_bad_frame(host, frame, message.error());
  feed(HostSaid{host, std::move(message).value()}, number);
}

void Runner::on_report(size_t host, const wire::Frame& frame) {
  HostReported event{host, frame.payload.size(), {}};
  bool understood = true;  // a line of progress is the program's own: one that cannot be read is a sign of life and no more
  base::Status read = [&]() -> base::Status {
    if (frame.type == wire::FrameType::kOutput) {
      TRY_ASSIGN(event.report, wire::decode<wire::Output>(frame.payload));
    } else if (frame.type == wire::FrameType::kPulse) {
      TRY_ASSIGN(event.report, wire::decode<wire::Pulse>(frame.payload));
    } else {
      TRY_ASSIGN(wire::Progress progress, wire::decode<wire::Progress>(frame.payload));
      base::Result<wire::RankProgress> parsed = wire::parse_rank_progress(progress.line);
      understood = parsed.ok();
      event.report = RankAdvanced{progress.rank, understood ? *parsed : wire::RankProgress{}};
    }
    return is_of_its_own(run_->attempt, event) ? base::ok() : another_hosts_rank();
  }();
  if (!read.ok()) return cut_for_bad_frame(host, frame, read.error());
  os::Mono now = os::mono_now();
  for (const Action& action : step(*run_, event, now)) perform(action);
  if (auto* output = std::get_if<wire::Output>(&event.report)) {
    int64_t age_ns = now.ns - (output->at_ns - run_->attempt.hosts[host].clock_offset_ns);
    audience_.output(run_->attempt, *output, os::wall_now_ns() - age_ns);
  } else if (auto* advanced = std::get_if<RankAdvanced>(&event.report); advanced && understood) {
    audience_.progress(run_->attempt, static_cast<int>(advanced->rank), advanced->progress);
  }
}

void Runner::cut_for_bad_frame(size_t host, const wire::Frame& frame, const base::Error& why) {
  if (hosts::Connection* connection = opener_->connection(host)) connection->kill(SIGKILL);
  feed(HostEnded{
      host, base::fail(base::ErrorKind::kInternal,
                       fmt::format("{}: protocol error: the agent sent a malformed frame", run_->attempt.job.hosts[host].target.name))
                .because(base::counted("{} (frame type {}, {} bytes)", why.message, static_cast<int>(frame.type), frame.payload.size()))});
}

void Runner::feed(const Event& event, std::optional<int> number) {
  bool stale = number && (*number != run_->number || run_->waiting);
  if (verdict_ || stale) return;
  Actions actions = step(*run_, event, os::mono_now(), number.value_or(run_->number));
  audience_.event(run_->attempt, event);
  for (const Action& action : actions) perform(action);
}

void Runner::perform(const Action& action) {
  if (auto* send_action = std::get_if<Send>(&action)) return send(send_action->host, send_action->message);
  if (auto* cut = std::get_if<CutHost>(&action)) {
    if (hosts::Connection* connection = opener_->connection(cut->host)) connection->kill(SIGKILL);
  } else if (std::holds_alternative<AbandonOpening>(action)) {
    opener_->abandon();
  } else if (auto* tell = std::get_if<Tell>(&action)) {
    audience_.note(run_->attempt, tell->note);
  } else if (std::holds_alternative<CloseHosts>(action)) {
    close_hosts();
  } else if (std::holds_alternative<OpenHosts>(action)) {
    open_hosts();
  } else if (auto* prove = std::get_if<ProveEmpty>(&action)) {
    prove_empty(prove->candidates);
  } else if (auto* end = std::get_if<End>(&action)) {
    verdict_ = end->verdict;
    loop_.stop();
  }
}

void Runner::send(size_t host, const ToHost& message) {
  hosts::Connection* connection = opener_ ? opener_->connection(host) : nullptr;
  if (!connection) return;
  std::string frames;
  base::Status fits = std::visit([&](const auto& m) { return wire::encode(frames, m); }, message);
  if (fits.ok()) return connection->send(frames);
  // Told from the loop: this is inside a step's actions.
  base::Error error = std::move(fits).error();
  error.message = run_->attempt.job.hosts[host].target.name + ": " + error.message;
  loop_.after(os::nanoseconds(0), [this, host, error = std::move(error), number = run_->number] {
    if (number != run_->number || run_->waiting) return;
    if (hosts::Connection* broken = opener_ ? opener_->connection(host) : nullptr) broken->kill(SIGKILL);
    feed(HostEnded{host, error}, number);
  });
}

void Runner::time_out(os::milliseconds limit) {
  if (run_ && !verdict_) feed(OperatorSignal{SIGTERM, {}, limit});
}

void Runner::stop(std::optional<os::milliseconds> grace, bool kill) {
  if (!run_ || verdict_) return;
  feed(OperatorSignal{SIGTERM, grace});
  if (kill) feed(OperatorSignal{SIGTERM});
}

}  // namespace phalanx::job
