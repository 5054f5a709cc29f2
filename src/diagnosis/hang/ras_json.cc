// RAS's report for programs: every rank with its counts.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "diagnosis/hang/ras_forms.h"

namespace phalanx::diagnosis {
namespace {

using base::get_bool;
using base::get_int;
using base::get_string;
using base::Json;

const Json* list_in(const Json& object, const char* key) {
  auto found = object.find(key);
  return found != object.end() && found->is_array() ? &*found : nullptr;
}

RasMember member_of(const Json& json) {
  RasMember m;
  m.rank = static_cast<int>(std::clamp<int64_t>(get_int(json, "rank").value_or(-1), -1, kMostRasRank));
  m.host = ras_text_kept(get_string(json, "host").value_or(""));
  m.pid = get_int(json, "pid").value_or(0);
  if (std::optional<int64_t> gpu = get_int(json, "cuda_dev")) m.gpu = std::to_string(*gpu);
  return m;
}

std::string status_of(const Json& status) {
  if (get_bool(status, "abort_flag").value_or(false)) return "ABORT";
  if (get_bool(status, "finalize_called").value_or(false) || get_bool(status, "destroy_flag").value_or(false)) return "FINALIZE";
  return get_int(status, "init_state").value_or(0) == 0 ? "RUNNING" : "INIT";
}

// ncclResult_t (NCCL src/nccl.h.in); 0 and 7 (in progress) are no errors.
std::string error_of(const Json& status, const char* key) {
  static constexpr std::string_view kNames[] = {"",
                                                "unhandled CUDA error",
                                                "unhandled system error",
                                                "internal error",
                                                "invalid argument",
                                                "invalid usage",
                                                "remote process exited or there was a network error"};
  int64_t code = get_int(status, key).value_or(0);
  if (code == 0 || code == 7) return "";
  return code > 0 && code < 7 ? std::string(kNames[code]) : fmt::format("error {}", code);
}

void add_camps(RasCommunicator& c, const std::string& what, const std::map<std::string, std::vector<RasMember>>& by_value,
               bool even_if_one) {
  if (by_value.size() < 2 && !even_if_one) return;
  for (const auto& [value, members] : by_value) {
    if (value.empty()) continue;
    RasCamp camp{what, value, -1, static_cast<int>(members.size()), members};
    if (base::Result<int64_t> n = base::parse_int(value, 0, int64_t{1} << 60); n.ok()) camp.operations = *n;
    c.camps.push_back(std::move(camp));
  }
}

class JsonReader {
 public:
  RasReport read(const Json& json) {
    report_.json = true;
    report_.version = ras_text_kept(get_string(json, "nccl_version").value_or(""));
    if (const Json* all = list_in(json, "communicators"))
      for (const Json& one : *all)
        if (one.is_object() && report_.communicators.size() < kMostRasCommunicators) communicator(one);
    report_.communicators_told = static_cast<int>(report_.communicators.size());
    if (auto ras = json.find("ras"); ras != json.end() && ras->is_object())
      report_.timeouts = static_cast<int>(std::clamp<int64_t>(get_int(*ras, "timeouts_count").value_or(0), 0, kMostRasRank));
    return std::move(report_);
  }

 private:
  void communicator(const Json& json) {
    RasCommunicator c;
    std::string hash = get_string(json, "hash").value_or("");
    c.hash = ras_text_kept(std::string_view(hash).substr(hash.starts_with("0x") ? 2 : 0));
    c.id = c.hash;
    c.size = static_cast<int>(std::clamp<int64_t>(get_int(json, "size").value_or(0), 0, kMostRasRank));
    std::map<std::string, std::vector<RasMember>> status, init, async;
    std::map<std::string, std::map<std::string, std::vector<RasMember>>> operations;
    if (const Json* ranks = list_in(json, "ranks"))
      for (const Json& one : *ranks) {
        RasMember m = member_of(one);
        auto found = one.is_object() ? one.find("status") : one.end();
        if (m.rank < 0 || ++members_ > kMostRasMembers) continue;
        c.ranks[m.rank] = m;
        if (found != one.end() && found->is_object()) {
          status[status_of(*found)].push_back(m);
          init[error_of(*found, "init_state")].push_back(m);
          async[error_of(*found, "async_error")].push_back(m);
        }
        count(one, m, c, operations);
      }
    if (const Json* missing = list_in(json, "missing_ranks"))
      for (const Json& one : *missing) lost(one, c);
    c.missing_count = static_cast<int>(c.missing.size());
    add_camps(c, "status", status, false);
    add_camps(c, "init error", init, true);
    add_camps(c, "async error", async, true);
    for (const auto& [operation, by_value] : operations) add_camps(c, operation, by_value, false);
    report_.communicators.push_back(std::move(c));
  }

  static void count(const Json& rank, const RasMember& m, RasCommunicator& c,
                    std::map<std::string, std::map<std::string, std::vector<RasMember>>>& operations) {
    auto counts = rank.find("collective_counts");
    if (counts == rank.end() || !counts->is_object()) return;
    for (const auto& [name, value] : counts->items()) {
      if (!value.is_number_integer() || operations.size() > 64) continue;
      int64_t n = std::max<int64_t>(0, value.get<int64_t>());
      std::string operation = ras_text_kept(name);
      c.counts[m.rank][operation] = n;
      operations[operation][std::to_string(n)].push_back(m);
    }
  }

  void lost(const Json& json, RasCommunicator& c) {
    if (!json.is_object() || ++members_ > kMostRasMembers) return;
    RasMember m = member_of(json);
    auto status = json.find("status");
    bool known = status != json.end() && status->is_object();
    bool dead = known && get_bool(*status, "considered_dead").value_or(false);
    bool unresponsive = known && get_bool(*status, "unresponsive").value_or(false);
    if (!dead && !unresponsive) return;  // it answers, and is no member yet or no longer
    std::vector<RasMember>& processes = dead ? report_.dead : report_.unresponsive;
    bool seen = std::any_of(processes.begin(), processes.end(), [&](const RasMember& p) { return p.pid == m.pid && p.host == m.host; });
    if (!seen) processes.push_back({-1, m.host, m.gpu, m.pid});
    c.missing.push_back(std::move(m));
  }

  RasReport report_;
  size_t members_ = 0;
};

}  // namespace

RasReport read_ras_json(const base::Json& json) { return JsonReader().read(json); }

}  // namespace phalanx::diagnosis
