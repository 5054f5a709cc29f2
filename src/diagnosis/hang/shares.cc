#include "diagnosis/hang/shares.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "diagnosis/hang/hang_view.h"

namespace phalanx::diagnosis {
namespace {

using machine::PythonFrame;
using machine::ThreadSample;
using words::tr;

constexpr double kSuspicion = 0.2, kCertain = 0.25;  // of the time: what the others wait longer
constexpr double kMore = 0.15;                       // of the time
constexpr double kMostShare = 0.95;

bool has(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

bool frame_in(const ThreadSample& t, std::initializer_list<std::string_view> modules) {
  for (const std::string& frame : t.frames)
    for (std::string_view module : modules)
      if (module_in(frame).starts_with(module)) return true;
  return false;
}

// The files of libraries whose functions say what a rank is about, whatever they call.
std::optional<Spent> by_python(const ThreadSample& t) {
  for (const PythonFrame& f : t.python) {
    if (has(f.file, "/torch/utils/data/") || has(f.file, "/torchdata/") || has(f.file, "/datasets/arrow") || has(f.file, "/webdataset/"))
      return Spent::kLoading;
    const bool writes = f.function.starts_with("save") || f.function.starts_with("_save") || f.function.starts_with("_legacy_save");
    if (writes && (has(f.file, "/torch/serialization.py") || has(f.file, "/safetensors/") || has(f.file, "/checkpoint")))
      return Spent::kSaving;
    if (f.function == "save_checkpoint" || f.function == "_save_checkpoint" || f.function == "save_pretrained") return Spent::kSaving;
  }
  return std::nullopt;
}

}  // namespace

doctor::Words name_of(Spent spent) {
  switch (spent) {
    case Spent::kComputing: return tr("computing");
    case Spent::kCommunicating: return tr("waiting for other ranks");
    case Spent::kLoading: return tr("loading data");
    case Spent::kSaving: return tr("saving");
    case Spent::kDevice: return tr("waiting for its GPU");
    case Spent::kElse: break;
  }
  return tr("waiting for something else");
}

Spent spent_on(const ThreadSample& t) {
  const bool distributed = !t.python.empty() && has(t.python.front().file, "/torch/distributed/");
  if (waits_for_ranks(t) || (distributed && t.state != "R")) return Spent::kCommunicating;
  if (std::optional<Spent> spent = by_python(t)) return *spent;
  if (t.state != "R" && frame_in(t, {"libcuda", "libcudart", "libnccl", "libamdhip", "libhsa"})) return Spent::kDevice;
  return t.state == "R" || t.wchan.empty() ? Spent::kComputing : Spent::kElse;
}

RankShares shares_of(const machine::RankProfile& profile, size_t host) {
  RankShares shares;
  shares.rank = static_cast<int>(profile.rank);
  shares.host = host;
  int64_t known = 0;
  std::map<std::pair<std::string, Spent>, int64_t> places;
  std::array<int64_t, kKindsOfSpent> times{};
  for (const machine::OftenSeen& seen : profile.seen) {
    if (seen.times <= 0 || seen.times > profile.looks) continue;
    const Spent spent = spent_on(seen.thread);
    times[static_cast<size_t>(spent)] += seen.times;
    known += seen.times;
    if (spent == Spent::kCommunicating) continue;
    machine::ProcessSample process;
    process.pid = seen.thread.tid;
    process.threads = {seen.thread};
    machine::RankSample sample;
    sample.processes = {process};
    if (std::string place = place_of(sample); !place.empty()) places[{place, spent}] += seen.times;
  }
  shares.looks = known;
  for (size_t i = 0; i < kKindsOfSpent && known > 0; ++i) shares.part[i] = static_cast<double>(times[i]) / static_cast<double>(known);
  auto most = std::max_element(places.begin(), places.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  if (most != places.end()) std::tie(shares.place, shares.at_place) = most->first;
  return shares;
}

double Straggler::times_as_fast() const { return 1 / (1 - std::clamp(others_wait - waits, 0.0, kMostShare)); }

// One rank, or the ranks of one host.
std::optional<Straggler> straggler(const std::vector<RankShares>& all, int64_t looks) {
  if (all.size() < 2 || std::any_of(all.begin(), all.end(), [&](const RankShares& r) { return r.looks < looks; })) return std::nullopt;
  auto waits = [](const RankShares& r) { return r.of(Spent::kCommunicating); };
  const RankShares& least = *std::min_element(all.begin(), all.end(), [&](auto& a, auto& b) { return waits(a) < waits(b); });
  for (const bool whole_host : {false, true}) {
    Straggler found;
    found.others_wait = 1;
    const RankShares* other = nullptr;
    for (const RankShares& r : all) {
      if (r.rank == least.rank || (whole_host && r.host == least.host)) {
        found.ranks.push_back(r);
        found.waits = std::max(found.waits, waits(r));
      } else {
        found.others_wait = std::min(found.others_wait, waits(r));
        other = &r;
      }
    }
    if (!other || found.others_wait - found.waits < (looks >= kManyLooks ? kCertain : kSuspicion)) continue;
    for (Spent spent : {Spent::kLoading, Spent::kSaving, Spent::kDevice, Spent::kElse}) {
      double here = 1, there = 0;
      for (const RankShares& r : all) {
        const bool one = std::any_of(found.ranks.begin(), found.ranks.end(), [&](const RankShares& f) { return f.rank == r.rank; });
        if (one) here = std::min(here, r.of(spent));
        else there = std::max(there, r.of(spent));
      }
      if (!found.more && here - there >= kMore) found.more = spent;
    }
    return found;
  }
  return std::nullopt;
}

Diagnosis straggler_verdict(const Straggler& s) {
  Diagnosis verdict{s.more == Spent::kLoading ? "SLOW-LOADER" : "SLOW-RANK", {}, s.ranks.front().host, {}};
  for (const RankShares& r : s.ranks) verdict.ranks.push_back(r.rank);
  const RankShares& first = s.ranks.front();
  verdict.evidence =
      tr("it waits for other ranks {:.0f} % of the time, every other rank at least {:.0f} %: they wait for it. If it were as fast as they "
         "are, steps could be up to {:.1f} times as fast",
         s.waits * 100, s.others_wait * 100, s.times_as_fast());
  if (s.more)
    verdict.details.push_back(
        tr("{:.0f} % of its time goes into {}, more than on any other rank", first.of(*s.more) * 100, name_of(*s.more)));
  if (!first.place.empty())
    verdict.details.push_back(tr("rank {} is most often at {}, {}", first.rank, first.place, name_of(first.at_place)));
  return verdict;
}

}  // namespace phalanx::diagnosis
