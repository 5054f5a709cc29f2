#include "diagnosis/hang/watchdog.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/text.h"
#include "diagnosis/hang/rank_words.h"
#include "diagnosis/logs/cause.h"

namespace phalanx::diagnosis {
namespace {

using words::tr;

// What the watchdog of one rank said of one process group.
struct Report {
  int rank = 0;
  int64_t sequence = -1, timeout_ms = 0;
  std::string operation, in, out, group;
  int64_t enqueued = -1, completed = -1;
  std::optional<int64_t> time;
  std::vector<size_t> events;
};

int64_t number(const LogEvent& event, const char* name, int64_t otherwise) {
  auto value = base::parse_int(captured(event, name), 0, INT64_MAX);
  return value.ok() ? *value : otherwise;
}

// The first report of each rank: what it waited in when it gave up. Later ones are its queue.
std::map<int, Report> reports_of(const LogFacts& facts) {
  std::map<int, Report> reports;
  for (size_t i = 0; i < facts.events.size(); ++i) {
    const LogEvent& event = facts.events[i];
    bool timeout = event.captures.count("seq") > 0, state = event.captures.count("enqueued") > 0;
    if (event.rank < 0 || (!timeout && !state)) continue;
    Report& report = reports[event.rank];
    report.rank = event.rank;
    if (timeout && report.sequence < 0) {
      report.sequence = number(event, "seq", -1);
      report.operation = captured(event, "op");
      report.in = captured(event, "in");
      report.out = captured(event, "out");
      report.timeout_ms = number(event, "timeout", 0);
      report.time = event.time;
      report.events.push_back(i);
    }
    if (state && report.enqueued < 0) {
      report.enqueued = number(event, "enqueued", -1);
      report.completed = number(event, "completed", -1);
      report.group = captured(event, "group");
      report.events.push_back(i);
    }
  }
  return reports;
}

std::string clock_text(int64_t ms) {
  int64_t seconds = (ms / 1000 % 86'400 + 86'400) % 86'400;
  return fmt::format("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
}

void add_start(doctor::Words& words, const std::vector<const Report*>& waiting) {
  std::optional<int64_t> began;
  for (const Report* report : waiting)
    if (report->time && report->timeout_ms > 0) began = std::min(began.value_or(INT64_MAX), *report->time - report->timeout_ms);
  if (began) words += tr("; the wait began at about {}", clock_text(*began));
}

bool sizes_may_differ(const std::string& operation) {
  return operation.starts_with("ALLTOALL") || operation.starts_with("SEND") || operation.starts_with("RECV") ||
         operation.starts_with("COALESCED") || operation.starts_with("SCATTER") || operation.starts_with("GATHER") ||
         operation.starts_with("BROADCAST");
}

// Numbers of different process groups have nothing to do with each other. Old messages do not name the group: there numbers that are far
// apart are taken for those of two groups.
constexpr int64_t kOneGroup = 16;

bool is_whole_world(const std::string& group) { return group.empty() || group == "0" || group.find("default_pg") != std::string::npos; }

// The reports of those that wait, of the group that most of them speak of.
std::vector<const Report*> waiting_in_one_group(const std::map<int, Report>& reports) {
  std::map<std::string, std::vector<const Report*>> groups;
  std::string most;
  for (const auto& [rank, report] : reports) {
    if (report.sequence < 0) continue;
    if (groups.empty()) most = report.group;
    groups[report.group].push_back(&report);
  }
  for (const auto& [group, members] : groups)
    if (members.size() > groups[most].size()) most = group;
  return groups.empty() ? std::vector<const Report*>{} : groups[most];
}

bool agree(const std::vector<const Report*>& reports) {
  const Report& first = *reports.front();
  return std::all_of(reports.begin(), reports.end(), [&](const Report* one) {
    const bool sized = !sizes_may_differ(first.operation);
    return one->sequence == first.sequence && one->operation == first.operation &&
           (!sized || (one->in == first.in && one->out == first.out));
  });
}

bool far_apart(const std::vector<const Report*>& reports) {
  auto [low, high] =
      std::minmax_element(reports.begin(), reports.end(), [](const Report* a, const Report* b) { return a->sequence < b->sequence; });
  return (*high)->sequence - (*low)->sequence > kOneGroup;
}

// What one group's ranks have told, as records of one group.
class WatchdogRecords {
 public:
  WatchdogRecords(const LogFacts& facts, const std::map<int, Report>& reports, const std::vector<const Report*>& waiting,
                  const std::vector<int>& missing)
      : group_(waiting.front()->group), world_(is_whole_world(group_)) {
    if (agree(waiting)) add_absent(facts, reports, missing);  // else they explain it themselves
    if (world_) group_.clear();
    const bool whole = world_ && missing.empty() && facts.world > 1 && static_cast<size_t>(facts.world) == records_.size() + waiting.size();
    GroupRecord group{group_, {}, !whole};
    for (const Report* report : waiting) add_waiting(*report);
    for (RankRecord& record : records_) record.groups[group_] = group;
    records_.front().groups[group_].further = missing;
  }
  const std::vector<RankRecord>& all() const { return records_; }

 private:
  RankRecord& add(int rank) {
    RankRecord& record = records_.emplace_back();
    record.rank = rank;
    record.source = Source::kWatchdog;
    return record;
  }
  void add_absent(const LogFacts& facts, const std::map<int, Report>& reports, const std::vector<int>& missing) {
    bool idle = false;
    for (const auto& [rank, report] : reports)
      if (report.sequence < 0 && report.enqueued >= 0 && report.enqueued == report.completed && (report.group == group_ || world_)) {
        add(rank).instead = tr("had completed all of its operations");
        idle = true;
      }
    // Who is silent can be told only of a group of all ranks, and where all are heard.
    if (!idle && missing.empty() && world_)
      for (int rank : facts.ranks)
        if (!reports.count(rank)) add(rank).instead = tr("reported no timeout");
  }
  void add_waiting(const Report& report) {
    Operation& waits = add(report.rank).entries.emplace_back();
    waits.group = group_;
    waits.sequence = report.sequence;
    waits.name = report.operation.empty() ? "collective" : report.operation;
    if (!sizes_may_differ(report.operation) && !report.in.empty())
      waits.input = report.in == report.out || report.out.empty() ? fmt::format("[{}]", report.in)
                                                                  : fmt::format("[{}] → [{}]", report.in, report.out);
    waits.state = "started";
  }

  std::string group_;
  bool world_ = false;
  std::vector<RankRecord> records_;
};

}  // namespace

std::optional<WatchdogVerdict> compare_watchdogs(const LogFacts& facts, const std::vector<int>& missing) {
  const std::map<int, Report> reports = reports_of(facts);
  const std::vector<const Report*> waiting = waiting_in_one_group(reports);
  if (waiting.empty()) return std::nullopt;
  WatchdogVerdict out;
  Standstill& found = out.standstill;
  if (far_apart(waiting)) {
    found.kind = Standstill::Kind::kUndecided;
    for (const Report* report : waiting) found.waiting.push_back(report->rank);
    found.evidence = tr("{} {} in collectives that are far apart, probably of several process groups", name_ranks(found.waiting),
                        of_ranks(found.waiting, "waits", "wait"));
  } else {
    found = compare_records(WatchdogRecords(facts, reports, waiting, missing).all());
  }
  if (found.kind == Standstill::Kind::kUndecided) found.code = "HANG-TIMEOUT";
  add_start(found.evidence, waiting);
  std::set<int> told;
  for (const std::vector<int>* list : {&found.culprits, &found.waiting})
    for (int rank : *list)
      if (auto report = reports.find(rank); report != reports.end() && told.insert(rank).second)
        out.events.insert(out.events.end(), report->second.events.begin(), report->second.events.end());
  return out;
}

}  // namespace phalanx::diagnosis
