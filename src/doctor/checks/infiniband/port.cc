// The ports themselves: state, subnet manager, link layer, rate, error counters, firmware, partition.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "doctor/checks/rows.h"
#include "doctor/examine.h"
#include "doctor/settings.h"
#include "doctor/views/infiniband_view.h"
#include "doctor/views/network_view.h"
#include "machine/infiniband/text.h"

namespace phalanx::doctor {
namespace {

constexpr int64_t kManyErrors = 100, kErrorRatio = 20;

void port_init(const Situation& s, Findings& findings) {
  for (const IbPlace& p : ib_ports(s)) {
    if (p.port->link_layer != "InfiniBand" || (p.port->state != "INIT" && p.port->state != "ARMED")) continue;
    findings.on(p.host, tr("{} is {} (ibstat: Initializing), its cable is up, sm_lid is {}", p.name(), p.port->state, p.port->sm_lid),
                "sudo systemctl enable --now opensmd");
  }
}

void port_down(const Situation& s, Findings& findings) {
  auto state = [](const IbPlace& p) { return p.port->state; };
  for (const OddPort& odd : odd_ports(s, state))
    if (odd.value == "DOWN" && odd.usual == "ACTIVE")
      findings.on(odd.place.host,
                  tr("{} is DOWN ({}); {} have it ACTIVE", odd.place.name(), odd.place.port->phys_state, names(s, odd.others)),
                  odd.place.port->phys_state == "Disabled"
                      ? fmt::format("sudo ibportstate -C {} -D 0 {} enable", odd.place.device->name, odd.place.port->port)
                      : fmt::format("ibstat {}", odd.place.device->name));
}

void none_active(const Situation& s, size_t h, const HostView&, Findings& findings) {
  if (s.single()) return;
  int64_t infiniband = 0, active = 0;
  for (const IbPlace& p : ib_ports(s)) {
    if (p.host != h) continue;
    infiniband += p.port->link_layer == "InfiniBand";
    active += p.port->state == "ACTIVE";
  }
  if (infiniband > 0 && active == 0) findings.on(h, tr("{} InfiniBand ports, none ACTIVE", infiniband));
}

void no_subnet_manager(const Situation& s, Findings& findings) {
  for (const IbPlace& p : ib_ports(s))
    if (p.port->link_layer == "InfiniBand" && p.port->phys_state == "LinkUp" && p.port->sm_lid == 0)
      findings.on(p.host, tr("{}: sm_lid is 0, state {}", p.name(), p.port->state), "sudo sminfo -C " + p.device->name);
}

// One host with both kinds in NCCL's hands, or one device that is InfiniBand here and Ethernet there.
void mixed_link(const Situation& s, Findings& findings) {
  for (size_t h : probed(s)) {
    std::map<std::string, std::vector<std::string>> layers;
    for (const IbPlace& p : nccl_ib_ports(s, h)) layers[p.port->link_layer].push_back(p.name());
    if (layers.size() < 2 || ib_switched_off(s, h)) continue;
    const std::vector<std::string>& roce = layers["Ethernet"];
    std::string list;
    for (const std::string& name : roce) list += (list.empty() ? "" : ",") + name;
    findings.on(h, tr("{} InfiniBand ports and {} over Ethernet ({})", layers["InfiniBand"].size(), roce.size(), list),
                "export NCCL_IB_HCA=^=" + list);
  }
  for (const OddPort& odd : odd_ports(s, [](const IbPlace& p) { return p.port->state == "ACTIVE" ? p.port->link_layer : ""; }))
    findings.on(odd.place.host, tr("{} is {}; on {} it is {}", odd.place.name(), odd.value, names(s, odd.others), odd.usual));
}

void lower_rate(const Situation& s, Findings& findings) {
  auto rate_of = [](const IbPlace& p) { return p.port->state == "ACTIVE" && p.port->rate_gbps > 0 ? p.port->rate : ""; };
  for (const OddPort& odd : odd_ports(s, rate_of))
    if (machine::rate_gbps(odd.value) < machine::rate_gbps(odd.usual))
      findings.on(odd.place.host, tr("{}: {}; {} have {}", odd.place.name(), odd.value, names(s, odd.others), odd.usual),
                  "sudo mlxlink -d " + odd.place.device->name);
}

void width(const Situation& s, Findings& findings) {
  for (const IbPlace& p : ib_ports(s))
    if (p.port->state == "ACTIVE" && p.port->link_layer == "InfiniBand" && p.port->rate.find("(1X ") != std::string::npos)
      findings.on(p.host, tr("{}: {}: one lane of four", p.name(), p.port->rate));
}

// A counter stands out when it is many times that of the other ports of all hosts; they count since boot, so that a few are nothing.
void errors(const Situation& s, Findings& findings) {
  static constexpr const char* kCounters[] = {
      "symbol_error",          "link_error_recovery", "link_downed",    "port_rcv_errors", "local_link_integrity_errors",
      "local_ack_timeout_err", "packet_seq_err",      "out_of_sequence"};
  std::vector<IbPlace> ports = ib_ports(s);
  std::map<std::string, std::vector<int64_t>> all;  // of each counter, sorted
  for (const char* counter : kCounters) {
    std::vector<int64_t>& values = all[counter];
    for (const IbPlace& p : ports)
      if (auto found = p.port->counters.find(counter); found != p.port->counters.end()) values.push_back(found->second);
    std::sort(values.begin(), values.end());
  }
  for (const IbPlace& p : ports) {
    std::string told;
    for (const char* counter : kCounters) {
      auto found = p.port->counters.find(counter);
      const std::vector<int64_t>& values = all[counter];
      if (found == p.port->counters.end() || values.size() < 2) continue;
      // The middle one of the others: of all but one that is as large as this.
      size_t middle = (values.size() - 1) / 2;
      int64_t usual = values[middle] < found->second ? values[middle] : values[middle + 1];
      int64_t many = std::string_view(counter) == "link_downed" ? 10 : kManyErrors;
      if (found->second >= many && found->second / kErrorRatio >= usual)
        told += fmt::format("{}{} {} (usual: {})", told.empty() ? "" : ", ", counter, found->second, usual);
    }
    if (!told.empty()) findings.on(p.host, tr("{}: {}", p.name(), told), "sudo perfquery -x -C " + p.device->name);
  }
}

void firmware(const Situation& s, Findings& findings) {
  for (const OddPort& odd :
       odd_ports(s, [](const IbPlace& p) { return p.device->board.empty() ? "" : p.device->board + " " + p.device->firmware; })) {
    std::string mine = odd.value.substr(odd.value.find(' ') + 1), usual = odd.usual.substr(odd.usual.find(' ') + 1);
    if (odd.value.substr(0, odd.value.find(' ')) != odd.usual.substr(0, odd.usual.find(' ')) || mine.empty() || usual.empty()) continue;
    findings.on(odd.place.host, tr("{}: firmware {}; {} have {}", odd.place.device->name, mine, names(s, odd.others), usual));
  }
}

void partition(const Situation& s, Findings& findings) {
  auto key = [](const IbPlace& p) { return p.port->state == "ACTIVE" && p.port->link_layer == "InfiniBand" ? p.port->pkey : ""; };
  for (const OddPort& odd : odd_ports(s, key))
    if ((machine::hexadecimal(odd.value) & 0x7fff) != (machine::hexadecimal(odd.usual) & 0x7fff))
      findings.on(odd.place.host, tr("{}: partition key {}; {} have {}", odd.place.name(), odd.value, names(s, odd.others), odd.usual));
  if (s.single()) return;
  for (const IbPlace& p : ib_ports(s))  // without the top bit a member is limited: two such cannot talk
    if (int64_t k = machine::hexadecimal(key(p)); k != 0 && (k & 0x8000) == 0)
      findings.on(p.host, tr("{}: partition key {} is a limited member's", p.name(), p.port->pkey));
}

void missing_device(const Situation& s, Findings& findings) {
  auto count = [](const HostView& view) -> std::optional<std::string> { return std::to_string(view.facts.infiniband.devices.size()); };
  for (const Odd& odd : odd_ones(s, count)) {
    int64_t mine = std::atoll(odd.value.c_str()), usual = std::atoll(odd.usual.c_str());
    if (mine < usual)
      findings.on(odd.hosts, tr("{} of {} devices that {} have", mine, usual, names(s, odd.others)), "lspci | grep -i mellanox");
  }
}

constexpr Row kInfinibandPortRows[] = {
    {"IB-PORT-INIT", Severity::kWarning, port_init},
    {"IB-PORT-DOWN", Severity::kWarning, port_down},
    {"IB-NONE-ACTIVE", Severity::kNote, none_active},
    {"IB-NO-SM", Severity::kWarning, no_subnet_manager},
    {"IB-MIXED-LINK", Severity::kWarning, mixed_link},
    {"IB-RATE", Severity::kWarning, lower_rate},
    {"IB-WIDTH", Severity::kWarning, width},
    {"IB-ERRORS", Severity::kWarning, errors},
    {"IB-FIRMWARE", Severity::kNote, firmware},
    {"IB-PKEY", Severity::kWarning, partition},
    {"IB-DEVICE-MISSING", Severity::kWarning, missing_device},
};

}  // namespace

std::span<const Row> infiniband_port_rows() { return kInfinibandPortRows; }

}  // namespace phalanx::doctor
