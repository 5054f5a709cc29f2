// report: one archive of a run, without its secrets, and with a page to look at (docs/formats/report.md).
#include <fcntl.h>

#include <algorithm>
#include <cstdio>

#include <fmt/format.h>

#include "base/gzip.h"
#include "base/tar.h"
#include "base/text.h"
#include "base/try.h"
#include "cli/flags/verbs.h"
#include "cli/records/log_excerpt.h"
#include "cli/records/run_story.h"
#include "cli/records/runs.h"
#include "job/control/client.h"
#include "logs/passed_values.h"
#include "logs/redact.h"
#include "os/clock.h"
#include "os/fd.h"
#include "os/files.h"

namespace phalanx::cli {
namespace {

using base::Json;

constexpr os::milliseconds kAnswer{1000};
constexpr size_t kMostLogs = 64 << 20;  // of all logs together
constexpr size_t kMostLog = 1 << 20;    // of one; less where there are many ranks
constexpr size_t kLeastLog = 16 << 10;
constexpr size_t kMostEvents = 8 << 20;
constexpr size_t kMostMasks = 64 << 10;
constexpr size_t kMostFacts = 64;  // hosts whose facts are packed
constexpr size_t kMostFactsOfHost = 8 << 20;

void left_out(const base::Error& error, const logs::Run& run, const std::string& name) {
  base::Error said = logs::cannot_read(error, name, run.path);
  said.message = fmt::format("{}, which is omitted from the report", said.message);
  warn_of(said);
}

class Archive {
 public:
  explicit Archive(const logs::Run& run) : run_(run), tar_(os::wall_now_ns() / 1'000'000'000), top_("phalanx-report-" + run.id + "/") {
    masks_ = logs::PassedValues::read(read("masks.json", kMostMasks));
  }

  void add(const std::string& name, std::string_view text) { PHALANX_CHECK(tar_.add(top_ + name, text)); }
  void add_text(const std::string& name, const std::string& text) {
    if (!text.empty()) add(name, clean(logs::redact(clean(text), &redacted_)));
  }
  void add_json(const std::string& name, const Json& json) {
    add(name, clean(base::to_text(logs::redact_json(json, &redacted_), 2)) + "\n");
  }
  // Line by line: what is not JSON is cleaned as text.
  void add_lines(const std::string& name, size_t most) {
    std::string text = read(name, most), out;
    for (std::string_view line : base::split_lines(text)) {
      base::Result<Json> json = base::parse_json(line);
      out += (json.ok() ? base::to_text(logs::redact_json(*json, &redacted_)) : logs::redact(line, &redacted_)) + "\n";
    }
    if (!out.empty()) add(name, clean(out));
  }
  // Without the values that were passed on. Before and after redact(): it takes escape sequences off, and cuts what it knows.
  std::string clean(std::string_view text) { return masks_.mask(text, &redacted_); }
  void add_logs(size_t ranks) {
    size_t each = std::clamp(kMostLogs / std::max<size_t>(1, ranks), kLeastLog, kMostLog), sum = 0;
    for (size_t r = 0; r < ranks && sum < kMostLogs; ++r) {
      std::string name = fmt::format("ranks/{}.log", r);
      std::string text = read(name, each);
      sum += text.size();
      add_text(name, text);
    }
  }
  void add_facts() {
    for (size_t h = 0; h < kMostFacts; ++h) {
      std::string name = fmt::format("facts/{}.json", h);
      base::Result<Json> json = base::parse_json(read(name, kMostFactsOfHost));
      if (json.ok()) add_json(name, *json);
    }
  }
  void add_log(const std::string& name, size_t most) { add_text(name, read(name, most)); }
  size_t& redacted() { return redacted_; }
  std::string finish() && { return std::move(tar_).finish(); }

 private:
  // What cannot be read is left out, and said.
  std::string read(const std::string& name, size_t most) {
    base::Result<std::string> text = excerpt_of(run_.path, name, most);
    if (text.ok()) return std::move(text).value();
    left_out(text.error(), run_, name);
    return "";
  }

  const logs::Run& run_;
  base::TarWriter tar_;
  std::string top_;
  logs::PassedValues masks_;
  size_t redacted_ = 0;
};

// The same record, events and status, cleaned before anything is told from them. of_archive: secrets redacted in the files beside it.
std::string page_of(const logs::Run& run, const Json& status, size_t of_archive) {
  logs::Run clean = run;
  size_t redacted = 0;
  clean.record = logs::redact_json(run.record, &redacted);
  std::vector<RunEvent> events;
  if (base::Result<std::vector<RunEvent>> read = read_events(run.path); read.ok()) events = std::move(read).value();
  else left_out(read.error(), run, "events.jsonl");
  std::vector<logs::ProgressPoint> points;
  if (base::Result<std::vector<logs::ProgressPoint>> read = progress_of(run); read.ok()) points = std::move(read).value();
  else left_out(read.error(), run, "progress.jsonl");
  for (RunEvent& event : events) event.fields = logs::redact_json(event.fields, &redacted);
  base::Language language = language_here();
  return view::story_page(story_of(clean, logs::redact_json(status, &redacted), events, points, language), language, of_archive);
}

std::string pack(const logs::Run& run, const Json& status, size_t& redacted) {
  Archive archive(run);
  archive.add_json("run.json", run.record);
  if (status.is_object()) archive.add_json("status.json", status);
  archive.add_lines("events.jsonl", kMostEvents);
  archive.add_lines("progress.jsonl", logs::kMaxProgressBytes);
  archive.add_log("launcher.log", kMostLog);
  archive.add_logs(host_of_rank(run.record).size());
  archive.add_facts();
  archive.add("report.html", archive.clean(page_of(run, status, archive.redacted())));
  redacted = archive.redacted();
  return std::move(archive).finish();
}

// Never through a link, never over what is there unless it was asked for by name.
base::Status write_new(const std::string& path, std::string_view bytes, bool replace) {
  os::Fd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | (replace ? O_TRUNC : O_EXCL), 0600));
  if (!file.valid()) {
    base::Error error = base::system_error("create", path);
    error.kind = base::ErrorKind::kConfig;
    return std::move(error).with_hint("choose another file with -o");
  }
  return os::write_all(file.get(), bytes, path);
}

}  // namespace

base::Result<int> report_verb(const Invocation& invocation) {
  TRY_ASSIGN(logs::Run run, run_named(invocation));
  Json status = nullptr;
  if (run.life == logs::Life::kAlive) {
    base::Result<Json> answer = job::ask_status(run.path, run.id, kAnswer);
    if (answer.ok()) status = std::move(answer).value();
  }
  std::optional<std::string> file = invocation.value(Flag::kReportFile);
  std::string path = file.value_or("phalanx-report-" + run.id + ".tar.gz");
  size_t redacted = 0;
  std::string archive = pack(run, status, redacted);
  TRY_ASSIGN(std::string bytes, base::gzip(archive));
  TRY(write_new(path, bytes, file.has_value()));
  std::printf("%s\n", path.c_str());
  std::fputs(
      words::tr(language_here(), "phalanx: wrote {} ({}), {} secrets redacted; open its report.html, and review it before you share it\n",
                path, base::format_bytes(bytes.size()), redacted)
          .c_str(),
      stderr);
  return 0;
}

}  // namespace phalanx::cli
