#include "cli/records/log_reader.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <memory>

#include <fmt/format.h>

#include "base/text.h"
#include "base/try.h"
#include "logs/runs/run_list.h"
#include "os/clock.h"
#include "os/files.h"

namespace phalanx::cli {
namespace {

constexpr size_t kBlock = 64 << 10;
constexpr size_t kMostHalf = 1 << 20;  // of a line without an end; longer ones are shown in pieces
constexpr std::chrono::hours kPatience{1};
constexpr size_t kTimeWidth = sizeof("2026-11-21T07:31:02.123Z") - 1;

// Goes to where the last `lines` lines begin; how many there are fewer. A last line without an end counts.
base::Result<int64_t> seek_tail(const os::Fd& file, const std::string& path, int64_t lines) {
  TRY_ASSIGN(const struct stat s, os::stat_of(file, path));
  const int fd = file.get();
  if (lines == 0) {
    ::lseek(fd, 0, SEEK_END);
    return int64_t{0};
  }
  auto block = std::make_unique_for_overwrite<char[]>(kBlock);
  int64_t seen = 0;
  for (off_t end = s.st_size; end > 0;) {
    off_t begin = std::max<off_t>(0, end - static_cast<off_t>(kBlock));
    TRY_ASSIGN(const size_t n, os::read_at(file, path, begin, block.get(), static_cast<size_t>(end - begin)));
    if (n == 0) break;
    for (ssize_t i = static_cast<ssize_t>(n) - 1; i >= 0; --i) {
      bool ends_file = begin + i == s.st_size - 1;
      if (block[static_cast<size_t>(i)] != '\n' || ends_file || ++seen < lines) continue;
      ::lseek(fd, begin + i + 1, SEEK_SET);
      return int64_t{0};
    }
    end = begin;
  }
  return lines - seen - (s.st_size > 0 ? 1 : 0);
}

base::Result<bool> same_file(const os::Fd& a, const os::Fd& b, const std::string& path) {
  TRY_ASSIGN(const struct stat one, os::stat_of(a, path));
  TRY_ASSIGN(const struct stat other, os::stat_of(b, path));
  return one.st_ino == other.st_ino && one.st_dev == other.st_dev;
}

}  // namespace

LogReader::LogReader(view::Output& out, std::string folder, std::vector<std::string> hosts, std::vector<bool> wanted,
                     view::Controls controls, Options options)
    : out_(out), folder_(std::move(folder)), controls_(controls), options_(options) {
  size_t host_number = 0;
  for (size_t r = 0; r < hosts.size(); ++r) {
    if (r > 0 && hosts[r] != hosts[r - 1]) ++host_number;
    if (!wanted[r]) continue;
    Log log;
    log.rank = static_cast<int>(r);
    log.prefix = view::rank_prefix(hosts[r], log.rank, host_number, controls.colours, false);
    logs_.push_back(std::move(log));
  }
}

base::Result<std::optional<os::Fd>> LogReader::open_file(const Log& log, const char* ending) const {
  return os::open_regular_below(folder_, fmt::format("ranks/{}.log{}", log.rank, ending));
}

std::string LogReader::path_of(const Log& log, const char* ending) const {
  return fmt::format("{}/ranks/{}.log{}", folder_, log.rank, ending);
}

// The times are those of the file that lies beside it now: of a log that is turned at this moment, a line may show the time of another.
LogReader::File LogReader::take(const Log& log, os::Fd file, const char* ending) const {
  File taken;
  taken.shown = static_cast<uint64_t>(std::max<off_t>(0, ::lseek(file.get(), 0, SEEK_CUR)));
  taken.fd = std::move(file);
  if (!options_.times) return taken;
  base::Result<std::optional<os::Fd>> times = os::open_regular_below(folder_, fmt::format("ranks/{}.times{}", log.rank, ending));
  if (times.ok() && *times) taken.times = logs::LogTimes(**std::move(times));
  return taken;
}

base::Status LogReader::open(Log& log) {
  const std::string path = path_of(log, ""), path_before = path_of(log, ".1");
  TRY_ASSIGN(std::optional<os::Fd> now, open_file(log, ""));
  if (!now) return base::ok();
  int64_t missing = 1;
  if (options_.tail) { TRY_ASSIGN(missing, seek_tail(*now, path, *options_.tail)); }
  std::optional<os::Fd> before;
  if (missing > 0) { TRY_ASSIGN(before, open_file(log, ".1")); }
  if (before) {
    TRY_ASSIGN(const bool same, same_file(*before, *now, path));
    if (same) before.reset();
  }
  if (before && options_.tail) TRY(seek_tail(*before, path_before, missing));
  if (before) log.files.push_back(take(log, *std::move(before), ".1"));
  log.files.push_back(take(log, *std::move(now), ""));
  return base::ok();
}

// At the end of the file that we have: it may have become the one before, or even have been removed since.
base::Status LogReader::follow_turn(Log& log) {
  const std::string path = path_of(log, "");
  TRY_ASSIGN(std::optional<os::Fd> now, open_file(log, ""));
  if (!now) return base::ok();
  TRY_ASSIGN(const bool same, same_file(*now, log.files.back().fd, path));
  if (same) return base::ok();
  TRY_ASSIGN(std::optional<os::Fd> before, open_file(log, ".1"));
  if (before) {
    TRY_ASSIGN(const bool ours, same_file(*before, log.files.back().fd, path));
    if (!ours) log.files.push_back(take(log, *std::move(before), ".1"));
  }
  log.files.push_back(take(log, *std::move(now), ""));
  return base::ok();
}

void LogReader::read() {
  for (Log& log : logs_) {
    log.trouble.reset();
    base::Status done = log.files.empty() ? open(log) : base::ok();
    if (done.ok() && !log.files.empty()) done = read(log);
    if (!done.ok()) log.trouble = std::move(done).error();
    if (stopped()) return;
  }
  options_.tail.reset();  // a log that comes later is shown from its beginning
  out_.pump();
}

std::optional<base::Error> LogReader::trouble() const {
  for (const Log& log : logs_)
    if (log.trouble) return logs::cannot_read(*log.trouble, fmt::format("the log of rank {}", log.rank), path_of(log, ""));
  return std::nullopt;
}

base::Status LogReader::read(Log& log) {
  auto block = std::make_unique_for_overwrite<char[]>(kBlock);
  for (;;) {
    os::IoStep step = os::read_step(log.files.front().fd.get(), block.get(), kBlock);
    if (step.kind == os::IoStep::kError) return base::system_error("read", path_of(log, ""), step.error_number);
    if (step.kind != os::IoStep::kBytes) {
      if (log.files.size() == 1) TRY(follow_turn(log));
      if (log.files.size() == 1) return base::ok();
      log.files.erase(log.files.begin());
      continue;
    }
    log.half.append(block.get(), step.bytes);
    size_t end = log.half.rfind('\n');
    if (end == std::string::npos && log.half.size() < kMostHalf) continue;
    end = end == std::string::npos ? log.half.size() : end + 1;
    show(log, std::string_view(log.half).substr(0, end));
    log.half.erase(0, end);
    if (stopped()) return base::ok();
  }
}

// Each restart begins with a line of its own (cli/records/record.cc).
bool LogReader::is_wanted(Log& log, std::string_view line) const {
  constexpr std::string_view kRestart = "--- phalanx: restart ";
  if (!options_.attempt) return true;
  if (line.starts_with(kRestart)) {
    const std::string_view number = line.substr(kRestart.size(), line.find(',') - std::min(line.find(','), kRestart.size()));
    if (auto restart = base::parse_int(number, 1, 1'000'000); restart.ok()) log.attempt = *restart;
  }
  return log.attempt == *options_.attempt;
}

void LogReader::show_timed(Log& log, std::string_view lines) {
  File& file = log.files.front();
  while (!lines.empty()) {
    const std::string_view line = lines.substr(0, std::min(lines.find('\n'), lines.size() - 1) + 1);
    lines.remove_prefix(line.size());
    const uint64_t at = file.shown;
    file.shown += line.size();
    if (!is_wanted(log, line)) continue;
    silent_ = false;
    const std::optional<int64_t> ms = options_.times ? file.times.ms_at(at) : std::nullopt;
    log.untimed = log.untimed || !ms;
    const std::string time = !options_.times ? "" : (ms ? os::iso_time(*ms * 1'000'000) : std::string(kTimeWidth, ' ')) + " ";
    view::append_prefixed(out_.buffer(), time + log.prefix, line, controls_);
  }
}

void LogReader::show(Log& log, std::string_view lines) {
  if (options_.times || options_.attempt) {
    show_timed(log, lines);
  } else {
    silent_ = silent_ && lines.empty();
    view::append_prefixed(out_.buffer(), log.prefix, lines, controls_);
  }
  out_.pump();
  while (!out_.wants_more() && !out_.closed()) out_.drain(kPatience);
}

std::optional<int> LogReader::rank_without_times() const {
  for (const Log& log : logs_)
    if (log.untimed) return log.rank;
  return std::nullopt;
}

void LogReader::finish() {
  for (Log& log : logs_) {
    if (!log.half.empty() && !log.files.empty()) show(log, log.half);
    log.half.clear();
  }
  while (out_.pending() > 0 && !out_.closed()) out_.drain(kPatience);
}

}  // namespace phalanx::cli
