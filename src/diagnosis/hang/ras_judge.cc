// What one or two readings of NCCL's RAS say of a job that stands still.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/text.h"
#include "diagnosis/hang/ras.h"

namespace phalanx::diagnosis {
namespace {

using Kind = RasVerdict::Kind;
using words::Message;
using words::tr;

constexpr size_t kMostNamed = 6;

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

// By their names, or only how many where these are not known.
Message names_of(const RasCamp& camp) { return camp.members.empty() ? tr("{} ranks", camp.count) : names_of(camp.members); }

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

// The camps of one operation, fewest launched first.
std::vector<const RasCamp*> of_operation(const RasCommunicator& c, const std::string& operation) {
  std::vector<const RasCamp*> camps;
  for (const RasCamp& camp : c.camps)
    if (camp.operations >= 0 && camp.what == operation) camps.push_back(&camp);
  std::sort(camps.begin(), camps.end(), [](const RasCamp* a, const RasCamp* b) { return a->operations < b->operations; });
  return camps;
}

std::set<int> ranks_in(const std::vector<RasMember>& members) {
  std::set<int> ranks;
  for (const RasMember& m : members) ranks.insert(m.rank);
  return ranks;
}

// Somebody is behind in one operation and ahead in another: it called the other one.
bool crosses(const RasCommunicator& c, const std::vector<std::string>& operations, std::vector<RasMember>& who) {
  for (const std::string& a : operations)
    for (const std::string& b : operations) {
      if (a == b) continue;
      const RasCamp& behind = *of_operation(c, a).front();
      std::set<int> ahead = ranks_in(of_operation(c, b).back()->members);
      for (const RasMember& m : behind.members)
        if (ahead.count(m.rank) != 0) who.push_back(m);
      if (!who.empty()) {
        int others = of_operation(c, a).back()->count;
        if (static_cast<int>(who.size()) > others && !of_operation(c, a).back()->members.empty()) who = of_operation(c, a).back()->members;
        return true;
      }
    }
  return false;
}

RasVerdict silent(const RasReport& now) {
  RasVerdict v;
  v.kind = Kind::kSilent;
  v.code = "NCCL-RANK-SILENT";
  for (const std::vector<RasMember>* processes : {&now.dead, &now.unresponsive})
    for (RasMember m : *processes) {
      for (const RasCommunicator& c : now.communicators)
        for (const RasMember& missing : c.missing)
          if (m.rank < 0 && missing.pid == m.pid && missing.host == m.host) m.rank = missing.rank;
      // The text of 2.24 and 2.25 names missing ranks by number alone; one process and one rank are the same.
      if (m.rank < 0 && now.dead.size() + now.unresponsive.size() == 1)
        for (const RasCommunicator& c : now.communicators)
          if (c.missing.size() == 1) m.rank = c.missing[0].rank;
      v.culprits.push_back(m);
    }
  bool dead = !now.dead.empty();
  v.evidence = tr("{} {} NCCL's RAS{}", names_of(v.culprits), v.culprits.size() == 1 ? "does not answer" : "do not answer",
                  dead ? tr(": considered dead after 60 s") : tr(": stopped, exited, or unreachable"));
  return v;
}

RasVerdict failed(const RasCommunicator& c, const RasCamp& camp) {
  RasVerdict v;
  v.kind = Kind::kError;
  v.code = "NCCL-RANK-ERROR";
  v.communicator = c.id;
  v.culprits = camp.members;
  v.evidence = tr("{} in communicator {}: {}", names_of(camp), c.id, camp.value);
  return v;
}

RasVerdict differs(const RasCommunicator& c, const std::vector<std::string>& operations, std::vector<RasMember> who) {
  RasVerdict v;
  v.kind = Kind::kDiffers;
  v.code = "HANG-MISMATCH";
  v.communicator = c.id;
  std::sort(who.begin(), who.end(), [](const RasMember& a, const RasMember& b) { return a.rank < b.rank; });
  v.culprits = std::move(who);
  std::string text;
  for (const std::string& operation : operations)
    for (const RasCamp* camp : of_operation(c, operation))
      text += fmt::format("{}{} {} ×{}", text.empty() ? "" : "; ", operation, camp->operations, camp->count);
  v.evidence =
      tr("ranks of communicator {} launched different operations; {} differs from the others ({})", c.id, names_of(v.culprits), text);
  return v;
}

RasVerdict behind(const RasCommunicator& c, const std::string& operation) {
  std::vector<const RasCamp*> camps = of_operation(c, operation);
  const RasCamp &low = *camps.front(), &high = *camps.back();
  RasVerdict v;
  v.kind = Kind::kBehind;
  v.code = "HANG-NEVER-ENTERED";
  v.communicator = c.id;
  v.culprits = low.members;
  v.evidence = tr("{} launched {} {} operations in communicator {}; {} others {}", names_of(low), low.operations, operation, c.id,
                  high.count, high.operations);
  if (high.count < low.count) {
    v.notes.push_back(tr("most ranks have not entered it: perhaps only {} calls it, for example under 'if rank == 0'", names_of(high)));
  }
  return v;
}

RasVerdict of_counts(const RasCommunicator& c) {
  std::vector<std::string> operations;
  for (const RasCamp& camp : c.camps)
    if (camp.operations >= 0 && std::find(operations.begin(), operations.end(), camp.what) == operations.end() &&
        of_operation(c, camp.what).size() > 1)
      operations.push_back(camp.what);
  if (operations.empty()) return {};
  std::vector<RasMember> who;
  if (crosses(c, operations, who)) return differs(c, operations, std::move(who));
  // The operation in which the fewest are behind tells the most.
  return behind(c, *std::min_element(operations.begin(), operations.end(), [&](const std::string& a, const std::string& b) {
                  return of_operation(c, a).front()->count < of_operation(c, b).front()->count;
                }));
}

}  // namespace

RasVerdict judge_ras(const RasReport& now, const RasReport* before, double seconds_between) {
  if (!now.dead.empty() || !now.unresponsive.empty()) return silent(now);
  for (const RasCommunicator& c : now.communicators)
    for (const RasCamp& camp : c.camps)
      if (camp.what == "init error" || camp.what == "async error") return failed(c, camp);
  bool counted = false, moved = false;
  RasVerdict best;
  for (const RasCommunicator& c : now.communicators) {
    counted = counted || !c.counts.empty();
    const RasCommunicator* then = before ? same(*before, c) : nullptr;
    if (before && (!then || !equal_counts(c, *then))) {
      moved = true;
      continue;
    }
    RasVerdict v = of_counts(c);
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
