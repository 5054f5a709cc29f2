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

// Where the last `lines` lines begin. A last line without an end counts.
off_t tail_begins(int fd, int64_t lines) {
  struct stat s{};
  if (::fstat(fd, &s) != 0 || lines == 0) return std::max<off_t>(s.st_size, 0);
  auto block = std::make_unique_for_overwrite<char[]>(kBlock);
  int64_t seen = 0;
  for (off_t end = s.st_size; end > 0;) {
    off_t begin = std::max<off_t>(0, end - static_cast<off_t>(kBlock));
    ssize_t n = ::pread(fd, block.get(), static_cast<size_t>(end - begin), begin);
    if (n <= 0) return begin;
    for (ssize_t i = n - 1; i >= 0; --i) {
      bool ends_file = begin + i == s.st_size - 1;
      if (block[static_cast<size_t>(i)] == '\n' && !ends_file && ++seen == lines) return begin + i + 1;
    }
    end = begin;
  }
  return 0;
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

void LogReader::open(Log& log) {
  std::string path = fmt::format("{}/ranks/{}.log", folder_, log.rank);
  if (base::Result<os::Fd> file = os::open_regular(path); file.ok()) log.file = std::move(file).value();
  if (log.file.valid() && tail_) ::lseek(log.file.get(), tail_begins(log.file.get(), *tail_), SEEK_SET);
}

void LogReader::read() {
  for (Log& log : logs_) {
    if (!log.file.valid()) open(log);
    if (log.file.valid()) read(log);
    if (stopped()) return;
  }
  tail_.reset();  // a log that comes later is shown from its beginning
  out_.pump();
}

void LogReader::read(Log& log) {
  auto block = std::make_unique_for_overwrite<char[]>(kBlock);
  for (;;) {
    os::IoStep step = os::read_step(log.file.get(), block.get(), kBlock);
    if (step.kind != os::IoStep::kBytes) return;
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
