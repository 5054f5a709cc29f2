// Apart from net.cc: the kernel's struct tcp_info is newer than the C library's, and the two headers exclude each other.
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstddef>

#include "os/net.h"

namespace phalanx::os {

TcpProgress tcp_progress(int fd) {
  tcp_info info{};
  socklen_t size = sizeof(info);
  if (::getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return {};
  TcpProgress out;
  out.retransmits = info.tcpi_total_retrans;
  // The receiver had those already (RFC 2883): it was slow to answer, and nothing was lost.
  if (size >= offsetof(tcp_info, tcpi_reord_seen)) out.retransmits -= std::min<uint64_t>(out.retransmits, info.tcpi_dsack_dups);
  if (size >= offsetof(tcp_info, tcpi_bytes_received)) out.acknowledged_bytes = info.tcpi_bytes_acked;
  if (size >= offsetof(tcp_info, tcpi_delivery_rate)) out.segments = info.tcpi_data_segs_out;
  return out;
}

}  // namespace phalanx::os
