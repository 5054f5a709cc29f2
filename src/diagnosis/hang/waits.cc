#include "diagnosis/hang/waits.h"

#include <algorithm>

namespace phalanx::diagnosis {
namespace {

bool done(const Operation& e) { return e.state == "completed"; }

}  // namespace

bool is_all_to_all(const Operation& e) {
  return e.name.find("all_to_all") != std::string::npos || e.name.find("alltoall") != std::string::npos;
}

std::string signature(const Operation& e) {
  if (is_all_to_all(e)) return e.name;
  if (e.name.find("scatter") != std::string::npos && e.name.find("reduce_scatter") == std::string::npos)
    return e.output.empty() ? e.name : e.name + " → " + e.output;
  return e.name.empty() || e.input.empty() ? e.name + e.input : e.name + " " + e.input;
}

bool differ(const Operation& a, const Operation& b) { return a.comparable && b.comparable && signature(a) != signature(b); }

WaitGraph::WaitGraph(std::span<const RankRecord> records, std::span<const RankRecord> also) {
  for (const RankRecord& r : records) add(r);
  for (const RankRecord& r : also)
    if (ranks_.count(r.rank) == 0) add(r);
}

void WaitGraph::add(const RankRecord& record) {
  RankNode& rank = ranks_[record.rank] = RankNode();
  rank.record = &record;
  for (const auto& [key, group] : record.groups) rank.groups[key] = add_group(key, group, record.rank);
  for (const Operation& e : record.entries) {
    auto known = rank.groups.find(e.group);
    if (known == rank.groups.end()) known = rank.groups.emplace(e.group, add_group(e.group, {}, record.rank)).first;
    Lane& lane = rank.lanes[known->second];
    if (!e.p2p && e.parts.empty()) lane.collectives[e.sequence] = &e;
    for (const Transfer& part : e.parts)
      lane.ways[part.send ? std::pair(record.rank, part.peer) : std::pair(part.peer, record.rank)].push_back({&e, &part});
    if (!rank.head && !done(e)) rank.head = &e;
  }
}

// Groups that were split off may share a name: their ranks tell them apart.
size_t WaitGraph::add_group(const std::string& key, const GroupRecord& told, int rank) {
  auto [found, fresh] = index_.try_emplace({key, told.ranks}, groups_.size());
  if (fresh) groups_.push_back({key, told.within, false, {told.ranks.begin(), told.ranks.end()}});
  Group& group = groups_[found->second];
  group.open = group.open || told.open;
  if (told.ranks.empty()) group.members.insert(rank);
  group.members.insert(told.further.begin(), told.further.end());
  if (!told.description.empty()) group.name = told.description;
  return found->second;
}

void WaitGraph::place(int rank, const Operation* theirs, Waits& waits) const {
  const RankNode& r = ranks_.at(rank);
  if (!theirs) (r.head ? waits.busy : waits.absent).push_back(rank);
  else if (done(*theirs)) return;
  else if (r.head == theirs) waits.there.push_back(rank);
  else waits.queued.push_back(rank);
}

Waits WaitGraph::waits_of(int rank) {
  Waits waits;
  const Operation& head = head_of(rank);
  waits.there.push_back(rank);
  size_t group = group_index(rank);
  if (head.p2p || !head.parts.empty()) {
    waits_of_parts(rank, head, group, waits);
    return waits;
  }
  for (int member : groups_[group].members) {
    if (member == rank) continue;
    auto found = ranks_.find(member);
    if (found == ranks_.end()) continue;
    auto& theirs = found->second.lanes[group].collectives;
    auto same = theirs.find(head.sequence);
    bool behind = theirs.empty() || theirs.rbegin()->first < head.sequence;
    if (same != theirs.end()) place(member, same->second, waits);
    else if (behind) place(member, nullptr, waits);
    else if (is_beyond(found->second, group, head.sequence)) waits.beyond.push_back(member);
  }
  return waits;
}

// It waits in a later operation of the group, and had nothing at this number: they have counted differently. Of a ring that has lost
// its beginning, or of one that was cut, nobody knows.
bool WaitGraph::is_beyond(const RankNode& rank, size_t group, int64_t sequence) const {
  const RankRecord& record = *rank.record;
  if (record.lost > 0 || record.cut || record.gaps || !rank.head || rank.head->p2p || !rank.head->parts.empty()) return false;
  return rank.groups.at(rank.head->group) == group && rank.head->sequence > sequence;
}

void WaitGraph::waits_of_parts(int rank, const Operation& head, size_t group, Waits& waits) {
  std::set<int> there;
  std::map<std::pair<int, int>, Meeting> meetings;
  for (const Transfer& part : head.parts) {
    if (part.peer < 0 || part.peer == rank) continue;
    auto found = ranks_.find(part.peer);
    if (found == ranks_.end()) continue;
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
WaitGraph::Meeting WaitGraph::meeting(int rank, int peer, const std::vector<Turn>& theirs) const {
  Meeting m;
  m.whole = ranks_.at(rank).record->lost == 0 && ranks_.at(peer).record->lost == 0;
  for (const Turn& turn : theirs)
    if (!m.whole && !done(*turn.entry)) m.open.push_back(turn);
  return m;
}
Turn WaitGraph::counterpart(const Transfer& part, Meeting& m, const std::vector<Turn>& mine, const std::vector<Turn>& theirs) {
  for (; m.at < mine.size() && mine[m.at].part != &part; ++m.at)
    if (!done(*mine[m.at].entry)) ++m.pending;
  const std::vector<Turn>& among = m.whole ? theirs : m.open;
  size_t index = m.whole ? m.at : m.pending;
  return index < among.size() ? among[index] : Turn();
}

}  // namespace phalanx::diagnosis
