#include "os/socket_owner.h"

#include <arpa/inet.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <optional>

#include "base/text.h"
#include "os/files.h"

namespace phalanx::os {
namespace {

constexpr size_t kMostTableBytes = 64 << 20;

struct Address {
  int family = AF_UNSPEC;
  uint32_t words[4] = {};  // as in memory, network order
};

Address parse(const std::string& text) {
  Address out;
  if (::inet_pton(AF_INET, text.c_str(), out.words) == 1) out.family = AF_INET;
  else if (::inet_pton(AF_INET6, text.c_str(), out.words) == 1) out.family = AF_INET6;
  return out;
}

struct Found {
  uint32_t uid = 0;
  uint64_t inode = 0;  // 0: no process holds the socket
};

// The one socket with these two ends, or the listening one if `to` is unspecified. Error: an errno, ENOENT for "there is none".
base::Result<std::optional<Found>> ask_kernel(const Fd& netlink, const Endpoint& from, const Endpoint& to) {
  Address source = parse(from.address), target = parse(to.address);
  struct {
    nlmsghdr header;
    inet_diag_req_v2 body;
  } request{};
  request.header.nlmsg_len = sizeof(request);
  request.header.nlmsg_type = SOCK_DIAG_BY_FAMILY;
  request.header.nlmsg_flags = NLM_F_REQUEST;
  request.body.sdiag_family = static_cast<uint8_t>(source.family);
  request.body.sdiag_protocol = IPPROTO_TCP;
  request.body.idiag_states = ~0u;
  request.body.id.idiag_sport = htons(from.port);
  request.body.id.idiag_dport = htons(to.port);
  std::memcpy(request.body.id.idiag_src, source.words, sizeof(source.words));
  std::memcpy(request.body.id.idiag_dst, target.words, sizeof(target.words));
  request.body.id.idiag_cookie[0] = request.body.id.idiag_cookie[1] = INET_DIAG_NOCOOKIE;
  if (::send(netlink.get(), &request, sizeof(request), 0) != sizeof(request)) return base::system_error("send", "NETLINK_SOCK_DIAG");
  // The kernel has answered by the time send() returns.
  alignas(nlmsghdr) char answer[4096];
  ssize_t size = ::recv(netlink.get(), answer, sizeof(answer), MSG_DONTWAIT);
  if (size < static_cast<ssize_t>(sizeof(nlmsghdr))) return base::system_error("recv", "NETLINK_SOCK_DIAG");
  nlmsghdr header;
  std::memcpy(&header, answer, sizeof(header));
  if (header.nlmsg_type == NLMSG_ERROR) {
    nlmsgerr error{};
    std::memcpy(&error, answer + NLMSG_HDRLEN, std::min(sizeof(error), static_cast<size_t>(size) - NLMSG_HDRLEN));
    if (error.error == -ENOENT) return std::optional<Found>();
    return base::system_error("NETLINK_SOCK_DIAG", "lookup", -error.error);
  }
  inet_diag_msg message{};
  if (size < static_cast<ssize_t>(NLMSG_HDRLEN + sizeof(message))) return base::system_error("recv", "NETLINK_SOCK_DIAG", EBADMSG);
  std::memcpy(&message, answer + NLMSG_HDRLEN, sizeof(message));
  // A listener may stand in where there is no such connection; it has no peer's port.
  if (message.id.idiag_sport != htons(from.port) || message.id.idiag_dport != htons(to.port)) return std::optional<Found>();
  return std::optional<Found>({message.idiag_uid, message.idiag_inode});
}

// The way the kernel prints an endpoint in /proc/net/tcp (words as they lie in memory), and in tcp6 the IPv4-mapped form.
std::vector<std::string> table_forms(const Endpoint& endpoint) {
  Address address = parse(endpoint.address);
  char text[64];
  const uint32_t* w = address.words;
  unsigned port = endpoint.port;
  if (address.family == AF_INET6) {
    std::snprintf(text, sizeof(text), "%08X%08X%08X%08X:%04X", w[0], w[1], w[2], w[3], port);
    return {text};
  }
  std::snprintf(text, sizeof(text), "%08X:%04X", w[0], port);
  std::string plain = text;
  std::snprintf(text, sizeof(text), "0000000000000000%08X%08X:%04X", htonl(0xffff), w[0], port);
  return {plain, text};
}

base::Result<std::optional<Found>> read_tables(const Endpoint& from, const Endpoint& to) {
  std::vector<std::string> local = table_forms(from), remote = table_forms(to);
  bool any = false;
  for (const char* path : {"/proc/net/tcp", "/proc/net/tcp6"}) {
    base::Result<std::string> text = read_file(path, kMostTableBytes);
    if (!text.ok()) continue;
    any = true;
    for (std::string_view line : base::split_lines(*text)) {
      std::vector<std::string_view> f = base::split_words(line);
      if (f.size() < 10 || std::find(local.begin(), local.end(), f[1]) == local.end()) continue;
      bool listens = to.port == 0 && f[3] == "0A";
      if (!listens && std::find(remote.begin(), remote.end(), f[2]) == remote.end()) continue;
      base::Result<int64_t> uid = base::parse_int(f[7], 0, UINT32_MAX), inode = base::parse_int(f[9], 0, INT64_MAX);
      if (uid.ok() && inode.ok()) return std::optional<Found>({static_cast<uint32_t>(*uid), static_cast<uint64_t>(*inode)});
    }
  }
  if (!any) return base::fail(base::ErrorKind::kUnfit, "neither /proc/net/tcp nor /proc/net/tcp6 can be read");
  return std::optional<Found>();
}

bool is_of_this_machine(const std::string& address, const Endpoint& own) {
  if (address == own.address || address.starts_with("127.") || address == "::1") return true;
  base::Result<std::vector<InterfaceAddress>> all = interface_addresses();
  if (!all.ok()) return true;  // not known to be another machine's
  return std::any_of(all->begin(), all->end(), [&](const InterfaceAddress& a) { return a.address == address; });
}

}  // namespace

bool PeerOwner::trusted() const { return kind == kElsewhere || (kind == kUser && (uid == ::getuid() || uid == 0)); }

base::Result<SocketOwners> SocketOwners::open(const Endpoint& listener, Way way) {
  Endpoint nobody{parse(listener.address).family == AF_INET6 ? "::" : "0.0.0.0", 0};
  SocketOwners owners;
  if (way == Way::kBest) owners.netlink_ = Fd(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG));
  if (owners.netlink_.valid()) {
    base::Result<std::optional<Found>> self = ask_kernel(owners.netlink_, listener, nobody);
    if (self.ok() && self->has_value()) return owners;
    owners.netlink_.reset();
  }
  base::Result<std::optional<Found>> self = read_tables(listener, nobody);
  if (self.ok() && self->has_value()) return owners;
  return base::fail(base::ErrorKind::kUnfit, "cannot find out which users make connections on this machine")
      .because(self.ok() ? "neither NETLINK_SOCK_DIAG nor /proc/net/tcp shows this process's own sockets" : self.error().message);
}

PeerOwner SocketOwners::of(const Endpoint& peer, const Endpoint& own) const {
  base::Result<std::optional<Found>> found = netlink_.valid() ? ask_kernel(netlink_, peer, own) : read_tables(peer, own);
  if (found.ok() && found->has_value()) return {(*found)->inode != 0 ? PeerOwner::kUser : PeerOwner::kGone, (*found)->uid};
  if (!is_of_this_machine(peer.address, own)) return {PeerOwner::kElsewhere, 0};
  return {found.ok() ? PeerOwner::kGone : PeerOwner::kUnknown, 0};
}

bool trusted(const std::optional<SocketOwners>& owners, const Accepted& accepted) {
  const base::Result<Endpoint> own = local_endpoint(accepted.fd.get());
  return own.ok() && (!owners || owners->of(accepted.peer, *own).trusted());
}

}  // namespace phalanx::os
