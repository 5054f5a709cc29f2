#include "hosts/connect/connection.h"

#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include <fmt/format.h>

#include "base/try.h"
#include "os/descriptor_limit.h"
#include "os/files.h"
#include "os/process.h"
#include "os/program.h"

namespace phalanx::hosts {
namespace {
constexpr size_t kStderrKept = 8 << 10;
constexpr size_t kReadBytes = 256 << 10;
}  // namespace

Connection::Connection(os::Loop& loop, Payload& payload, Handlers handlers)
    : loop_(loop), payload_(payload), handlers_(std::move(handlers)) {}

Connection::~Connection() {
  for (os::WatchId id : {in_watch_, out_watch_, err_watch_, session_watch_})
    if (id) loop_.unwatch(id);
  for (os::TimerId id : {drain_timer_, kill_timer_})
    if (id) loop_.cancel(id);
  if (pid_ > 0 && !exited_) ::kill(pid_, SIGKILL);
}

base::Status Connection::open(const Launch& launch) {
  TRY_ASSIGN(os::PipeEnds in, os::make_pipe());
  TRY_ASSIGN(os::PipeEnds out, os::make_pipe());
  TRY_ASSIGN(os::PipeEnds err, os::make_pipe());
  FarEnds far{std::move(in.read), std::move(out.write), std::move(err.write)};
  if (!launch.session || !ask(launch, far).ok()) TRY(spawn(launch, far));
  begun_ = true;
  deploys_ = launch.deploys;
  in_ = std::move(in.write);
  out_ = std::move(out.read);
  err_ = std::move(err.read);
  for (int fd : {in_.get(), out_.get(), err_.get()}) TRY(os::set_nonblocking(fd));
  os::widen_pipe(out_.get());
  TRY_ASSIGN(out_watch_, loop_.watch(out_.get(), EPOLLIN, [this](uint32_t) { read_stdout(); }));
  TRY_ASSIGN(err_watch_, loop_.watch(err_.get(), EPOLLIN, [this](uint32_t) { read_stderr(); }));
  return base::ok();
}

base::Status Connection::spawn(const Launch& launch, const FarEnds& far) {
  os::SpawnSpec spec;
  const std::string& program = launch.program.empty() ? launch.argv[0] : launch.program;
  TRY_ASSIGN(spec.program, os::find_program(program, os::environment_value("PATH", "/usr/bin:/bin"), ""));
  spec.arguments = launch.argv;
  for (char** e = environ; *e; ++e) spec.environment.push_back(*e);
  spec.fds = {{far.in.get(), 0}, {far.out.get(), 1}, {far.err.get(), 2}};
  for (const InheritedFd& one : launch.inherits) spec.fds.emplace_back(one.fd->get(), one.there);
  spec.death_signal = SIGTERM;  // a launcher that is killed takes its logins along; a shared connection, in a process of its own, stays
  TRY_ASSIGN(pid_, os::spawn(spec));
  return base::ok();
}

base::Status Connection::ask(const Launch& launch, FarEnds& far) {
  TRY_ASSIGN(SshSession session, SshSession::connect(*launch.session));
  // A session takes a descriptor more than a program, as long as it lasts: not where that could keep other hosts from being reached.
  if (!os::is_low_descriptor(session.fd())) return base::system_error("connect", launch.session->socket, EMFILE);
  TRY_ASSIGN(session_watch_, loop_.watch(session.fd(), EPOLLIN, [this](uint32_t) { hear_session(); }));
  session_ = std::move(session);
  if (base::Status asked = session_->ask(*launch.session, far.in.get(), far.out.get(), far.err.get()); !asked.ok()) {
    end_session();
    return asked;
  }
  instead_ = launch;
  far_ = std::move(far);
  return base::ok();
}

void Connection::hear_session() {
  const SshSession::State state = session_->read();
  if (state == SshSession::State::kAsked) return;
  const FarEnds far = std::exchange(far_, {});
  const Launch instead = std::exchange(instead_, {});
  if (state == SshSession::State::kOpen) return;
  const int code = session_->exit_code();
  end_session();
  if (state == SshSession::State::kEnded) return on_exit(code << 8);
  const base::Status spawned = spawn(instead, far);
  if (spawned.ok()) return;
  death_.spawned = false;
  death_.stderr_text += spawned.error().message + (spawned.error().cause.empty() ? "" : ": " + spawned.error().cause) + "\n";
  on_exit(127 << 8);
}

void Connection::end_session() {
  loop_.unwatch(session_watch_);
  session_watch_ = 0;
  session_.reset();
}

void Connection::widen() {
  if (in_.valid()) os::widen_pipe(in_.get());
}

void Connection::send(std::string_view frames) {
  if (!magic_sent_) send_raw(wire::kStreamMagic);
  magic_sent_ = true;
  send_raw(frames);
}

void Connection::send_raw(std::string_view bytes) {
  if (!in_.valid() || close_wanted_) return;
  outgoing_.append(bytes);
  write_more();
}

void Connection::close_input() {
  close_wanted_ = true;
  write_more();
}

void Connection::kill(int signal_number) {
  if (pid_ > 0 && !exited_) ::kill(pid_, signal_number);
  if (!session_) return;
  // As the death of a process would be, the end is noticed later. An ssh that has not answered may never close its copies of the pipes.
  const bool answered = !far_.in.valid();
  end_session();
  far_ = {};
  instead_ = {};
  kill_timer_ = loop_.after(os::nanoseconds(0), [this, signal_number, answered] {
    kill_timer_ = 0;
    if (!answered) finish_stdout();
    on_exit(signal_number);
  });
}

void Connection::write_more() {
  while (in_.valid() && (!upload_.empty() || sent_ < outgoing_.size())) {
    std::string_view next = upload_.empty() ? std::string_view(outgoing_).substr(sent_) : upload_;
    os::IoStep step = os::write_step(in_.get(), next.data(), next.size());
    if (step.kind == os::IoStep::kBytes) {
      if (upload_.empty()) {
        sent_ += step.bytes;
        continue;
      }
      upload_.remove_prefix(step.bytes);
      sent_of_upload_ += step.bytes;
      upload_moved_ = os::mono_now();
      continue;
    }
    if (step.kind == os::IoStep::kWouldBlock) {
      if (!in_watch_) {
        base::Result<os::WatchId> watch = loop_.watch(in_.get(), EPOLLOUT, [this](uint32_t) {
          write_more();
          if (pending() == 0 && in_.valid() && drained_) drained_();
        });
        if (watch.ok()) in_watch_ = *watch;
      }
      return;
    }
    close_wanted_ = true;  // the process does not read any more; its end tells why
    break;
  }
  upload_ = {};
  outgoing_.clear();
  sent_ = 0;
  if (in_watch_) loop_.unwatch(in_watch_);
  in_watch_ = 0;
  if (close_wanted_) in_.reset();
}

void Connection::read_stderr() {
  char buffer[4096];
  for (;;) {
    os::IoStep step = os::read_step(err_.get(), buffer, sizeof(buffer));
    if (step.kind == os::IoStep::kWouldBlock) return;
    if (step.kind != os::IoStep::kBytes) break;
    death_.stderr_text.append(buffer, step.bytes);
    if (death_.stderr_text.size() > kStderrKept) death_.stderr_text.erase(0, death_.stderr_text.size() - kStderrKept);
  }
  loop_.unwatch(err_watch_);
  err_watch_ = 0;
  err_.reset();
  maybe_end();
}

void Connection::read_stdout() {
  static thread_local const auto buffer = std::make_unique_for_overwrite<char[]>(kReadBytes);  // only pages that are used become memory
  os::IoStep step = os::read_step(out_.get(), buffer.get(), kReadBytes);
  if (step.kind == os::IoStep::kWouldBlock) return;
  if (step.kind == os::IoStep::kBytes) return take(std::string_view(buffer.get(), step.bytes));
  finish_stdout();
}

void Connection::finish_stdout() {
  if (out_watch_) loop_.unwatch(out_watch_);
  out_watch_ = 0;
  out_.reset();
  maybe_end();
}

void Connection::take(std::string_view bytes) {
  if (deploys_ && !reader_.started()) {
    std::string rest;
    base::Result<DeployTalk::Ask> ask = talk_.feed(bytes, rest);
    if (!ask.ok()) return break_stream(ask.error());
    if (*ask != DeployTalk::Ask::kNothing) request_upload(*ask == DeployTalk::Ask::kGzip ? Encoding::kGzip : Encoding::kRaw);
    reader_.feed(rest);
  } else {
    reader_.feed(bytes);
  }
  for (;;) {
    base::Result<std::optional<wire::Frame>> frame = reader_.next();
    if (!frame.ok()) return break_stream(frame.error());
    if (!frame->has_value()) return;
    handlers_.frame(**frame);
    if (ended_) return;
  }
}

void Connection::request_upload(Encoding encoding) {
  sent_of_upload_ = upload_bytes_ = 0;
  base::Result<std::string_view> message = payload_.message(encoding);
  if (!message.ok()) return break_stream(message.error());
  upload_ = *message;
  upload_bytes_ = upload_.size();
  upload_moved_ = os::mono_now();
  write_more();
}

void Connection::break_stream(const base::Error& error) {
  death_.stderr_text += error.message + "\n";
  if (!reader_.noise().empty()) death_.stderr_text += fmt::format("its output: {}", reader_.noise().substr(0, 300)) + "\n";
  kill(SIGKILL);
}

bool Connection::on_child(pid_t pid, int status) {
  if (pid != pid_ || exited_) return false;
  on_exit(status);
  return true;
}

void Connection::on_exit(int status) {
  exited_ = true;
  death_.status = status;
  // A connection that stays shared holds stderr open after its client is gone: what matters has been said by now.
  if (err_.valid()) read_stderr();
  maybe_end();
  // Somebody else may hold the pipe open (a shared connection's master that is slow to notice): not for long.
  if (!ended_)
    drain_timer_ = loop_.after(os::milliseconds(1000), [this] {
      drain_timer_ = 0;
      finish_stdout();
    });
}

void Connection::maybe_end() {
  if (ended_ || !exited_ || out_.valid()) return;
  ended_ = true;
  if (drain_timer_) loop_.cancel(drain_timer_);
  in_.reset();
  handlers_.end(death_, reader_.started());
}

}  // namespace phalanx::hosts
