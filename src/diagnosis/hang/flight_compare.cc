// The dumps of all ranks beside each other.
//
// Each rank has a head: its oldest operation that is not completed. A head names whom its rank waits for: those who have not come, and
// those who have queued the same operation behind something else. So every waiting rank points to at most one other, and following the
// pointers ends at a rank that waits for nothing (it never entered), at an operation to which all came (mismatch, or the transport), or in
// a circle.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/text.h"
#include "diagnosis/hang/flight_recorder.h"
#include "diagnosis/hang/flight_words.h"

namespace phalanx::diagnosis {
namespace {

using Kind = FlightVerdict::Kind;

bool done(const TraceEntry& e) { return e.state == "completed"; }

bool to_all(const TraceEntry& e) { return e.name.find("all_to_all") != std::string::npos || e.name.find("alltoall") != std::string::npos; }

// What must be equal on all ranks. Where sizes depend on the rank's part only the name counts.
std::string signature(const TraceEntry& e) {
  if (to_all(e)) return e.name;
  if (e.name.find("scatter") != std::string::npos && e.name.find("reduce_scatter") == std::string::npos) return e.name + " → " + e.output;
  return e.name + " " + e.input;
}

struct Group {
  std::string name;
  std::set<int> members;
};

struct Turn {  // one send or receive among those of its pair
  const TraceEntry* entry = nullptr;
  const TracePart* part = nullptr;
};

struct Lane {  // of one rank in one group
  std::map<int64_t, const TraceEntry*> collectives;
  std::map<std::pair<int, int>, std::vector<Turn>> ways;  // (from, to), oldest first
};

struct Rank {
  const RankTrace* trace = nullptr;
  const TraceEntry* head = nullptr;
  std::map<std::string, size_t> groups;  // by its key here
  std::map<size_t, Lane> lanes;          // by group
};

// Whom an operation of one rank waits for.
struct Waits {
  std::vector<int> absent, busy, queued, without_dump;  // absent: free, and never came; busy: never came, waits elsewhere
  std::vector<int> there;                               // in it, the rank itself first
  bool differs = false;                                 // of a send and its receive: the sizes
};

class Comparison {
 public:
  explicit Comparison(const std::vector<RankTrace>& traces) {
    for (const RankTrace& t : traces) {
      Rank& rank = ranks_[t.rank];
      rank = Rank();
      rank.trace = &t;
      for (const auto& [key, group] : t.groups) rank.groups[key] = group_index(key, group, t.rank);
      for (const TraceEntry& e : t.entries) {
        auto known = rank.groups.find(e.group);
        if (known == rank.groups.end()) known = rank.groups.emplace(e.group, group_index(e.group, {}, t.rank)).first;
        Lane& lane = rank.lanes[known->second];
        if (!e.p2p && e.parts.empty()) lane.collectives[e.sequence] = &e;
        for (const TracePart& part : e.parts)
          lane.ways[part.send ? std::pair(t.rank, part.peer) : std::pair(part.peer, t.rank)].push_back({&e, &part});
        if (!rank.head && !done(e)) rank.head = &e;
      }
    }
  }

  FlightVerdict verdict() {
    std::vector<FlightVerdict> ends;
    std::vector<size_t> weight;
    for (const auto& [number, rank] : ranks_) {
      if (!rank.head) continue;
      size_t end = follow(number, ends);
      weight.resize(ends.size());
      ++weight[end];
    }
    if (ends.empty()) return {};
    size_t best = 0;
    for (size_t i = 1; i < ends.size(); ++i)
      if (weight[i] != weight[best] ? weight[i] > weight[best] : order(ends[i].kind) < order(ends[best].kind)) best = i;
    FlightVerdict v = std::move(ends[best]);
    add_notes(v);
    return v;
  }

 private:
  static int order(Kind kind) {
    switch (kind) {
      case Kind::kMismatch: return 0;
      case Kind::kNotJoined: return 1;
      case Kind::kCircular: return 2;
      case Kind::kTogether: return 3;
      default: return 4;
    }
  }

  // Groups that were split off may share a name: their ranks tell them apart.
  size_t group_index(const std::string& key, const TraceGroup& told, int rank) {
    auto [found, fresh] = index_.try_emplace({key, told.ranks}, groups_.size());
    if (fresh) groups_.push_back({key, {told.ranks.begin(), told.ranks.end()}});
    Group& group = groups_[found->second];
    if (told.ranks.empty()) group.members.insert(rank);
    if (!told.description.empty()) group.name = told.description;
    return found->second;
  }
  size_t group_of(int rank, const TraceEntry& e) const { return ranks_.at(rank).groups.at(e.group); }
  const TraceEntry& head_of(int rank) const { return *ranks_.at(rank).head; }

  // The end of the way that begins at a waiting rank: its index in `ends`. Those in one operation have one end.
  size_t follow(int start, std::vector<FlightVerdict>& ends) {
    std::vector<int> path, passed;
    std::set<int> on_path;
    size_t end = SIZE_MAX;
    for (int at = start; end == SIZE_MAX;) {
      if (auto known = end_of_.find(at); known != end_of_.end()) {
        end = known->second;
        break;
      }
      if (!on_path.insert(at).second) {
        path.erase(path.begin(), std::find(path.begin(), path.end(), at));
        ends.push_back(circle(path));
        end = ends.size() - 1;
        break;
      }
      path.push_back(at);
      Waits waits = waits_of(at);
      passed.insert(passed.end(), waits.there.begin(), waits.there.end());
      if (std::optional<int> next = next_of(waits)) {
        at = *next;
      } else {
        ends.push_back(end_at(at, waits));
        end = ends.size() - 1;
      }
    }
    for (int rank : passed) end_of_.emplace(rank, end);
    return end;
  }

  std::optional<int> next_of(const Waits& waits) const {
    if (!waits.absent.empty() || mismatch_in(waits)) return std::nullopt;
    if (!waits.busy.empty()) return waits.busy[0];
    if (!waits.queued.empty()) return waits.queued[0];
    return std::nullopt;
  }

  bool mismatch_in(const Waits& waits) const {
    if (waits.differs) return true;
    const TraceEntry& mine = head_of(waits.there[0]);
    if (!mine.parts.empty()) return false;
    std::string expected = signature(mine);
    return std::any_of(waits.there.begin(), waits.there.end(), [&](int rank) { return signature(head_of(rank)) != expected; });
  }

  void place(int rank, const TraceEntry* theirs, Waits& waits) const {
    const Rank& r = ranks_.at(rank);
    if (!theirs) (r.head ? waits.busy : waits.absent).push_back(rank);
    else if (done(*theirs)) return;
    else if (r.head == theirs) waits.there.push_back(rank);
    else waits.queued.push_back(rank);
  }

  Waits waits_of(int rank) {
    Waits waits;
    const TraceEntry& head = head_of(rank);
    waits.there.push_back(rank);
    size_t group = group_of(rank, head);
    if (head.p2p || !head.parts.empty()) {
      waits_of_parts(rank, head, group, waits);
      return waits;
    }
    for (int member : groups_[group].members) {
      if (member == rank) continue;
      auto found = ranks_.find(member);
      if (found == ranks_.end()) {
        waits.without_dump.push_back(member);
        continue;
      }
      auto& theirs = found->second.lanes[group].collectives;
      auto same = theirs.find(head.sequence);
      bool behind = theirs.empty() || theirs.rbegin()->first < head.sequence;
      if (same != theirs.end()) place(member, same->second, waits);
      else if (behind) place(member, nullptr, waits);
    }
    return waits;
  }

  void waits_of_parts(int rank, const TraceEntry& head, size_t group, Waits& waits) {
    std::set<int> without, there;
    std::map<std::pair<int, int>, Meeting> meetings;
    for (const TracePart& part : head.parts) {
      if (part.peer < 0 || part.peer == rank) continue;
      auto found = ranks_.find(part.peer);
      if (found == ranks_.end()) {
        if (without.insert(part.peer).second) waits.without_dump.push_back(part.peer);
        continue;
      }
      std::pair<int, int> way = part.send ? std::pair(rank, part.peer) : std::pair(part.peer, rank);
      const std::vector<Turn>&ours = ranks_[rank].lanes[group].ways[way], &others = found->second.lanes[group].ways[way];
      auto known = meetings.find(way);
      if (known == meetings.end()) known = meetings.emplace(way, meeting(rank, part.peer, others)).first;
      Turn theirs = counterpart(part, known->second, ours, others);
      if (theirs.part && theirs.part->what != part.what && !theirs.part->what.empty() && !part.what.empty()) waits.differs = true;
      if (theirs.entry && found->second.head == theirs.entry && !there.insert(part.peer).second) continue;
      place(part.peer, theirs.entry, waits);
    }
    for (std::vector<int>* ranks : {&waits.absent, &waits.busy, &waits.queued}) {
      std::sort(ranks->begin(), ranks->end());
      ranks->erase(std::unique(ranks->begin(), ranks->end()), ranks->end());
    }
  }

  // The n-th send from A to B meets the n-th receive at B from A. Where a ring has lost the beginning, they are counted from the first that
  // is not completed. Parts are asked for in their order, so that a batch of many is walked over once.
  struct Meeting {
    size_t at = 0, pending = 0;  // among the own turns
    std::vector<Turn> open;      // the other side's, not completed
    bool whole = false;
  };
  Meeting meeting(int rank, int peer, const std::vector<Turn>& theirs) const {
    Meeting m;
    m.whole = ranks_.at(rank).trace->lost == 0 && ranks_.at(peer).trace->lost == 0;
    for (const Turn& turn : theirs)
      if (!m.whole && !done(*turn.entry)) m.open.push_back(turn);
    return m;
  }
  static Turn counterpart(const TracePart& part, Meeting& m, const std::vector<Turn>& mine, const std::vector<Turn>& theirs) {
    for (; m.at < mine.size() && mine[m.at].part != &part; ++m.at)
      if (!done(*mine[m.at].entry)) ++m.pending;
    const std::vector<Turn>& among = m.whole ? theirs : m.open;
    size_t index = m.whole ? m.at : m.pending;
    return index < among.size() ? among[index] : Turn();
  }

  FlightVerdict about(int rank, const Waits& waits) const {
    FlightVerdict v;
    const TraceEntry& head = head_of(rank);
    const Group& group = groups_[group_of(rank, head)];
    v.group = group.name;
    v.sequence = head.sequence;
    v.collective = head.name;
    v.waiting = waits.there;
    std::sort(v.waiting.begin(), v.waiting.end());
    for (int member : group.members)
      if (ranks_.count(member) == 0) v.without_dump.push_back(member);
    return v;
  }

  FlightVerdict end_at(int rank, const Waits& waits) const {
    FlightVerdict v = about(rank, waits);
    const TraceEntry& head = head_of(rank);
    std::string operation = operation_of(head);
    if (!waits.absent.empty()) {
      v.culprits = waits.absent;
      std::sort(v.culprits.begin(), v.culprits.end());
      const std::vector<TraceEntry>& theirs = ranks_.at(v.culprits[0]).trace->entries;
      say_not_joined(v, operation, theirs.empty() ? nullptr : &theirs.back());
    } else if (waits.differs) {
      v.where = head.where;
      std::string sides;
      for (int other : v.waiting)
        if (const TraceEntry& e = head_of(other); !e.parts.empty())
          sides += fmt::format("{}rank {}: {} {}", sides.empty() ? "" : "; ", other, e.name, e.parts[0].what);
      say_parts_differ(v, sides);
    } else if (mismatch_in(waits)) {
      mismatch(v);
    } else if (!v.without_dump.empty()) {
      say_undecided(v, operation);
    } else {
      together(v, head, groups_[group_of(rank, head)].members.size());
    }
    return v;
  }

  void mismatch(FlightVerdict& v) const {
    std::map<std::string, std::vector<int>> camps;
    for (int rank : v.waiting) camps[signature(head_of(rank))].push_back(rank);
    auto most = std::max_element(camps.begin(), camps.end(), [](const auto& a, const auto& b) {
      return a.second.size() != b.second.size() ? a.second.size() < b.second.size() : a.second[0] > b.second[0];
    });
    v.collective = head_of(most->second[0]).name;
    std::string text;
    for (const auto& [what, ranks] : camps) {
      if (text.size() < 1000) text += fmt::format("{}rank {}: {}", text.empty() ? "" : "; ", base::format_ranges(ranks), what);
      if (what != most->first) v.culprits.insert(v.culprits.end(), ranks.begin(), ranks.end());
    }
    std::sort(v.culprits.begin(), v.culprits.end());
    v.where = head_of(v.culprits[0]).where;
    say_mismatch(v, text);
  }

  void together(FlightVerdict& v, const TraceEntry& head, size_t members) const {
    int64_t in = 0, out = 0;
    std::vector<int> scheduled;
    for (int rank : v.waiting) {
      const TraceEntry& e = head_of(rank);
      if (__builtin_add_overflow(in, e.input_elements, &in) || __builtin_add_overflow(out, e.output_elements, &out)) in = out = 0;
      if (e.state == "scheduled") scheduled.push_back(rank);
    }
    if (to_all(head) && in != out && in > 0 && out > 0 && v.waiting.size() == members) {
      v.where = head.where;
      return say_sums_differ(v, operation_of(head), in, out);
    }
    say_together(v, operation_of(head), scheduled);
  }

  FlightVerdict circle(const std::vector<int>& path) {
    FlightVerdict v = about(path[0], waits_of(path[0]));
    v.culprits = v.waiting = path;
    std::sort(v.culprits.begin(), v.culprits.end());
    std::sort(v.waiting.begin(), v.waiting.end());
    v.where = head_of(path[0]).where;
    std::vector<CircleStep> steps;
    for (size_t i = 0; i < path.size(); ++i) {
      const TraceEntry& head = head_of(path[i]);
      steps.push_back({path[i], path[(i + 1) % path.size()], operation_of(head), groups_[group_of(path[i], head)].name});
    }
    say_circle(v, steps);
    return v;
  }

  void add_notes(FlightVerdict& v) const {
    if (!v.without_dump.empty() && v.kind != Kind::kUndecided) note_missing(v);
    std::vector<int> overwritten, cut;
    for (const auto& [number, rank] : ranks_) {
      if (rank.trace->lost > 0) overwritten.push_back(number);
      if (rank.trace->cut) cut.push_back(number);
    }
    if (!overwritten.empty()) note_overwritten(v, overwritten);
    if (!cut.empty()) note_cut(v, cut);
  }

  std::map<int, Rank> ranks_;
  std::vector<Group> groups_;
  std::map<std::pair<std::string, std::vector<int>>, size_t> index_;
  std::map<int, size_t> end_of_;  // by rank
};

}  // namespace

FlightVerdict compare_flight_records(const std::vector<RankTrace>& traces) { return Comparison(traces).verdict(); }

}  // namespace phalanx::diagnosis
