#include "diagnosis/ras.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/json.h"
#include "base/text.h"
#include "base/unicode.h"

namespace diagnosis {
namespace {

using base::get_bool;
using base::get_int;
using base::get_string;
using base::Json;

constexpr size_t kMostBytes = 32 << 20;
constexpr size_t kMostText = 80;
constexpr size_t kMostCommunicators = 1 << 14;
constexpr size_t kMostMembers = 1 << 18;  // over all
constexpr int kMostRank = 1 << 22;

std::string kept(std::string_view text) { return base::printable(text, kMostText); }

// Takes words off the front of a line.
class Words {
 public:
  explicit Words(std::string_view text) : rest_(text) {}
  bool literal(std::string_view text) {
    if (!rest_.starts_with(text)) return false;
    rest_.remove_prefix(text.size());
    return true;
  }
  std::optional<int64_t> number() {
    size_t size = std::min(rest_.find_first_not_of("0123456789"), rest_.size());
    base::Result<int64_t> value = base::parse_int(rest_.substr(0, size), 0, int64_t{1} << 60);
    if (!value.ok()) return std::nullopt;
    rest_.remove_prefix(size);
    return *value;
  }
  std::optional<int> rank() {
    std::optional<int64_t> value = number();
    return value && *value <= kMostRank ? std::optional<int>(static_cast<int>(*value)) : std::nullopt;
  }
  std::string_view until(std::string_view end) {
    size_t at = rest_.find(end);
    if (at == std::string_view::npos) return {};
    std::string_view text = rest_.substr(0, at);
    rest_.remove_prefix(at + end.size());
    return text;
  }
  std::string_view rest() const { return rest_; }

 private:
  std::string_view rest_;
};

// --- text ------------------------------------------------------------------------------------------------------------

class TextReader {
 public:
  RasReport read(std::string_view text) {
    for (std::string_view line : base::split_lines(text)) {
      if (line.starts_with("  "))
        detail(line.substr(line.find_first_not_of(' ') == std::string_view::npos ? line.size() : line.find_first_not_of(' ')), line);
      else heading(base::trim(line));
    }
    report_.cut = !warnings_;
    return std::move(report_);
  }

 private:
  void heading(std::string_view line) {
    Words words(line);
    in_table_ = in_table_ && !line.empty();
    if (words.literal("NCCL version ")) {
      report_.version = kept(words.rest().substr(0, words.rest().find(' ')));
    } else if (line.starts_with("Group ")) {
      in_table_ = true;
    } else if (line == "Errors" || line == "Warnings") {
      warnings_ = line == "Warnings";
      processes_ = nullptr;
      communicator_ = nullptr;
    } else if (line == "DEAD" || line == "INCOMPLETE") {
      processes_ = line == "DEAD" ? &report_.dead : &report_.unresponsive;
      communicator_ = nullptr;
    } else if (line == "TIMEOUT") {
      processes_ = nullptr;
      communicator_ = nullptr;
    } else if (words.literal("#")) {
      begin_communicator(line);
    }
  }

  // "#0-0 (cf264af53edbe986) INCOMPLETE"
  void begin_communicator(std::string_view line) {
    size_t open = line.find(" ("), close = line.find(") ");
    if (open == std::string_view::npos || close == std::string_view::npos || close < open) return;
    std::string id = kept(line.substr(0, open));
    processes_ = nullptr;
    camp_ = nullptr;
    what_.clear();
    for (RasCommunicator& c : report_.communicators)
      if (c.id == id) {
        communicator_ = &c;
        return;
      }
    communicator_ = nullptr;
    if (report_.communicators.size() >= kMostCommunicators) return;
    communicator_ = &report_.communicators.emplace_back();
    communicator_->id = id;
    communicator_->hash = kept(line.substr(open + 2, close - open - 2));
  }

  void table_row(std::string_view line) {
    std::vector<std::string_view> cells = base::split_words(line);
    if (cells.size() < 8) return;
    base::Result<int64_t> count = base::parse_int(cells[1], 0, kMostRank);
    if (count.ok()) report_.communicators_told += static_cast<int>(*count);
  }

  void totals(std::string_view line) {
    std::vector<std::string_view> cells = base::split_words(line);
    std::vector<int> numbers;
    for (std::string_view cell : cells) {
      base::Result<int64_t> n = base::parse_int(cell, 0, kMostRank);
      if (!n.ok()) return;
      numbers.push_back(static_cast<int>(*n));
    }
    if (numbers.size() == 5) report_.nodes = numbers[0], report_.processes = numbers[3], report_.gpus = numbers[4];
    if (numbers.size() == 3) report_.nodes = numbers[0], report_.processes = numbers[1], report_.gpus = numbers[2];
  }

  void detail(std::string_view text, std::string_view whole) {
    if (in_table_) return table_row(text);
    Words words(text);
    if (words.literal("Encountered ")) {
      report_.timeouts = static_cast<int>(std::min<int64_t>(words.number().value_or(0), kMostRank));
    } else if (processes_ && words.literal("Process ")) {
      RasMember m;
      m.pid = words.number().value_or(0);
      if (words.literal(" on node ")) m.host = kept(words.until(" managing GPU"));
      words.literal("s");
      m.gpu = kept(base::trim(words.rest()));
      add(*processes_, std::move(m));
    } else if (communicator_) {
      of_communicator(text);
    } else if (!processes_ && !warnings_) {
      totals(whole);
    }
  }

  void of_communicator(std::string_view text) {
    Words words(text);
    RasCommunicator& c = *communicator_;
    if (words.literal("Missing communicator data from ")) {
      c.missing_count = words.rank().value_or(0);
      camp_ = nullptr;
      what_ = "missing";
    } else if (words.literal("The missing rank")) {  // 2.24, 2.25
      words.until(": ");
      list_of_ranks(words.rest(), c.missing);
    } else if (words.literal("Communicator ranks have different ")) {
      camp_ = nullptr;
      std::string_view operation = words.until(" operation counts");
      what_ = operation.empty() ? "status" : kept(operation);
    } else if (words.literal("Initialization error")) {
      what_ = "init error";
      camp_ = nullptr;
    } else if (words.literal("Asynchronous error")) {
      what_ = "async error";
      camp_ = nullptr;
    } else if (words.literal("Rank ")) {
      one_rank(words, c);
    } else if (words.literal("The unknown ranks: ")) {
      return;
    } else if (std::optional<int> count = words.rank()) {
      begin_camp(words, c, *count);
    }
  }

  // " ranks have launched up to operation 6650", " ranks have status RUNNING", " ranks reported …"
  void begin_camp(Words words, RasCommunicator& c, int count) {
    if (!words.literal(" ranks ")) return;
    camp_ = said(words, c);
    if (camp_) camp_->count = count;
  }

  RasCamp* said(Words words, RasCommunicator& c) {
    RasCamp camp;
    camp.what = what_;
    words.literal("have ") || words.literal("has ");
    if (words.literal("launched up to operation ")) {
      std::optional<int64_t> n = words.number();
      if (!n) return nullptr;
      camp.operations = *n;
      camp.value = std::to_string(*n);
    } else if (words.literal("not launched any operations")) {
      camp.operations = 0;
      camp.value = "0";
    } else if (words.literal("status ") || words.literal("reported ")) {
      camp.value = kept(words.rest().substr(0, words.rest().find(" -- ")));
    } else {
      return nullptr;
    }
    if (++camps_ > kMostMembers) return nullptr;
    return &c.camps.emplace_back(std::move(camp));
  }

  // "21 -- GPU 5 managed by process 3487984 on node 172.16.64.213", or with what it has done before the dashes.
  void one_rank(Words words, RasCommunicator& c) {
    RasMember m;
    std::optional<int> rank = words.rank();
    if (!rank) return;
    m.rank = *rank;
    RasCamp* camp = camp_;
    if (!words.literal(" -- ")) {
      words.literal(" ");
      camp = said(words, c);
      if (!camp) return;
      camp->count = 1;
      camp_ = nullptr;
      words.until(" -- ");
    }
    if (words.literal("GPU ")) {
      m.gpu = kept(words.until(" managed by process "));
      m.pid = words.number().value_or(0);
      if (words.literal(" on node ")) m.host = kept(base::trim(words.rest()));
    }
    add(camp ? camp->members : c.missing, std::move(m));
  }

  // "3", "1,2,5-7"
  void list_of_ranks(std::string_view text, std::vector<RasMember>& out) {
    for (std::string_view part : base::split(text, ',')) {
      Words words(base::trim(part));
      std::optional<int> first = words.rank(), last = first;
      if (!first) return;
      if (words.literal("-")) last = words.rank();
      for (int r = *first; last && r <= *last && r - *first < 1 << 16; ++r) {
        RasMember m;
        m.rank = r;
        if (!add(out, std::move(m))) return;
      }
    }
  }

  bool add(std::vector<RasMember>& to, RasMember m) {
    if (++members_ > kMostMembers) return false;
    to.push_back(std::move(m));
    return true;
  }

  RasReport report_;
  RasCommunicator* communicator_ = nullptr;
  RasCamp* camp_ = nullptr;
  std::vector<RasMember>* processes_ = nullptr;
  std::string what_;
  bool in_table_ = false, warnings_ = false;
  size_t members_ = 0, camps_ = 0;
};

// --- JSON ------------------------------------------------------------------------------------------------------------

const Json* list_in(const Json& object, const char* key) {
  auto found = object.find(key);
  return found != object.end() && found->is_array() ? &*found : nullptr;
}

RasMember member_of(const Json& json) {
  RasMember m;
  m.rank = static_cast<int>(std::clamp<int64_t>(get_int(json, "rank").value_or(-1), -1, kMostRank));
  m.host = kept(get_string(json, "host").value_or(""));
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
    report_.version = kept(get_string(json, "nccl_version").value_or(""));
    if (const Json* all = list_in(json, "communicators"))
      for (const Json& one : *all)
        if (one.is_object() && report_.communicators.size() < kMostCommunicators) communicator(one);
    report_.communicators_told = static_cast<int>(report_.communicators.size());
    if (auto ras = json.find("ras"); ras != json.end() && ras->is_object())
      report_.timeouts = static_cast<int>(std::clamp<int64_t>(get_int(*ras, "timeouts_count").value_or(0), 0, kMostRank));
    return std::move(report_);
  }

 private:
  void communicator(const Json& json) {
    RasCommunicator c;
    std::string hash = get_string(json, "hash").value_or("");
    c.hash = kept(std::string_view(hash).substr(hash.starts_with("0x") ? 2 : 0));
    c.id = c.hash;
    c.size = static_cast<int>(std::clamp<int64_t>(get_int(json, "size").value_or(0), 0, kMostRank));
    std::map<std::string, std::vector<RasMember>> status, init, async;
    std::map<std::string, std::map<std::string, std::vector<RasMember>>> operations;
    if (const Json* ranks = list_in(json, "ranks"))
      for (const Json& one : *ranks) {
        RasMember m = member_of(one);
        auto found = one.is_object() ? one.find("status") : one.end();
        if (m.rank < 0 || ++members_ > kMostMembers) continue;
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
      std::string operation = kept(name);
      c.counts[m.rank][operation] = n;
      operations[operation][std::to_string(n)].push_back(m);
    }
  }

  void lost(const Json& json, RasCommunicator& c) {
    if (!json.is_object() || ++members_ > kMostMembers) return;
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

bool looks_like_ras(std::string_view beginning) {
  std::string_view head = beginning.substr(0, 1 << 16);
  bool json = base::trim(head).starts_with("{") && head.find("\"nccl_version\"") != std::string_view::npos;
  bool text = head.find("Job summary\n===") != std::string_view::npos || head.find("Communicators...") != std::string_view::npos;
  return json || text;
}

base::Result<RasReport> read_ras(std::string_view text) {
  if (text.size() > kMostBytes) return base::fail(base::ErrorKind::kConfig, "a report of NCCL's RAS of more than 32 MiB");
  if (!looks_like_ras(text)) return base::fail(base::ErrorKind::kConfig, "not a report of NCCL's RAS");
  if (!base::trim(text).starts_with("{")) return TextReader().read(text);
  base::Result<Json> json = base::parse_json(text, kMostBytes);
  if (!json.ok()) return base::Error(json.error()).within("reading a report of NCCL's RAS");
  if (!json->is_object()) return base::fail(base::ErrorKind::kConfig, "not a report of NCCL's RAS");
  return JsonReader().read(*json);
}

}  // namespace diagnosis
