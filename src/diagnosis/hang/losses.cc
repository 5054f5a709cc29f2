#include "diagnosis/hang/losses.h"

#include <algorithm>
#include <set>

#include "codes/code.h"
#include "codes/slots.h"

namespace phalanx::diagnosis {
namespace {

using words::tr;

constexpr size_t kWindows = 8, kKept = 24;       // of 2.5 s: what is judged; what is kept of connections with other machines
constexpr int kLossyWindows = 4;                 // a burst is none
constexpr uint64_t kLeastLost = 8;               // segments
constexpr double kLossy = 0.01, kClean = 0.003;  // of the segments; switches that drop now and then stay below
constexpr uint64_t kEnoughSent = 100, kEnoughOutside = 30;
constexpr double kMatters = 0.1;  // of the time is spent on recovering
constexpr int kUndecided = 16;    // looks, a second apart
constexpr double kMostShare = 0.95;

}  // namespace

bool Losses::Pair::lossy() const {
  return counts.lossy_windows >= kLossyWindows && counts.resent >= kLeastLost &&
         static_cast<double>(counts.resent) >= kLossy * static_cast<double>(counts.sent);
}

bool Losses::Pair::clean() const {
  return counts.sent >= kEnoughSent && static_cast<double>(counts.resent) <= kClean * static_cast<double>(counts.sent);
}

void Losses::take(size_t host, const wire::Pulse& pulse, const HostOf& host_of) {
  Window window;
  window.ms = pulse.window_ms;
  for (const wire::PeerPulse& peer : pulse.peers) {
    std::optional<size_t> to = host_of(peer.address);
    if (to == host) continue;
    Counts& counts = window.peers[to.value_or(kOutside)];
    counts.sent += peer.sent;
    counts.resent += peer.resent;
    counts.looks = std::max<uint64_t>(counts.looks, peer.looks);
    counts.recovering = std::max<uint64_t>(counts.recovering, std::min(peer.recovering, peer.looks));
  }
  std::deque<Window>& windows = hosts_[host];
  windows.push_back(std::move(window));
  if (windows.size() > kKept) windows.pop_front();
}

std::vector<Losses::Pair> Losses::pairs() const {
  std::map<std::pair<size_t, size_t>, Counts> sums;
  std::map<std::pair<size_t, size_t>, std::set<size_t>> lossy;  // windows, counted from the last: both ends may see the same burst
  for (const auto& [host, windows] : hosts_)
    for (size_t i = 0; i < windows.size(); ++i)
      for (const auto& [peer, counts] : windows[i].peers) {
        if (peer != kOutside && i + kWindows < windows.size()) continue;
        const auto ends = peer == kOutside ? std::pair(host, peer) : std::pair(std::min(host, peer), std::max(host, peer));
        Counts& sum = sums[ends];
        sum.sent += counts.sent;
        sum.resent += counts.resent;
        sum.looks += counts.looks;
        sum.recovering += counts.recovering;
        if (counts.resent > 0) lossy[ends].insert(windows.size() - i);
      }
  std::vector<Pair> all;
  for (auto& [ends, counts] : sums) {
    counts.lossy_windows = static_cast<decltype(counts.lossy_windows)>(lossy[ends].size());
    all.push_back({ends.first, ends.second, counts});
  }
  return all;
}

bool Losses::loses_outside(size_t host, const std::vector<Pair>& all, bool& known) const {
  for (const Pair& pair : all) {
    if (pair.first != host || pair.second != kOutside) continue;
    known = pair.counts.resent > 0 || pair.counts.sent >= kEnoughOutside;
    return pair.counts.resent > 0;
  }
  known = false;
  return false;
}

std::optional<Losses::Blamed> Losses::blame(const std::vector<Pair>& all) const {
  Blamed blamed;
  for (const Pair& pair : all)
    if (pair.second != kOutside && pair.lossy()) blamed.pairs.push_back(&pair);
  if (blamed.pairs.empty()) return std::nullopt;
  std::vector<size_t> common;
  for (size_t end : {blamed.pairs[0]->first, blamed.pairs[0]->second})
    if (std::all_of(blamed.pairs.begin(), blamed.pairs.end(), [&](const Pair* p) { return p->first == end || p->second == end; }))
      common.push_back(end);
  auto cleared = [&](size_t host) {
    return std::any_of(all.begin(), all.end(),
                       [&](const Pair& p) { return p.second != kOutside && (p.first == host || p.second == host) && p.clean(); });
  };
  if (common.size() == 2) std::erase_if(common, cleared);
  if (common.size() == 1) {
    blamed.host = common[0];
  } else if (common.size() == 2) {
    bool knows[2] = {}, loses[2] = {};
    for (size_t i : {0, 1}) loses[i] = loses_outside(common[i], all, knows[i]);
    if (knows[0] && knows[1] && loses[0] != loses[1]) blamed.host = common[loses[0] ? 0 : 1];
  }
  return blamed;
}

std::optional<Diagnosis> Losses::look(const std::vector<std::string>& hosts) {
  const std::vector<Pair> all = pairs();
  std::optional<Blamed> blamed = blame(all);
  if (!blamed) {
    undecided_ = 0;
    return std::nullopt;
  }
  if (!blamed->host && blamed->pairs.size() == 1 && ++undecided_ < kUndecided) return std::nullopt;
  if (!told_.empty() && (!blamed->host || std::find(told_.begin(), told_.end(), blamed->host) != told_.end())) return std::nullopt;
  Counts sum;
  double share = 0;
  std::set<size_t> ends;
  for (const Pair* pair : blamed->pairs) {
    sum.sent += pair->counts.sent;
    sum.resent += pair->counts.resent;
    if (pair->counts.looks > 0)
      share = std::max(share, static_cast<double>(pair->counts.recovering) / static_cast<double>(pair->counts.looks));
    ends.insert({pair->first, pair->second});
  }
  if (share < kMatters || *ends.rbegin() >= hosts.size()) return std::nullopt;
  told_.push_back(blamed->host);
  std::string names;
  for (size_t end : ends)
    if (end != blamed->host) names += (names.empty() ? "" : ", ") + hosts[end];
  const double percent = 100.0 * static_cast<double>(sum.resent) / static_cast<double>(std::max<uint64_t>(1, sum.sent));
  const double times = 1 / (1 - std::min(share, kMostShare));
  Diagnosis verdict{"NET-LOSS", {}, blamed->host, {}};
  verdict.evidence = blamed->host ? tr("{:.1f} % of the packets between it and {} are lost", percent, names)
                                  : tr("{:.1f} % of the packets between {} are lost", percent, names);
  if (std::any_of(all.begin(), all.end(), [](const Pair& p) { return p.second != kOutside && p.clean(); }))
    verdict.evidence += tr("; connections between other hosts lose none");
  verdict.evidence +=
      tr(". The connections wait for lost packets {:.0f} % of the time: without the loss, steps could be up to {:.1f} times as fast",
         share * 100, times);
  verdict.fix = codes::filled_command(codes::get("NET-LOSS"), {});
  return verdict;
}

}  // namespace phalanx::diagnosis
