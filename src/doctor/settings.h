// What NCCL would read on a host: the user's settings, the host's variables, NCCL's conf files, in that order.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "doctor/catalogue.h"
#include "doctor/examine.h"

namespace phalanx::doctor {

struct Setting {
  enum class Source { kUser, kHost, kFile };
  std::string name, value;
  Source source = Source::kHost;
};

// Every variable of the host whose name starts with one of the prefixes, sorted by name; conf files count for NCCL_ only.
std::vector<Setting> settings(const Situation& situation, size_t host, std::initializer_list<std::string_view> prefixes);
std::optional<std::string> setting(const Situation& situation, size_t host, const std::string& name);
std::optional<int64_t> number_setting(const Situation& situation, size_t host, const std::string& name);  // as NCCL reads it
bool is_on(const Situation& situation, size_t host, const std::string& name);  // set, and not 0 (nor "false", "off", "no")

// One command that takes the setting away, or finds the file of the host that has it.
std::string away(const Situation& situation, size_t host, const Setting& setting);
std::string away(const Situation& situation, size_t host, const std::string& name);

// Each probed host, and whether several take part.
std::vector<size_t> probed(const Situation& situation);
std::string names_of(const Situation& situation, const std::vector<size_t>& hosts);     // "gpu01, gpu02 and 3 more"
bool uses_nccl(const Situation& situation);                                             // GPUs are wanted, and more than one rank
std::string package(const Situation& situation, size_t host, const std::string& name);  // version; empty: not there or not known
// The NCCL that torch would load on the host, "2.20.5+cuda12.4"; empty: not known.
std::string nccl_version(const Situation& situation, size_t host);

// The odd hosts out of a comparison, told as one finding: calls `tell` with the odd camp and the common one. Two camps of one host
// each name both. False: no difference.
template <typename Tell>
bool odd_ones(const std::vector<Camp>& all, Tell tell) {
  if (all.size() < 2) return false;
  for (size_t c = 1; c < all.size(); ++c) {
    std::vector<size_t> hosts = all[c].hosts;
    if (all[c].hosts.size() == all[0].hosts.size()) hosts.insert(hosts.begin(), all[0].hosts.begin(), all[0].hosts.end());
    tell(hosts, all[c], all[0]);
  }
  return true;
}

}  // namespace phalanx::doctor
