#include "cli/log_reader.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <memory>

#include <fmt/format.h>

#include "os/files.h"

namespace cli {
namespace {

constexpr size_t kBlock = 64 << 10;
constexpr size_t kMostHalf = 1 << 20;  // of a line without an end; longer ones are shown in pieces
constexpr std::chrono::hours kPatience{1};

// Goes to where the last `lines` lines begin; how many there are fewer. A last line without an end counts.
int64_t seek_tail(int fd, int64_t lines) {
  struct stat s{};
  if (::fstat(fd, &s) != 0 || lines == 0) {
    ::lseek(fd, 0, SEEK_END);
    return 0;
  }
  auto block = std::make_unique_for_overwrite<char[]>(kBlock);
  int64_t seen = 0;
  for (off_t end = s.st_size; end > 0;) {
    off_t begin = std::max<off_t>(0, end - static_cast<off_t>(kBlock));
    ssize_t n = ::pread(fd, block.get(), static_cast<size_t>(end - begin), begin);
    if (n <= 0) break;
    for (ssize_t i = n - 1; i >= 0; --i) {
      bool ends_file = begin + i == s.st_size - 1;
      if (block[static_cast<size_t>(i)] != '\n' || ends_file || ++seen < lines) continue;
      ::lseek(fd, begin + i + 1, SEEK_SET);
      return 0;
    }
    end = begin;
  }
  return lines - seen - (s.st_size > 0 ? 1 : 0);
}

bool same_file(const os::Fd& a, const os::Fd& b) {
  struct stat one{}, other{};
  return ::fstat(a.get(), &one) == 0 && ::fstat(b.get(), &other) == 0 && one.st_ino == other.st_ino && one.st_dev == other.st_dev;
}

}  // namespace

LogReader::LogReader(view::Output& out, std::string folder, std::vector<std::string> hosts, std::vector<bool> wanted,
                     std::optional<int64_t> tail, view::Controls controls)
    : out_(out), folder_(std::move(folder)), tail_(tail), controls_(controls) {
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

os::Fd LogReader::open_file(const Log& log, const char* ending) const {
  base::Result<os::Fd> file = os::open_regular_below(folder_, fmt::format("ranks/{}.log{}", log.rank, ending));
  return file.ok() ? std::move(file).value() : os::Fd();
}

void LogReader::open(Log& log) {
  os::Fd now = open_file(log, "");
  if (!now.valid()) return;
  const int64_t missing = tail_ ? seek_tail(now.get(), *tail_) : 1;
  os::Fd before = missing > 0 ? open_file(log, ".1") : os::Fd();
  if (before.valid() && !same_file(before, now)) {
    if (tail_) seek_tail(before.get(), missing);
    log.files.push_back(std::move(before));
  }
  log.files.push_back(std::move(now));
}

// At the end of the file that we have: it may have become the one before, or even have been removed since.
void LogReader::follow_turn(Log& log) {
  os::Fd now = open_file(log, "");
  if (!now.valid() || same_file(now, log.files.back())) return;
  os::Fd before = open_file(log, ".1");
  if (before.valid() && !same_file(before, log.files.back())) log.files.push_back(std::move(before));
  log.files.push_back(std::move(now));
}

void LogReader::read() {
  for (Log& log : logs_) {
    if (log.files.empty()) open(log);
    if (!log.files.empty()) read(log);
    if (stopped()) return;
  }
  tail_.reset();  // a log that comes later is shown from its beginning
  out_.pump();
}

void LogReader::read(Log& log) {
  auto block = std::make_unique_for_overwrite<char[]>(kBlock);
  for (;;) {
    os::IoStep step = os::read_step(log.files.front().get(), block.get(), kBlock);
    if (step.kind != os::IoStep::kBytes) {
      if (log.files.size() == 1) follow_turn(log);
      if (log.files.size() == 1) return;
      log.files.erase(log.files.begin());
      continue;
    }
    log.half.append(block.get(), step.bytes);
    size_t end = log.half.rfind('\n');
    if (end == std::string::npos && log.half.size() < kMostHalf) continue;
    end = end == std::string::npos ? log.half.size() : end + 1;
    show(log, std::string_view(log.half).substr(0, end));
    log.half.erase(0, end);
    if (stopped()) return;
  }
}

void LogReader::show(const Log& log, std::string_view lines) {
  view::append_dressed(out_.buffer(), log.prefix, lines, controls_);
  out_.pump();
  while (!out_.wants_more() && !out_.closed()) out_.drain(kPatience);
}

void LogReader::finish() {
  for (Log& log : logs_) {
    if (!log.half.empty()) show(log, log.half);
    log.half.clear();
  }
  while (out_.pending() > 0 && !out_.closed()) out_.drain(kPatience);
}

}  // namespace cli
