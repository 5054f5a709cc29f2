#include "machine/network/tcp_sockets.h"

#include <arpa/inet.h>
#include <linux/inet_diag.h>
#include <linux/sock_diag.h>
#include <linux/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <functional>

#include "machine/network/netlink.h"
#include "os/net.h"

namespace phalanx::machine {
namespace {

constexpr size_t kMostSockets = 65'536;
constexpr uint32_t kEstablished = 1U << 1;

// enum of include/net/tcp_states.h
const char* state_name(unsigned state) {
  static const char* const kNames[] = {"",      "ESTABLISHED", "SYN_SENT", "SYN_RECV", "FIN_WAIT1", "FIN_WAIT2",   "TIME_WAIT",
                                       "CLOSE", "CLOSE_WAIT",  "LAST_ACK", "LISTEN",   "CLOSING",   "NEW_SYN_RECV"};
  return state < std::size(kNames) ? kNames[state] : "";
}

// idiag_timer, of inet_csk_diag_fill in net/ipv4/inet_diag.c: 1 retransmit, 2 keepalive, 3 time-wait, 4 probe of a zero window.
const char* timer_name(unsigned timer) {
  static const char* const kNames[] = {"", "on", "keepalive", "timewait", "persist"};
  return timer < std::size(kNames) ? kNames[timer] : "";
}

std::string address_of(int family, const __be32* words) {
  char shown[INET6_ADDRSTRLEN] = "";
  bool mapped = family == AF_INET6 && words[0] == 0 && words[1] == 0 && words[2] == htonl(0xffff);
  ::inet_ntop(mapped ? AF_INET : family, mapped ? words + 3 : words, shown, sizeof(shown));
  return shown;
}

// As address_of() writes it: "FD00:0::1" is "fd00::1", and "::ffff:10.0.0.1" is "10.0.0.1".
std::string canonical(const std::string& address) {
  __be32 words[4] = {};
  for (int family : {AF_INET, AF_INET6})
    if (::inet_pton(family, address.c_str(), words) == 1) return address_of(family, words);
  return address;
}

void take_info(std::string_view data, SocketSample& s) {
  tcp_info info{};  // older kernels give less of it
  std::memcpy(&info, data.data(), std::min(data.size(), sizeof(info)));
  s.retransmits = info.tcpi_retransmits;
  s.backoff = info.tcpi_backoff;
  s.unacked = info.tcpi_unacked;
  s.lost = info.tcpi_lost;
  s.total_retransmits = info.tcpi_total_retrans;
  s.bytes_acked = static_cast<int64_t>(info.tcpi_bytes_acked);
  s.bytes_received = static_cast<int64_t>(info.tcpi_bytes_received);
  s.rtt_us = info.tcpi_rtt;
  s.last_sent_ms = info.tcpi_last_data_sent;
  s.last_received_ms = info.tcpi_last_data_recv;
  s.segment_bytes = info.tcpi_snd_mss;
}

void take(const nlmsghdr& message, std::map<uint64_t, SocketSample>& sockets) {
  if (message.nlmsg_len < NLMSG_LENGTH(sizeof(inet_diag_msg)) || sockets.size() >= kMostSockets) return;
  const auto* m = static_cast<const inet_diag_msg*>(NLMSG_DATA(const_cast<nlmsghdr*>(&message)));
  if (m->idiag_inode == 0) return;
  SocketSample s;
  s.local_address = address_of(m->idiag_family, m->id.idiag_src);
  s.remote_address = address_of(m->idiag_family, m->id.idiag_dst);
  s.local = os::Endpoint{s.local_address, ntohs(m->id.idiag_sport)}.str();
  s.remote = os::Endpoint{s.remote_address, ntohs(m->id.idiag_dport)}.str();
  s.state = state_name(m->idiag_state);
  s.timer = timer_name(m->idiag_timer);
  s.receive_queue = m->idiag_rqueue;
  s.send_queue = m->idiag_wqueue;
  size_t rest = message.nlmsg_len - NLMSG_LENGTH(sizeof(inet_diag_msg));
  each_attribute(reinterpret_cast<const rtattr*>(m + 1), rest, [&](int type, std::string_view data) {
    if (type == INET_DIAG_INFO) take_info(data, s);
  });
  if (m->idiag_retrans > s.retransmits) s.retransmits = m->idiag_retrans;
  sockets.emplace(m->idiag_inode, std::move(s));
}

// Segments that the other side had received before they were sent again were not lost.
void count(const tcp_info& info, const inet_diag_msg& message, ConnectionCounts& c) {
  constexpr unsigned kRecovery = 3;    // enum tcp_ca_state of linux/tcp.h; 4 is Loss
  constexpr unsigned kOverdueMs = 50;  // longer than any delayed acknowledgement of a peer that reads
  c.sent = info.tcpi_data_segs_out;
  c.resent = info.tcpi_total_retrans - std::min(info.tcpi_total_retrans, info.tcpi_dsack_dups);
  const bool overdue = message.idiag_timer == 1 && info.tcpi_unacked > 0 && info.tcpi_last_data_sent > kOverdueMs;
  c.recovering = info.tcpi_ca_state >= kRecovery || info.tcpi_backoff > 0 || overdue;
}

void take_counts(const nlmsghdr& message, std::map<uint64_t, ConnectionCounts>& connections) {
  if (message.nlmsg_len < NLMSG_LENGTH(sizeof(inet_diag_msg)) || connections.size() >= kMostSockets) return;
  const auto* m = static_cast<const inet_diag_msg*>(NLMSG_DATA(const_cast<nlmsghdr*>(&message)));
  if (std::memcmp(m->id.idiag_src, m->id.idiag_dst, sizeof(m->id.idiag_src)) == 0) return;  // this machine itself
  ConnectionCounts c;
  std::copy(std::begin(m->id.idiag_dst), std::end(m->id.idiag_dst), c.peer.begin());
  c.v6 = m->idiag_family == AF_INET6;
  const uint64_t cookie = uint64_t{m->id.idiag_cookie[1]} << 32 | m->id.idiag_cookie[0];
  size_t rest = message.nlmsg_len - NLMSG_LENGTH(sizeof(inet_diag_msg));
  each_attribute(reinterpret_cast<const rtattr*>(m + 1), rest, [&](int type, std::string_view data) {
    if (type != INET_DIAG_INFO) return;
    tcp_info info{};
    std::memcpy(&info, data.data(), std::min(data.size(), sizeof(info)));
    count(info, *m, c);
  });
  connections.emplace(cookie, c);
}

// states: bits 1 << state. remote_port: only sockets to it; 0: all. False: the kernel does not answer for one of the families.
bool ask_sockets(uint32_t states, int remote_port, const std::function<void(const nlmsghdr&)>& each) {
  Netlink netlink(NETLINK_SOCK_DIAG);
  if (!netlink.ok()) return false;
  bool all = true;
  for (uint8_t family : {AF_INET, AF_INET6}) {
    struct {
      nlmsghdr header{};
      inet_diag_req_v2 body{};
    } request;
    request.header.nlmsg_len = sizeof(request);
    request.header.nlmsg_type = SOCK_DIAG_BY_FAMILY;
    request.header.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
    request.body.sdiag_family = family;
    request.body.sdiag_protocol = IPPROTO_TCP;
    request.body.idiag_ext = 1 << (INET_DIAG_INFO - 1);
    request.body.idiag_states = states;
    request.body.id.idiag_dport = htons(static_cast<uint16_t>(remote_port));
    all = netlink.ask(request.header, each) == 0 && all;
  }
  return all;
}

}  // namespace

std::map<uint64_t, SocketSample> tcp_sockets() {
  std::map<uint64_t, SocketSample> sockets;
  constexpr uint32_t kEnded = 1U << 10 | 1U << 6 | 1U << 7;  // LISTEN, TIME_WAIT, CLOSE
  ask_sockets(~kEnded, 0, [&](const nlmsghdr& m) { take(m, sockets); });
  return sockets;
}

std::map<uint64_t, ConnectionCounts> connection_counts() {
  std::map<uint64_t, ConnectionCounts> connections;
  ask_sockets(kEstablished, 0, [&](const nlmsghdr& m) { take_counts(m, connections); });
  return connections;
}

std::optional<std::set<uint64_t>> established_to(const os::Endpoint& remote) {
  std::set<uint64_t> inodes;
  const std::string address = canonical(remote.address);
  auto take = [&](const nlmsghdr& message) {
    if (message.nlmsg_len < NLMSG_LENGTH(sizeof(inet_diag_msg))) return;
    const auto* m = static_cast<const inet_diag_msg*>(NLMSG_DATA(const_cast<nlmsghdr*>(&message)));
    if (ntohs(m->id.idiag_dport) == remote.port && address_of(m->idiag_family, m->id.idiag_dst) == address) inodes.insert(m->idiag_inode);
  };
  if (!ask_sockets(kEstablished, remote.port, take)) return std::nullopt;
  inodes.erase(0);  // no process holds it any more
  return inodes;
}

std::string connection_address(const ConnectionCounts& c) { return address_of(c.v6 ? AF_INET6 : AF_INET, c.peer.data()); }

}  // namespace phalanx::machine
