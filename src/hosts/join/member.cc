#include "hosts/join/member.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <memory>
#include <optional>

#include <fmt/format.h>

#include "base/text.h"
#include "base/try.h"
#include "base/unicode.h"
#include "hosts/join/pipes.h"
#include "os/files.h"
#include "os/process.h"
#include "wire/codec.h"

namespace phalanx::hosts {
namespace {

using base::ErrorKind;
using wire::RecordType;

constexpr os::milliseconds kBetweenTries{500};
constexpr os::milliseconds kOneTry{3000};
constexpr os::milliseconds kAgentEnds{20'000};  // for an agent whose launcher is gone, before it is killed
constexpr int kImpatient = 3;                   // so many Ctrl-C do not wait for node 0
constexpr size_t kMostShown = 4096;

class Member {
 public:
  Member(const MemberOptions& options, os::Loop& loop) : options_(options), loop_(loop) {}
  ~Member() {
    if (agent_ > 0) ::kill(agent_, SIGKILL);  // its guard then ends what it started
  }

  base::Result<JoinVerdict> run() {
    for (int number : {SIGINT, SIGTERM, SIGHUP})
      if (!os::is_ignored(number)) TRY(loop_.on_signal(number, [this](const signalfd_siginfo&) { interrupt(); }));
    TRY(loop_.on_child([this](pid_t pid, int status) { child(pid, status); }));
    loop_.after(options_.patience, [this] {
      if (!joined_) fail(late());  // from then on node 0 says how long is waited for the others
    });
    dial();
    while (!result_) loop_.poll(os::milliseconds(1000));
    return *std::move(result_);
  }

 private:
  base::Error late() const {
    const std::string where = fmt::format("{}:{}", options_.master, options_.port);
    return base::fail(ErrorKind::kUnreachable, fmt::format("node {} found no node 0 at {} within {}", options_.own.node_rank, where,
                                                           base::format_duration(options_.patience)))
        .because(last_try_)
        .with_hint("start the line with node rank 0 on the machine of the master address; address and port are the same on every machine");
  }

  void fail(base::Error error) {
    if (!result_) result_ = std::move(error);
  }

  void again(std::string why) {
    if (why != last_try_ && !told_waiting_) {
      told_waiting_ = true;
      options_.say(fmt::format("node {} of {} waits for node 0 at {}:{}: {}", options_.own.node_rank, options_.own.nodes, options_.master,
                               options_.port, why));
    }
    last_try_ = std::move(why);
    loop_.after(kBetweenTries, [this] { dial(); });
  }

  void dial() {
    if (result_) return;
    dialing_ = os::Fd();
    const std::vector<std::string> addresses = options_.addresses();
    if (addresses.empty()) return again("the name has no address");
    const os::Endpoint where{addresses[tries_++ % addresses.size()], options_.port};
    base::Result<os::Fd> socket = os::connect_tcp_start(where);
    if (!socket.ok()) return again(socket.error().message);
    dialing_ = std::move(*socket);
    const os::TimerId patience = loop_.after(kOneTry, [this] { dialed("no answer"); });
    base::Result<os::WatchId> watch = loop_.watch(dialing_.get(), EPOLLOUT, [this, patience](uint32_t) {
      loop_.cancel(patience);
      const int error = os::connect_outcome(dialing_.get());
      dialed(error ? std::strerror(error) : "");
    });
    if (!watch.ok()) return fail(watch.error());
    dial_watch_ = *watch;
  }

  void dialed(const std::string& why) {
    loop_.unwatch(dial_watch_);
    if (!why.empty()) return again(why);
    base::Result<std::string> nonce = wire::fresh_nonce();
    if (!nonce.ok()) return fail(nonce.error());
    socket_ = std::make_unique<wire::SealedSocket>(
        loop_, std::move(dialing_), wire::SealedStream(wire::Side::kDialer, options_.token, *nonce),
        wire::SealedSocket::Handlers{.open = [this] { joined(); },
                                     .record = [this](const wire::Record& record) { take(record); },
                                     .end = [this](ErrorKind kind, const std::string& reason) { lost(kind, reason); },
                                     .drained = [this] { drained(); }});
    socket_->begin();
    // Who takes the connection and says nothing is something else.
    loop_.after(kOneTry, [this, socket = socket_.get()] {
      if (socket_.get() == socket && !socket->open() && !result_) retry("what listens there does not answer as node 0");
    });
  }

  void retry(std::string why) {
    loop_.after(os::milliseconds(0), [this, why = std::move(why)]() mutable {
      socket_.reset();
      again(std::move(why));
    });
  }

  void joined() {
    joined_ = true;
    options_.say(fmt::format("node {} of {} has joined node 0 at {}:{}", options_.own.node_rank, options_.own.nodes, options_.master,
                             options_.port));
    socket_->send(RecordType::kFacts, encode(options_.own));
  }

  void drained() {
    for (const auto& source : {&out_, &err_})
      if (*source) (*source)->go_on();
  }

  void take(const wire::Record& record) {
    switch (record.type) {
      case RecordType::kWaiting: return options_.say(base::printable(record.payload, kMostShown));
      case RecordType::kRefused: return refused(record.payload);
      case RecordType::kVerdict: return over(record.payload);
      case RecordType::kStart: return start();
      case RecordType::kData:
        if (in_) in_->take(record.payload);
        return;
      case RecordType::kEnd:
        if (in_) in_->close_after(nullptr);
        return;
      default: return;
    }
  }

  void refused(const std::string& payload) {
    base::Result<JoinVerdict> verdict = decode_join_verdict(payload);
    if (!verdict.ok()) return fail(verdict.error());
    const size_t hint = verdict->text.find("\n\nhint: ");
    const auto kind = verdict->exit_code == 2     ? ErrorKind::kUsage
                      : verdict->exit_code == 130 ? ErrorKind::kInterrupted
                                                  : ErrorKind::kTimeout;
    base::Error error = base::fail(kind, base::printable(verdict->text.substr(0, hint), kMostShown)).because("node 0 has refused the run");
    if (hint != std::string::npos) error.hint = base::printable(verdict->text.substr(hint + 8), kMostShown);
    fail(std::move(error));
  }

  void over(const std::string& payload) {
    base::Result<JoinVerdict> verdict = decode_join_verdict(payload);
    if (!verdict.ok()) return fail(verdict.error());
    verdict->text = base::printable(verdict->text, kMostShown);
    end_with(std::move(*verdict));
  }

  // Not before the agent has ended, and with it the ranks.
  void end_with(base::Result<JoinVerdict> result) {
    if (ending_) return;
    ending_ = std::move(result);
    if (in_) in_->close_after(nullptr);
    if (agent_ <= 0) result_ = std::move(ending_);
    else
      loop_.after(kAgentEnds, [this] {
        if (agent_ > 0) ::kill(agent_, SIGKILL);
      });
  }

  void start() {
    if (started_) return;
    started_ = true;
    base::Status spawned = spawn_agent();
    if (!spawned.ok()) return fail(spawned.error());
    options_.say("the run begins; node 0 shows its output and says how it ends");
  }

  base::Status spawn_agent() {
    TRY_ASSIGN(os::PipeEnds in, os::make_pipe());
    TRY_ASSIGN(os::PipeEnds out, os::make_pipe());
    TRY_ASSIGN(os::PipeEnds err, os::make_pipe());
    os::SpawnSpec spec;
    spec.program = os::kOwnProgram;
    spec.arguments = {os::self_executable(), "agent"};
    for (char** e = environ; *e; ++e) spec.environment.push_back(*e);
    spec.fds = {{in.read.get(), 0}, {out.write.get(), 1}, {err.write.get(), 2}};
    TRY_ASSIGN(agent_, os::spawn(spec));
    in_.emplace(loop_, std::move(in.write), *socket_);
    out_.emplace(loop_, std::move(out.read), *socket_, RecordType::kData, [this] { agent_over(); });
    err_.emplace(loop_, std::move(err.read), *socket_, RecordType::kNoise, [this] { agent_over(); });
    TRY(in_->begin());
    TRY(out_->begin());
    return err_->begin();
  }

  void child(pid_t pid, int status) {
    if (pid != agent_) return;
    agent_ = 0;
    status_ = status;
    agent_over();
  }

  // It has ended and all it said has been sent.
  void agent_over() {
    if (agent_ > 0 || !out_ || !out_->over() || !err_ || !err_->over() || told_end_) return;
    told_end_ = true;
    std::string payload;
    wire::Encoder(payload).u32(static_cast<uint32_t>(status_));
    socket_->send(RecordType::kEnd, payload);
    if (ending_) result_ = std::move(ending_);
  }

  void lost(ErrorKind kind, const std::string& why) {
    if (result_) return;
    if (kind == ErrorKind::kUnreachable)
      return fail(base::fail(ErrorKind::kUnreachable, fmt::format("node 0 at {}:{} has another token", options_.master, options_.port))
                      .because("the machines do not share the same token, or this is not their node 0")
                      .with_hint("copy the token file of node 0 here, or name it with --token-file"));
    if (!joined_) return retry(kind == ErrorKind::kTimeout ? "what listens there closes the connection" : why);
    end_with(base::fail(ErrorKind::kUnreachable, fmt::format("the connection to node 0 at {}:{} was lost", options_.master, options_.port))
                 .because(why)
                 .with_hint("node 0 says how the run ended"));
  }

  void interrupt() {
    ++interrupts_;
    if (!started_ || interrupts_ >= kImpatient || !socket_)
      return end_with(base::fail(ErrorKind::kInterrupted, "interrupted on this node"));
    options_.say("asking node 0 to stop the run");
    socket_->send(RecordType::kStop, "");
  }

  const MemberOptions& options_;
  os::Loop& loop_;
  os::Fd dialing_;
  os::WatchId dial_watch_ = 0;
  size_t tries_ = 0;
  std::string last_try_;
  bool told_waiting_ = false, joined_ = false, started_ = false, told_end_ = false;
  int interrupts_ = 0, status_ = 0;
  pid_t agent_ = 0;
  std::unique_ptr<wire::SealedSocket> socket_;
  std::optional<PipeSink> in_;
  std::optional<PipeSource> out_, err_;
  std::optional<base::Result<JoinVerdict>> result_, ending_;
};

}  // namespace

base::Result<JoinVerdict> join_run(const MemberOptions& options) {
  TRY_ASSIGN(std::unique_ptr<os::Loop> loop, os::Loop::create());
  return Member(options, *loop).run();
}

}  // namespace phalanx::hosts
