// What stays of a run: run.json, events.jsonl and one log per rank in its directory (docs/formats/run-directory.md).
// Values of environment variables are never written, only names: they may be secrets.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "cli/records/stream_files.h"
#include "job/runner.h"
#include "logs/bar_progress.h"
#include "logs/runs/files.h"
#include "logs/runs/progress_log.h"
#include "logs/runs/rank_log.h"
#include "logs/runs/run_directory.h"

namespace phalanx::cli {

// One object per event, as in events.jsonl and on stdout with --json: name and fields. Ticks and pongs have no name.
struct EventRecord {
  std::string name;
  base::Json fields;
};
EventRecord describe(const job::State& state, const job::Event& event);
base::Json describe(const job::State& state, const job::Verdict& verdict);
// What runs where, also before anything runs: hosts, ranks, addresses.
base::Json describe_plan(const job::State& state);

class Record {
 public:
  static constexpr size_t kTailBytes = 4096;  // of a rank's stderr, kept for the verdict
  static constexpr size_t kTailLines = 12;

  static constexpr size_t kMostFactBytes = 4 << 20;  // of one host, as probed

  // files: everything of the run is written there; outlives this. Nothing here waits for a disk.
  // most_log_bytes: per rank; 0: no bound.
  Record(logs::RunDirectory directory, logs::Files& files, int64_t began_wall_ns, uint64_t most_log_bytes);

  const logs::RunDirectory& directory() const { return directory_; }
  void split_streams() { streams_.emplace(files_, directory_.path(), most_log_bytes_); }  // --split-logs; before the first attempt
  // Before anything is contacted: run.json of a run that is starting. reach: cli/records/record_life.h, in every run.json from here on.
  void opened(const job::Job& job, base::Json reach);
  void started(const job::State& state);  // the plan of an attempt stands: run.json, logs
  void restarting(const job::State& state, const job::Restarting& restarting);
  void output(const wire::Output& output);
  void progress(int rank, const wire::RankProgress& progress);
  void shown_progress(int rank, const wire::RankProgress& progress);  // read from its lines (logs/line_progress.h)
  void event(const job::State& state, const job::Event& event);
  void note(const std::string& text);
  void synced(const base::Json& what);  // by --sync
  // As of logs::Removing.
  void removed_run(const std::string& id, const std::string& why, const std::string& problem);
  void idle();
  // last_progress: where it stood (Live::last_progress), or null. lost_bytes: of its files, so far.
  void ended(const job::State& state, const job::Verdict& verdict, const base::Json& last_progress, uint64_t lost_bytes);
  std::string last_lines(int rank) const;

 private:
  struct Rank {
    std::unique_ptr<logs::RankLog> log;
    std::string tail;
    logs::BarProgress bar;
    std::string bar_state;  // its latest
    bool reports = false;   // progress events: its bar is not read
  };
  Rank* rank(uint32_t number);
  void write(const job::State& state, const base::Json& end);
  void close_logs();
  double seconds_in() const { return static_cast<double>((os::mono_now() - began_).count()) / 1e9; }
  void read_bar(uint32_t number, Rank& rank, std::string_view state);
  void write_facts(const job::Event& event);

  logs::RunDirectory directory_;
  logs::Files& files_;
  int64_t began_wall_ns_;
  uint64_t most_log_bytes_;
  os::Mono began_ = os::mono_now();
  base::Json reach_ = base::Json::object();
  logs::ProgressLog progress_;
  std::vector<Rank> ranks_;
  std::optional<StreamFiles> streams_;
  std::vector<std::optional<logs::FileId>> rank_files_;  // of all attempts
  int attempt_ = 0;                                      // its number: restarts made before it
  base::Json attempts_ = base::Json::array();            // those that have ended
};

}  // namespace phalanx::cli
