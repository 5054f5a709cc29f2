#include "diagnosis/logs/evidence.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "base/text.h"
#include "codes/code.h"
#include "diagnosis/logs/scan.h"
#include "diagnosis/nccl/view.h"

namespace phalanx::diagnosis {
namespace {

using words::tr;

constexpr uint64_t kLineMask = (uint64_t{1} << 40) - 1;
constexpr size_t kMostLines = 6;

// Symptoms: what a timeout or a victim says of itself is less than what its cause says.
bool is_weak(const LogCause& cause) { return cause.code == "LOG-ROOT-ELSEWHERE" || cause.code == "HANG-TIMEOUT" || is_generic(cause.code); }

void offer(LogVerdict& verdict, LogCause cause) {
  if (!verdict.cause || is_weak(*verdict.cause)) {
    if (verdict.cause) verdict.others.insert(verdict.others.begin(), std::move(*verdict.cause));
    verdict.cause = std::move(cause);
  } else if (verdict.cause->code != cause.code) {
    verdict.others.push_back(std::move(cause));
  }
}

// Whether work was counted after all that NCCL says of it: then it ended nothing.
bool worked_after(const LogVerdict& verdict, const NcclFinding& finding) {
  auto before_work = [&](const auto& told) {
    size_t file = told.first >> 40;
    return file < verdict.last_work.size() && (told.first & kLineMask) < verdict.last_work[file];
  };
  bool anywhere = std::any_of(verdict.last_work.begin(), verdict.last_work.end(), [](uint64_t line) { return line > 0; });
  return anywhere && std::all_of(finding.lines.begin(), finding.lines.end(), before_work);
}

doctor::Words finding_line(const NcclFinding& f) {
  const base::Bilingual title = codes::get(f.code).title;
  const doctor::Words shown{std::string(title.english), std::string(title.chinese)};
  return tr("{}: {}: {}", f.code, shown, f.evidence);
}

// What stands still by one source; `none`: said where nothing does.
void add_standstill(LogVerdict& verdict, LogSection& section, const Standstill& v, const doctor::Words& none) {
  section.lines.push_back(v.kind == Standstill::Kind::kNothing ? none : v.evidence);
  section.lines.insert(section.lines.end(), v.notes.begin(), v.notes.end());
  if (v.code.empty()) return;
  LogCause cause;
  cause.code = v.code;
  cause.ranks = v.culprits;
  cause.host = v.host;
  cause.detail = v.evidence;
  offer(verdict, std::move(cause));
}

}  // namespace

EvidenceKind kind_of_file(const std::string& path) {
  std::string head(1 << 16, '\0');
  FILE* file = std::fopen(path.c_str(), "rbe");
  if (!file) return EvidenceKind::kLog;
  head.resize(std::fread(head.data(), 1, head.size(), file));
  std::fclose(file);
  if (looks_like_flight_recorder(head)) return EvidenceKind::kFlightRecorder;
  // A log may quote a report; a report begins with it.
  std::string_view begin = base::trim(head);
  bool report = begin.starts_with("{") || begin.starts_with("NCCL version ") || begin.starts_with("Job summary");
  return report && looks_like_ras(head) ? EvidenceKind::kRas : EvidenceKind::kLog;
}

void add_nccl(LogVerdict& verdict, const logs::NcclTopology& nccl) {
  auto place = [&](uint64_t number) {
    size_t file = number >> 40;
    std::string name = file < verdict.files.size() ? verdict.files[file].name : "";
    return fmt::format("{}:{}", name.substr(name.rfind('/') + 1), number & kLineMask);
  };
  NcclSection section = nccl_section(nccl, place);
  if (section.lines.empty()) return;
  for (const NcclFinding& f : judge_nccl(nccl)) {
    if (f.severity != doctor::Severity::kError || worked_after(verdict, f)) {
      section.lines.push_back(finding_line(f));
      continue;
    }
    LogCause cause;
    cause.code = f.code;
    if (f.ranks_of_job) cause.ranks = f.ranks;
    if (f.hosts.size() == 1) cause.host = f.hosts[0];
    cause.detail = f.evidence;
    for (const auto& [number, text] : f.lines)
      if (number > 0 && cause.evidence.size() < kMostLines) cause.evidence.push_back({number >> 40, number & kLineMask, text});
    offer(verdict, std::move(cause));
    if (verdict.cause->code != f.code) section.lines.push_back(finding_line(f));
  }
  verdict.sections.push_back({std::move(section.title), std::move(section.lines)});
}

void add_flight_records(LogVerdict& verdict, const FlightDumps& dumps) {
  LogSection section;
  section.title = {"PyTorch's flight recorders", "PyTorch flight recorder"};
  std::vector<int> ranks;
  size_t entries = 0;
  for (const RankRecord& r : dumps.records) {
    ranks.push_back(r.rank);
    entries += r.entries.size();
  }
  section.lines.push_back(tr("dumps of rank {}, {} operations", base::format_ranges(ranks), entries));
  add_standstill(verdict, section, compare_records(dumps.records), tr("every operation in the dumps has been completed"));
  for (const std::string& refused : dumps.refused) section.lines.push_back(tr("not read: {}", refused));
  verdict.sections.push_back(std::move(section));
}

void add_ras(LogVerdict& verdict, const std::vector<RasReport>& readings) {
  if (readings.empty()) return;
  const RasReport& now = readings.back();
  LogSection section;
  section.title = {"NCCL's RAS", "NCCL RAS"};
  std::string version = now.version.empty() ? "" : "NCCL " + now.version + ", ";
  doctor::Words size = now.processes > 0 ? tr("{} processes on {} hosts, ", now.processes, now.nodes) : doctor::Words{};
  int told = std::max(now.communicators_told, static_cast<int>(now.communicators.size()));
  section.lines.push_back(tr("{}{}{} communicator{}", version, size, told, told == 1 ? "" : "s"));
  add_standstill(verdict, section, judge_ras(now, readings.size() > 1 ? &readings[readings.size() - 2] : nullptr, 0),
                 tr("no problem was found in it"));
  if (now.timeouts > 0) section.lines.push_back(tr("{} timeouts during data collection", now.timeouts));
  if (now.cut) section.lines.push_back(tr("the report is truncated"));
  verdict.sections.push_back(std::move(section));
}

}  // namespace phalanx::diagnosis
