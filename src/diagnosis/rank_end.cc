#include "diagnosis/rank_end.h"

#include <signal.h>
#include <sys/wait.h>

#include <initializer_list>
#include <optional>

#include <fmt/format.h>

#include "base/json.h"
#include "base/text.h"
#include "codes/values.h"
#include "diagnosis/logs/scan.h"
#include "os/process.h"

namespace phalanx::diagnosis {
namespace {

constexpr size_t kMostEvidence = 300;  // bytes

// A shell or a launcher in between returns 128 + signal.
std::optional<int> signal_of(int status) {
  if (WIFSIGNALED(status)) return WTERMSIG(status);
  int code = WEXITSTATUS(status);
  for (int s : {SIGKILL, SIGSEGV, SIGABRT, SIGBUS, SIGTERM, SIGFPE, SIGILL})
    if (code == 128 + s) return s;
  return std::nullopt;
}

std::string one_line(std::string_view text) {
  std::string_view line = base::trim(text);
  return std::string(line.substr(0, std::min(line.find('\n'), kMostEvidence)));
}

std::string line_with(std::string_view text, std::string_view part) {
  for (std::string_view line : base::split_lines(text))
    if (line.find(part) != std::string_view::npos) return one_line(line);
  return "";
}

using Sign = wire::ExitSign::Kind;

const wire::ExitSign* first_of(const RankEnd& end, std::initializer_list<Sign> kinds) {
  for (Sign kind : kinds)
    for (const wire::ExitSign& sign : end.signs)
      if (sign.kind == kind) return &sign;
  return nullptr;
}

// What the kernel killed for memory, if it did.
std::optional<EndReading> memory(const RankEnd& end) {
  if (const wire::ExitSign* sign = first_of(end, {Sign::kCgroupKill, Sign::kKernelCgroupKill}))
    return EndReading{"RUN-OOM-CGROUP", false, one_line(sign->text), ""};
  if (const wire::ExitSign* sign = first_of(end, {Sign::kKernelKill})) return EndReading{"RUN-OOM-HOST", false, one_line(sign->text), ""};
  return std::nullopt;
}

// What the end of its stderr says. A root beats a symptom, a symptom a consequence; of equals the exception that ended it, which is the
// last.
std::optional<LogEvent> said(std::string_view last_words) {
  if (base::trim(last_words).empty()) return std::nullopt;
  static LogScan scan;  // its patterns are compiled once
  scan.begin_file({});
  scan.feed(last_words);
  scan.end_file();
  LogFacts facts = scan.finish();
  std::optional<LogEvent> best;
  for (LogEvent& event : facts.events) {
    Role role = event.signature->role;
    if (role != Role::kRoot && role != Role::kSymptom && role != Role::kCascade) continue;
    if (!best || role < best->signature->role || (role == best->signature->role && event.traceback_line >= best->traceback_line))
      best = std::move(event);
  }
  return best;
}

std::string_view last_line(std::string_view text) {
  std::string_view said = base::trim(text);
  size_t newline = said.rfind('\n');
  return newline == std::string_view::npos ? said : said.substr(newline + 1);
}

EndReading of_event(const LogEvent& event) {
  bool victim = event.signature->role != Role::kRoot;
  // Whoever is asked about a victim is told how it ended; what followed from what is for the verdict of the run.
  return {victim ? "RUN-EXCEPTION" : event.signature->code, victim, one_line(event.text), event.where,
          event.signature->role == Role::kSymptom};
}

// A GPU that failed explains whatever its rank said of it.
std::optional<EndReading> gpu_failure(const RankEnd& end) {
  const wire::ExitSign* sign = first_of(end, {Sign::kGpuFailure});
  std::optional<LogEvent> event = sign ? said(sign->text) : std::nullopt;
  if (!event || event->signature->role != Role::kRoot) return std::nullopt;
  return EndReading{event->signature->code, false, one_line(sign->text), ""};
}

EndReading by_signal(int number, const RankEnd& end) {
  EndReading reading;
  codes::ValueRow row = codes::values("signals").find(os::signal_name(number));
  reading.code = row.empty() ? "RUN-TERMINATED" : row[1];
  if (number == SIGKILL)
    if (std::optional<EndReading> killed = memory(end)) return *killed;
  if (!end.signs.empty()) reading.evidence = one_line(end.signs.front().text);
  if (number != SIGABRT) return reading;
  if (std::optional<LogEvent> event = said(end.last_words)) {
    reading = of_event(*event);
    if (reading.code == "RUN-EXCEPTION") reading.code = "RUN-ABORTED";
  }
  for (std::string_view mark : {"what():", "terminate called", "Assertion", "Check failed"})
    if (reading.evidence.empty()) reading.evidence = line_with(end.last_words, mark);
  return reading;
}

}  // namespace

std::string error_file_message(std::string_view text) {
  base::Result<base::Json> json = base::parse_json(text);
  if (text.empty() || !json.ok() || !json->is_object()) return "";
  if (auto plain = base::get_string(*json, "message")) return *plain;
  auto it = json->find("message");
  return it == json->end() ? "" : base::get_string(*it, "message").value_or("");
}

EndReading read_end(const RankEnd& end) {
  if (std::optional<EndReading> gpu = gpu_failure(end)) return *gpu;
  if (std::optional<int> number = signal_of(end.status)) return by_signal(*number, end);
  EndReading reading{"RUN-EXIT-CODE", false, one_line(last_line(end.last_words)), ""};
  if (std::optional<LogEvent> event = said(end.last_words)) reading = of_event(*event);
  if (std::string message = error_file_message(end.error_file); !message.empty()) {
    if (reading.code == "RUN-EXIT-CODE") reading.code = "RUN-EXCEPTION";
    reading.evidence = one_line(message);
  }
  bool child_killed = reading.evidence.find("killed by signal") != std::string::npos ||
                      reading.evidence.find("exited unexpectedly") != std::string::npos ||
                      reading.evidence.find("died with <Signals.SIGKILL") != std::string::npos;
  if (child_killed)
    if (std::optional<EndReading> killed = memory(end)) return *killed;
  return reading;
}

}  // namespace phalanx::diagnosis
