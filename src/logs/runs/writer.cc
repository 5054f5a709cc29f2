#include "logs/runs/writer.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include <fmt/format.h>

#include "base/json.h"
#include "base/try.h"
#include "logs/runs/writer_words.h"
#include "os/apart.h"
#include "os/clock.h"

namespace phalanx::logs {
namespace {

constexpr size_t kPieceBytes = 256 << 10;  // commands are gathered into pieces of about this size
constexpr size_t kReadBytes = 16 << 10;

os::IoStep send_some(int socket, std::string_view bytes) {
  const ssize_t n = ::send(socket, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  if (n >= 0) return {os::IoStep::kBytes, static_cast<size_t>(n)};
  if (errno == EAGAIN || errno == EINTR) return {os::IoStep::kWouldBlock};
  return {os::IoStep::kError, 0, errno};
}

}  // namespace

base::Result<std::unique_ptr<Writer>> Writer::start(os::Loop& loop, Options options, Handlers handlers) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return base::system_error("socketpair", "phalanx-logs");
  os::Fd ours(ends[0]), theirs(ends[1]);
  std::vector<int> keep{theirs.get()};
  if (options.lock.valid()) keep.push_back(options.lock.get());
  if (options.folder.valid()) keep.push_back(options.folder.get());
  TRY(os::fork_apart("phalanx-logs", keep, [&] {
    const bool inside = options.folder.valid() && ::fchdir(options.folder.get()) == 0;
    write_what_comes(theirs.get(), options.reserve, inside ? options.folder_path : "");
  }));
  std::unique_ptr<Writer> writer(new Writer(loop, std::move(ours), options.queue_bytes, std::move(handlers)));
  writer->watch();
  return writer;
}

Writer::Writer(os::Loop& loop, os::Fd socket, size_t queue_bytes, Handlers handlers)
    : loop_(loop), socket_(std::move(socket)), bound_(queue_bytes), handlers_(std::move(handlers)) {}

Writer::~Writer() {
  if (watch_) loop_.unwatch(watch_);
  for (FileId id = 0; id < logs_.size(); ++id) tell_dropped(id);
  pump();
  if (queue_.empty() || !socket_.valid()) return;
  auto feed = [this] {
    std::string_view first = std::string_view(queue_.front()).substr(written_);
    if (!os::write_all(socket_.get(), first, "phalanx-logs").ok()) return;
    for (size_t i = 1; i < queue_.size(); ++i)
      if (!os::write_all(socket_.get(), queue_[i], "phalanx-logs").ok()) return;
  };
  (void)os::fork_apart("phalanx-logs", {socket_.get()}, feed);
}

void Writer::watch() {
  const uint32_t events = queue_.empty() ? EPOLLIN : EPOLLIN | EPOLLOUT;
  if (watch_) return loop_.rewatch(watch_, events);
  auto watched = loop_.watch(socket_.get(), events, [this](uint32_t) {
    hear();
    pump();
    caught_up();
  });
  if (watched.ok()) watch_ = *watched;
}

FileId Writer::log(const std::string& path, Form form, uint64_t most_bytes) {
  logs_.push_back({form, 0});
  const std::string how = static_cast<char>(form) + std::to_string(most_bytes);
  const FileId id = static_cast<FileId>(logs_.size() - 1);
  put(static_cast<uint32_t>(Command::kLog), id, path, how);
  return id;
}

void Writer::append_timed(FileId id, std::string_view bytes, std::span<const TimeMark> times) {
  if (bytes.empty()) return;
  const bool text = logs_[id].form == Form::kText;
  const bool fits = queued_ + bytes.size() <= (text ? bound_ : bound_ + kReserveBytes);
  if (!socket_.valid() || !fits || (dropping_ && text)) return drop(id, bytes.size());
  tell_dropped(id);
  put(static_cast<uint32_t>(Command::kAppend), id, {reinterpret_cast<const char*>(times.data()), times.size_bytes()}, bytes);
}

void Writer::replace(const std::string& path, std::string_view content) {
  if (socket_.valid() && queued_ + content.size() <= bound_ + kReserveBytes)
    return put(static_cast<uint32_t>(Command::kReplace), 0, path, content);
  dropped_bytes_ += content.size();
  if (handlers_.warn) handlers_.warn(fmt::format("{} was not written: its disk accepts no data", path));
}

void Writer::remove(const std::string& path) { put(static_cast<uint32_t>(Command::kRemove), 0, path, {}); }

void Writer::drop(FileId id, size_t bytes) {
  logs_[id].dropped += bytes;
  if (!dropping_) {
    dropping_ = true;
    dropped_before_ = dropped_bytes_;
    if (handlers_.behind) handlers_.behind();
  }
  dropped_bytes_ += bytes;
}

void Writer::tell_dropped(FileId id) {
  if (logs_[id].dropped == 0) return;
  put(static_cast<uint32_t>(Command::kMissing), id, {}, std::to_string(logs_[id].dropped));
  logs_[id].dropped = 0;
}

void Writer::put(uint32_t kind, uint32_t file, std::string_view head, std::string_view body) {
  if (!socket_.valid()) return;
  const CommandHeader header{kind, file, static_cast<uint32_t>(head.size()), static_cast<uint32_t>(head.size() + body.size())};
  const bool idle = queue_.empty();
  if (idle || queue_.back().size() >= kPieceBytes) queue_.emplace_back();
  std::string& piece = queue_.back();
  const size_t before = piece.size();
  piece.append(reinterpret_cast<const char*>(&header), sizeof(header));
  piece.append(head);
  piece.append(body);
  queued_ += piece.size() - before;
  // While there is something to wait for, the loop does it: what comes meanwhile is gathered.
  if (idle) pump();
}

void Writer::pump() {
  while (socket_.valid() && !queue_.empty()) {
    std::string& piece = queue_.front();
    const os::IoStep step = send_some(socket_.get(), std::string_view(piece).substr(written_));
    if (step.kind == os::IoStep::kWouldBlock) break;
    if (step.kind != os::IoStep::kBytes) return broken();
    written_ += step.bytes;
    queued_ -= step.bytes;
    if (written_ < piece.size()) continue;
    queue_.pop_front();
    written_ = 0;
  }
  if (socket_.valid()) watch();
}

void Writer::caught_up() {
  if (!dropping_ || queued_ > bound_ / 2 || !socket_.valid()) return;
  dropping_ = false;
  for (FileId id = 0; id < logs_.size(); ++id) tell_dropped(id);
  if (handlers_.abreast) handlers_.abreast(dropped_bytes_ - dropped_before_);
}

// The process is gone, which only SIGKILL or a crash can do.
void Writer::broken() {
  if (watch_) loop_.unwatch(watch_);
  watch_ = 0;
  socket_.reset();
  dropped_bytes_ += queued_;
  queue_.clear();
  queued_ = written_ = 0;
  if (handlers_.warn)
    handlers_.warn("phalanx-logs, the process that writes the logs of this run, was killed: the logs are incomplete from here on");
}

void Writer::hear() {
  char buffer[kReadBytes];
  while (socket_.valid()) {
    const ssize_t n = ::recv(socket_.get(), buffer, sizeof(buffer), MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (n <= 0) return broken();
    heard_.append(buffer, static_cast<size_t>(n));
    for (size_t end; (end = heard_.find('\n')) != std::string::npos; heard_.erase(0, end + 1)) take_word(heard_.substr(0, end));
  }
}

void Writer::take_word(const std::string& line) {
  base::Result<base::Json> word = base::parse_json(line);
  if (!word.ok() || !word->is_object()) return;
  if (auto warning = base::get_string(*word, "warn"); warning && handlers_.warn) handlers_.warn(*warning);
  if (auto synced = base::get_int(*word, "synced")) answered_ = std::max(answered_, static_cast<uint64_t>(*synced));
  if (auto lost = base::get_int(*word, "lost")) disk_lost_bytes_ = static_cast<uint64_t>(*lost);
}

bool Writer::settle(std::chrono::milliseconds most) {
  const os::Mono end = os::mono_now() + most;
  for (FileId id = 0; id < logs_.size(); ++id) tell_dropped(id);
  put(static_cast<uint32_t>(Command::kSync), 0, {}, std::to_string(++asked_));
  for (;;) {
    hear();
    pump();
    if (answered_ >= asked_) return true;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - os::mono_now());
    if (!socket_.valid() || left.count() <= 0) return false;
    pollfd ready{socket_.get(), static_cast<short>(queue_.empty() ? POLLIN : POLLIN | POLLOUT), 0};
    ::poll(&ready, 1, static_cast<int>(std::min<int64_t>(left.count(), 60'000)));
  }
}

}  // namespace phalanx::logs
