// How ranks are started. What their output goes through is in ranks.cc.
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <fmt/format.h>

#include "agent/looks/stack_dump.h"
#include "agent/ranks/cpu_binding.h"
#include "agent/ranks/python_hook.h"
#include "agent/ranks/ranks.h"
#include "base/text.h"
#include "base/try.h"
#include "os/descriptor_limit.h"
#include "os/files.h"
#include "os/guarded.h"
#include "os/process.h"

namespace phalanx::agent {
namespace {
constexpr int kEventFd = 3;
constexpr os::milliseconds kStalePeriod{250};  // an unfinished line (a prompt) is shown after one to two of these
}  // namespace

void Ranks::start(const wire::RankSpec& spec, const Environment& job, const RankCommand& command, RankPlace place) {
  auto rank = std::make_unique<Rank>();
  rank->rank = spec.rank;
  place.event_fd = kEventFd;
  if (!command.scratch.empty()) {
    std::string folder = command.scratch + "/" + std::to_string(spec.local_rank);
    if (os::make_folders(folder).ok()) place.error_file = rank->error_file = folder + "/error.json";
  }
  Environment environment = rank_environment(job, spec, place);
  if (!rank->error_file.empty()) environment[kFlightFileVariable] = command.scratch + "/" + std::to_string(spec.local_rank) + "/flight_";
  if (!command.hook.empty() && !rank->error_file.empty()) {
    rank->stack_file = command.scratch + "/" + std::to_string(spec.local_rank) + "/stacks";
    add_python_hook(environment, command.hook, rank->stack_file);
  }
  base::Status begun = spawn(*rank, environment, command, spec);
  if (begun.ok()) obituary_.born(rank->pid, command.program);
  else tell_started(*rank, std::move(begun));
  ranks_.push_back(std::move(rank));
  if (!stale_timer_) stale_timer_ = loop_.every(kStalePeriod, [this] { flush_stale(); });
}

base::Status Ranks::spawn(Rank& rank, const Environment& environment, const RankCommand& command, const wire::RankSpec& place) {
  TRY_ASSIGN(os::PipeEnds out, os::make_pipe());
  TRY_ASSIGN(os::PipeEnds err, os::make_pipe());
  TRY_ASSIGN(os::PipeEnds events, os::make_pipe());
  os::SpawnSpec& spec = rank.spec;
  spec.program = command.program;
  spec.arguments = rank_arguments(command.job, place.local_rank);
  spec.environment = to_strings(environment);
  spec.directory = command.job.directory;
  spec.fds = {{out.write.get(), 1}, {err.write.get(), 2}, {events.write.get(), kEventFd}};
  spec.death_signal = SIGKILL;
  spec.join_cgroup = command.join_cgroup;
  base::Result<os::Starting> starting = [&] {
    CpuBinding binding(place.cpus);
    return os::begin_spawn(spec);
  }();
  TRY_ASSIGN(rank.starting, std::move(starting));
  rank.pid = rank.starting.pid;
  if (rank.rank == 0) read_progress_file(rank, environment, spec.directory, events.write.get());
  rank.pipes[0].fd = std::move(out.read);
  rank.pipes[0].stream = wire::Stream::kStdout;
  rank.pipes[1].fd = std::move(err.read);
  rank.pipes[1].stream = wire::Stream::kStderr;
  rank.events = std::move(events.read);
  for (Pipe& pipe : rank.pipes) {
    ::fcntl(pipe.fd.get(), F_SETPIPE_SZ, 256 << 10);
    TRY(os::set_nonblocking(pipe.fd.get()));
    if (!paused_) watch(rank, pipe);
  }
  TRY(os::set_nonblocking(rank.events.get()));
  TRY_ASSIGN(rank.events_watch, loop_.watch(rank.events.get(), EPOLLIN, [this, &rank](uint32_t) { read_events(rank); }));
  TRY_ASSIGN(rank.report_watch, loop_.watch(rank.starting.report.get(), EPOLLIN, [this, &rank](uint32_t) { check_started(rank); }));
  rank.patience = loop_.after(exec_patience_, [this, &rank] { give_up_start(rank); });
  return base::ok();
}

void Ranks::check_started(Rank& rank) {
  if (!rank.starting.report.valid()) return;
  std::optional<base::Status> outcome = os::spawned(rank.spec, rank.starting);
  if (outcome) tell_started(rank, *std::move(outcome));
}

// Which of the two hangs is seen from where the child is.
void Ranks::give_up_start(Rank& rank) {
  rank.patience = 0;
  char folder[4096];
  ssize_t n = ::readlink(fmt::format("/proc/{}/cwd", rank.pid).c_str(), folder, sizeof(folder));
  bool entered = n > 0 && std::string_view(folder, static_cast<size_t>(n)) == rank.spec.directory;
  base::Error error =
      base::fail(base::ErrorKind::kUnfit, fmt::format("{} {}: no answer from its file system for {:.0f} s{}", entered ? "exec" : "chdir",
                                                      entered ? rank.spec.program : rank.spec.directory,
                                                      static_cast<double>(exec_patience_.count()) / 1000, os::stuck_in(rank.pid)))
          .with_hint("stat " + base::shell_quote(entered ? rank.spec.program : rank.spec.directory));
  ::kill(rank.pid, SIGKILL);  // not reaped yet, so it is still this one
  tell_started(rank, std::move(error));
}

void Ranks::tell_started(Rank& rank, base::Status outcome) {
  if (rank.report_watch) loop_.unwatch(rank.report_watch);
  if (rank.patience) loop_.cancel(rank.patience);
  rank.report_watch = rank.patience = 0;
  rank.starting.report.reset();
  wire::Started started;
  started.rank = rank.rank;
  if (outcome.ok()) {
    started.pid = static_cast<uint32_t>(rank.pid);
  } else {
    started.outcome = {false, std::move(outcome).error()};
    if (started.outcome.error.hint.empty() && !os::can_open_more(os::kSpawnDescriptors))
      started.outcome.error.hint = "phalanx explain LIM-NOFILE";
    rank.exited = true;
    for (Pipe& pipe : rank.pipes) close(rank, pipe);
  }
  rank.spec = {};
  outbox_.control(started);
}

}  // namespace phalanx::agent
