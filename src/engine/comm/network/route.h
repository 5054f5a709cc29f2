// Which address of this host faces another one.
#pragma once

#include <cstdint>
#include <string>

namespace phalanx::engine::comm {

// The source address the kernel would use towards host:port; no packet is sent. "" when the host cannot be resolved or
// reached. This is the address the other ranks can reach if `host` is where they all meet.
std::string address_towards(const std::string& host, uint16_t port);

}  // namespace phalanx::engine::comm
