#include "agent/looks/usage.h"

#include <algorithm>

#include <fmt/format.h>

#include "os/family.h"
#include "wire/bounds.h"

namespace phalanx::agent {
namespace {
// What is read counts from the process's start, so that nothing is lost between two looks.
constexpr os::milliseconds kLookEvery{2500};
constexpr os::milliseconds kPeersEvery{100};  // as long as packets are lost
constexpr int kFamilyEvery = 4;               // looks between two searches for what a rank has started: each reads all of /proc
}  // namespace

UsageWatch::~UsageWatch() { stop(); }

void UsageWatch::start() {
  if (timer_) return;
  told_ = os::mono_now();
  timer_ = loop_.every(kLookEvery, [this] { look(); });
}

void UsageWatch::stop() {
  if (timer_) loop_.cancel(timer_);
  if (peers_timer_) loop_.cancel(peers_timer_);
  timer_ = peers_timer_ = 0;
}

// Where packets are lost, how much of the time the connections spend on it is worth more looks.
void UsageWatch::look_at_peers() {
  peers_.look(os::mono_now());
  peers_timer_ = peers_.lossy() ? loop_.after(kPeersEvery, [this] { look_at_peers(); }) : 0;
}

void UsageWatch::find_families(const std::vector<Ranks::Living>& living) {
  std::vector<pid_t> roots;
  for (const Ranks::Living& rank : living) roots.push_back(rank.pid);
  std::vector<std::vector<pid_t>> families = machine::families(roots);
  for (size_t i = 0; i < living.size(); ++i) {
    Seen& seen = seen_[living[i].rank];
    seen.family = std::move(families[i]);
    std::erase_if(seen.processes,
                  [&](const auto& one) { return std::find(seen.family.begin(), seen.family.end(), one.first) == seen.family.end(); });
    std::string file = machine::throttle_file(living[i].pid);  // a process can be moved to another group
    if (file != seen.throttle_file) seen.throttled_ms = machine::throttled_ms(file);
    seen.throttle_file = std::move(file);
  }
  machine::CpuTimes now = machine::cpu_times();
  const int64_t passed = now.all - cpus_.all;
  stolen_permille_ =
      cpus_.all > 0 && passed > 0 ? static_cast<uint32_t>(std::clamp<int64_t>((now.stolen - cpus_.stolen) * 1000 / passed, 0, 1000)) : 0;
  cpus_ = now;
}

void UsageWatch::look() {
  std::vector<Ranks::Living> living = ranks_();
  if (looks_ % kFamilyEvery == 0) find_families(living);
  if (!peers_timer_) look_at_peers();
  for (const Ranks::Living& rank : living) look_at(rank, seen_[rank.rank]);
  ++looks_;
  wire::Pulse pulse;
  os::Mono now = os::mono_now();
  pulse.at_ns = now.ns;
  pulse.window_ms = static_cast<uint32_t>((now - told_).count() / 1'000'000);
  told_ = now;
  for (const Ranks::Living& rank : living) {
    Seen& seen = seen_[rank.rank];
    pulse.ranks.push_back(seen.window);
    seen.window = {};
  }
  pulse.stolen_permille = stolen_permille_;
  for (machine::PeerTraffic& peer : peers_.take(wire::kMostPeers))
    pulse.peers.push_back({std::move(peer.address), peer.sent, peer.resent, peer.looks, peer.recovering});
  if (!pulse.ranks.empty()) tell_(pulse);
}

void UsageWatch::look_at(const Ranks::Living& rank, Seen& seen) {
  wire::RankPulse& window = seen.window;
  window.rank = rank.rank;
  uint64_t rss = 0;
  for (pid_t pid : seen.family) {
    machine::ProcessUse use;
    if (!machine::read_use(pid, use)) continue;
    if (pid == rank.pid) window.state = static_cast<uint8_t>(use.state);
    rss += static_cast<uint64_t>(use.rss_kb);
    auto [at, is_new] = seen.processes.try_emplace(pid);
    Process& before = at->second;
    if (!is_new && before.start_ticks == use.start_ticks) {
      window.cpu_ms += static_cast<uint32_t>(std::max<int64_t>(0, use.cpu_ms - before.cpu_ms));
      window.major_faults += static_cast<uint32_t>(std::max<int64_t>(0, use.major_faults - before.major_faults));
    }
    before = {use.start_ticks, use.cpu_ms, use.major_faults};
  }
  window.rss_kb = rss;
  if (!seen.throttle_file.empty()) {
    int64_t now = machine::throttled_ms(seen.throttle_file);
    window.throttled_ms += static_cast<uint32_t>(std::max<int64_t>(0, now - seen.throttled_ms));
    seen.throttled_ms = now;
  }
  const std::optional<int64_t> delayed = machine::delayed_ms(rank.pid);
  if (delayed && seen.delayed_ms) window.delayed_ms += static_cast<uint32_t>(std::max<int64_t>(0, *delayed - *seen.delayed_ms));
  seen.delayed_ms = delayed;
}

}  // namespace phalanx::agent
