// What is switched off, and settings that contradict each other.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "doctor/checks/rows.h"
#include "doctor/settings.h"
#include "doctor/views/nccl_variables.h"

namespace phalanx::doctor {
namespace {

bool has_active_ib(const HostView& h) {
  for (const machine::IbDevice& device : h.facts.infiniband.devices)
    for (const machine::IbPort& port : device.ports)
      if (port.state == "ACTIVE") return true;
  return false;
}

bool net_is(const Situation& s, size_t host, std::string_view wanted) {
  return base::to_lower(setting(s, host, "NCCL_NET").value_or("")) == wanted;
}

void check_net_disabled(const Situation& s, size_t h, const HostView&, Findings& findings) {
  if (!uses_nccl(s)) return;
  if (!net_is(s, h, "ib") || !is_on(s, h, "NCCL_IB_DISABLE")) return;
  findings.on(h, tr("NCCL_NET=IB requests InfiniBand, but NCCL_IB_DISABLE=1 disables it"), away(s, h, "NCCL_IB_DISABLE"));
}

// Pairs "at least A, at most B" turned round, and products that are cut.
void check_contradiction(const Situation& s, Findings& findings) {
  constexpr std::pair<const char*, const char*> kOrdered[] = {{"NCCL_MIN_NCHANNELS", "NCCL_MAX_NCHANNELS"},
                                                              {"NCCL_MIN_CTAS", "NCCL_MAX_CTAS"},
                                                              {"NCCL_MIN_P2P_NCHANNELS", "NCCL_MAX_P2P_NCHANNELS"}};
  for (size_t host : probed(s)) {
    for (const auto& [low, high] : kOrdered) {
      std::optional<int64_t> a = number_setting(s, host, low), b = number_setting(s, host, high);
      if (a && b && *a > *b) {
        std::string both = fmt::format("{}={} > {}={}", low, *a, high, *b);
        findings.on(host, {both, both}, away(s, host, low));
      }
    }
    int64_t threads = number_setting(s, host, "NCCL_SOCKET_NTHREADS").value_or(1),
            each = number_setting(s, host, "NCCL_NSOCKS_PERTHREAD").value_or(1);
    if (threads > 0 && each > 0 && threads <= 1024 && each <= 1024 && threads * each > 64)
      findings.on(
          host,
          tr("NCCL_SOCKET_NTHREADS={} × NCCL_NSOCKS_PERTHREAD={} is {} sockets; NCCL opens at most 64", threads, each, threads * each),
          away(s, host, "NCCL_NSOCKS_PERTHREAD"));
    if (is_on(s, host, "NCCL_P2P_DISABLE") && setting(s, host, "NCCL_P2P_LEVEL"))
      findings.on(host, tr("NCCL_P2P_LEVEL is set, but NCCL_P2P_DISABLE=1 disables peer-to-peer"), away(s, host, "NCCL_P2P_DISABLE"));
  }
}

void check_ib_ignored(const Situation& s, size_t h, const HostView&, Findings& findings) {
  bool off = is_on(s, h, "NCCL_IB_DISABLE"), socket = net_is(s, h, "socket");
  if (!off && !socket) return;
  std::string names;
  for (const Setting& one : settings(s, h, {"NCCL_IB_"}))
    if (one.name != "NCCL_IB_DISABLE") names += (names.empty() ? "" : ", ") + one.name;
  if (names.empty()) return;
  std::string by = off ? "NCCL_IB_DISABLE=1" : "NCCL_NET=Socket";
  findings.on(h, tr("{} has no effect together with {}", names, by), away(s, h, off ? "NCCL_IB_DISABLE" : "NCCL_NET"));
}

void check_ib_off(const Situation& s, size_t h, const HostView& host, Findings& findings) {
  if (s.hosts.size() < 2 || !uses_nccl(s)) return;
  bool off = is_on(s, h, "NCCL_IB_DISABLE"), socket = net_is(s, h, "socket");
  if ((!off && !socket) || !has_active_ib(host)) return;
  std::string by = off ? "NCCL_IB_DISABLE=1" : "NCCL_NET=Socket";
  findings.on(h, tr("{}, although an InfiniBand port is ACTIVE: NCCL uses TCP", by), away(s, h, off ? "NCCL_IB_DISABLE" : "NCCL_NET"));
}

void check_transport_differs(const Situation& s, Findings& findings) {
  if (s.hosts.size() < 2 || !uses_nccl(s)) return;
  for (size_t host : probed(s))
    if (!has_active_ib(s.hosts[host])) return;  // elsewhere all go over sockets
  auto index = [&](const HostView& h) { return static_cast<size_t>(&h - s.hosts.data()); };
  std::vector<Camp> all = camps(s, [&](const HostView& h) {
    return std::optional<std::string>(is_on(s, index(h), "NCCL_IB_DISABLE") || net_is(s, index(h), "socket") ? "TCP" : "InfiniBand");
  });
  odd_ones(all, [&](const std::vector<size_t>& hosts, const Camp& odd, const Camp& common) {
    const Camp& off = odd.value == "TCP" ? odd : common;
    std::string text = fmt::format("{}: {}; {}: {}", names_of(s, odd.hosts), odd.value, names_of(s, common.hosts), common.value);
    size_t host = off.hosts[0];
    findings.on(hosts, {text, text}, away(s, host, is_on(s, host, "NCCL_IB_DISABLE") ? "NCCL_IB_DISABLE" : "NCCL_NET"));
  });
}

bool same_host_pairs(const Situation& s, size_t host) { return s.hosts[host].ranks > 1 && uses_nccl(s); }

void check_p2p_off(const Situation& s, size_t h, const HostView& host, Findings& findings) {
  if (!same_host_pairs(s, h) || !is_on(s, h, "NCCL_P2P_DISABLE")) return;
  const auto& pairs = host.facts.gpus.pairs;
  auto good =
      std::find_if(pairs.begin(), pairs.end(), [](const machine::GpuPair& p) { return p.p2p_read == "ok" && p.path.starts_with("NV"); });
  if (good == pairs.end()) good = std::find_if(pairs.begin(), pairs.end(), [](const machine::GpuPair& p) { return p.p2p_read == "ok"; });
  if (good == pairs.end()) return;
  findings.on(h, tr("NCCL_P2P_DISABLE=1, although GPUs {} and {} can reach each other ({})", good->a, good->b, good->path),
              away(s, h, "NCCL_P2P_DISABLE"));
}

void check_shm_off(const Situation& s, size_t h, const HostView& host, Findings& findings) {
  if (!same_host_pairs(s, h) || !is_on(s, h, "NCCL_SHM_DISABLE")) return;
  const auto& pairs = host.facts.gpus.pairs;
  bool p2p_off = is_on(s, h, "NCCL_P2P_DISABLE");
  auto bad = std::find_if(pairs.begin(), pairs.end(), [](const machine::GpuPair& p) { return !p.p2p_read.empty() && p.p2p_read != "ok"; });
  if (!p2p_off && bad == pairs.end()) return;
  std::string why = p2p_off ? "NCCL_P2P_DISABLE=1" : fmt::format("GPU {}–{}: {}", bad->a, bad->b, bad->p2p_read);
  findings.on(h, tr("NCCL_SHM_DISABLE=1 and no peer-to-peer ({}): ranks of one host communicate over the network", why),
              away(s, h, "NCCL_SHM_DISABLE"));
}

void check_hides_nothing(const Situation& s, size_t h, const HostView& host, Findings& findings) {
  if (!is_on(s, h, "NCCL_P2P_DISABLE") && !is_on(s, h, "NCCL_IB_DISABLE")) return;
  const auto& gpus = host.facts.gpus.devices;
  auto odd = std::find_if(gpus.begin(), gpus.end(), [&](const machine::Gpu& g) { return g.name != gpus[0].name; });
  if (odd == gpus.end()) return;
  findings.on(h, tr("{} and {}: NCCL still enumerates both", gpus[0].name, odd->name),
              fmt::format("export CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA_VISIBLE_DEVICES={}", gpus[0].index));
}

void check_nvls(const Situation& s, Findings& findings) {
  if (!uses_nccl(s)) return;
  auto index = [&](const HostView& h) { return static_cast<size_t>(&h - s.hosts.data()); };
  std::vector<Camp> all = camps(s, [&](const HostView& h) -> std::optional<std::string> {
    const machine::GpuFacts& g = h.facts.gpus;
    int minor = nccl_minor(nccl_version(s, index(h)));
    if (!g.nvswitch || g.fabric_manager.empty() || (minor != 27 && minor != 28) || number_setting(s, index(h), "NCCL_NVLS_ENABLE") == 0)
      return std::nullopt;
    return g.fabric_manager;
  });
  odd_ones(all, [&](const std::vector<size_t>& hosts, const Camp& odd, const Camp& common) {
    std::string text =
        fmt::format("{}: fabric manager {}; {}: {}", names_of(s, odd.hosts), odd.value, names_of(s, common.hosts), common.value);
    findings.on(hosts, {text, text}, "export NCCL_NVLS_ENABLE=0");
  });
}

const Row kNcclTransportRows[] = {
    {"NCCL-NET-DISABLED", Severity::kError, check_net_disabled},
    {"NCCL-CONTRADICTION", Severity::kWarning, check_contradiction},
    {"NCCL-IB-IGNORED", Severity::kNote, check_ib_ignored},
    {"NCCL-IB-OFF", Severity::kWarning, check_ib_off},
    {"NCCL-TRANSPORT-DIFFERS", Severity::kError, check_transport_differs},
    {"NCCL-P2P-OFF", Severity::kWarning, check_p2p_off},
    {"NCCL-SHM-OFF", Severity::kWarning, check_shm_off},
    {"NCCL-HIDES-NOTHING", Severity::kNote, check_hides_nothing},
    {"NCCL-NVLS", Severity::kWarning, check_nvls},
};

}  // namespace

std::span<const Row> nccl_transport_rows() { return kNcclTransportRows; }

}  // namespace phalanx::doctor
