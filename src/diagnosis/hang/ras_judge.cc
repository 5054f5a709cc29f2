// What one or two readings of NCCL's RAS say of a job that stands still. Counts of operations become records (records.h): in a communicator
// each operation is a group, in which a rank that has launched more than another waits in the first that the other has not.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "diagnosis/hang/rank_words.h"
#include "diagnosis/hang/ras.h"

namespace phalanx::diagnosis {
namespace {

using Kind = Standstill::Kind;
using words::Message;
using words::tr;

constexpr int kUnnamed = -1;  // the ranks of a communicator that the report only counts

// "rank 21 (process 3487984 on 172.16.64.213, GPU 5)"
Message name_of(const RasMember& m) {
  Message where;
  if (m.pid != 0) where = tr("process {} on {}", m.pid, m.host);
  if (!m.gpu.empty()) where.add(tr(", ##of clauses"), tr("GPU {}", m.gpu));
  if (m.rank < 0) return where;
  return where.empty() ? tr("rank {}", m.rank) : tr("rank {} ({})", m.rank, where);
}

Message names_of(const std::vector<RasMember>& members) {
  std::vector<Message> names;
  for (const RasMember& m : members) names.push_back(name_of(m));
  return list_of(names);
}

const RasCommunicator* same(const RasReport& report, const RasCommunicator& c) {
  for (const RasCommunicator& other : report.communicators)
    if (other.hash == c.hash) return &other;
  return nullptr;
}

bool equal_counts(const RasCommunicator& a, const RasCommunicator& b) {
  if (a.counts != b.counts || a.camps.size() != b.camps.size()) return false;
  for (size_t i = 0; i < a.camps.size(); ++i)
    if (a.camps[i].what != b.camps[i].what || a.camps[i].value != b.camps[i].value || a.camps[i].count != b.camps[i].count) return false;
  return true;
}

class RasRecords {
 public:
  explicit RasRecords(const RasCommunicator& c) : c_(c) {
    std::vector<std::vector<const RasCamp*>> operations = that_differ();
    for (size_t i = 0; i < operations.size(); ++i) add(operations[i], i);
  }

  std::vector<RankRecord> take() {
    std::vector<RankRecord> all;
    for (auto& [id, record] : records_) all.push_back(std::move(record));
    return all;
  }

 private:
  // The camps of each operation that not all have launched as often, fewest first; the operation in which the fewest are behind, and these
  // are named, tells the most and comes first.
  std::vector<std::vector<const RasCamp*>> that_differ() const {
    std::map<std::string, std::vector<const RasCamp*>> by_name;
    for (const RasCamp& camp : c_.camps)
      if (camp.operations >= 0) by_name[camp.what].push_back(&camp);
    std::vector<std::vector<const RasCamp*>> out;
    for (auto& [name, camps] : by_name) {
      std::sort(camps.begin(), camps.end(), [](const RasCamp* a, const RasCamp* b) { return a->operations < b->operations; });
      if (camps.front()->operations < camps.back()->operations) out.push_back(std::move(camps));
    }
    auto tells = [](const std::vector<const RasCamp*>& camps) { return std::pair(camps.front()->members.empty(), camps.front()->count); };
    std::stable_sort(out.begin(), out.end(), [&](const auto& a, const auto& b) { return tells(a) < tells(b); });
    return out;
  }

  // Of the camps without names the largest is the same ranks in every operation, as far as anybody knows.
  void add(const std::vector<const RasCamp*>& camps, size_t operation) {
    const RasCamp* rest = nullptr;
    for (const RasCamp* camp : camps)
      if (camp->members.empty() && (!rest || camp->count > rest->count)) rest = camp;
    const int64_t fewest = camps.front()->operations, most = camps.back()->operations;
    for (const RasCamp* camp : camps) {
      if (camp->members.empty()) {
        RankRecord& all = record(camp == rest ? kUnnamed : stranger(fmt::format("{} {}", operation, camp->operations), 0));
        all.count = std::max(all.count, camp->count);
        add(all, *camp, fewest, most);
      }
      for (const RasMember& m : camp->members) {
        RankRecord& one = record(m.rank >= 0 ? m.rank : stranger(m.host, m.pid));
        one.name = name_of(m);
        one.host = m.host;
        add(one, *camp, fewest, most);
      }
    }
  }

  void add(RankRecord& record, const RasCamp& camp, int64_t fewest, int64_t most) const {
    record.groups[camp.what] = {camp.what, {}, false, {}, c_.id};
    if (camp.operations > fewest) {
      Operation& waits = record.entries.emplace_back();
      waits.group = waits.name = camp.what;
      waits.sequence = fewest + 1;
      waits.state = "started";
    } else if (record.instead.empty()) {
      record.instead = tr("has launched {}, others {}", camp.operations, most);
    }
  }

  RankRecord& record(int id) {
    RankRecord& record = records_[id];
    record.rank = id;
    record.source = Source::kRas;
    return record;
  }
  int stranger(const std::string& host, int64_t pid) {
    return strangers_.try_emplace({host, pid}, kUnnamed - 1 - static_cast<int>(strangers_.size())).first->second;
  }

  const RasCommunicator& c_;
  std::map<int, RankRecord> records_;
  std::map<std::pair<std::string, int64_t>, int> strangers_;  // whose rank is not known
};

void blame(Standstill& v, const std::vector<RasMember>& members) {
  std::set<int> ranks;
  std::set<std::string> hosts;
  for (const RasMember& m : members) {
    if (m.rank >= 0) ranks.insert(m.rank);
    if (!m.host.empty()) hosts.insert(m.host);
  }
  v.culprits.assign(ranks.begin(), ranks.end());
  if (hosts.size() == 1) v.host = *hosts.begin();
}

Standstill silent(const RasReport& now) {
  std::vector<RasMember> who;
  for (const std::vector<RasMember>* processes : {&now.dead, &now.unresponsive})
    for (RasMember m : *processes) {
      for (const RasCommunicator& c : now.communicators)
        for (const RasMember& missing : c.missing)
          if (m.rank < 0 && missing.pid == m.pid && missing.host == m.host) m.rank = missing.rank;
      // The text of 2.24 and 2.25 names missing ranks by number alone; one process and one rank are the same.
      if (m.rank < 0 && now.dead.size() + now.unresponsive.size() == 1)
        for (const RasCommunicator& c : now.communicators)
          if (c.missing.size() == 1) m.rank = c.missing[0].rank;
      who.push_back(m);
    }
  Standstill v;
  v.kind = Kind::kSilent;
  v.code = "NCCL-RANK-SILENT";
  blame(v, who);
  v.evidence = tr("{} {} NCCL's RAS{}", names_of(who), who.size() == 1 ? "does not answer" : "do not answer",
                  now.dead.empty() ? tr(": stopped, exited, or unreachable") : tr(": considered dead after 60 s"));
  return v;
}

Standstill failed(const RasCommunicator& c, const RasCamp& camp) {
  Standstill v;
  v.kind = Kind::kError;
  v.code = "NCCL-RANK-ERROR";
  v.group = c.id;
  blame(v, camp.members);
  v.evidence =
      tr("{} in communicator {}: {}", camp.members.empty() ? tr("{} ranks", camp.count) : names_of(camp.members), c.id, camp.value);
  return v;
}

}  // namespace

void for_each_member(RasReport& report, const std::function<void(RasMember&)>& see) {
  auto all = [&](std::vector<RasMember>& members) { std::for_each(members.begin(), members.end(), see); };
  all(report.dead);
  all(report.unresponsive);
  for (RasCommunicator& c : report.communicators) {
    all(c.missing);
    for (RasCamp& camp : c.camps) all(camp.members);
  }
}

Standstill judge_ras(const RasReport& now, const RasReport* before, double seconds_between) {
  if (!now.dead.empty() || !now.unresponsive.empty()) return silent(now);
  for (const RasCommunicator& c : now.communicators)
    for (const RasCamp& camp : c.camps)
      if (camp.what == "init error" || camp.what == "async error") return failed(c, camp);
  bool counted = false, moved = false;
  Standstill best;
  for (const RasCommunicator& c : now.communicators) {
    counted = counted || !c.counts.empty();
    const RasCommunicator* then = before ? same(*before, c) : nullptr;
    if (before && (!then || !equal_counts(c, *then))) {
      moved = true;
      continue;
    }
    Standstill v = compare_records(RasRecords(c).take());
    if (v.kind == Kind::kNothing || v.kind == Kind::kTogether) continue;
    // The fewest that are named tell the most; who is only counted tells the least.
    auto tells = [](const Standstill& one) { return std::pair(one.culprits.empty(), one.culprits.size()); };
    if (best.kind == Kind::kNothing || tells(v) < tells(best)) best = std::move(v);
  }
  if (best.kind != Kind::kNothing) {
    if (!before)
      best.notes.push_back(tr("only one reading: a brief difference of counts is normal; if a second reading is the same, the job hangs"));
    return best;
  }
  if (before && counted && !moved) {
    best.kind = Kind::kStill;
    Message time = seconds_between > 0 ? tr("in {:.0f} s", seconds_between) : tr("between the two readings");
    best.evidence = tr(
        "no rank launched an operation {}, and all ranks have launched the same number: they wait in the same operation, or do other work",
        time);
  }
  return best;
}

}  // namespace phalanx::diagnosis
