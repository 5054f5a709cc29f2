#include "diagnosis/hang/watchdog.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/text.h"
#include "diagnosis/hang/rank_words.h"

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

std::string captured(const LogEvent& event, const char* name) {
  auto found = event.captures.find(name);
  return found == event.captures.end() ? "" : found->second;
}

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

std::vector<int> ranks_of(const std::vector<const Report*>& reports) {
  std::vector<int> ranks;
  for (const Report* report : reports) ranks.push_back(report->rank);
  return ranks;
}

std::string clock_text(int64_t ms) {
  int64_t seconds = (ms / 1000 % 86'400 + 86'400) % 86'400;
  return fmt::format("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
}

// "ALLREDUCE no. 808 of 9801523 elements".
doctor::Words collective(const Report& report) {
  doctor::Words words = tr("{} no. {}", report.operation.empty() ? tr("collective") : tr("{}", report.operation), report.sequence);
  if (!report.in.empty()) words += tr(" of {} elements", report.in);
  return words;
}

void add_start(doctor::Words& words, const std::vector<const Report*>& waiting) {
  std::optional<int64_t> began;
  for (const Report* report : waiting)
    if (report->time && report->timeout_ms > 0) began = std::min(began.value_or(INT64_MAX), *report->time - report->timeout_ms);
  if (!began) return;
  words += tr("; it began to wait at about {}", clock_text(*began));
}

WatchdogVerdict verdict(std::string code, const std::vector<const Report*>& culprits, const std::vector<const Report*>& waiting) {
  WatchdogVerdict out;
  out.code = std::move(code);
  out.culprits = ranks_of(culprits);
  out.waiting = ranks_of(waiting);
  for (const auto* list : {&culprits, &waiting})
    for (const Report* report : *list) out.events.insert(out.events.end(), report->events.begin(), report->events.end());
  return out;
}

// The ranks whose report is unlike most others'; with a tie those whose report is not that of the lowest rank.
std::vector<const Report*> minority(const std::vector<const Report*>& reports, std::string (*key)(const Report&)) {
  std::map<std::string, size_t> votes;
  for (const Report* report : reports) ++votes[key(*report)];
  std::string most = key(*reports.front());
  for (const auto& [value, count] : votes)
    if (count > votes[most]) most = value;
  std::vector<const Report*> odd;
  for (const Report* report : reports)
    if (key(*report) != most) odd.push_back(report);
  return odd;
}

std::vector<const Report*> without(const std::vector<const Report*>& reports, const std::vector<const Report*>& odd) {
  std::vector<const Report*> rest;
  for (const Report* report : reports)
    if (std::find(odd.begin(), odd.end(), report) == odd.end()) rest.push_back(report);
  return rest;
}

std::string kind_key(const Report& report) { return report.operation; }
std::string size_key(const Report& report) { return report.in + "/" + report.out; }
std::string sequence_key(const Report& report) { return fmt::format("{}", report.sequence); }

bool sizes_may_differ(const std::string& operation) {
  return operation.starts_with("ALLTOALL") || operation.starts_with("SEND") || operation.starts_with("RECV") ||
         operation.starts_with("COALESCED") || operation.starts_with("SCATTER") || operation.starts_with("GATHER") ||
         operation.starts_with("BROADCAST");
}

// Numbers of different process groups have nothing to do with each other. Old messages do not name the group: there numbers that are far
// apart are taken for those of two groups.
constexpr int64_t kOneGroup = 16;

bool is_whole_world(const std::string& group) { return group.empty() || group == "0" || group.find("default_pg") != std::string::npos; }

// The reports of the group that most ranks speak of.
std::vector<const Report*> of_one_group(const std::vector<const Report*>& reports) {
  std::vector<const Report*> odd = minority(reports, [](const Report& report) { return report.group; });
  return without(reports, odd);
}

bool far_apart(const std::vector<const Report*>& reports) {
  auto [low, high] =
      std::minmax_element(reports.begin(), reports.end(), [](const Report* a, const Report* b) { return a->sequence < b->sequence; });
  return (*high)->sequence - (*low)->sequence > kOneGroup;
}

std::optional<WatchdogVerdict> mismatch(const std::vector<const Report*>& waiting) {
  std::vector<const Report*> odd = minority(waiting, sequence_key);
  std::string_view what = "sequence";
  if (odd.empty()) odd = minority(waiting, kind_key), what = "operation";
  if (odd.empty() && !sizes_may_differ(waiting.front()->operation)) odd = minority(waiting, size_key), what = "size";
  if (odd.empty()) return std::nullopt;
  std::vector<const Report*> most = without(waiting, odd);
  WatchdogVerdict out = verdict("HANG-MISMATCH", odd, most);
  doctor::Words one = collective(*odd.front()), other = collective(*most.front());
  out.detail =
      tr("{} {} in {}, {} in {}", name_ranks(out.culprits), of_ranks(out.culprits, "waits", "wait"), one, name_ranks(out.waiting), other);
  if (what == "sequence") out.detail += tr(": the ranks have called different numbers of collectives");
  add_start(out.detail, waiting);
  return out;
}

// Ranks whose queue was empty while others waited, and ranks that are in the logs and whose watchdog had nothing to report.
std::optional<WatchdogVerdict> never_entered(const LogFacts& facts, const std::map<int, Report>& reports,
                                             const std::vector<const Report*>& waiting, const std::vector<int>& missing) {
  std::vector<const Report*> idle;
  for (const auto& [rank, report] : reports)
    if (report.sequence < 0 && report.enqueued >= 0 && report.enqueued == report.completed &&
        (report.group == waiting.front()->group || is_whole_world(waiting.front()->group)))
      idle.push_back(&report);
  WatchdogVerdict out = verdict("HANG-NEVER-ENTERED", idle, waiting);
  doctor::Words how = tr("had completed all of its operations");
  // Who is silent can be told only of a group of all ranks.
  if (idle.empty() && missing.empty() && is_whole_world(waiting.front()->group)) {
    for (int rank : facts.ranks)
      if (!reports.count(rank)) out.culprits.push_back(rank);
    how = tr("reported no timeout");
  }
  if (out.culprits.empty()) return std::nullopt;
  doctor::Words what = collective(*waiting.front());
  out.detail = tr("{} {} in {}; {} {} and never entered it", name_ranks(out.waiting), of_ranks(out.waiting, "waits", "wait"), what,
                  name_ranks(out.culprits), how);
  add_start(out.detail, waiting);
  return out;
}

WatchdogVerdict undecided(const std::vector<const Report*>& waiting, const std::vector<int>& missing) {
  WatchdogVerdict out = verdict("HANG-TIMEOUT", {}, waiting);
  doctor::Words what = collective(*waiting.front());
  out.detail = tr("{} waited in {}", name_ranks(out.waiting), what);
  add_start(out.detail, waiting);
  if (missing.empty()) return out;
  out.detail += tr("; the logs of {} are missing, and the cause is probably in them", name_ranks(missing));
  return out;
}

}  // namespace

std::optional<WatchdogVerdict> compare_watchdogs(const LogFacts& facts, const std::vector<int>& missing) {
  std::map<int, Report> reports = reports_of(facts);
  std::vector<const Report*> waiting;
  for (const auto& [rank, report] : reports)
    if (report.sequence >= 0) waiting.push_back(&report);
  if (waiting.empty()) return std::nullopt;
  waiting = of_one_group(waiting);
  bool one_group = !far_apart(waiting);
  if (waiting.size() > 1 && one_group)
    if (auto found = mismatch(waiting)) return found;
  if (!one_group) return undecided(waiting, missing);
  if (auto found = never_entered(facts, reports, waiting, missing)) return found;

  bool all = missing.empty() && facts.world > 1 && static_cast<size_t>(facts.world) == waiting.size();
  WatchdogVerdict out = undecided(waiting, missing);
  if (!all) return out;
  out.code = "HANG-TRANSPORT";
  out.detail += tr("; every rank of the job had entered it");
  return out;
}

}  // namespace phalanx::diagnosis
