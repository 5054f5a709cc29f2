// Gathers hosts in order and keeps the promises of a HostList: no host twice, a unique name each, a bounded number. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "hosts/lists/host_list.h"

namespace phalanx::hosts {

struct Complaint {
  std::string message;
  std::string hint;
};

class HostCollector {
 public:
  // Adds `pattern` once per address. Two hosts are the same if address and port are: another user does not make another
  // machine. On a Complaint the collector is spent.
  std::optional<Complaint> add(const HostSpec& pattern, const std::vector<std::string>& addresses);

  size_t size() const { return hosts_.size(); }
  // Names are the addresses; where one address occurs with several ports, "address:port".
  HostList finish();

 private:
  HostList hosts_;
  std::unordered_map<std::string, size_t> places_;       // address and port → index in hosts_
  std::unordered_map<std::string, size_t> per_address_;  // how often an address occurs
};

// The number of the character that byte `at` of `text` belongs to, from 1.
size_t character_number(std::string_view text, size_t at);

}  // namespace phalanx::hosts
