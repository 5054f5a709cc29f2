// What one or two readings of NCCL's RAS say of a job that stands still. Counts of operations become records (records.h): in a communicator
// each operation is a group, in which a rank that has launched more than another waits in the first that the other has not.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "diagnosis/hang/ras.h"

namespace phalanx::diagnosis {
namespace {

using Kind = Standstill::Kind;
using words::Message;
using words::tr;

constexpr size_t kMostNamed = 6;
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
  Message text;
  for (size_t i = 0; i < members.size() && i < kMostNamed; ++i) text.add(tr(", "), name_of(members[i]));
  if (members.size() > kMostNamed) text += tr(" and {} more##members", members.size() - kMostNamed, words::chinese_only(members.size()));
  return text;
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

class Records {
 public:
  explicit Records(const RasCommunicator& c) : c_(c) {
    std::map<std::string, int64_t> fewest;  // launched, by operation
    for (const RasCamp& camp : c.camps)
      if (camp.operations >= 0) {
        int64_t& least = fewest.try_emplace(camp.what, camp.operations).first->second;
        least = std::min(least, camp.operations);
      }
    for (const RasCamp& camp : c.camps) {
      if (camp.operations < 0) continue;
      if (camp.members.empty()) add(unnamed(camp.count), camp, fewest[camp.what]);
      for (const RasMember& m : camp.members) add(named(m), camp, fewest[camp.what]);
    }
  }

  std::vector<RankRecord> take() {
    std::vector<RankRecord> all;
    for (auto& [id, record] : records_) all.push_back(std::move(record));
    return all;
  }

 private:
  RankRecord& record(int id) {
    RankRecord& record = records_[id];
    record.rank = id;
    record.source = Source::kRas;
    return record;
  }
  RankRecord& unnamed(int count) {
    RankRecord& all = record(kUnnamed);
    all.count = std::max(all.count, count);
    return all;
  }
  RankRecord& named(const RasMember& m) {
    const int id =
        m.rank >= 0 ? m.rank : strangers_.try_emplace({m.host, m.pid}, kUnnamed - 1 - static_cast<int>(strangers_.size())).first->second;
    RankRecord& one = record(id);
    one.name = name_of(m);
    one.host = m.host;
    return one;
  }

  void add(RankRecord& record, const RasCamp& camp, int64_t fewest) const {
    record.groups[camp.what] = {camp.what, {}, false, c_.id};
    if (camp.operations > fewest) {
      Operation& waits = record.entries.emplace_back();
      waits.group = waits.name = camp.what;
      waits.sequence = fewest + 1;
      waits.state = "started";
    } else if (record.instead.empty()) {
      record.instead = tr("has launched {}", camp.operations);
    }
  }

  const RasCommunicator& c_;
  std::map<int, RankRecord> records_;
  std::map<std::pair<std::string, int64_t>, int> strangers_;  // whose rank is not known
};

std::string host_of(const std::vector<RasMember>& members) {
  const bool one =
      !members.empty() && std::all_of(members.begin(), members.end(), [&](const auto& m) { return m.host == members[0].host; });
  return one ? members[0].host : "";
}

void blame(Standstill& v, const std::vector<RasMember>& members) {
  for (const RasMember& m : members)
    if (m.rank >= 0) v.culprits.push_back(m.rank);
  v.host = host_of(members);
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
    Standstill v = compare_records(Records(c).take());
    if (v.kind == Kind::kNothing || (best.kind != Kind::kNothing && best.culprits.size() <= v.culprits.size())) continue;
    best = std::move(v);
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
