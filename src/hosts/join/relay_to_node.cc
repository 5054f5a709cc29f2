#include "hosts/join/relay_to_node.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <memory>
#include <optional>

#include "base/try.h"
#include "hosts/join/pipes.h"
#include "wire/codec.h"

namespace phalanx::hosts {
namespace {

constexpr size_t kMostStateBytes = 4 << 20;

std::string read_whole(int fd) {
  std::string text;
  char buffer[4096];
  for (;;) {
    const ssize_t bytes = ::read(fd, buffer, sizeof(buffer));
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes <= 0 || text.size() > kMostStateBytes) return text;
    text.append(buffer, static_cast<size_t>(bytes));
  }
}

class RelayToNode {
 public:
  // life: at its end the launcher, or the process that stands for this one there, is gone. status: what that process exits with.
  RelayToNode(os::Loop& loop, wire::SealedStream stream, pid_t launcher, os::Fd life, os::Fd status)
      : loop_(loop),
        launcher_(launcher),
        life_(std::move(life)),
        status_(std::move(status)),
        verdict_(kRelayVerdict),
        socket_(loop, os::Fd(kRelaySocket), std::move(stream),
                {.record = [this](const wire::Record& record) { take(record); },
                 .end = [this](base::ErrorKind, const std::string& why) { lost(why); },
                 .drained = [this] { drained(); }}) {}

  base::Status run() {
    source_.emplace(loop_, os::Fd(0), socket_, wire::RecordType::kData, [this] { socket_.send(wire::RecordType::kEnd, ""); });
    sink_.emplace(loop_, os::Fd(1), socket_);
    TRY_ASSIGN(life_watch_, loop_.watch(life_.get(), EPOLLIN, [this](uint32_t) { part(255); }));
    TRY_ASSIGN(verdict_watch_, loop_.watch(verdict_.get(), EPOLLIN, [this](uint32_t) { take_verdict(); }));
    TRY(source_->begin());
    TRY(sink_->begin());
    socket_.begin();
    socket_.send(wire::RecordType::kStart, "");
    loop_.run();
    return base::ok();
  }

 private:
  void take(const wire::Record& record) {
    if (parted_) return;
    switch (record.type) {
      case wire::RecordType::kData: return sink_->take(record.payload);
      case wire::RecordType::kNoise: return (void)os::write_all(2, record.payload, "stderr");
      case wire::RecordType::kStop: return (void)::kill(launcher_, SIGINT);  // as if Ctrl-C had been pressed on node 0
      case wire::RecordType::kEnd: {
        wire::Decoder decoder(record.payload);
        const int status = static_cast<int>(decoder.u32());
        const int code = !decoder.done() ? 255 : WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
        return sink_->close_after([this, code] { part(code); });
      }
      default: return;
    }
  }

  // For the launcher this connection is over; the node still has to hear how the run ends. Not from within the pipes' own callbacks.
  void part(int code) {
    if (parted_) return;
    parted_ = true;
    if (!source_->over()) socket_.send(wire::RecordType::kEnd, "");  // the agent ends, if it has not
    loop_.unwatch(life_watch_);
    const auto byte = static_cast<char>(code);
    (void)os::write_all(status_.get(), std::string_view(&byte, 1), "the status");
    loop_.after(os::milliseconds(0), [this] {
      source_.reset();
      sink_.reset();
      const os::Fd nothing(::open("/dev/null", O_RDWR | O_CLOEXEC));
      for (int fd : {0, 1, 2}) ::dup2(nothing.get(), fd);
      status_.reset();
      socket_.pause(false);
      if (lost_) loop_.stop();
    });
  }

  void drained() {
    if (source_) source_->go_on();
    if (told_) loop_.stop();
  }

  void take_verdict() {
    loop_.unwatch(verdict_watch_);
    const std::string text = read_whole(verdict_.get());
    if (text.empty()) return loop_.stop();  // the launcher was killed
    told_ = true;
    socket_.send(wire::RecordType::kVerdict, text);
    if (socket_.pending() == 0) loop_.stop();
  }

  void lost(const std::string& why) {
    lost_ = true;
    if (parted_) return loop_.stop();
    std::fprintf(stderr, "the connection to the node was lost: %s\n", why.c_str());
    part(255);
  }

  os::Loop& loop_;
  const pid_t launcher_;
  bool parted_ = false, lost_ = false, told_ = false;
  os::Fd life_, status_, verdict_;
  os::WatchId life_watch_ = 0, verdict_watch_ = 0;
  wire::SealedSocket socket_;
  std::optional<PipeSource> source_;
  std::optional<PipeSink> sink_;
};

int refuse(const std::string& why) {
  std::fprintf(stderr, "%s\n", why.c_str());
  return 255;
}

// What the launcher sees, and may kill: it ends with the agent's exit code, as ssh would.
int stand_in(os::Fd status) {
  for (int fd : {0, 1, kRelaySocket, kRelayState, kRelayVerdict}) ::close(fd);
  const std::string code = read_whole(status.get());
  return code.size() == 1 ? static_cast<unsigned char>(code[0]) : 255;
}

}  // namespace

int relay_to_node() {
  ::signal(SIGPIPE, SIG_IGN);
  for (int fd : {kRelaySocket, kRelayState, kRelayVerdict})
    if (::fcntl(fd, F_GETFD) < 0) return refuse("the node has left the run; start it there again");
  const pid_t launcher = ::getppid();
  if (launcher <= 1) return refuse("the launcher has ended");
  base::Result<os::PipeEnds> life = os::make_pipe(), status = os::make_pipe();
  const pid_t child = life.ok() && status.ok() ? ::fork() : -1;
  if (child < 0) return refuse("no process for the connection to the node");
  if (child > 0) {
    life->read.reset();
    status->write.reset();
    return stand_in(std::move(status->read));
  }
  life->write.reset();
  status->read.reset();
  base::Result<wire::SealedStream> stream = wire::SealedStream::resume(read_whole(kRelayState));
  ::close(kRelayState);
  base::Result<std::unique_ptr<os::Loop>> loop = os::Loop::create();
  if (!stream.ok() || !loop.ok()) return refuse("the connection to the node cannot be taken over");
  RelayToNode relay(**loop, std::move(*stream), launcher, std::move(life->read), std::move(status->write));
  base::Status ran = relay.run();
  return ran.ok() ? 0 : refuse(ran.error().message);
}

}  // namespace phalanx::hosts
