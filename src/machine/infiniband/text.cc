#include "machine/infiniband/text.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdlib>

#include "base/text.h"

namespace phalanx::machine {

std::string after_colon(std::string_view text) {
  size_t colon = text.find(':');
  return std::string(base::trim(colon == std::string_view::npos ? text : text.substr(colon + 1)));
}

double rate_gbps(std::string_view rate) {
  std::string number(rate.substr(0, std::min<size_t>(rate.find(' '), 16)));
  if (number.empty() || number.find_first_not_of("0123456789.") != std::string::npos) return 0;
  return std::strtod(number.c_str(), nullptr);
}

int64_t hexadecimal(std::string_view text) {
  if (text.substr(0, 2) != "0x" || text.size() > 18) return 0;
  uint64_t value = 0;
  auto [end, error] = std::from_chars(text.data() + 2, text.data() + text.size(), value, 16);
  return error == std::errc() && end == text.data() + text.size() && value <= INT64_MAX ? static_cast<int64_t>(value) : 0;
}

bool is_gid(std::string_view text) {
  if (text.size() != 39) return false;
  for (size_t i = 0; i < text.size(); ++i)
    if (i % 5 == 4 ? text[i] != ':' : !std::isxdigit(static_cast<unsigned char>(text[i]))) return false;
  return true;
}

bool is_zero_gid(std::string_view gid) {
  std::string_view last = gid.substr(0, 4) == "fe80" ? gid.substr(4) : gid;
  return last.find_first_not_of("0:") == std::string_view::npos;
}

bool is_link_local_gid(std::string_view gid) { return gid.substr(0, 4) == "fe80"; }

bool is_ipv4_gid(std::string_view gid) { return gid.substr(0, 30) == "0000:0000:0000:0000:0000:ffff:"; }

bool tells_of_errors(std::string_view counter) {
  static constexpr std::string_view kKept =
      "symbol_error link_error_recovery link_downed port_rcv_errors port_xmit_discards VL15_dropped local_link_integrity_errors "
      "excessive_buffer_overrun_errors port_rcv_remote_physical_errors local_ack_timeout_err packet_seq_err out_of_sequence "
      "out_of_buffer rnr_nak_retry_err implied_nak_seq_err req_cqe_error resp_cqe_error req_remote_access_errors np_cnp_sent "
      "rp_cnp_handled np_ecn_marked_roce_packets roce_adp_retrans rx_icrc_encapsulated port_xmit_wait";
  return base::is_listed(counter, kKept);
}

}  // namespace phalanx::machine
