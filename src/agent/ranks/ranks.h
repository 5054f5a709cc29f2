// The ranks of one host: started, read, signalled, reaped.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "agent/outbox.h"
#include "agent/ranks/environment.h"
#include "agent/ranks/exit_evidence.h"
#include "agent/ranks/progress_reader.h"
#include "logs/line_splitter.h"
#include "os/loop.h"
#include "os/process.h"
#include "wire/messages.h"

namespace phalanx::agent {

struct RankCommand {
  const wire::JobSpec& job;  // whose ranks they are
  std::string program;       // found in the rank's PATH
  std::string scratch;       // an existing folder of this run for error files; may be empty
  std::string hook;          // folder of the Python hook; empty: none
  int join_cgroup = -1;      // as of os::SpawnSpec
};

class Ranks {
 public:
  static constexpr os::milliseconds kExecPatience{60'000};  // a thousand hosts may ask one server for the same program at once

  Ranks(os::Loop& loop, Outbox& outbox, os::milliseconds exec_patience = kExecPatience)
      : loop_(loop), outbox_(outbox), exec_patience_(exec_patience) {}
  ~Ranks();

  // Starts one rank; Started follows when its program runs. A rank that cannot be started is an Outcome in that frame, not an error here;
  // so is one whose folder or program lies on a file system that gives no answer for kExecPatience, and is then killed.
  void start(const wire::RankSpec& spec, const Environment& job, const RankCommand& command, RankPlace place);
  // True if `pid` was one of ours; sends Exited.
  bool on_exit(pid_t pid, int status);
  // Where living ranks are now, for their obituaries.
  void note_cgroups();
  // To every living rank's process group.
  void signal(int signal_number);
  void pause_reading();
  void resume_reading();
  // Reads what the pipes still hold without waiting, gives out unterminated last lines, closes them.
  void drain();
  bool any_alive() const;
  bool any_open() const;  // a pipe that somebody may still write to

  struct Living {
    uint32_t rank;
    pid_t pid;
    os::Mono spoke;  // its last output or progress event; its start, if there was none
    std::string stack_file;
  };
  std::vector<Living> living() const;
  // Process groups of our own children that read for a rank (agent/ranks/progress_reader.h).
  bool reads_for_rank(pid_t group) const;

 private:
  struct Pipe {
    os::Fd fd;
    os::WatchId watch = 0;
    wire::Stream stream{};
    logs::LineSplitter splitter;
  };
  struct Rank {
    uint32_t rank = 0;
    pid_t pid = 0;
    bool exited = false;
    os::SpawnSpec spec;  // until it runs
    os::Starting starting;
    os::WatchId report_watch = 0;
    os::TimerId patience = 0;
    uint8_t stopped_by_us = 0;
    std::string said_before;  // its last words when we first stopped it: what it says of our signal is no cause
    os::Mono spoke = os::mono_now();
    std::string error_file;
    std::string stack_file;  // of the Python hook
    std::array<Pipe, 2> pipes;
    os::Fd events;
    os::WatchId events_watch = 0;
    std::string event_text;
    std::unique_ptr<ProgressReader> progress;  // of rank 0, which is the one that writes its framework's files
    std::string tail[2];                       // the end of its stdout and stderr
  };

  base::Status spawn(Rank& rank, const Environment& environment, const RankCommand& command, const wire::RankSpec& place);
  void check_started(Rank& rank);
  void give_up_start(Rank& rank);
  void tell_started(Rank& rank, base::Status outcome);
  void watch(Rank& rank, Pipe& pipe);
  bool read_once(Rank& rank, Pipe& pipe);  // false: nothing more now, or closed
  logs::LineSplitter::Sink sink(Rank& rank, const Pipe& pipe);
  void close(Rank& rank, Pipe& pipe);
  void read_progress_file(Rank& rank, const Environment& environment, const std::string& folder, int events);
  void read_events(Rank& rank);
  std::string read_error_file(const Rank& rank) const;
  std::string last_words(Rank& rank);
  void flush_stale();

  os::Loop& loop_;
  Outbox& outbox_;
  ExitEvidence obituary_;
  std::vector<std::unique_ptr<Rank>> ranks_;
  os::milliseconds exec_patience_;
  bool paused_ = false;
  os::TimerId stale_timer_ = 0;
};

}  // namespace phalanx::agent
