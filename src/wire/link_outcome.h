// What became of one connection of the mesh test, from one host to another.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace phalanx::wire {

enum class LinkOutcome : uint8_t {
  kNone,         // not tried
  kOk,           //
  kRefused,      // reset: nobody listens there
  kRejected,     // ICMP port unreachable: a firewall, since a host without a listener resets
  kProhibited,   // ICMP administratively prohibited, or our own firewall
  kTimeout,      // no answer at all: packets are dropped
  kNoRoute,      // ENETUNREACH
  kUnreachable,  // no neighbour answers for the address
  kStalled,      // connected, and small packets pass, but the payload does not: MTU
  kSilent,       // connected, but the agent there says nothing
  kStranger,     // somebody else answered
  kError,        // another errno
};

// As in records and in JSON: "", "ok", "refused", …, "no-route". Nothing for another name.
std::string_view name_of(LinkOutcome outcome);
std::optional<LinkOutcome> link_outcome(std::string_view name);

}  // namespace phalanx::wire
