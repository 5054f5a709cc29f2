// The mesh test as the doctor reads it: which hosts stand behind the links that failed, and what would open them.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "doctor/catalogue.h"

namespace phalanx::doctor {

// Links whose ends are hosts of the situation.
std::vector<const hosts::Link*> links_of(const Situation& s);
bool touches(const hosts::Link& link, size_t host);

// The failed links of one kind, laid to the fewest hosts that explain them: the host most of them touch comes first. Where two hosts
// have only their own links between them, neither is more to blame and both are named.
struct Blame {
  std::vector<size_t> hosts;
  std::vector<const hosts::Link*> links;
};
std::vector<Blame> blame(const Situation& s, const std::function<bool(const hosts::Link&)>& failed);

// "gpu01, gpu02 → gpu03 (10.0.0.3:29500 = MASTER_PORT)".
std::string ways(const Situation& s, const Blame& blame);
// The command that lets the other hosts of the job in, by the firewall that was seen on `host`.
std::string open_firewall(const Situation& s, size_t host);

// One finding per blamed host for every link with this outcome; `words` gets the ways and the first link.
void report_links(const Situation& s, Findings& findings, wire::LinkOutcome outcome,
                  const std::function<Words(const std::string& ways, const hosts::Link&)>& words,
                  const std::function<std::string(size_t host, const hosts::Link&)>& fix);

std::string seconds(int64_t ns);             // "3.1 s"
std::string rate(int64_t bytes_per_second);  // "12 MB/s"

}  // namespace phalanx::doctor
