#include "cli/explain_logs.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "base/try.h"
#include "base/unicode.h"
#include "cli/records/named_run.h"
#include "diagnosis/logs/evidence.h"
#include "diagnosis/logs/files.h"
#include "diagnosis/logs/verdict.h"
#include "os/files.h"
#include "view/log_view.h"
#include "view/speech.h"
#include "view/terminal/capabilities.h"

namespace phalanx::cli {
namespace {

using words::tr;

constexpr size_t kWidest = 110;
constexpr size_t kNarrowest = 40;
constexpr int kNoCause = 1;
constexpr size_t kMostReport = 32 << 20;

bool is_run(const std::string& word, const std::string& runs_folder) {
  return !word.empty() && word.find('/') == std::string::npos && !word.starts_with('.') &&
         os::is_folder(runs_folder + "/" + word + "/ranks");
}

// The id of the run that the word stands for, as with the other verbs: its id, the end or the beginning of one, or its name. "": none.
std::string run_for(const std::string& word, const std::string& runs_folder) {
  if (is_run(word, runs_folder) || runs_folder.empty()) return is_run(word, runs_folder) ? word : "";
  if (word.empty() || word.find('/') != std::string::npos) return "";
  base::Result<logs::Run> run = find_named_run(runs_folder, word);
  return run.ok() && is_run(run->id, runs_folder) ? run->id : "";
}

doctor::Words damaged(const std::string& name) {
  std::string file = base::printable(name);
  return tr("{}: the gzip data is truncated or damaged; only the part before the damage was read", file);
}

// What the operands stand for.
struct Evidence {
  std::vector<diagnosis::LogFile> logs;
  std::vector<std::string> dumps, reports;  // of flight recorders, of NCCL's RAS
};

base::Status sort_in(Evidence& evidence, const std::string& path) {
  size_t dumps_before = evidence.dumps.size();
  if (path != "-" && os::is_folder(path)) {
    TRY_ASSIGN(std::vector<std::string> dumps, diagnosis::flight_dumps_in(path));
    evidence.dumps.insert(evidence.dumps.end(), dumps.begin(), dumps.end());
  } else if (path != "-") {
    diagnosis::EvidenceKind kind = diagnosis::kind_of_file(path);
    if (kind == diagnosis::EvidenceKind::kFlightRecorder) return evidence.dumps.push_back(path), base::ok();
    if (kind == diagnosis::EvidenceKind::kRas) return evidence.reports.push_back(path), base::ok();
  }
  base::Result<std::vector<diagnosis::LogFile>> found = diagnosis::find_logs(path);
  if (found.ok()) evidence.logs.insert(evidence.logs.end(), found->begin(), found->end());
  else if (evidence.dumps.size() == dumps_before) return found.error();
  return base::ok();
}

base::Status add_reports(diagnosis::LogVerdict& verdict, const Evidence& evidence) {
  if (!evidence.dumps.empty()) {
    TRY_ASSIGN(diagnosis::FlightDumps dumps, diagnosis::read_flight_dumps(evidence.dumps));
    diagnosis::add_flight_records(verdict, dumps);
  }
  std::vector<diagnosis::RasReport> readings;
  for (const std::string& path : evidence.reports) {
    TRY_ASSIGN(std::string text, os::read_file(path, kMostReport));
    base::Result<diagnosis::RasReport> report = diagnosis::read_ras(text);
    if (!report.ok()) return base::Error(report.error()).within("reading " + base::printable(path));
    readings.push_back(std::move(*report));
  }
  diagnosis::add_ras(verdict, readings);
  for (const std::vector<std::string>* paths : {&evidence.dumps, &evidence.reports})
    for (const std::string& path : *paths) verdict.files.push_back({.name = path, .host = {}});
  return base::ok();
}

}  // namespace

bool names_logs(const std::string& word, const std::string& runs_folder) {
  return word == "-" || word == "latest" || word.find('/') != std::string::npos || os::exists(word) || !run_for(word, runs_folder).empty();
}

base::Result<int> explain_logs(const std::vector<std::string>& operands, const std::string& runs_folder, bool json) {
  Evidence evidence;
  for (const std::string& word : operands) {
    bool run = word != "-" && !os::exists(word) && word.find('/') == std::string::npos;
    const std::string id = run ? run_for(word, runs_folder) : "";
    if (run && id.empty())
      return base::fail(base::ErrorKind::kConfig, fmt::format("no such run in {1}: {0}", base::quote(word), base::quote(runs_folder)));
    TRY(sort_in(evidence, run ? runs_folder + "/" + id : word));
  }
  auto is_input = [](const diagnosis::LogFile& file) { return file.name == "-"; };
  if (std::count_if(evidence.logs.begin(), evidence.logs.end(), is_input) > 1)
    return base::fail(base::ErrorKind::kUsage, "standard input can be read only once").with_hint("give \"-\" once");

  diagnosis::LogScan scan;
  std::vector<doctor::Words> notes;
  for (const diagnosis::LogFile& file : evidence.logs) {
    TRY_ASSIGN(diagnosis::ReadLog read, diagnosis::read_log(scan, file));
    if (read.damaged) notes.push_back(damaged(file.name));
  }
  diagnosis::LogFacts facts = scan.finish();
  logs::NcclTopology nccl = std::move(facts.nccl);
  diagnosis::LogVerdict verdict = diagnosis::judge_logs(std::move(facts));
  diagnosis::add_nccl(verdict, nccl);
  TRY(add_reports(verdict, evidence));
  base::Language language = view::choose_language([](const char* name) { return os::environment_value(name); });
  size_t columns = std::clamp(view::terminal_columns(STDOUT_FILENO), kNarrowest, kWidest);
  std::string out = json ? base::to_text(view::log_json(verdict, notes), 2) + "\n" : view::log_report(verdict, notes, language, columns);
  std::fwrite(out.data(), 1, out.size(), stdout);
  return verdict.cause ? 0 : kNoCause;
}

}  // namespace phalanx::cli
