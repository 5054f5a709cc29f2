#include "hosts/connect/host_collector.h"

#include <fmt/format.h>

#include "base/counted.h"
#include "base/unicode.h"

namespace phalanx::hosts {
namespace {

std::string with_port(const HostSpec& host) {
  bool colons = host.address.find(':') != std::string::npos;
  return colons ? fmt::format("[{}]:{}", host.address, host.port) : fmt::format("{}:{}", host.address, host.port);
}

}  // namespace

std::optional<Complaint> HostCollector::add(const HostSpec& pattern, const std::vector<std::string>& addresses) {
  if (hosts_.size() + addresses.size() > kMostHosts) return Complaint{base::counted("more than {} hosts", kMostHosts), ""};
  for (const std::string& address : addresses) {
    HostSpec host = pattern;
    host.address = address;
    auto [place, added] = places_.emplace(fmt::format("{}/{}", address, host.port), hosts_.size());
    if (!added) {
      const HostSpec& first = hosts_[place->second];
      std::string where = first.source == host.source ? "" : fmt::format(" (the first is {})", first.source);
      return Complaint{fmt::format("host {} is given twice{}", address, where), "write each host once, with the sum of its slots"};
    }
    ++per_address_[address];
    hosts_.push_back(std::move(host));
  }
  return std::nullopt;
}

HostList HostCollector::finish() {
  for (HostSpec& host : hosts_) host.name = per_address_[host.address] > 1 ? with_port(host) : host.address;
  return std::move(hosts_);
}

size_t character_number(std::string_view text, size_t at) {
  size_t number = 1;
  for (size_t i = 0; i < text.size() && i < at; ++number) i += base::first_character(text.substr(i)).length;
  return number;
}

}  // namespace phalanx::hosts
