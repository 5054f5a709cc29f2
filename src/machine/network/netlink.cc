#include "machine/network/netlink.h"

#include <sys/socket.h>
#include <sys/time.h>

#include <cerrno>
#include <cstring>
#include <vector>

namespace phalanx::machine {
namespace {

// A dump that failed ends with its error: -errno in the last message. (net/netlink/af_netlink.c, netlink_dump_done.)
int error_of_dump(const nlmsghdr& done) {
  int error = 0;
  if (done.nlmsg_len >= NLMSG_LENGTH(sizeof(error))) std::memcpy(&error, NLMSG_DATA(const_cast<nlmsghdr*>(&done)), sizeof(error));
  return error < 0 ? -error : 0;
}

}  // namespace

Netlink::Netlink(int family) : socket_(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, family)) {
  timeval most{0, 500'000};
  if (socket_.valid()) ::setsockopt(socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &most, sizeof(most));
}

int Netlink::ask(const nlmsghdr& request, const std::function<void(const nlmsghdr&)>& each) {
  std::vector<char> bytes(request.nlmsg_len);
  std::memcpy(bytes.data(), &request, request.nlmsg_len);
  reinterpret_cast<nlmsghdr*>(bytes.data())->nlmsg_seq = ++sequence_;
  sockaddr_nl kernel{};
  kernel.nl_family = AF_NETLINK;
  if (::sendto(socket_.get(), bytes.data(), bytes.size(), 0, reinterpret_cast<sockaddr*>(&kernel), sizeof(kernel)) < 0) return errno;
  std::vector<char> answer(256 << 10);
  while (true) {
    ssize_t got = ::recv(socket_.get(), answer.data(), answer.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno == EAGAIN ? ETIMEDOUT : errno;
    int left = static_cast<int>(got);
    for (auto* m = reinterpret_cast<nlmsghdr*>(answer.data()); NLMSG_OK(m, static_cast<unsigned>(left)); m = NLMSG_NEXT(m, left)) {
      if (m->nlmsg_seq != sequence_) continue;
      if (m->nlmsg_type == NLMSG_DONE) return error_of_dump(*m);
      if (m->nlmsg_type == NLMSG_ERROR) return -static_cast<nlmsgerr*>(NLMSG_DATA(m))->error;
      each(*m);
      if ((m->nlmsg_flags & NLM_F_MULTI) == 0) return 0;
    }
  }
}

void each_attribute(const rtattr* first, size_t bytes, const std::function<void(int type, std::string_view data)>& each) {
  auto left = static_cast<unsigned>(bytes);
  for (const rtattr* a = first; RTA_OK(a, left); a = RTA_NEXT(a, left))
    each(a->rta_type & NLA_TYPE_MASK, {static_cast<const char*>(RTA_DATA(a)), RTA_PAYLOAD(a)});
}

}  // namespace phalanx::machine
