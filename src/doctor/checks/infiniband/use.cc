// What NCCL needs to use the ports, and what keeps it from them.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/text.h"
#include "doctor/checks/rows.h"
#include "doctor/settings.h"
#include "doctor/views/infiniband_view.h"
#include "doctor/views/network_view.h"
#include "machine/infiniband/text.h"

namespace phalanx::doctor {
namespace {

constexpr int kGidByItself = 22100;  // NCCL's first version whose default NCCL_IB_GID_INDEX is -1

bool has_active(const Situation& s, size_t h) {
  std::vector<IbPlace> all = ib_ports(s);
  return std::any_of(all.begin(), all.end(), [&](const IbPlace& p) { return p.host == h && p.port->state == "ACTIVE"; });
}

void no_verbs(const Situation& s, size_t h, const HostView& host, Findings& findings) {
  const machine::InfinibandFacts& ib = host.facts.infiniband;
  if (s.single() || !uses_nccl(s, h) || !has_active(s, h) || ib_switched_off(s, h) || (ib.uverbs && !ib.libibverbs.empty())) return;
  if (ib.libibverbs.empty())
    findings.on(h, tr("ports are ACTIVE, but libibverbs.so.1 is missing"), "sudo apt-get install -y libibverbs1 ibverbs-providers");
  else findings.on(h, tr("ports are ACTIVE, but /dev/infiniband/uverbs* is missing"), "sudo modprobe ib_uverbs");
}

void disabled_left(const Situation& s, size_t h, const HostView&, Findings& findings) {
  if (s.single()) return;
  bool asked = uses_nccl(s, h) || set_for_job(s, "NCCL_IB_DISABLE") || set_for_job(s, "NCCL_NET");
  if (!asked || !has_active(s, h) || !ib_switched_off(s, h)) return;
  std::string name = std::atoll(job_setting(s, h, "NCCL_IB_DISABLE").c_str()) != 0 ? "NCCL_IB_DISABLE" : "NCCL_NET";
  std::string ports;
  for (const IbPlace& p : ib_ports(s))
    if (p.host == h && p.port->state == "ACTIVE") ports += fmt::format("{}{} {}", ports.empty() ? "" : ", ", p.name(), p.port->rate);
  findings.on(h, tr("{}={} while ACTIVE: {}", name, job_setting(s, h, name), ports), "unset " + name);
}

void some_hosts(const Situation& s, Findings& findings) {
  std::vector<size_t> with, without;
  for (size_t h : probed(s)) {
    if (!uses_nccl(s, h)) continue;
    (!ib_switched_off(s, h) && !nccl_ib_ports(s, h).empty() ? with : without).push_back(h);
  }
  if (with.empty() || without.empty()) return;
  findings.on(without, tr("NCCL would use sockets here, but InfiniBand on {}", names(s, with)), "export NCCL_IB_DISABLE=1");
}

void hca_filter(const Situation& s, size_t h, const HostView&, Findings& findings) {
  std::string filter = job_setting(s, h, "NCCL_IB_HCA");
  if (filter.empty() || !has_active(s, h) || ib_switched_off(s, h) || !nccl_ib_ports(s, h).empty()) return;
  std::string ports;
  for (const IbPlace& p : ib_ports(s))
    if (p.host == h && p.port->state == "ACTIVE") ports += (ports.empty() ? "" : ", ") + p.name();
  findings.on(h, tr("NCCL_IB_HCA={} matches no ACTIVE port; the ports are {}", filter, ports), "unset NCCL_IB_HCA");
}

void hca_prefix(const Situation& s, size_t h, const HostView& host, Findings& findings) {
  std::string filter = job_setting(s, h, "NCCL_IB_HCA");
  if (filter.empty() || filter[0] == '=' || filter.substr(0, 2) == "^=") return;
  bool inverted = filter[0] == '^';
  for (std::string_view word : base::split(std::string_view(filter).substr(inverted), ',')) {
    std::string_view name = word.substr(0, word.find(':'));
    bool exact = false;
    std::string more;
    for (const machine::IbDevice& d : host.facts.infiniband.devices) {
      if (d.name == name) exact = true;
      else if (!name.empty() && d.name.substr(0, name.size()) == name) more += (more.empty() ? "" : ", ") + d.name;
    }
    if (exact && !more.empty())
      findings.on(h, tr("NCCL_IB_HCA={}: {} also matches {}", filter, name, more),
                  fmt::format("export NCCL_IB_HCA={}={}", inverted ? "^" : "", filter.substr(inverted)));
  }
}

void hca_names(const Situation& s, Findings& findings) {
  auto map = [&](const HostView& view) -> std::optional<std::string> {
    auto h = static_cast<size_t>(&view - s.hosts.data());
    if (job_setting(s, h, "NCCL_IB_HCA").empty()) return std::nullopt;
    std::string text;
    for (const machine::IbDevice& d : view.facts.infiniband.devices) {
      if (d.pci.empty()) return std::nullopt;
      text += fmt::format("{}{}={}", text.empty() ? "" : " ", d.name, d.pci);
    }
    return text.empty() ? std::nullopt : std::optional(text);
  };
  for (const Odd& odd : odd_ones(s, map)) findings.on(odd.hosts, tr("{}; on {}: {}", odd.value, names(s, odd.others), odd.usual));
}

const machine::IbGid* gid_at(const machine::IbPort& port, int64_t index) {
  for (const machine::IbGid& gid : port.gids)
    if (gid.index == index) return &gid;
  return nullptr;
}

std::string best_gid(const machine::IbPort& port) {
  for (const machine::IbGid& gid : port.gids)
    if (gid.type == "RoCE v2" && machine::is_ipv4_gid(gid.gid)) return std::to_string(gid.index);
  return "";
}

void gid_index(const Situation& s, size_t h, const HostView&, Findings& findings) {
  base::Result<int64_t> index = base::parse_int(job_setting(s, h, "NCCL_IB_GID_INDEX"), 0, 65535);
  if (!index.ok() || ib_switched_off(s, h)) return;
  for (const IbPlace& p : nccl_ib_ports(s, h)) {
    if (p.port->link_layer != "Ethernet" || p.port->gids.empty()) continue;
    const machine::IbGid* gid = gid_at(*p.port, *index);
    Words fault = !gid                                   ? tr("is empty")
                  : gid->type != "RoCE v2"               ? tr("is {}", gid->type)
                  : machine::is_link_local_gid(gid->gid) ? tr("is link-local")
                                                         : Words{};
    if (fault.empty()) continue;
    std::string best = best_gid(*p.port);
    findings.on(h, tr("{}: GID {} {}{}", p.name(), *index, fault, best.empty() ? Words{} : tr("; RoCE v2 over IPv4 is GID {}", best)),
                best.empty() ? "unset NCCL_IB_GID_INDEX" : "export NCCL_IB_GID_INDEX=" + best);
  }
}

void gid_default(const Situation& s, size_t h, const HostView& host, Findings& findings) {
  const auto& nccl = host.facts.software.nccl;
  int version = nccl.empty() ? 0 : machine::nccl_version(nccl[0].version);
  if (s.single() || version == 0 || version >= kGidByItself || !job_setting(s, h, "NCCL_IB_GID_INDEX").empty() || ib_switched_off(s, h))
    return;
  for (const IbPlace& p : nccl_ib_ports(s, h)) {
    const machine::IbGid* first = gid_at(*p.port, 0);
    std::string best = best_gid(*p.port);
    if (p.port->link_layer != "Ethernet" || best.empty() || best == "0" || !first) continue;
    findings.on(h, tr("NCCL {} takes GID 0 of {} ({}); RoCE v2 over IPv4 is GID {}", nccl[0].version, p.name(), first->type, best),
                "export NCCL_IB_GID_INDEX=" + best);
  }
}

// GPUs that can do GPUDirect RDMA at all: GeForce cards cannot.
bool data_centre(const HostView& view) {
  for (const machine::Gpu& g : view.facts.gpus.devices)
    for (const char* name : {"A100", "A800", "H100", "H800", "H200", "H20", "B200", "B300", "V100", "A40", "L40", "A30"})
      if (g.name.find(name) != std::string::npos) return true;
  return false;
}

void peermem(const Situation& s, size_t h, const HostView& host, Findings& findings) {
  if (s.single() || !uses_nccl(s, h) || !data_centre(host) || ib_switched_off(s, h) || nccl_ib_ports(s, h).empty()) return;
  if (host.facts.infiniband.peermem || host.facts.gpus.open_module) return;  // the open module brings DMA-BUF
  findings.on(h, tr("nvidia_peermem is not loaded, and the driver is not the open kernel module (DMA-BUF)"),
              "sudo modprobe nvidia-peermem");
}

constexpr Row kInfinibandUseRows[] = {
    {"IB-NO-VERBS", Severity::kWarning, no_verbs},     {"IB-DISABLED-LEFT", Severity::kWarning, disabled_left},
    {"IB-SOME-HOSTS", Severity::kWarning, some_hosts}, {"IB-HCA-FILTER", Severity::kWarning, hca_filter},
    {"IB-HCA-PREFIX", Severity::kWarning, hca_prefix}, {"IB-HCA-NAMES", Severity::kNote, hca_names},
    {"IB-GID-INDEX", Severity::kWarning, gid_index},   {"IB-GID-DEFAULT", Severity::kWarning, gid_default},
    {"IB-PEERMEM", Severity::kWarning, peermem},
};

}  // namespace

std::span<const Row> infiniband_use_rows() { return kInfinibandUseRows; }

}  // namespace phalanx::doctor
