// The topology as lines of a report.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/text.h"
#include "diagnosis/nccl/view.h"

namespace phalanx::diagnosis {
namespace {

using logs::NcclCommunicator;
using logs::NcclEdge;
using logs::NcclProcess;
using logs::NcclRank;
using logs::NcclTopology;
using words::tr;

constexpr size_t kMostCommunicators = 6;
constexpr size_t kMostRows = 12;
constexpr size_t kMostRing = 32;
constexpr size_t kMostStopped = 8;
constexpr size_t kMostWarnings = 8;

class Section {
 public:
  Section(const NcclTopology& topology, const std::function<std::string(uint64_t)>& place) : t_(topology), place_(place) {}

  NcclSection lines() {
    out_.title = tr("NCCL (from its log)");
    if (t_.processes.empty()) return std::move(out_);
    processes();
    std::vector<const NcclCommunicator*> all;
    for (const NcclCommunicator& c : t_.communicators) all.push_back(&c);
    std::stable_sort(all.begin(), all.end(), [](auto* a, auto* b) { return a->ranks.size() > b->ranks.size(); });
    for (size_t i = 0; i < all.size() && i < kMostCommunicators; ++i) communicator(*all[i]);
    if (all.size() > kMostCommunicators) say(tr("and {} more communicators", all.size() - kMostCommunicators));
    algorithms();
    warnings();
    if (t_.left_out > 0) say(tr("{} items exceeded the limits and are omitted", t_.left_out));
    return std::move(out_);
  }

 private:
  void say(words::Message line) { out_.lines.push_back(std::move(line)); }
  const std::string& host(const NcclRank& rank) const { return t_.processes[rank.process].host; }

  void processes() {
    std::set<std::string> versions(t_.versions.begin(), t_.versions.end()), networks, interfaces;
    std::map<std::string, int> hosts;
    for (const NcclProcess& p : t_.processes) {
      if (!p.version.empty()) versions.insert(p.version);
      if (!p.network.empty()) networks.insert(p.plugin.empty() ? p.network : p.network + " (" + p.plugin + ")");
      if (!p.bootstrap_interface.empty()) interfaces.insert(p.bootstrap_interface);
      ++hosts[p.host];
    }
    auto list = [](const std::set<std::string>& words) { return base::join(std::vector<std::string>(words.begin(), words.end()), ", "); };
    std::string names;
    size_t named = 0;
    for (const auto& [name, count] : hosts)
      if (named++ < kMostRows) names += fmt::format("{}{} ×{}", names.empty() ? "" : ", ", name, count);
    if (hosts.size() > kMostRows) names += ", …";
    std::string version = versions.empty() ? "" : list(versions) + ", ";
    std::string net = networks.empty() ? "" : "; " + list(networks), by = interfaces.empty() ? "" : "; bootstrap " + list(interfaces);
    say(tr("{}{} processes on {} hosts ({}){}{}", version, t_.processes.size(), hosts.size(), names, net, by));
  }

  void communicator(const NcclCommunicator& c) {
    words::Message id = c.id.empty() ? tr("without an id") : tr("{}", c.id);
    int complete = 0, channels = -1, nvls = 0;
    double slowest = -1, meeting = -1;
    std::vector<int> stopped = nccl_stopped(c);
    for (const auto& [n, rank] : c.ranks) {
      complete += rank.complete;
      channels = std::max(channels, rank.channels);
      nvls = std::max(nvls, rank.nvls_channels);
      slowest = std::max(slowest, rank.init_seconds);
      meeting = std::max(meeting, rank.bootstrap_seconds);
    }
    std::string size = c.size > 0 ? std::to_string(c.size) : "?";
    std::string more = channels >= 0 ? fmt::format("; channels {}", channels) : "";
    if (nvls > 0) more += fmt::format("; NVLS {}", nvls);
    if (slowest >= 0) more += fmt::format("; init {:.2f} s", slowest);
    if (meeting >= 0) more += fmt::format(" (bootstrap {:.2f} s)", meeting);
    say(tr("communicator {}: {} of {} ranks seen, {} complete{}", id, c.ranks.size(), size, complete, more));
    ring(c);
    transports(c);
    for (size_t i = 0; i < stopped.size() && i < kMostStopped; ++i) {
      const NcclRank& rank = c.ranks.at(stopped[i]);
      doctor::Words phase = nccl_phase(rank);
      say(tr("  rank {} ({}) stopped: {}; {}: {}", stopped[i], host(rank), phase, place_(rank.last_line), rank.last));
    }
    if (stopped.size() > kMostStopped) say(tr("  and {} more ranks", stopped.size() - kMostStopped));
  }

  void ring(const NcclCommunicator& c) {
    if (c.ring.size() < 3) return;
    std::string text;
    for (size_t i = 0; i < c.ring.size() && i < kMostRing; ++i) text += fmt::format("{}{}", i ? " " : "", c.ring[i]);
    if (c.ring.size() > kMostRing) text += " …";
    say(tr("  rings {}, the first: {}", c.rings, text));
  }

  // By pair of hosts: the transports, with how many pairs of ranks and channels use each.
  void transports(const NcclCommunicator& c) {
    struct Use {
      int pairs = 0, channels = 0;
    };
    std::map<std::pair<std::string, std::string>, std::map<std::string, Use>> rows;
    for (const auto& [key, e] : c.edges) {
      auto from = c.ranks.find(e.from), to = c.ranks.find(e.to);
      std::string a = from == c.ranks.end() ? "?" : host(from->second), b = to == c.ranks.end() ? "?" : host(to->second);
      Use& use = rows[{a, b}][e.transport];
      ++use.pairs;
      use.channels += __builtin_popcountll(e.sent | e.received);
    }
    size_t widest = 0, told = 0;
    for (const auto& [pair, ways] : rows) widest = std::max(widest, pair.first.size() + pair.second.size());
    widest = std::min<size_t>(widest, 60);
    for (const auto& [pair, ways] : rows) {
      if (told++ == kMostRows) {
        say(tr("  and {} more pairs of hosts", rows.size() - kMostRows));
        break;
      }
      words::Message text;
      for (const auto& [transport, use] : ways) {
        int each = use.channels / std::max(use.pairs, 1);
        text.add(tr(", ##of clauses"),
                 tr("{} ({} pair{}, {} channel{})", transport, use.pairs, use.pairs == 1 ? "" : "s", each, each == 1 ? "" : "s"));
      }
      size_t pad = widest - std::min(widest, pair.first.size() + pair.second.size());
      std::string hosts = fmt::format("  {} → {}{}  ", pair.first, pair.second, std::string(pad, ' '));
      say(tr("{}{}", hosts, text));
    }
  }

  void algorithms() {
    std::string text;
    for (const auto& [name, count] : t_.algorithms) text += fmt::format("{}{} ×{}", text.empty() ? "" : ", ", name, count);
    if (!text.empty()) say(tr("algorithms: {}", text));
  }

  void warnings() {
    for (size_t i = 0; i < t_.warnings.size() && i < kMostWarnings; ++i) {
      const logs::NcclWarning& w = t_.warnings[i];
      const NcclProcess& p = t_.processes[w.process];
      std::string times = w.count > 1 ? fmt::format(" (×{})", w.count) : "";
      say(tr("warning, {}, {} pid {}: {}: {}{}", place_(w.line), p.host, p.pid, w.place, w.text, times));
    }
    if (t_.warnings.size() > kMostWarnings) say(tr("and {} more warnings", t_.warnings.size() - kMostWarnings));
  }

  const NcclTopology& t_;
  const std::function<std::string(uint64_t)>& place_;
  NcclSection out_;
};

}  // namespace

NcclSection nccl_section(const NcclTopology& topology, const std::function<std::string(uint64_t)>& place) {
  return Section(topology, place).lines();
}

}  // namespace phalanx::diagnosis
