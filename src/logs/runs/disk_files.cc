#include "logs/runs/disk_files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/json.h"
#include "base/text.h"
#include "logs/runs/log_times.h"
#include "os/clock.h"
#include "os/files.h"

namespace phalanx::logs {
namespace {

std::string mark_of(Form form, bool line_open, uint64_t bytes, const std::string& why) {
  std::string mark = line_open ? "\n" : "";
  if (form == Form::kText) return mark + fmt::format("[phalanx: {} of this log were lost here: {}]\n", base::format_bytes(bytes), why);
  return mark + base::to_text({{"v", 1}, {"t", os::iso_time(os::wall_now_ns())}, {"event", "lost"}, {"bytes", bytes}, {"why", why}}) + "\n";
}

// Bytes until the log is turned, at the end of a line.
size_t until_turn(uint64_t left, std::string_view bytes) {
  if (bytes.size() < left) return bytes.size();
  const size_t end = bytes.find('\n', left == 0 ? 0 : static_cast<size_t>(left) - 1);
  return end == std::string_view::npos ? bytes.size() : end + 1;
}

uint64_t size_of(const std::string& path) {
  struct stat s{};
  return ::stat(path.c_str(), &s) == 0 ? static_cast<uint64_t>(s.st_size) : 0;
}

}  // namespace

FileId DiskFiles::log(const std::string& path, Form form, uint64_t most_bytes) {
  logs_.push_back({});
  logs_.back().path = path;
  logs_.back().form = form;
  logs_.back().most = most_bytes;
  return static_cast<FileId>(logs_.size() - 1);
}

std::string DiskFiles::at(const std::string& path) const {
  const bool below = !here_.empty() && path.size() > here_.size() && path.starts_with(here_) && path[here_.size()] == '/';
  return below ? "." + path.substr(here_.size()) : path;
}

bool DiskFiles::open(Log& log) {
  const std::string path = at(log.path);
  auto open_it = [&] { return os::Fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY | O_NOFOLLOW, 0600)); };
  log.size = size_of(path);
  log.fd = open_it();
  if (log.fd.valid() || (errno != EMFILE && errno != ENFILE)) return log.fd.valid();
  close_all();  // more ranks than descriptors: the logs that are written now are opened again
  log.fd = open_it();
  return log.fd.valid();
}

void DiskFiles::close_all() {
  for (Log& log : logs_) {
    log.fd.reset();
    log.times.reset();
  }
}

// A log without its times is still a log: no failure here is told.
void DiskFiles::put_times(Log& log, uint64_t gone, std::span<const TimeMark> times) {
  const std::string path = at(times_path(log.path));
  if (!log.times.valid()) {
    log.times = os::Fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY | O_NOFOLLOW, 0600));
    log.times_size = size_of(path);
  }
  std::string lines;
  for (const TimeMark& time : times) lines += time_line({log.size + time.at - gone, time.ms});
  if (!log.times.valid() || log.times_size + lines.size() > log.size + kLeastTimes) return;
  const os::IoStep step = os::write_step(log.times.get(), lines.data(), lines.size());
  if (step.kind == os::IoStep::kBytes) log.times_size += step.bytes;
}

void DiskFiles::append_timed(FileId id, std::string_view bytes, std::span<const TimeMark> times) {
  Log& log = logs_[id];
  if (bytes.empty()) return;
  if (!log.fd.valid() && !open(log)) return failed(log, std::strerror(errno), bytes.size());
  if (log.unmarked > 0 && !put_mark(log)) return failed(log, log.why, bytes.size());
  uint64_t gone = 0;  // of the bytes, in files before
  while (!bytes.empty()) {
    if (log.most > 0 && log.size >= log.most / 2 && !log.line_open) turn(log);
    if (!log.fd.valid() && !open(log)) return failed(log, std::strerror(errno), bytes.size());
    const size_t piece = log.most == 0 ? bytes.size() : until_turn(log.most / 2 - std::min(log.size, log.most / 2), bytes);
    const size_t timed = static_cast<size_t>(
        std::find_if(times.begin(), times.end(), [&](const TimeMark& time) { return time.at >= gone + piece; }) - times.begin());
    if (timed > 0) put_times(log, gone, times.first(timed));
    times = times.subspan(timed);
    const os::IoStep step = os::write_step(log.fd.get(), bytes.data(), piece);
    if (step.kind != os::IoStep::kBytes || step.bytes == 0)
      return failed(log, std::strerror(step.kind == os::IoStep::kError ? step.error_number : EIO), bytes.size());
    log.line_open = bytes[step.bytes - 1] != '\n';
    log.size += step.bytes;
    gone += step.bytes;
    bytes.remove_prefix(step.bytes);
  }
}

// The file becomes the one before, which is removed. Where that cannot be, it goes on growing.
void DiskFiles::turn(Log& log) {
  const std::string before = log.path + ".1", name = before.substr(before.rfind('/') + 1);
  const uint64_t removed = size_of(at(before));
  if (::rename(at(log.path).c_str(), at(before).c_str()) != 0) return;
  log.times.reset();
  if (log.form == Form::kText && ::rename(at(times_path(log.path)).c_str(), at(times_path(log.path) + ".1").c_str()) != 0)
    ::unlink(at(times_path(log.path) + ".1").c_str());
  log.fd.reset();
  if (!open(log)) return;
  log.removed += removed;
  const std::string mark = log.removed == 0 ? fmt::format("[phalanx: the earlier part of this log is in {}]\n", name)
                                            : fmt::format("[phalanx: {} of this log were removed; it continues after {}]\n",
                                                          base::format_bytes(log.removed), name);
  const os::IoStep step = os::write_step(log.fd.get(), mark.data(), mark.size());
  if (step.kind == os::IoStep::kBytes) log.size += step.bytes;
}

// False while writing still fails.
bool DiskFiles::put_mark(Log& log) {
  if (!log.fd.valid() && !open(log)) return false;
  const std::string mark = mark_of(log.form, log.line_open, log.unmarked, log.why);
  const os::IoStep step = os::write_step(log.fd.get(), mark.data(), mark.size());
  if (step.kind != os::IoStep::kBytes) return false;
  log.size += step.bytes;
  log.line_open = step.bytes < mark.size();
  if (log.line_open) return false;
  log.unmarked = 0;
  return true;
}

void DiskFiles::failed(Log& log, const std::string& why, size_t bytes) {
  log.why = why;
  log.unmarked += bytes;
  lost_bytes_ += bytes;
  if (log.warned) return;
  log.warned = true;
  if (warn_) warn_(fmt::format("{} is incomplete from here on: {}", log.path, why));
}

void DiskFiles::missing(FileId id, uint64_t bytes, const std::string& why) {
  logs_[id].unmarked += bytes;
  logs_[id].why = why;
}

void DiskFiles::mark() {
  for (Log& log : logs_)
    if (log.unmarked > 0) put_mark(log);
}

void DiskFiles::replace(const std::string& path, std::string_view content) {
  for (Log& log : logs_)
    if (log.path == path) log.fd.reset();  // the next append is to the new file
  const std::string place = at(path);
  auto write = [&] {
    base::Status made = os::make_folders(place.substr(0, place.rfind('/')));
    return made.ok() ? os::write_file_atomic(place, content, 0600) : std::move(made);
  };
  base::Status written = write();
  if (!written.ok() && !reserve_.empty() && ::unlink(at(reserve_).c_str()) == 0) written = write();
  if (!written.ok() && warn_) warn_(base::replace_all(written.error().message, place, path));
}

void DiskFiles::remove(const std::string& path) { ::unlink(at(path).c_str()); }

}  // namespace phalanx::logs
