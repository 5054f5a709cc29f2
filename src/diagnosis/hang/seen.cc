#include "diagnosis/hang/seen.h"

#include <algorithm>
#include <map>

namespace phalanx::diagnosis {
namespace {

// What keeps a rank from any collective. One that runs or reads may well be in one.
bool is_elsewhere(Doing doing) {
  return doing == Doing::kSleeping || doing == Doing::kLock || doing == Doing::kLoader || doing == Doing::kConnecting;
}

// Without stacks nobody is seen in a collective: of more than two ranks, what the most do, if they do not sleep, stands for it.
std::optional<Doing> most_do(const std::vector<Seen>& all) {
  std::map<Doing, size_t> counts;
  size_t known = 0;
  for (const Seen& s : all) {
    if (s.activity.doing == Doing::kCollective || s.activity.doing == Doing::kStore) return std::nullopt;
    if (s.known()) ++counts[s.activity.doing], ++known;
  }
  if (counts.size() < 2) return std::nullopt;
  auto most = std::max_element(counts.begin(), counts.end(), [](auto& a, auto& b) { return a.second < b.second; });
  if (most->second * 2 <= known || most->first == Doing::kSleeping) return std::nullopt;
  return most->first;
}

bool is_on(const RankView& rank, const std::string& host, const std::vector<std::string>& hosts) {
  const std::vector<machine::SocketSample>& sockets = rank.then->sockets;
  return hosts.at(rank.host) == host ||
         std::any_of(sockets.begin(), sockets.end(), [&](const machine::SocketSample& s) { return s.local_address == host; });
}

}  // namespace

std::vector<RankRecord> records_of(const std::vector<Seen>& seen, bool elsewhere) {
  std::vector<RankRecord> records;
  const std::optional<Doing> most = most_do(seen);
  for (const Seen& s : seen) {
    if (!s.known() || (elsewhere && !is_elsewhere(s.activity.doing))) continue;
    RankRecord& record = records.emplace_back();
    record.rank = s.view->rank;
    record.source = Source::kSample;
    record.groups[""];
    const Doing doing = s.activity.doing;
    if (doing == Doing::kCollective || doing == Doing::kStore || (doing == most && !elsewhere)) {
      Operation& waits = record.entries.emplace_back();
      waits.state = "started";
      waits.name = doing == Doing::kStore ? "the store" : s.activity.op_name;
      waits.input = waits.name.empty() ? s.activity.op : "";
      waits.comparable = doing == Doing::kCollective && !s.activity.op.empty();
      continue;
    }
    record.instead = s.activity.words;
    if (doing == Doing::kLock) record.absent_code = "HANG-DEADLOCK-LOCAL";
    if (doing == Doing::kLoader) record.absent_code = "HANG-LOADER";
    if (doing == Doing::kConnecting) record.absent_code = "HANG-CONNECT";
  }
  return records;
}

RasReport of_this_run(RasReport report, const std::vector<Seen>& seen, const std::vector<std::string>& hosts) {
  std::map<int64_t, std::vector<const RankView*>> by_pid;
  for (const Seen& s : seen)
    if (s.view->then)
      for (const machine::ProcessSample& p : s.view->then->processes) by_pid[p.pid].push_back(s.view);
  for_each_member(report, [&](RasMember& m) {
    std::vector<const RankView*> ranks = by_pid[m.pid];
    if (ranks.size() > 1) std::erase_if(ranks, [&](const RankView* r) { return !is_on(*r, m.host, hosts); });
    m.rank = ranks.size() == 1 ? ranks[0]->rank : -1;
  });
  return report;
}

}  // namespace phalanx::diagnosis
