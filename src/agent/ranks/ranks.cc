#include "agent/ranks/ranks.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>

#include <fmt/format.h>

#include "agent/scratch.h"
#include "base/text.h"
#include "os/files.h"

namespace phalanx::agent {
namespace {
constexpr size_t kReadBytes = 128 << 10;
constexpr size_t kErrorFileBytes = 64 << 10;
constexpr size_t kTailBytes = 8 << 10;  // of each stream, kept for the case that the rank fails
constexpr int kLastReads = 64;          // of what a rank that has ended left in a pipe: more than the pipe holds
}  // namespace

Ranks::~Ranks() {
  for (auto& rank : ranks_) {
    for (Pipe& pipe : rank->pipes) close(*rank, pipe);
    if (rank->events_watch) loop_.unwatch(rank->events_watch);
    if (rank->report_watch) loop_.unwatch(rank->report_watch);
    if (rank->patience) loop_.cancel(rank->patience);
  }
  if (stale_timer_) loop_.cancel(stale_timer_);
}

void Ranks::watch(Rank& rank, Pipe& pipe) {
  if (!pipe.fd.valid() || pipe.watch) return;
  base::Result<os::WatchId> watch = loop_.watch(pipe.fd.get(), EPOLLIN, [this, &rank, &pipe](uint32_t) {
    read_once(rank, pipe);
    if (outbox_.full()) pause_reading();
  });
  if (watch.ok()) pipe.watch = *watch;
}

logs::LineSplitter::Sink Ranks::sink(Rank& rank, const Pipe& pipe) {
  return [this, &rank, &pipe, now = os::mono_now().ns](const logs::Chunk& chunk) {
    wire::Output output;
    output.rank = rank.rank;
    output.stream = pipe.stream;
    output.kind = chunk.kind;
    output.at_ns = now;
    output.data = chunk.bytes;
    outbox_.output(output);
    if (chunk.kind != wire::OutputKind::kLines) return;
    std::string& tail = rank.tail[pipe.stream == wire::Stream::kStderr];
    tail.append(chunk.bytes.substr(chunk.bytes.size() - std::min(chunk.bytes.size(), kTailBytes)));
    if (tail.size() > kTailBytes) tail.erase(0, tail.size() - kTailBytes);
  };
}

bool Ranks::read_once(Rank& rank, Pipe& pipe) {
  static const auto buffer = std::make_unique_for_overwrite<char[]>(kReadBytes);  // only pages that are used become memory
  if (!pipe.fd.valid()) return false;
  os::IoStep step = os::read_step(pipe.fd.get(), buffer.get(), kReadBytes);
  if (step.kind == os::IoStep::kBytes) {
    rank.spoke = os::mono_now();
    pipe.splitter.feed(std::string_view(buffer.get(), step.bytes), sink(rank, pipe));
    return true;
  }
  if (step.kind != os::IoStep::kWouldBlock) close(rank, pipe);
  return false;
}

void Ranks::close(Rank& rank, Pipe& pipe) {
  if (!pipe.fd.valid()) return;
  if (pipe.watch) loop_.unwatch(pipe.watch);
  pipe.watch = 0;
  pipe.fd.reset();
  pipe.splitter.finish(sink(rank, pipe));
}

void Ranks::read_progress_file(Rank& rank, const Environment& environment, const std::string& folder, int events) {
  const auto path = environment.find(kProgressFileVariable);
  if (path == environment.end() || path->second.empty()) return;
  auto started = ProgressReader::start(folder, path->second, events);
  if (started.ok()) rank.progress = std::move(started).value();
  else outbox_.output(wire::Trouble{fmt::format("{}; the file is not read", started.error().message)});
}

bool Ranks::reads_for_rank(pid_t group) const {
  return std::any_of(ranks_.begin(), ranks_.end(), [&](auto& r) { return r->progress && r->progress->group() == group; });
}

void Ranks::read_events(Rank& rank) {
  char buffer[4096];
  for (;;) {
    os::IoStep step = os::read_step(rank.events.get(), buffer, sizeof(buffer));
    if (step.kind == os::IoStep::kWouldBlock) break;
    if (step.kind != os::IoStep::kBytes) {
      loop_.unwatch(rank.events_watch);
      rank.events_watch = 0;
      rank.events.reset();
      break;
    }
    rank.event_text.append(buffer, step.bytes);
    if (rank.event_text.size() > (64 << 10)) rank.event_text.clear();  // no line end in sight: not the format
  }
  // Only the latest state matters to the launcher, however many were written at once.
  size_t end = rank.event_text.rfind('\n');
  if (end == std::string::npos) return;
  size_t begin = end == 0 ? std::string::npos : rank.event_text.rfind('\n', end - 1);
  wire::Progress progress;
  progress.rank = rank.rank;
  rank.spoke = os::mono_now();
  progress.at_ns = rank.spoke.ns;
  progress.line = rank.event_text.substr(begin == std::string::npos ? 0 : begin + 1, end - (begin == std::string::npos ? 0 : begin + 1));
  rank.event_text.erase(0, end + 1);
  if (!progress.line.empty() && !outbox_.full()) outbox_.output(progress);
}

bool Ranks::on_exit(pid_t pid, int status) {
  for (auto& rank : ranks_)
    if (rank->progress && rank->progress->group() == pid) rank->progress->reaped();
  auto it = std::find_if(ranks_.begin(), ranks_.end(), [&](auto& r) { return r->pid == pid && !r->exited; });
  if (it == ranks_.end()) return false;
  Rank& rank = **it;
  check_started(rank);  // it may have ended because it could not be started
  if (rank.exited) return true;
  rank.exited = true;
  if (rank.progress) rank.progress->finish();
  if (rank.progress && rank.events_watch) read_events(rank);
  wire::Exited exited;
  exited.rank = rank.rank;
  exited.status = static_cast<uint32_t>(status);
  exited.at_ns = os::mono_now().ns;
  exited.stopped_by_us = rank.stopped_by_us;
  exited.error_file = read_error_file(rank);
  if (status != 0) exited.last_words = rank.stopped_by_us == 0 ? last_words(rank) : std::move(rank.said_before);
  exited.signs = obituary_.of(pid, status);
  outbox_.control(exited);
  return true;
}

void Ranks::note_cgroups() {
  for (const auto& rank : ranks_)
    if (!rank->exited) obituary_.note_cgroup(rank->pid);
}

std::string Ranks::read_error_file(const Rank& rank) const {
  if (rank.error_file.empty()) return "";
  return read_left_file(rank.error_file, kErrorFileBytes);
}

// The exit is told before the output that is still in the pipes; what it said last goes with it.
std::string Ranks::last_words(Rank& rank) {
  for (Pipe& pipe : rank.pipes)
    for (int i = 0; i < kLastReads && read_once(rank, pipe);) ++i;
  const std::string& said = base::trim(rank.tail[1]).empty() ? rank.tail[0] : rank.tail[1];
  size_t begin = said.size() < kTailBytes ? 0 : std::min(said.find('\n'), said.size() - 1) + 1;  // a line cut in half says nothing
  return said.substr(begin);
}

void Ranks::signal(int signal_number) {
  for (auto& rank : ranks_) {
    if (rank->exited || rank->pid <= 0) continue;
    if (rank->stopped_by_us == 0) rank->said_before = last_words(*rank);
    ::kill(-rank->pid, signal_number);  // it leads its own process group (setsid in spawn)
    ::kill(rank->pid, SIGCONT);         // a stopped process does not see SIGTERM
    rank->stopped_by_us = static_cast<uint8_t>(signal_number);
  }
}

void Ranks::pause_reading() {
  if (paused_) return;
  paused_ = true;
  for (auto& rank : ranks_)
    for (Pipe& pipe : rank->pipes)
      if (pipe.watch) {
        loop_.unwatch(pipe.watch);
        pipe.watch = 0;
      }
}

void Ranks::resume_reading() {
  if (!paused_) return;
  paused_ = false;
  for (auto& rank : ranks_)
    for (Pipe& pipe : rank->pipes) watch(*rank, pipe);
}

void Ranks::drain() {
  for (auto& rank : ranks_)
    for (Pipe& pipe : rank->pipes) {
      while (read_once(*rank, pipe)) {}
      close(*rank, pipe);
    }
}

bool Ranks::any_alive() const {
  return std::any_of(ranks_.begin(), ranks_.end(), [](auto& r) { return !r->exited; });
}

bool Ranks::any_open() const {
  return std::any_of(ranks_.begin(), ranks_.end(), [](auto& r) { return r->pipes[0].fd.valid() || r->pipes[1].fd.valid(); });
}

std::vector<Ranks::Living> Ranks::living() const {
  std::vector<Living> out;
  for (auto& rank : ranks_)
    if (!rank->exited) out.push_back({rank->rank, rank->pid, rank->spoke, rank->stack_file});
  return out;
}

void Ranks::flush_stale() {
  if (paused_) return;  // what looks stale may only be unread
  for (auto& rank : ranks_)
    for (Pipe& pipe : rank->pipes)
      if (pipe.fd.valid() && pipe.splitter.has_tail()) pipe.splitter.flush_stale(sink(*rank, pipe));
}

}  // namespace phalanx::agent
