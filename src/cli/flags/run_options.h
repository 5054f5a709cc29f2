// What `phalanx run`, `plan`, `train`, `check` and `bench` were asked for, as typed values. Text that has a grammar of its own (hosts,
// filters, files) is carried as text: hosts/lists/host_list.h, hosts/lists/host_filter.h and cli/flags/env_file.h read it.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "cli/flags/command_line.h"
#include "cli/flags/shown_streams.h"
#include "job/job.h"
#include "logs/runs/old_runs.h"

namespace phalanx::cli {

// Ranks per host. kCount: exactly `count` on every host. kGpu: one per GPU. kCpu: one per CPU core. kAuto: one per GPU, or
// one where there is no GPU.
struct RanksPerHost {
  enum class Kind { kAuto, kGpu, kCpu, kCount };
  Kind kind = Kind::kAuto;
  int count = 0;
};

enum class Fold { kAuto, kOn, kOff };
enum class FailOn { kError, kWarning, kNote, kNever };
enum class Color { kAuto, kAlways, kNever };

struct RunOptions {
  // An empty string means: not given. At most one of hosts and hostfile; at most one of include and exclude.
  std::string hosts;
  std::string hostfile;
  std::string include;
  std::string exclude;
  std::optional<int> nnodes;       // of MIN:MAX the MAX
  std::optional<int> least_nodes;  // the MIN
  std::string spares;
  std::vector<std::string> containers;  // container_wish.h
  std::string container_args;           // words of sh
  std::optional<int> max_restarts;
  std::optional<RanksPerHost> ranks_per_host;  // none: the host's own slots, else kAuto

  std::vector<std::pair<std::string, std::string>> env;  // in the order given; the last of a name counts
  std::vector<std::string> env_files;                    // paths, in the order given
  std::vector<std::string> export_globs;                 // names of this machine's variables to pass on (base/glob.h)
  bool no_export = false;                                // pass on none but export_globs

  std::string name;                                  // of the run; empty: none
  std::optional<std::chrono::milliseconds> timeout;  // from the start of the verb; none: no limit
  std::string workdir;
  std::string log_dir;
  bool split_logs = false;      // also the files of torchrun (cli/records/stream_files.h)
  ShownStreams shown;           // on the terminal
  int64_t log_max = 1LL << 30;  // bytes of the log of a rank
  logs::Keeping keep_runs;
  std::string master_addr;
  std::optional<int> master_port;  // 1–65535
  std::optional<int> node_rank;    // started by hand on every machine (cli/by_hand/manual_nodes.h)
  bool in_pod = false;             // node_rank is that of a pod, which has told it itself
  std::string token_file;
  std::chrono::milliseconds join_timeout{600'000};
  bool no_store = false;
  bool local_rank_macro = false;
  std::chrono::milliseconds grace{10'000};                 // from SIGTERM to SIGKILL
  std::optional<std::chrono::milliseconds> failure_grace;  // none: grace, and at most 5 s
  std::chrono::milliseconds lease = job::kDefaultLease;    // silence of the launcher after which a host ends its ranks
  bool detach = false;
  bool sync = false;
  std::string sync_directory;       // to be copied; empty: the current one
  std::optional<int64_t> sync_max;  // bytes
  std::string push_directory;       // push: what is copied, as typed
  std::string push_to;              // to this path; empty: the same one
  bool push_delete = false;
  job::StallOptions stall;
  bool python_hook = false;
  bool check_data = false;  // train: the engine walks its data instead
  bool dry_run = false;     // always true for plan

  std::vector<doctor::Acceptance> accepted;
  job::ProjectUse project;  // what of all this came from the project file
  // Of the project file: overridden by their counterparts above.
  std::vector<std::pair<std::string, std::string>> project_env;
  std::vector<std::string> project_env_files;
  std::vector<std::string> project_export_globs;

  job::Preflight preflight = job::Preflight::kStrict;
  std::chrono::milliseconds reuse_checks{300'000};  // how old the checks of an earlier run may be to start by them; 0: never
  job::GpuRequest gpus;                             // --gpus, --iface
  std::chrono::milliseconds burst{1'000};           // bench: per pair

  std::chrono::milliseconds connect_timeout{10'000};
  std::optional<int> fanout;             // logins under way at once
  std::vector<std::string> ssh_options;  // "Name=Value", as after ssh -o

  std::vector<std::string> only;                   // check: codes or beginnings of codes, as in the catalogue; empty: all
  FailOn fail_on = FailOn::kError;                 // check
  std::optional<std::chrono::milliseconds> watch;  // check: between two looks

  bool json = false;
  bool quiet = false;
  bool verbose = false;
  Fold fold = Fold::kAuto;
  Color color = Color::kAuto;

  // run, plan: the command, never empty; train: the config file and its overrides; check: the command, may be empty; bench: empty
  std::vector<std::string> command;
};

// For an Invocation of run, plan, train, check or bench. `pod`: what Kubernetes says of the place of this machine in the run
// (cli/by_hand/pod_place.h), for those that start one; null: nothing. Error: kUsage, for flags that exclude each other or a missing
// command; kConfig, for variables of the pod.
struct Pod;
base::Result<RunOptions> run_options(const Invocation& invocation, const Pod* pod = nullptr);

}  // namespace phalanx::cli
