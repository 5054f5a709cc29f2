// The parts of the NET- group, each in a source of its own; doctor/checks/network/rows.cc joins them.
#pragma once

#include <span>

#include "doctor/catalogue.h"

namespace phalanx::doctor {

std::span<const Row> network_mesh_rows();    // what the connections between the hosts showed
std::span<const Row> network_choice_rows();  // which address NCCL and Gloo would take
std::span<const Row> network_ifname_rows();  // what the user wrote into *_SOCKET_IFNAME
std::span<const Row> network_link_rows();    // speed, MTU, carrier, bonds
std::span<const Row> network_host_rows();    // addresses, routes and settings

}  // namespace phalanx::doctor
