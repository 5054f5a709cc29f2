#include "job/runner.h"

#include <signal.h>

#include <fmt/format.h>

namespace job {
namespace {

constexpr os::milliseconds kTick{200};

template <typename Message>
std::optional<FromHost> decoded(const wire::Frame& frame) {
  base::Result<Message> message = wire::decode<Message>(frame.payload);
  if (!message.ok()) return std::nullopt;
  return FromHost(std::move(message).value());
}

std::optional<FromHost> decode_any(const wire::Frame& frame) {
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
    case wire::FrameType::kDialed: return decoded<wire::Dialed>(frame);
    default: return std::nullopt;
  }
}

}  // namespace

Runner::~Runner() {
  if (tick_) loop_.cancel(tick_);
}

base::Result<Verdict> Runner::run(Job job, const std::vector<const cluster::Transport*>& transports, cluster::Payload& payload,
                                  cluster::OpenerOptions options) {
  CHECK(transports.size() == job.hosts.size());
  std::vector<cluster::Opener::Host> hosts;
  for (size_t h = 0; h < job.hosts.size(); ++h) hosts.push_back({job.hosts[h].target, transports[h]});
  uint32_t seed = 0;
  for (char c : job.token) seed = seed * 31 + static_cast<unsigned char>(c);
  state_ = std::make_unique<State>(initial_state(std::move(job), os::mono_now()));
  state_->wall_less_mono_ns = os::wall_now_ns() - os::mono_now().ns;
  opener_ = std::make_unique<cluster::Opener>(
      loop_, payload, std::move(hosts), options,
      cluster::Opener::Handlers{[this](size_t host, const wire::Frame& frame) { on_frame(host, frame); },
                                [this](size_t host, base::Error error, bool) { feed(HostEnded{host, std::move(error)}); }},
      seed);
  TRY(loop_.on_child([this](pid_t pid, int status) { opener_->on_child(pid, status); }));
  for (int s : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) TRY(loop_.on_signal(s, [this, s](const signalfd_siginfo&) { feed(OperatorSignal{s}); }));
  TRY(loop_.on_signal(SIGTSTP, [this](const signalfd_siginfo&) { audience_.note(*state_, NotSuspended{}); }));
  tick_ = loop_.every(kTick, [this] { feed(Tick{}); });
  opener_->start();
  loop_.run();
  opener_.reset();
  CHECK(verdict_.has_value());
  return *std::move(verdict_);
}

void Runner::on_frame(size_t host, const wire::Frame& frame) {
  if (frame.type == wire::FrameType::kOutput) {
    base::Result<wire::Output> output = wire::decode<wire::Output>(frame.payload);
    if (!output.ok() || output->rank >= state_->ranks.size()) return cut_for_bad_frame(host, frame);
    os::Mono now = os::mono_now();
    heard(*state_, host, now);
    int64_t age_ns = now.ns - (output->at_ns - state_->hosts[host].clock_offset_ns);
    audience_.output(*state_, *output, os::wall_now_ns() - age_ns);
    if (!audience_.ready()) pause();
    return;
  }
  if (frame.type == wire::FrameType::kProgress) {
    base::Result<wire::Progress> progress = wire::decode<wire::Progress>(frame.payload);
    if (!progress.ok() || progress->rank >= state_->ranks.size()) return cut_for_bad_frame(host, frame);
    heard(*state_, host, os::mono_now());
    base::Result<wire::RankProgress> parsed = wire::parse_rank_progress(progress->line);
    if (parsed.ok()) audience_.progress(*state_, static_cast<int>(progress->rank), *parsed);
    return;
  }
  std::optional<FromHost> message = decode_any(frame);
  if (!message) return cut_for_bad_frame(host, frame);
  feed(HostSaid{host, *std::move(message)});
}

void Runner::cut_for_bad_frame(size_t host, const wire::Frame& frame) {
  if (cluster::Connection* connection = opener_->connection(host)) connection->kill(SIGKILL);
  feed(HostEnded{
      host, base::fail(base::ErrorKind::kInternal, state_->job.hosts[host].target.name + ": its agent sent a frame that makes no sense")
                .because(fmt::format("frame type {}, {} bytes", static_cast<int>(frame.type), frame.payload.size()))});
}

void Runner::feed(const Event& event) {
  if (verdict_) return;
  Actions actions = step(*state_, event, os::mono_now());
  audience_.event(*state_, event);
  for (const Action& action : actions) perform(action);
}

void Runner::perform(const Action& action) {
  if (auto* send_action = std::get_if<Send>(&action)) return send(send_action->host, send_action->message);
  if (auto* cut = std::get_if<CutHost>(&action)) {
    if (cluster::Connection* connection = opener_->connection(cut->host)) connection->kill(SIGKILL);
  } else if (std::holds_alternative<AbandonOpening>(action)) {
    opener_->abandon();
  } else if (auto* tell = std::get_if<Tell>(&action)) {
    audience_.note(*state_, tell->note);
  } else if (auto* end = std::get_if<End>(&action)) {
    verdict_ = end->verdict;
    loop_.stop();
  }
}

void Runner::send(size_t host, const ToHost& message) {
  cluster::Connection* connection = opener_->connection(host);
  if (!connection) return;
  std::string frames;
  std::visit([&](const auto& m) { wire::encode(frames, m); }, message);
  connection->send(frames);
}

void Runner::pause() {
  if (paused_) return;
  paused_ = state_->output_blocked = true;
  for (size_t h = 0; h < state_->hosts.size(); ++h)
    if (cluster::Connection* connection = opener_->connection(h)) connection->pause_reading(true);
}

void Runner::resume() {
  if (!paused_ || !opener_) return;
  paused_ = state_->output_blocked = false;
  for (size_t h = 0; h < state_->hosts.size(); ++h)
    if (cluster::Connection* connection = opener_->connection(h)) connection->pause_reading(false);
}

}  // namespace job
