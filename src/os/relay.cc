// The process looks at bytes with MSG_PEEK, writes them, and only then takes them off the socket. So the bytes that the kernel counts as
// not yet received (SIOCOUTQ) are exactly those that are not yet in the file. When it has taken everything it says so, to wake whoever
// waits.
#include "os/relay.h"

#include <fcntl.h>
#include <linux/sockios.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <functional>
#include <memory>

#include "base/try.h"
#include "os/apart.h"
#include "os/clock.h"

namespace phalanx::os {
namespace {

constexpr size_t kPieceBytes = 64 << 10;
constexpr int kIdle = 0;  // what the process says when it has taken everything; after a failure it says the errno

// Bytes that the other end has not received yet.
int in_flight(int socket) {
  int bytes = 0;
  return ::ioctl(socket, SIOCOUTQ, &bytes) == 0 ? bytes : 0;
}

// At most one such word is under way: whoever waits for it reads the old one first, and then looks at in_flight().
void say_idle(int socket) {
  if (in_flight(socket) == 0) (void)::send(socket, &kIdle, sizeof(kIdle), MSG_DONTWAIT | MSG_NOSIGNAL);
}

// 0 at the end of the stream, else why writing failed.
int copy(int from, int to) {
  const auto piece = std::make_unique_for_overwrite<char[]>(kPieceBytes);
  for (;;) {
    ssize_t seen = ::recv(from, piece.get(), kPieceBytes, MSG_PEEK | MSG_DONTWAIT);
    if (seen < 0 && errno == EAGAIN) {
      say_idle(from);
      seen = ::recv(from, piece.get(), kPieceBytes, MSG_PEEK);
    }
    if (seen < 0 && errno == EINTR) continue;
    if (seen <= 0) return 0;
    for (size_t done = 0; done < static_cast<size_t>(seen);) {
      const IoStep step = write_step(to, piece.get() + done, static_cast<size_t>(seen) - done);
      if (step.kind != IoStep::kBytes || step.bytes == 0) return step.error_number != 0 ? step.error_number : EIO;
      done += step.bytes;
    }
    for (ssize_t left = seen; left > 0;) {
      const ssize_t n = ::recv(from, piece.get(), static_cast<size_t>(left), 0);
      if (n <= 0 && errno != EINTR) return 0;
      if (n > 0) left -= n;
    }
  }
}

base::Result<Fd> start(int inherited, const std::function<Fd()>& open_target) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return base::system_error("socketpair", "for a file");
  Fd ours(ends[0]), theirs(ends[1]);
  std::vector<int> keep{theirs.get()};
  if (inherited >= 0) keep.push_back(inherited);
  TRY(fork_apart("phalanx-copy", keep, [&] {
    const Fd target = open_target();
    const int failure = target.valid() ? copy(theirs.get(), target.get()) : errno;
    if (failure != 0) (void)::send(theirs.get(), &failure, sizeof(failure), MSG_DONTWAIT | MSG_NOSIGNAL);
  }));
  return ours;
}

}  // namespace

base::Result<Relay> Relay::to(int target) {
  Fd copy_of_it(::fcntl(target, F_DUPFD_CLOEXEC, 3));
  if (!copy_of_it.valid()) return base::system_error("dup", std::to_string(target));
  TRY_ASSIGN(Fd socket, start(copy_of_it.get(), [&] { return std::move(copy_of_it); }));
  return Relay(std::move(socket));
}

base::Result<Relay> Relay::to_file(const std::string& path) {
  TRY_ASSIGN(Fd socket, start(-1, [&] { return Fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY, 0600)); }));
  return Relay(std::move(socket));
}

bool Relay::taken() const { return in_flight(socket_.get()) == 0; }

bool Relay::wait_taken(std::chrono::milliseconds most) {
  const Mono end = mono_now() + most;
  for (;;) {
    (void)error_number();  // reads what was said before we look
    if (taken()) return true;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - mono_now());
    if (left.count() <= 0) return false;
    pollfd said{socket_.get(), POLLIN, 0};
    ::poll(&said, 1, static_cast<int>(std::min<int64_t>(left.count(), 60'000)));
  }
}

int Relay::error_number() {
  int word = kIdle;
  while (error_number_ == 0 && ::recv(socket_.get(), &word, sizeof(word), MSG_DONTWAIT) == sizeof(word)) error_number_ = word;
  return error_number_;
}

}  // namespace phalanx::os
