#include "diagnosis/nccl/view.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/text.h"

namespace phalanx::diagnosis {
namespace {

using doctor::Severity;
using logs::NcclCommunicator;
using logs::NcclEdge;
using logs::NcclProcess;
using logs::NcclRank;
using logs::NcclTopology;
using words::tr;

constexpr size_t kMostNamed = 6;

std::string joined(const std::set<std::string>& words) {
  std::vector<std::string> list(words.begin(), words.end());
  bool more = list.size() > kMostNamed;
  if (more) list.resize(kMostNamed);
  return base::join(list, ", ") + (more ? fmt::format(", … ({})", words.size()) : "");
}

bool is_net(const NcclEdge& e) { return e.transport.starts_with("NET/"); }
bool is_set(const NcclProcess& p, const std::string& name) {
  auto found = p.settings.find(name);
  return found != p.settings.end() && !found->second.empty() && found->second != "0";
}

class Judge {
 public:
  explicit Judge(const NcclTopology& topology) : t_(topology) {
    int most = 0;
    for (const NcclCommunicator& c : t_.communicators) most = std::max(most, c.size);
    for (const NcclCommunicator& c : t_.communicators)
      if (c.size == most) largest_.push_back(&c);
    // Groups of one size side by side: none is the job. The same processes again: a restart, or the program's own copy of it.
    for (const NcclCommunicator* c : largest_)
      if (processes_in(*c) != processes_in(*largest_[0])) {
        largest_.clear();
        break;
      }
  }

  std::vector<NcclFinding> findings() {
    versions();
    networks();
    interfaces();
    settings();
    for (const NcclCommunicator& c : t_.communicators) {
      if (c.size == 1) continue;
      size_t before = findings_.size();
      start(c);
      channels(c);
      local_pairs(c);
      gdr(c);
      bool job = std::find(largest_.begin(), largest_.end(), &c) != largest_.end();
      for (size_t i = before; i < findings_.size(); ++i) {
        NcclFinding& f = findings_[i];
        f.ranks_of_job = job;
        if (job) continue;
        std::string id = c.id.empty() ? "?" : c.id;
        f.evidence = tr("in communicator {} of {} ranks: {}", id, c.size, f.evidence);
      }
    }
    std::stable_sort(findings_.begin(), findings_.end(), [](const NcclFinding& a, const NcclFinding& b) {
      return static_cast<int>(a.severity) < static_cast<int>(b.severity);
    });
    return std::move(findings_);
  }

 private:
  static std::set<size_t> processes_in(const NcclCommunicator& c) {
    std::set<size_t> processes;
    for (const auto& [n, rank] : c.ranks) processes.insert(rank.process);
    return processes;
  }
  const NcclProcess& process(const NcclRank& rank) const { return t_.processes[rank.process]; }
  NcclFinding& add(std::string_view code, Severity severity, const NcclCommunicator* c, std::set<std::string> hosts,
                   doctor::Words evidence) {
    NcclFinding f;
    f.code = code;
    f.severity = severity;
    if (c) f.communicator = c->id;
    f.hosts.assign(hosts.begin(), hosts.end());
    f.evidence = std::move(evidence);
    return findings_.emplace_back(std::move(f));
  }

  // One fact of every process; several values are a finding.
  template <typename Value>
  std::map<std::string, std::set<std::string>> hosts_by(Value value) const {
    std::map<std::string, std::set<std::string>> hosts;
    for (const NcclProcess& p : t_.processes)
      if (std::string v = value(p); !v.empty()) hosts[v].insert(p.host);
    return hosts;
  }
  static std::string said(const std::map<std::string, std::set<std::string>>& hosts) {
    std::string text;
    for (const auto& [value, names] : hosts) text += fmt::format("{}{}: {}", text.empty() ? "" : "; ", value, joined(names));
    return text;
  }
  static std::set<std::string> all_hosts(const std::map<std::string, std::set<std::string>>& by_value) {
    std::set<std::string> all;
    for (const auto& [value, names] : by_value) all.insert(names.begin(), names.end());
    return all;
  }

  void versions() {
    // "2.21.5+cuda12.4" is the version 2.21.5; what it was built with differs from line to line of one library.
    auto number = [](const std::string& version) { return version.substr(0, version.find('+')); };
    auto by_version = hosts_by([&](const NcclProcess& p) { return number(p.version); });
    for (const std::string& version : t_.versions) by_version[number(version)];
    if (by_version.size() < 2) return;
    std::string text;
    for (const auto& [version, hosts] : by_version)
      text += fmt::format("{}{}{}", text.empty() ? "" : "; ", version, hosts.empty() ? "" : ": " + joined(hosts));
    add("NCCL-VERSION-DIFFERS", Severity::kError, nullptr, all_hosts(by_version),
        {fmt::format("NCCL {}", text), fmt::format("NCCL {}", text)});
  }

  bool over_hosts() const {
    std::set<std::string> hosts;
    for (const NcclProcess& p : t_.processes) hosts.insert(p.host);
    return hosts.size() > 1;
  }

  void networks() {
    if (!over_hosts()) return;
    auto by_network = hosts_by([](const NcclProcess& p) { return p.network; });
    std::set<std::string> with_ib, on_socket, none_there;
    std::string device;
    for (const NcclProcess& p : t_.processes) {
      bool socket = p.network == "Socket";
      if (!p.ib_devices.empty() || p.network == "IB") with_ib.insert(p.host);
      if (!p.ib_devices.empty() && device.empty()) device = p.ib_devices[0];
      if (socket) on_socket.insert(p.host);
      if (socket && p.ib_devices.empty()) none_there.insert(p.host);
    }
    if (!on_socket.empty() && !with_ib.empty()) {
      std::string others = device.empty() ? joined(with_ib) : fmt::format("{} ({})", joined(with_ib), device);
      doctor::Words why = none_there.empty() ? doctor::Words{} : tr("; NCCL found no InfiniBand on {}", joined(none_there));
      add("NCCL-SOCKET-DESPITE-IB", Severity::kWarning, nullptr, on_socket,
          tr("{} uses sockets, although InfiniBand was found on {}{}", joined(on_socket), others, why));
    } else if (by_network.size() > 1) {
      add("NCCL-TRANSPORT-DIFFERS", Severity::kError, nullptr, all_hosts(by_network), tr("networks chosen: {}", said(by_network)));
    }
  }

  // Different names alone are common (bond0 here, eth0 there); different networks too are not.
  void interfaces() {
    std::map<std::string, std::set<std::string>> by_choice;
    std::set<std::string> names, nets;
    for (const NcclProcess& p : t_.processes) {
      if (p.bootstrap_interface.empty()) continue;
      const std::string& a = p.bootstrap_address;
      size_t dot = a.find('.'), second = dot == std::string::npos ? dot : a.find('.', dot + 1);
      names.insert(p.bootstrap_interface);
      nets.insert(second == std::string::npos ? a.substr(0, a.find(':')) : a.substr(0, second));
      by_choice[p.bootstrap_interface + " " + a].insert(p.host);
    }
    if (names.size() < 2 || nets.size() < 2 || !over_hosts()) return;
    add("NCCL-INTERFACES-DIFFER", Severity::kWarning, nullptr, all_hosts(by_choice), tr("interfaces chosen: {}", said(by_choice)));
  }

  void settings() {
    std::set<std::string> pxn;
    for (const NcclProcess& p : t_.processes)
      if (is_set(p, "NCCL_PXN_DISABLE")) pxn.insert(p.host);
    if (!pxn.empty()) add("PERF-PXN", Severity::kNote, nullptr, pxn, tr("NCCL_PXN_DISABLE is set on {}", joined(pxn)));
  }

  // Who is missing; who stopped where.
  void start(const NcclCommunicator& c) {
    std::vector<int> stopped = nccl_stopped(c), complete, missing;
    if (stopped.empty()) return;
    bool met = false;
    for (const auto& [n, rank] : c.ranks) {
      met = met || rank.laid_out || rank.complete;
      if (nccl_phase(rank).english.empty()) complete.push_back(n);
    }
    for (int n = 0; n < c.size && missing.size() < 65536; ++n)
      if (c.ranks.count(n) == 0) missing.push_back(n);
    if (!met && !missing.empty()) {
      NcclFinding& f = add("NCCL-INIT-MISSING", Severity::kError, &c, {}, {});
      f.ranks = missing;
      f.lines = lines_of(c, stopped);
      f.evidence = tr("{} of {} ranks in these logs began to initialise NCCL, and none completed; missing: rank {}", c.ranks.size(), c.size,
                      base::format_ranges(missing));
      return;
    }
    bool connecting = std::all_of(stopped.begin(), stopped.end(), [&](int n) { return c.ranks.at(n).announced && !c.ranks.at(n).rings; });
    std::string pairs = connecting ? one_sided(c) : "";
    doctor::Words where;
    for (const auto& [phase, ranks] : by_phase(c, stopped))
      where.add(tr("; "), tr("rank {}: {}", base::format_ranges(ranks), doctor::Words{phase.first, phase.second}));
    if (!complete.empty()) where += tr("; finished: rank {}", base::format_ranges(complete));
    if (!pairs.empty()) where += tr("; connections announced by one side only: {}", pairs);
    NcclFinding& f =
        add(connecting ? "NCCL-CONNECT-STOPPED" : "NCCL-INIT-STOPPED", Severity::kError, &c, hosts_of(c, stopped), std::move(where));
    f.ranks = stopped;
    f.lines = lines_of(c, stopped);
  }

  static std::vector<std::pair<uint64_t, std::string>> lines_of(const NcclCommunicator& c, const std::vector<int>& ranks) {
    std::vector<std::pair<uint64_t, std::string>> lines;
    for (size_t i = 0; i < ranks.size() && i < kMostNamed; ++i)
      lines.emplace_back(c.ranks.at(ranks[i]).last_line, c.ranks.at(ranks[i]).last);
    return lines;
  }

  std::set<std::string> hosts_of(const NcclCommunicator& c, const std::vector<int>& ranks) const {
    std::set<std::string> hosts;
    for (int n : ranks) hosts.insert(process(c.ranks.at(n)).host);
    return hosts;
  }
  static std::map<std::pair<std::string, std::string>, std::vector<int>> by_phase(const NcclCommunicator& c,
                                                                                  const std::vector<int>& ranks) {
    std::map<std::pair<std::string, std::string>, std::vector<int>> phases;
    for (int n : ranks) {
      doctor::Words phase = nccl_phase(c.ranks.at(n));
      phases[{phase.english, phase.chinese}].push_back(n);
    }
    return phases;
  }
  // Connections through a network that one end has announced and the other, whose log is here, has not.
  static std::string one_sided(const NcclCommunicator& c) {
    std::set<std::string> pairs;
    for (const auto& [key, e] : c.edges) {
      if (!is_net(e) || c.ranks.count(e.from) == 0 || c.ranks.count(e.to) == 0) continue;
      uint64_t sent = 0, received = 0;  // a way may have other names at its two ends
      for (auto it = c.edges.lower_bound({e.from, e.to, ""}); it != c.edges.end() && it->second.from == e.from && it->second.to == e.to;
           ++it)
        sent |= it->second.sent, received |= it->second.received;
      if (sent != received) pairs.insert(fmt::format("{} → {}", e.from, e.to));
    }
    return joined(pairs);
  }

  void channels(const NcclCommunicator& c) {
    std::map<int, std::vector<int>> by_count;
    for (const auto& [n, rank] : c.ranks)
      if (rank.channels >= 0) by_count[rank.channels].push_back(n);
    if (by_count.size() < 2) return;
    std::string text;
    std::vector<int> all;
    for (const auto& [count, ranks] : by_count) {
      text += fmt::format("{}{}: rank {}", text.empty() ? "" : "; ", count, base::format_ranges(ranks));
      all.insert(all.end(), ranks.begin(), ranks.end());
    }
    NcclFinding& f = add("NCCL-CHANNELS-DIFFER", Severity::kError, &c, hosts_of(c, all), tr("channels built: {}", text));
    f.ranks = all;
  }

  // Ranks of one host that are not connected directly.
  void local_pairs(const NcclCommunicator& c) {
    std::map<std::string, std::set<std::string>> shm, net, p2p;  // by host
    std::set<std::string> shm_off, p2p_off;
    for (const auto& [key, e] : c.edges) {
      auto from = c.ranks.find(e.from), to = c.ranks.find(e.to);
      if (from == c.ranks.end() || to == c.ranks.end() || process(from->second).host != process(to->second).host) continue;
      const NcclProcess& p = process(from->second);
      auto& kind = is_net(e) ? net : e.transport.starts_with("SHM") ? shm : p2p;
      kind[p.host].insert(fmt::format("{} → {} {}", e.from, e.to, e.transport));
      if (is_set(p, "NCCL_SHM_DISABLE")) shm_off.insert(p.host);
      if (is_set(p, "NCCL_P2P_DISABLE")) p2p_off.insert(p.host);
    }
    for (const auto& [host, pairs] : net)
      add(shm_off.count(host) ? "NCCL-SHM-OFF" : "NCCL-LOCAL-NETWORK", Severity::kWarning, &c, {host},
          tr("on {}: {}", host, joined(pairs)));
    for (const auto& [host, pairs] : shm) {
      bool some = p2p.count(host) != 0;
      add(p2p_off.count(host) ? "NCCL-P2P-OFF" : "NCCL-NO-P2P", some ? Severity::kNote : Severity::kWarning, &c, {host},
          tr("on {}: {}{}", host, joined(pairs), some ? tr("; others have P2P") : doctor::Words{}));
    }
  }

  void gdr(const NcclCommunicator& c) {
    std::set<std::string> with, without, said_so;
    for (const auto& [key, e] : c.edges) {
      if (!e.transport.starts_with("NET/IB")) continue;
      for (int n : {e.sent ? e.from : -1, e.received ? e.to : -1})
        if (auto rank = c.ranks.find(n); rank != c.ranks.end()) {
          const NcclProcess& p = process(rank->second);
          (e.transport.find("GDRDMA") != std::string::npos ? with : without).insert(p.host);
          if (p.devices_without_gdr > 0) said_so.insert(p.host);
        }
    }
    if (without.empty() || (with.empty() && said_so.empty())) return;
    add("NCCL-NO-GDR", Severity::kWarning, &c, without,
        tr("InfiniBand without GPUDirect on {}{}", joined(without), with.empty() ? doctor::Words{} : tr("; with it on {}", joined(with))));
  }

  const NcclTopology& t_;
  std::vector<const NcclCommunicator*> largest_;
  std::vector<NcclFinding> findings_;
};

}  // namespace

std::vector<int> nccl_stopped(const NcclCommunicator& c) {
  bool begun = false;
  std::vector<int> stopped;
  for (const auto& [n, rank] : c.ranks) {
    if (rank.destroyed || rank.aborted) return {};
    begun = begun || rank.started || rank.complete || rank.nodes > 0 || !rank.tree.empty();
    if (!nccl_phase(rank).english.empty()) stopped.push_back(n);
  }
  return begun ? stopped : std::vector<int>();
}

doctor::Words nccl_phase(const NcclRank& rank) {
  if (rank.destroyed || rank.aborted) return {};
  if (rank.complete && (rank.rings || !rank.announced)) return {};
  if (rank.complete) return tr("connecting channels at the first collective");
  if (rank.rings) return tr("rings are connected, initialisation is not complete");
  if (rank.announced) return tr("connecting channels");
  if (rank.laid_out) return tr("bootstrap complete, channels not yet announced");
  return tr("bootstrap: waiting for other ranks");
}

std::vector<NcclFinding> judge_nccl(const NcclTopology& topology) { return Judge(topology).findings(); }

}  // namespace phalanx::diagnosis
