// Paths of the job as the hosts see them: what several storage checks ask.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "doctor/catalogue.h"

namespace phalanx::doctor {

// Every path that was looked at, on every probed host.
void each_path(const Situation& s, const std::function<void(size_t host, const machine::PathFact&)>& visit);
// The same path on all hosts that looked at it, for each path of one of these roles on any host.
struct PathOnHosts {
  std::string path, role, named_by;
  std::vector<std::pair<size_t, const machine::PathFact*>> seen;
};
std::vector<PathOnHosts> paths_on_hosts(const Situation& s, std::initializer_list<std::string_view> roles);

bool is_hung(const Situation& s, size_t host, const std::string& path);
// "gpu01, gpu02 and gpu03".
Words host_names(const Situation& s, const std::vector<size_t>& hosts);
// "phalanx run -H h1:2,h2:2 --sync -- python train.py": the same ranks, with the working directory copied. Empty without a command.
std::string run_with_sync(const Situation& s);
bool contains(const std::string& text, std::string_view part);

}  // namespace phalanx::doctor
