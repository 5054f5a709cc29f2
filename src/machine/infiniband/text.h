// The small texts of /sys/class/infiniband. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace phalanx::machine {

std::string after_colon(std::string_view text);  // "4: ACTIVE" → "ACTIVE"; text without a colon stays
double rate_gbps(std::string_view rate);         // "200 Gb/sec (4X HDR)" → 200; 0: unreadable
int64_t hexadecimal(std::string_view text);      // "0x1f" → 31; 0: unreadable
bool is_gid(std::string_view text);              // eight groups of four hexadecimal digits
bool is_zero_gid(std::string_view gid);          // nothing is in that place of the table (all zero, or fe80:: and nothing)
bool is_link_local_gid(std::string_view gid);    // fe80::…
bool is_ipv4_gid(std::string_view gid);          // ::ffff:a.b.c.d
bool tells_of_errors(std::string_view counter);  // a counter worth keeping

}  // namespace phalanx::machine
