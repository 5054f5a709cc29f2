#include "diagnosis/flight_recorder.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/pickle.h"
#include "base/text.h"
#include "base/unicode.h"

namespace diagnosis {
namespace {

using base::get_int;
using base::get_string;
using base::Json;

constexpr size_t kMostBytes = 64 << 20;
constexpr size_t kMostEntries = 200'000;
constexpr size_t kMostText = 256;

std::string short_text(const std::optional<std::string>& text) { return text ? base::printable(*text, kMostText) : ""; }

const Json* member(const Json& object, const char* key) {
  if (!object.is_object()) return nullptr;
  auto found = object.find(key);
  return found == object.end() ? nullptr : &*found;
}

// [[1024, 3], [7]] → "[1024, 3] [7]", and how many elements they are.
std::string sizes(const Json* list, int64_t& elements) {
  std::string text;
  if (!list || !list->is_array()) return text;
  for (const Json& shape : *list) {
    if (!shape.is_array()) continue;
    std::string one;
    int64_t product = 1;
    for (const Json& dimension : shape) {
      int64_t n = dimension.is_number_integer() ? dimension.get<int64_t>() : 0;
      if (__builtin_mul_overflow(product, n, &product)) product = 0;
      one += fmt::format("{}{}", one.empty() ? "" : ", ", n);
    }
    if (__builtin_add_overflow(elements, product, &elements)) elements = 0;
    if (text.size() < kMostText) text += fmt::format("{}[{}]", text.empty() ? "" : " ", one);
  }
  return text;
}

std::string types(const Json* list) {
  if (list && list->is_string()) return base::printable(list->get<std::string>(), kMostText);
  std::string text;
  if (!list || !list->is_array()) return text;
  for (const Json& type : *list)
    if (type.is_string() && text.size() < kMostText) text += (text.empty() ? "" : " ") + base::printable(type.get<std::string>(), 40);
  return text;
}

// Frames come innermost first; torch's own say nothing of the user's program.
std::string place(const Json* frames) {
  if (!frames || !frames->is_array()) return "";
  for (const Json& frame : *frames) {
    std::optional<std::string> file = get_string(frame, "filename");
    if (!file || file->find("/torch/") != std::string::npos) continue;
    return base::printable(fmt::format("{}:{} ({})", file->substr(file->rfind('/') + 1), get_int(frame, "line").value_or(0),
                                       get_string(frame, "name").value_or("")),
                           kMostText);
  }
  return "";
}

TraceEntry entry_of(const Json& json) {
  TraceEntry e;
  if (const Json* group = member(json, "process_group"); group && group->is_array() && !group->empty() && (*group)[0].is_string())
    e.group = base::printable((*group)[0].get<std::string>(), kMostText);
  e.p2p = base::get_bool(json, "is_p2p").value_or(false);
  e.sequence = get_int(json, e.p2p ? "p2p_seq_id" : "collective_seq_id").value_or(0);
  e.name = short_text(get_string(json, "profiling_name"));
  if (size_t colon = e.name.find(':'); colon != std::string::npos) e.name = e.name.substr(colon + 1);
  e.input = base::trim(sizes(member(json, "input_sizes"), e.input_elements) + " " + types(member(json, "input_dtypes")));
  e.output = base::trim(sizes(member(json, "output_sizes"), e.output_elements) + " " + types(member(json, "output_dtypes")));
  e.state = short_text(get_string(json, "state"));
  e.where = place(member(json, "frames"));
  return e;
}

// "[0, 1, 5]"
std::vector<int> ranks_of(const std::string& text) {
  std::vector<int> ranks;
  std::string inner = text.size() >= 2 && text.front() == '[' ? text.substr(1, text.size() - 2) : text;
  for (std::string_view word : base::split(inner, ','))
    if (base::Result<int64_t> rank = base::parse_int(base::trim(word), 0, 1 << 20); rank.ok()) ranks.push_back(static_cast<int>(*rank));
  return ranks;
}

// --- beside each other -------------------------------------------------------------------------------------------------

struct Lane {  // of one rank in one group
  std::map<int64_t, const TraceEntry*> collectives;
};

bool done(const TraceEntry& e) { return e.state == "completed"; }

// What must be equal on all ranks. Where sizes depend on the rank's part only the name counts.
std::string signature(const TraceEntry& e) {
  if (e.name.find("all_to_all") != std::string::npos || e.name.find("alltoall") != std::string::npos) return e.name;
  if (e.name.find("scatter") != std::string::npos && e.name.find("reduce_scatter") == std::string::npos) return e.name + " → " + e.output;
  return e.name + " " + e.input;
}

std::string list(const std::vector<int>& ranks) {
  std::string text;
  for (size_t i = 0; i < ranks.size();) {
    size_t j = i;
    while (j + 1 < ranks.size() && ranks[j + 1] == ranks[j] + 1) ++j;
    text += fmt::format("{}{}", text.empty() ? "" : ", ", ranks[i]);
    if (j > i) text += fmt::format("-{}", ranks[j]);
    i = j + 1;
  }
  return text;
}

class GroupView {
 public:
  GroupView(const std::string& key, const std::vector<RankTrace>& traces) {
    std::set<int> members;
    for (const RankTrace& t : traces) {
      auto found = t.groups.find(key);
      if (found == t.groups.end()) continue;
      if (!found->second.description.empty()) name_ = found->second.description;
      members.insert(found->second.ranks.begin(), found->second.ranks.end());
      if (found->second.ranks.empty()) members.insert(t.rank);
    }
    if (name_.empty()) name_ = key;
    for (int rank : members) {
      auto trace = std::find_if(traces.begin(), traces.end(), [&](const RankTrace& t) { return t.rank == rank; });
      if (trace == traces.end()) {
        without_.push_back(rank);
        continue;
      }
      Lane& lane = lanes_[rank];
      for (const TraceEntry& e : trace->entries)
        if (e.group == key && !e.p2p) lane.collectives[e.sequence] = &e;
    }
  }

  FlightVerdict verdict() const {
    FlightVerdict v;
    v.group = name_;
    v.without_dump = without_;
    std::optional<int64_t> at = first_open();
    if (!at) return v;
    v.sequence = *at;
    std::map<std::string, std::vector<int>> camps;
    for (const auto& [rank, lane] : lanes_) {
      auto here = lane.collectives.find(*at);
      bool behind = lane.collectives.empty() || lane.collectives.rbegin()->first < *at;
      if (here != lane.collectives.end()) {
        if (!done(*here->second)) v.waiting.push_back(rank);
        camps[signature(*here->second)].push_back(rank);
        if (v.collective.empty()) v.collective = here->second->name;
      } else if (behind) {
        v.culprits.push_back(rank);
      }
    }
    if (!v.culprits.empty()) return not_joined(std::move(v));
    if (camps.size() > 1) return mismatch(std::move(v), camps);
    return together(std::move(v));
  }

 private:
  // The first collective that somebody has not completed. Sequence numbers before a ring's oldest entry are done: the ring went on.
  std::optional<int64_t> first_open() const {
    std::optional<int64_t> first;
    for (const auto& [rank, lane] : lanes_)
      for (const auto& [sequence, entry] : lane.collectives)
        if (!done(*entry) && (!first || sequence < *first)) first = sequence;
    return first;
  }

  FlightVerdict not_joined(FlightVerdict v) const {
    v.kind = FlightVerdict::Kind::kNotJoined;
    const std::map<int64_t, const TraceEntry*>& theirs = lanes_.at(v.culprits[0]).collectives;
    std::string last = "it has done nothing in this group", last_zh = "它在该组里什么都没做过";
    if (!theirs.empty()) {
      const TraceEntry& e = *theirs.rbegin()->second;
      std::string at = e.where.empty() ? "" : fmt::format(", {}", e.where);
      last = fmt::format("the last of rank {} was {} {}{}", v.culprits[0], e.name, e.sequence, at);
      last_zh = fmt::format("rank {} 最后一次是 {} {}{}", v.culprits[0], e.name, e.sequence, at);
    }
    v.evidence = {fmt::format("rank {} never came to {} {} of {}, in which rank {} waits; {}", list(v.culprits), v.collective, v.sequence,
                              v.group, list(v.waiting), last),
                  fmt::format("rank {} 没有进入 {} 的 {} {}，rank {} 正在其中等待；{}", list(v.culprits), v.group, v.collective, v.sequence,
                              list(v.waiting), last_zh)};
    return v;
  }

  FlightVerdict mismatch(FlightVerdict v, const std::map<std::string, std::vector<int>>& camps) const {
    v.kind = FlightVerdict::Kind::kMismatch;
    auto most = std::max_element(camps.begin(), camps.end(), [](const auto& a, const auto& b) {
      return a.second.size() != b.second.size() ? a.second.size() < b.second.size() : a.second[0] > b.second[0];
    });
    std::string text;
    for (const auto& [what, ranks] : camps) {
      text += fmt::format("{}rank {}: {}", text.empty() ? "" : "; ", list(ranks), what);
      if (what != most->first) v.culprits.insert(v.culprits.end(), ranks.begin(), ranks.end());
    }
    std::sort(v.culprits.begin(), v.culprits.end());
    v.evidence = {fmt::format("collective {} of {} is not the same on all ranks: {}", v.sequence, v.group, text),
                  fmt::format("{} 的第 {} 次集合通信在各 rank 上不一致：{}", v.group, v.sequence, text)};
    return v;
  }

  FlightVerdict together(FlightVerdict v) const {
    v.kind = FlightVerdict::Kind::kTogether;
    std::vector<int> scheduled;
    for (int rank : v.waiting)
      if (lanes_.at(rank).collectives.at(v.sequence)->state == "scheduled") scheduled.push_back(rank);
    std::string missing = without_.empty() ? "" : fmt::format("; no dump of rank {}", list(without_));
    std::string missing_zh = without_.empty() ? "" : fmt::format("；缺少 rank {} 的转储", list(without_));
    bool blocked = !scheduled.empty() && scheduled.size() < v.waiting.size();
    std::string why = blocked ? fmt::format("the stream of rank {} is blocked by earlier work", list(scheduled)) : "the network or a GPU";
    std::string why_zh = blocked ? fmt::format("rank {} 的 stream 被更早的工作阻塞", list(scheduled)) : "问题在网络或 GPU";
    v.evidence = {fmt::format("all came to {} {} of {}, and it is not done: {}{}", v.collective, v.sequence, v.group, why, missing),
                  fmt::format("所有 rank 都进入了 {} 的 {} {}，但没有完成：{}{}", v.group, v.collective, v.sequence, why_zh, missing_zh)};
    return v;
  }

  std::string name_;
  std::map<int, Lane> lanes_;
  std::vector<int> without_;
};

}  // namespace

base::Result<RankTrace> read_flight_recorder(int rank, std::string_view bytes) {
  bool text = !bytes.empty() && (bytes[0] == '{' || base::is_blank(bytes[0]));
  base::Result<Json> json = text ? base::parse_json(bytes, kMostBytes) : base::parse_pickle(bytes, {.bytes = kMostBytes});
  if (!json.ok()) return base::Error(json.error()).within(fmt::format("reading the flight recorder's dump of rank {}", rank));
  const Json* entries = member(*json, "entries");
  const Json* groups = member(*json, "pg_config");
  if (!groups || !groups->is_object())
    return base::fail(base::ErrorKind::kConfig, fmt::format("the dump of rank {} has no pg_config: not a flight recorder's dump", rank));
  RankTrace trace;
  trace.rank = rank;
  trace.version = short_text(get_string(*json, "version"));
  for (const auto& [key, group] : groups->items()) {
    TraceGroup& g = trace.groups[base::printable(key, kMostText)];
    g.description = short_text(get_string(group, "desc"));
    g.ranks = ranks_of(get_string(group, "ranks").value_or(""));
  }
  if (entries && entries->is_array())
    for (const Json& entry : *entries) {
      if (trace.entries.size() == kMostEntries) break;
      trace.entries.push_back(entry_of(entry));
    }
  return trace;
}

FlightVerdict compare_flight_records(const std::vector<RankTrace>& traces) {
  std::set<std::string> keys;
  for (const RankTrace& t : traces)
    for (const auto& [key, group] : t.groups) keys.insert(key);
  std::vector<FlightVerdict> all;
  for (const std::string& key : keys) all.push_back(GroupView(key, traces).verdict());
  std::erase_if(all, [](const FlightVerdict& v) { return v.kind == FlightVerdict::Kind::kNothing; });
  if (all.empty()) return {};
  std::set<int> waiting;
  for (const FlightVerdict& v : all) waiting.insert(v.waiting.begin(), v.waiting.end());
  // A rank that is missing here because it waits in another group is no cause but a victim.
  auto free_culprit = [&](const FlightVerdict& v) {
    return std::any_of(v.culprits.begin(), v.culprits.end(),
                       [&](int rank) { return v.kind == FlightVerdict::Kind::kMismatch || waiting.count(rank) == 0; });
  };
  auto before = [&](const FlightVerdict& a, const FlightVerdict& b) {
    if (free_culprit(a) != free_culprit(b)) return free_culprit(a);
    if (a.culprits.empty() != b.culprits.empty()) return !a.culprits.empty();
    if (a.waiting.size() != b.waiting.size()) return a.waiting.size() > b.waiting.size();
    return a.culprits.size() < b.culprits.size();
  };
  return *std::min_element(all.begin(), all.end(), before);
}

}  // namespace diagnosis
