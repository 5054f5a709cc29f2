// The records of all ranks beside each other. Every waiting rank points to at most one other (waits.h), and following the pointers ends at
// a rank that waits for nothing (it never entered), at an operation to which all came (mismatch, or the transport), or in a circle.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "diagnosis/hang/rank_words.h"
#include "diagnosis/hang/standstill_words.h"
#include "diagnosis/hang/waits.h"

namespace phalanx::diagnosis {
namespace {

using Kind = Standstill::Kind;
using doctor::Words;
using words::tr;

class Comparison {
 public:
  Comparison(std::span<const RankRecord> records, std::span<const RankRecord> also) : graph_(records, also) {}

  Standstill verdict() {
    std::vector<Standstill> ends;
    std::vector<size_t> weight;
    for (const auto& [number, rank] : graph_.ranks()) {
      if (!rank.head) continue;
      size_t end = follow(number, ends);
      weight.resize(ends.size());
      weight[end] += count_of(number);
    }
    if (ends.empty()) return {};
    size_t best = 0;
    for (size_t i = 1; i < ends.size(); ++i)
      if (weight[i] != weight[best] ? weight[i] > weight[best] : order(ends[i].kind) < order(ends[best].kind)) best = i;
    Standstill v = std::move(ends[best]);
    finish(v);
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

  // The end of the way that begins at a waiting rank: its index in `ends`. Those in one operation have one end.
  size_t follow(int start, std::vector<Standstill>& ends) {
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
      Waits waits = graph_.waits_of(at);
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
    if (waits.differs || !waits.beyond.empty()) return true;
    const Operation& mine = graph_.head_of(waits.there[0]);
    if (!mine.parts.empty()) return false;
    return std::any_of(waits.there.begin(), waits.there.end(), [&](int rank) { return differ(graph_.head_of(rank), mine); });
  }

  int count_of(int rank) const { return graph_.record_of(rank).count; }
  int count_of(const std::vector<int>& ranks) const {
    int sum = 0;
    for (int rank : ranks) sum += count_of(rank);
    return sum;
  }

  Standstill about(int rank, const Waits& waits) const {
    Standstill v;
    const Operation& head = graph_.head_of(rank);
    const Group& group = graph_.group_of(rank);
    v.group = group.name;
    v.sequence = head.sequence;
    v.collective = head.name;
    v.waiting = waits.there;
    std::sort(v.waiting.begin(), v.waiting.end());
    for (int member : group.members)
      if (graph_.ranks().count(member) == 0) v.unknown.push_back(member);
    return v;
  }

  Standstill end_at(int rank, const Waits& waits) const {
    Standstill v = about(rank, waits);
    const Operation& head = graph_.head_of(rank);
    const Group& group = graph_.group_of(rank);
    const Words operation = operation_in(head, group.name, group.within);
    if (!waits.absent.empty()) {
      not_joined(v, waits.absent, operation);
    } else if (waits.differs) {
      v.where = head.where;
      std::string sides;
      for (int other : v.waiting)
        if (const Operation& e = graph_.head_of(other); !e.parts.empty())
          sides += fmt::format("{}rank {}: {} {}", sides.empty() ? "" : "; ", other, e.name, e.parts[0].what);
      say_parts_differ(v, sides);
    } else if (mismatch_in(waits)) {
      v.waiting.insert(v.waiting.end(), waits.beyond.begin(), waits.beyond.end());
      std::sort(v.waiting.begin(), v.waiting.end());
      mismatch(v, !waits.beyond.empty(), group.within);
    } else if (!v.unknown.empty() || group.open) {
      say_undecided(v, operation, numbers(v.waiting), graph_.record_of(rank).source);
    } else {
      together(v, head, operation, group.members.size());
    }
    return v;
  }

  // Of those that have not come: those of whom the same is to be said as of the first.
  void not_joined(Standstill& v, const std::vector<int>& absent, const Words& operation) const {
    std::vector<const RankRecord*> who;
    for (int rank : absent)
      if (const RankRecord& record = graph_.record_of(rank); who.empty() || record.absent_code == who[0]->absent_code)
        who.push_back(&record);
    std::sort(who.begin(), who.end(), [](auto* a, auto* b) { return a->rank < b->rank; });
    for (const RankRecord* one : who) v.culprits.push_back(one->rank);
    const RankRecord& first = *who[0];
    v.code = first.absent_code;
    const int waiting = count_of(v.waiting), culprits = count_of(v.culprits);
    say_not_joined(v, operation, names(v.culprits), numbers(v.waiting), waiting, culprits, first);
    if (waiting < culprits) note_few(v, names(v.waiting), waiting);
  }

  // By what each came with; the fewest are named. counted: it is the numbers that differ.
  void mismatch(Standstill& v, bool counted, const std::string& within) const {
    std::map<std::string, std::vector<int>> camps;
    for (int rank : v.waiting)
      if (const Operation& e = graph_.head_of(rank); e.comparable) camps[counted ? operation_of(e) : signature(e)].push_back(rank);
    auto most = std::max_element(camps.begin(), camps.end(), [&](const auto& a, const auto& b) {
      const int few = count_of(a.second), many = count_of(b.second);
      return few != many ? few < many : a.second[0] > b.second[0];
    });
    v.collective = graph_.head_of(most->second[0]).name;
    Words text;
    for (const auto& [what, ranks] : camps) {
      if (text.english.size() < 1000) text.add(tr("; "), tr("{}: {}##of ranks", names(ranks), what));
      if (what != most->first) v.culprits.insert(v.culprits.end(), ranks.begin(), ranks.end());
    }
    std::sort(v.culprits.begin(), v.culprits.end());
    v.where = graph_.head_of(v.culprits[0]).where;
    say_mismatch(v, counted, text, within);
  }

  void together(Standstill& v, const Operation& head, const Words& operation, size_t members) const {
    int64_t in = 0, out = 0;
    std::vector<int> scheduled;
    for (int rank : v.waiting) {
      const Operation& e = graph_.head_of(rank);
      if (__builtin_add_overflow(in, e.input_elements, &in) || __builtin_add_overflow(out, e.output_elements, &out)) in = out = 0;
      if (e.state == "scheduled") scheduled.push_back(rank);
    }
    if (is_all_to_all(head) && in != out && in > 0 && out > 0 && v.waiting.size() == members) {
      v.where = head.where;
      return say_sums_differ(v, operation, in, out);
    }
    say_together(v, operation, scheduled);
  }

  Standstill circle(const std::vector<int>& path) {
    Standstill v = about(path[0], graph_.waits_of(path[0]));
    const std::string& within = graph_.group_of(path[0]).within;
    auto in_one = [&](int rank) { return !within.empty() && graph_.group_of(rank).within == within; };
    auto other = [&](int rank) { return differ(graph_.head_of(rank), graph_.head_of(path[0])); };
    if (std::all_of(path.begin(), path.end(), in_one) &&
        std::any_of(path.begin(), path.end(), other)) {  // in one communicator operations have one order: somebody came with another
      v.waiting.clear();
      for (const auto& [number, rank] : graph_.ranks())
        if (rank.head && in_one(number)) v.waiting.push_back(number);
      mismatch(v, false, within);
      return v;
    }
    v.culprits = v.waiting = path;
    std::sort(v.culprits.begin(), v.culprits.end());
    std::sort(v.waiting.begin(), v.waiting.end());
    v.where = graph_.head_of(path[0]).where;
    std::vector<CircleStep> steps;
    for (size_t i = 0; i < path.size(); ++i) {
      const Operation& head = graph_.head_of(path[i]);
      const Group& group = graph_.group_of(path[i]);
      steps.push_back({path[i], path[(i + 1) % path.size()], operation_in(head, group.name, group.within)});
    }
    say_circle(v, steps);
    return v;
  }

  // "ranks 0–2, 30 ranks".
  Words numbers(const std::vector<int>& ranks) const { return told_as(ranks, false); }
  // "ranks 0–2, rank 5 (process 77 on h2, GPU 5), 30 ranks".
  Words names(const std::vector<int>& ranks) const { return told_as(ranks, true); }
  Words told_as(const std::vector<int>& ranks, bool with_names) const {
    std::vector<int> plain;
    std::vector<Words> others;
    for (int rank : ranks) {
      const RankRecord& record = graph_.record_of(rank);
      if (rank >= 0 && (record.name.empty() || !with_names)) plain.push_back(rank);
      else others.push_back(record.name.empty() ? tr("{} ranks", record.count) : record.name);
    }
    if (!plain.empty()) others.insert(others.begin(), name_ranks(plain));
    return list_of(others);
  }

  void finish(Standstill& v) const {
    if (!v.unknown.empty() && v.kind != Kind::kUndecided) note_missing(v);
    std::set<std::string> hosts;
    for (int rank : v.culprits)
      if (const std::string& host = graph_.record_of(rank).host; !host.empty()) hosts.insert(host);
    if (hosts.size() == 1) v.host = *hosts.begin();
    std::erase_if(v.culprits, [](int rank) { return rank < 0; });
    std::erase_if(v.waiting, [](int rank) { return rank < 0; });
    std::vector<int> overwritten, cut;
    for (const auto& [number, rank] : graph_.ranks()) {
      if (rank.record->lost > 0) overwritten.push_back(number);
      if (rank.record->cut) cut.push_back(number);
    }
    if (!overwritten.empty()) note_overwritten(v, overwritten);
    if (!cut.empty()) note_cut(v, cut);
  }

  WaitGraph graph_;
  std::map<int, size_t> end_of_;  // by rank
};

}  // namespace

Standstill compare_records(std::span<const RankRecord> records, std::span<const RankRecord> also) {
  return Comparison(records, also).verdict();
}

}  // namespace phalanx::diagnosis
