#include "os/net.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <linux/errqueue.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include <fmt/format.h>

#include "base/text.h"
#include "base/try.h"
#include "os/files.h"

namespace phalanx::os {
namespace {

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t size = 0;
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
};

base::Result<SocketAddress> to_socket_address(const Endpoint& endpoint) {
  SocketAddress out;
  auto* v4 = reinterpret_cast<sockaddr_in*>(&out.storage);
  auto* v6 = reinterpret_cast<sockaddr_in6*>(&out.storage);
  if (::inet_pton(AF_INET, endpoint.address.c_str(), &v4->sin_addr) == 1) {
    v4->sin_family = AF_INET;
    v4->sin_port = htons(endpoint.port);
    out.size = sizeof(sockaddr_in);
    return out;
  }
  if (::inet_pton(AF_INET6, endpoint.address.c_str(), &v6->sin6_addr) == 1) {
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons(endpoint.port);
    out.size = sizeof(sockaddr_in6);
    return out;
  }
  return base::fail(base::ErrorKind::kConfig, fmt::format("'{}' is not a numeric IP address", endpoint.address));
}

// An IPv4 peer of an IPv6 socket is shown as plain IPv4.
Endpoint from_socket_address(const sockaddr* address) {
  char text[INET6_ADDRSTRLEN] = "";
  if (address->sa_family == AF_INET) {
    auto* v4 = reinterpret_cast<const sockaddr_in*>(address);
    ::inet_ntop(AF_INET, &v4->sin_addr, text, sizeof(text));
    return {text, ntohs(v4->sin_port)};
  }
  if (address->sa_family == AF_INET6) {
    auto* v6 = reinterpret_cast<const sockaddr_in6*>(address);
    ::inet_ntop(AF_INET6, &v6->sin6_addr, text, sizeof(text));
    std::string plain = text;
    if (IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr)) plain = plain.substr(plain.rfind(':') + 1);
    return {plain, ntohs(v6->sin6_port)};
  }
  return {};
}

base::Result<Endpoint> endpoint_of(int fd, int (*get)(int, sockaddr*, socklen_t*), const char* operation) {
  SocketAddress address;
  address.size = sizeof(address.storage);
  if (get(fd, reinterpret_cast<sockaddr*>(&address.storage), &address.size) != 0) return base::system_error(operation, std::to_string(fd));
  return from_socket_address(address.get());
}

void set_nodelay(int fd) {
  int one = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
}

}  // namespace

std::string Endpoint::str() const {
  bool v6 = address.find(':') != std::string::npos;
  return (v6 ? "[" + address + "]" : address) + ":" + std::to_string(port);
}

base::Result<std::vector<InterfaceAddress>> interface_addresses() {
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return base::system_error("getifaddrs", "");
  std::vector<InterfaceAddress> out;
  for (ifaddrs* i = list; i; i = i->ifa_next) {
    if (!i->ifa_addr || (i->ifa_addr->sa_family != AF_INET && i->ifa_addr->sa_family != AF_INET6)) continue;
    out.push_back(
        {i->ifa_name, from_socket_address(i->ifa_addr).address, (i->ifa_flags & IFF_LOOPBACK) != 0, (i->ifa_flags & IFF_UP) != 0});
  }
  ::freeifaddrs(list);
  return out;
}

base::Result<Listener> listen_tcp(const Endpoint& where) {
  TRY_ASSIGN(SocketAddress address, to_socket_address(where));
  Fd fd(::socket(address.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) return base::system_error("socket", where.str());
  int one = 1;
  ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
  set_nodelay(fd.get());  // accepted sockets inherit it: one call less for each of thousands
  if (::bind(fd.get(), address.get(), address.size) != 0) return base::system_error("bind", where.str());
  if (::listen(fd.get(), 65535) != 0) return base::system_error("listen", where.str());
  TRY_ASSIGN(Endpoint bound, local_endpoint(fd.get()));
  return Listener{std::move(fd), bound};
}

void stop_listening(Fd& fd) {
  if (fd.valid()) ::shutdown(fd.get(), SHUT_RDWR);
  fd.reset();
}

base::Result<Accepted> accept_tcp(int listener_fd) {
  SocketAddress address;
  for (;;) {
    address.size = sizeof(address.storage);
    Fd fd(::accept4(listener_fd, reinterpret_cast<sockaddr*>(&address.storage), &address.size, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (fd.valid()) return Accepted{std::move(fd), from_socket_address(address.get())};
    if (errno == EINTR || errno == ECONNABORTED) continue;
    if (errno == EAGAIN || errno == EWOULDBLOCK) return Accepted{};
    return base::system_error("accept", std::to_string(listener_fd));
  }
}

base::Result<Fd> connect_tcp_start(const Endpoint& where) {
  TRY_ASSIGN(SocketAddress address, to_socket_address(where));
  Fd fd(::socket(address.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) return base::system_error("socket", where.str());
  set_nodelay(fd.get());
  if (::connect(fd.get(), address.get(), address.size) != 0 && errno != EINPROGRESS && errno != EINTR)
    return base::system_error("connect", where.str());
  return fd;
}

int connect_outcome(int fd) {
  int error = 0;
  socklen_t size = sizeof(error);
  if (::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0) return errno;
  return error;
}

base::Result<Endpoint> local_endpoint(int fd) { return endpoint_of(fd, ::getsockname, "getsockname"); }
Attempt connect_tcp_traced(const Endpoint& where) {
  Attempt attempt;
  base::Result<SocketAddress> address = to_socket_address(where);
  if (!address.ok()) return {Fd(), EINVAL};
  Fd fd(::socket(address->storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) return {Fd(), errno};
  set_nodelay(fd.get());
  int one = 1;
  bool v6 = address->storage.ss_family == AF_INET6;
  ::setsockopt(fd.get(), v6 ? IPPROTO_IPV6 : IPPROTO_IP, v6 ? IPV6_RECVERR : IP_RECVERR, &one, sizeof(one));
  if (::connect(fd.get(), address->get(), address->size) != 0 && errno != EINPROGRESS && errno != EINTR) return {Fd(), errno};
  attempt.fd = std::move(fd);
  return attempt;
}

std::optional<IcmpError> take_icmp_error(int fd) {
  alignas(cmsghdr) char control[512];
  char data[256];
  iovec part{data, sizeof(data)};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  if (::recvmsg(fd, &message, MSG_ERRQUEUE | MSG_DONTWAIT) < 0) return std::nullopt;
  for (cmsghdr* c = CMSG_FIRSTHDR(&message); c; c = CMSG_NXTHDR(&message, c)) {
    bool v4 = c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_RECVERR;
    bool v6 = c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_RECVERR;
    if (!v4 && !v6) continue;
    sock_extended_err error;
    std::memcpy(&error, CMSG_DATA(c), sizeof(error));
    if (error.ee_origin != SO_EE_ORIGIN_ICMP && error.ee_origin != SO_EE_ORIGIN_ICMP6) continue;
    return IcmpError{static_cast<int>(error.ee_errno), v6, error.ee_type, error.ee_code};
  }
  return std::nullopt;
}

void reset_on_close(int fd) {
  linger off{1, 0};
  ::setsockopt(fd, SOL_SOCKET, SO_LINGER, &off, sizeof(off));
}

bool neighbour_is_silent(const std::string& address) {
  base::Result<std::string> table = read_file("/proc/net/arp", 1 << 20);
  if (!table.ok()) return false;
  for (std::string_view line : base::split(*table, '\n')) {
    if (line.substr(0, address.size()) != address || line.substr(address.size(), 1) != " ") continue;
    unsigned type = 0, flags = 0;
    std::string rest(line.substr(address.size()));
    if (std::sscanf(rest.c_str(), " 0x%x 0x%x", &type, &flags) == 2) return flags == 0;
  }
  return false;
}

base::Result<Endpoint> peer_endpoint(int fd) { return endpoint_of(fd, ::getpeername, "getpeername"); }

}  // namespace phalanx::os
