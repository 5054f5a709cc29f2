#include "engine/comm/network/host_link.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>

namespace phalanx::engine::comm {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr uint32_t kMagic = 0x50484c58;  // of the first message on a connection

struct Hello {
  uint32_t magic = kMagic;
  int32_t index = 0;
};

struct Address {
  sockaddr_un name{};
  socklen_t size = 0;
};

Address address_of(const std::string& token) {
  Address address;
  address.name.sun_family = AF_UNIX;
  const std::string text = "phalanx-comm-" + token;
  std::memcpy(address.name.sun_path + 1, text.data(), std::min(text.size(), sizeof address.name.sun_path - 1));
  address.size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + text.size());
  return address;
}

bool same_user(int fd) {
  ucred peer{};
  socklen_t size = sizeof peer;
  return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.uid == geteuid();
}

// Whether the descriptor can be read within the limit.
bool readable(int fd, milliseconds limit) {
  pollfd one{fd, POLLIN, 0};
  int ready = 0;
  do ready = poll(&one, 1, static_cast<int>(limit.count()));
  while (ready < 0 && errno == EINTR);
  return ready > 0;
}

}  // namespace

base::Result<HostLink> HostLink::listen() {
  unsigned char random[16];
  if (getrandom(random, sizeof random, 0) != sizeof random) return base::system_error("getrandom", "a token");
  HostLink link;
  for (unsigned char byte : random) link.token_ += fmt::format("{:02x}", byte);
  link.listener_ = os::Fd(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  const Address address = address_of(link.token_);
  if (!link.listener_.valid()) return base::system_error("socket", "between the ranks of a host");
  if (bind(link.listener_.get(), reinterpret_cast<const sockaddr*>(&address.name), address.size) != 0 ||
      ::listen(link.listener_.get(), 1024) != 0)
    return base::system_error("bind", "a socket between the ranks of a host");
  return link;
}

base::Status HostLink::accept_all(int count, milliseconds limit, const std::function<bool()>& give_up) {
  peers_.resize(static_cast<size_t>(count - 1));
  int missing = count - 1;
  const auto end = steady_clock::now() + limit;
  while (missing > 0) {
    if (steady_clock::now() > end || give_up())
      return base::fail(base::ErrorKind::kTimeout, fmt::format("{} ranks of this host did not connect", missing));
    if (!readable(listener_.get(), milliseconds{200})) continue;
    os::Fd fd(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    Hello hello;
    if (!fd.valid() || !same_user(fd.get()) || !readable(fd.get(), milliseconds{1000})) continue;
    if (recv(fd.get(), &hello, sizeof hello, 0) != sizeof hello || hello.magic != kMagic || hello.index < 1 || hello.index >= count)
      continue;
    os::Fd& place = peers_[static_cast<size_t>(hello.index - 1)];
    if (place.valid()) continue;
    place = std::move(fd);
    --missing;
  }
  listener_.reset();
  return base::ok();
}

base::Result<HostLink> HostLink::dial(const std::string& token, int index) {
  HostLink link;
  os::Fd fd(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  const Address address = address_of(token);
  if (!fd.valid()) return base::system_error("socket", "between the ranks of a host");
  if (connect(fd.get(), reinterpret_cast<const sockaddr*>(&address.name), address.size) != 0)
    return base::system_error("connect", "the first rank of this host");
  if (!same_user(fd.get())) return base::fail(base::ErrorKind::kInternal, "the first rank of this host belongs to another user");
  const Hello hello{kMagic, index};
  if (send(fd.get(), &hello, sizeof hello, MSG_NOSIGNAL) != sizeof hello) return base::system_error("send", "the first rank of this host");
  link.peers_.push_back(std::move(fd));
  return link;
}

base::Status HostLink::give(const os::Fd& fd, uint64_t bytes) {
  iovec data{&bytes, sizeof bytes};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  if (fd.valid()) {
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    const int number = fd.get();
    std::memcpy(CMSG_DATA(header), &number, sizeof number);
  }
  base::Status status = base::ok();
  for (const os::Fd& peer : peers_)
    if (sendmsg(peer.get(), &message, MSG_NOSIGNAL) != static_cast<ssize_t>(sizeof bytes) && status.ok())
      status = base::system_error("sendmsg", "a rank of this host");
  return status;
}

base::Result<HostLink::Given> HostLink::get(milliseconds limit) {
  Given given;
  iovec data{&given.bytes, sizeof given.bytes};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  const int fd = peers_.front().get();
  if (!readable(fd, limit)) return base::fail(base::ErrorKind::kTimeout, "the first rank of this host does not pass on its shared memory");
  const ssize_t got = recvmsg(fd, &message, MSG_CMSG_CLOEXEC);
  if (got < 0) return base::system_error("recvmsg", "the first rank of this host");
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header; header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    int number = -1;
    std::memcpy(&number, CMSG_DATA(header), sizeof number);
    given.fd = os::Fd(number);
  }
  if (got != static_cast<ssize_t>(sizeof given.bytes))
    return base::fail(base::ErrorKind::kUnreachable, "the first rank of this host has exited");
  return given;
}

}  // namespace phalanx::engine::comm
