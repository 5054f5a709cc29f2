#include "diagnosis/hang/flight_recorder.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/json.h"
#include "base/pickle.h"
#include "base/text.h"
#include "base/unicode.h"

namespace phalanx::diagnosis {
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

Operation entry_of(const Json& json) {
  Operation e;
  if (const Json* group = member(json, "process_group"); group && group->is_array() && !group->empty() && (*group)[0].is_string())
    e.group = base::printable((*group)[0].get<std::string>(), kMostText);
  e.record = get_int(json, "record_id").value_or(0);
  e.p2p = base::get_bool(json, "is_p2p").value_or(false);
  const char* key = e.p2p ? "p2p_seq_id" : "collective_seq_id";
  e.sequence = get_int(json, key).value_or(get_int(json, "seq_id").value_or(0));  // one counter until version 1.5
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

// "send 0->1", "recv 1<-0": ranks in the group, the own one first (ProcessGroupNCCL.cpp).
void add_part(Operation& e, const RankRecord& trace) {
  bool send = e.name.starts_with("send "), receive = e.name.starts_with("recv ");
  if (!send && !receive) return;
  size_t arrow = e.name.find(send ? "->" : "<-");
  if (arrow == std::string::npos) return;
  Transfer part{send, -1, send ? e.input : e.output};
  base::Result<int64_t> local = base::parse_int(base::trim(std::string_view(e.name).substr(arrow + 2)), 0, 1 << 20);
  auto group = trace.groups.find(e.group);
  if (local.ok() && group != trace.groups.end()) {
    const std::vector<int>& ranks = group->second.ranks;
    if (static_cast<size_t>(*local) < ranks.size()) part.peer = ranks[static_cast<size_t>(*local)];
  }
  if (part.what.empty()) part.what = send ? e.output : e.input;
  e.parts.push_back(std::move(part));
}

bool ends_a_batch(const Operation& e) { return e.name == "coalesced" || e.name.ends_with("_coalesced"); }

// The operations of a batch (batch_isend_irecv, a coalescing manager) are recorded without events, so that they stay "scheduled" for ever;
// one entry that ends the batch has its state. They become that entry.
void fold_batches(std::vector<Operation>& entries) {
  std::vector<Operation> folded;
  for (Operation& e : entries) {
    if (ends_a_batch(e)) {
      auto of_batch = [&](const Operation& before) {
        return before.group == e.group && before.p2p == e.p2p && before.sequence == e.sequence && !ends_a_batch(before);
      };
      size_t first = folded.size();
      while (first > 0 && of_batch(folded[first - 1])) --first;
      std::string names;
      for (size_t i = first; i < folded.size(); ++i) {
        const Operation& one = folded[i];
        e.parts.insert(e.parts.end(), one.parts.begin(), one.parts.end());
        if (names.size() < kMostText) names += (names.empty() ? "" : " + ") + one.name + (e.p2p ? "" : " " + one.input);
        if (e.where.empty()) e.where = one.where;
      }
      folded.resize(first);
      if (!names.empty() && e.p2p) e.name = names;
      if (!names.empty() && !e.p2p) e.input = names;
    }
    folded.push_back(std::move(e));
  }
  entries = std::move(folded);
}

}  // namespace

base::Result<RankRecord> read_flight_recorder(int rank, std::string_view bytes) {
  bool text = !bytes.empty() && (bytes[0] == '{' || base::is_blank(bytes[0]));
  base::Result<Json> json = text ? base::parse_json(bytes, kMostBytes) : base::parse_pickle(bytes, {.bytes = kMostBytes});
  if (!json.ok()) return base::Error(json.error()).within(fmt::format("reading the flight recorder's dump of rank {}", rank));
  const Json* entries = member(*json, "entries");
  const Json* groups = member(*json, "pg_config");
  if (!groups || !groups->is_object())
    return base::fail(base::ErrorKind::kConfig,
                      fmt::format("the dump of rank {} has no pg_config, so it is not a flight recorder dump", rank));
  RankRecord trace;
  trace.rank = rank;
  trace.version = short_text(get_string(*json, "version"));
  for (const auto& [key, group] : groups->items()) {
    GroupRecord& g = trace.groups[base::printable(key, kMostText)];
    g.description = short_text(get_string(group, "desc"));
    g.ranks = ranks_of(get_string(group, "ranks").value_or(""));
  }
  if (entries && entries->is_array())
    for (const Json& entry : *entries) {
      if (trace.entries.size() == kMostEntries) {
        trace.cut = true;
        break;
      }
      trace.entries.push_back(entry_of(entry));
      trace.gaps = trace.gaps || !get_int(entry, "collective_seq_id");
      add_part(trace.entries.back(), trace);
    }
  if (!trace.entries.empty()) trace.lost = std::max<int64_t>(0, trace.entries.front().record);
  fold_batches(trace.entries);
  return trace;
}

bool looks_like_flight_recorder(std::string_view beginning) {
  bool pickle = beginning.starts_with("\x80\x02") || beginning.starts_with("\x80\x04") || beginning.starts_with("\x80\x05");
  bool json = !beginning.empty() && beginning[0] == '{';
  std::string_view head = beginning.substr(0, 1 << 16);
  return (pickle || json) && (head.find("pg_config") != std::string_view::npos || head.find("collective_seq_id") != std::string_view::npos);
}

}  // namespace phalanx::diagnosis
