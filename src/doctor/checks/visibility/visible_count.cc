// How many cards the hosts see, and whether ranks have one each.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "doctor/checks/rows.h"
#include "doctor/examine.h"
#include "doctor/views/gpu_view.h"

namespace phalanx::doctor {
namespace {

using machine::Gpu;
using machine::Selection;

// Ranks follow the number of visible cards unless the user gave a number: then all hosts have as many and nothing differs.
void check_differs(const Situation& s, Findings& f) {
  if (s.single()) return;
  std::set<int> planned;
  for (const HostView& host : s.hosts) planned.insert(host.ranks);
  std::vector<Camp> all = camps(s, [&](const HostView& host) -> std::optional<std::string> {
    size_t h = static_cast<size_t>(&host - s.hosts.data());
    return has_devices(s, h) ? std::optional(std::to_string(seen(s, h).ranks.devices.size())) : std::nullopt;
  });
  if (all.size() < 2 || (planned.size() == 1 && !planned.contains(0))) return;
  auto tell = [&](const Camp& camp) {
    for (size_t h : camp.hosts) {
      Seen v = seen(s, h);
      size_t has = s.hosts[h].facts.gpus.devices.size(), sees = v.ranks.devices.size();
      if (sees == has) continue;
      const Camp& other = camp.value == all[0].value ? all[1] : all[0];
      f.on(h, tr("{}: {} of {} GPUs visible; {} sees {}", set_to(v), sees, has, s.hosts[other.hosts[0]].name, other.value),
           "unset CUDA_VISIBLE_DEVICES");
    }
  };
  for (const Camp& camp : all) tell(camp);
}

void check_count(const Situation& s, Findings& f) {
  std::vector<Camp> all = camps(s, [&](const HostView& h) -> std::optional<std::string> {
    return h.facts.gpus.devices.empty() ? std::nullopt : std::optional(std::to_string(h.facts.gpus.devices.size()));
  });
  for (size_t i = 1; i < all.size(); ++i) {
    f.on(all[i].hosts, tr("{} GPUs; {} has {}", all[i].value, s.hosts[all[0].hosts[0]].name, all[0].value));
  }
}

Words why(const Selection& v) {
  switch (v.why) {
    case Selection::Why::kNoSuchIndex: return tr("no such GPU");
    case Selection::Why::kNoSuchUuid: return tr("no GPU of this host has that UUID");
    case Selection::Why::kAmbiguous: return tr("the prefix matches more than one GPU");
    case Selection::Why::kMixed: return tr("a list cannot contain both indices and UUIDs");
    case Selection::Why::kTwice: return tr("given twice, so CUDA shows no GPU at all");
    default: return tr("not a GPU's number");
  }
}

void check_bad(const Situation& s, size_t h, const HostView&, Findings& f) {
  if (!has_devices(s, h)) return;
  Seen v = seen(s, h);
  if (!v.value || v.ranks.why == Selection::Why::kNone || v.ranks.devices.empty() || v.ranks.refused == "-1") return;
  Words reason = why(v.ranks);
  size_t left = v.ranks.devices.size();
  f.on(h, tr("{}: \"{}\": {}; the list ends there, {} GPU{} left", set_to(v), v.ranks.refused, reason, left, left == 1 ? "" : "s"));
}

void check_nothing(const Situation& s, size_t h, const HostView& host, Findings& f) {
  if (!s.job.wants_gpus) return;
  if (!has_devices(s, h)) return;
  Seen v = seen(s, h);
  if (!v.value || !v.ranks.devices.empty()) return;
  Words reason = v.value->empty() ? tr("the value is empty") : why(v.ranks);
  f.on(h, tr("CUDA_VISIBLE_DEVICES=\"{}\" hides all {} GPUs: {}", *v.value, host.facts.gpus.devices.size(), reason),
       "unset CUDA_VISIBLE_DEVICES");
}

void check_ranks(const Situation& s, size_t h, const HostView& host, Findings& f) {
  if (!s.job.wants_gpus) return;
  if (!has_devices(s, h)) return;
  Seen v = seen(s, h);
  size_t sees = v.ranks.devices.size();
  if (sees == 0 || host.ranks <= static_cast<int>(sees)) return;
  f.on(h, tr("{} ranks, {} GPU{} ({})", host.ranks, sees, sees == 1 ? "" : "s", set_to(v)));
}

void check_duplicate(const Situation& s, Findings& f) {
  std::map<std::string, std::vector<size_t>> owners;
  for (size_t h = 0; h < s.hosts.size(); ++h)
    for (const Gpu* g : gpus_of(s.hosts[h].facts.gpus, seen(s, h).ranks.devices)) {
      std::vector<size_t>& hosts = owners[g->uuid];
      if (!g->uuid.empty() && (hosts.empty() || hosts.back() != h)) hosts.push_back(h);
    }
  std::set<std::vector<size_t>> told;
  for (const auto& [uuid, hosts] : owners) {
    if (hosts.size() < 2 || !told.insert(hosts).second) continue;
    f.on(hosts, tr("{} and {} both have {}", s.hosts[hosts[0]].name, s.hosts[hosts[1]].name, uuid));
  }
}

void check_local_rank(const Situation& s, Findings& f) {
  for (const auto& [name, value] : s.job.set)
    if (name == "LOCAL_RANK" || name == "RANK")
      for (size_t h = 0; h < s.hosts.size(); ++h)
        if (s.hosts[h].ranks > 1) f.on(h, tr("{}={} is set for all {} ranks", name, value, s.hosts[h].ranks), "unset " + name);
}

const Row kVisibleCountRows[] = {
    {"VIS-CVD-DIFFERS", Severity::kError, check_differs},
    {"VIS-COUNT-DIFFERS", Severity::kWarning, check_count},
    {"VIS-CVD-BAD", Severity::kWarning, check_bad},
    {"VIS-CVD-NONE", Severity::kError, check_nothing},
    {"VIS-NPROC", Severity::kError, check_ranks},
    {"VIS-DUP-GPU", Severity::kError, check_duplicate},
    {"VIS-LOCAL-RANK", Severity::kWarning, check_local_rank},
};

}  // namespace

std::span<const Row> visible_count_rows() { return kVisibleCountRows; }

}  // namespace phalanx::doctor
