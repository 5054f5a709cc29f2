#include "doctor/situation.h"

namespace phalanx::doctor {

std::optional<std::string> Situation::variable(size_t host, const std::string& name) const {
  for (const auto& [set_name, value] : job.set)
    if (set_name == name) return value;
  const auto& environment = hosts[host].facts.software.environment;
  auto found = environment.find(name);
  return found == environment.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace phalanx::doctor
