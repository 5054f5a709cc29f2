// Where the ranks meet: what several checks ask.
#pragma once

#include <optional>
#include <string>

#include "doctor/catalogue.h"

namespace phalanx::doctor {

// Where the store is: the host that has MASTER_ADDR, else the first. Nothing if the job has no hosts.
std::optional<size_t> store_host(const Situation& s);
// What `host` says a name stands for; null if it was not asked.
const machine::Resolved* resolved(const HostView& host, const std::string& name);

}  // namespace phalanx::doctor
