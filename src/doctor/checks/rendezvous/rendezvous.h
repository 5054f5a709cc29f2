// The rendezvous rows, by subject; rendezvous_rows() joins them.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "doctor/catalogue.h"

namespace phalanx::doctor {

std::span<const Row> meeting_rows();  // master address and port
std::span<const Row> name_rows();     // host names, and one machine that is named twice

// Where the store is: the host that has MASTER_ADDR, else the first. Nothing if the job has no hosts.
std::optional<size_t> store_host(const Situation& s);
// What `host` says a name stands for; null if it was not asked.
const machine::Resolved* resolved(const HostView& host, const std::string& name);

}  // namespace phalanx::doctor
