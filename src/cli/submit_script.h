// The job script that `phalanx submit` hands to sbatch. Pure.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace phalanx::cli {

struct Submission {
  int nodes = 1;
  std::string name;                  // of the job; empty: Slurm's choice
  std::vector<std::string> options;  // "time=24:00:00", as given with --sbatch
  std::string image;                 // Kubernetes (cli/by_hand/pod_manifest.h); empty: Slurm
  int gpus_per_node = 0;             // 0: not said
  std::vector<std::string> volumes;  // "CLAIM:PATH", of Kubernetes
  bool requeue = false;              // before the time limit: SIGTERM to the ranks, and back into the queue
  std::vector<std::string> command;  // the ranks' command, or a whole `phalanx run …` or `phalanx train …`
  std::string program;               // path of this binary
  std::string directory;             // where the run starts
};

// How long before the time limit a job that is requeued is warned, and how long its ranks then have.
inline constexpr int kWarningSeconds = 120;
inline constexpr int kCheckpointSeconds = 100;

// Errors: kUsage, an option that is not of the form NAME[=VALUE], or one that the script sets itself.
base::Result<std::string> job_script(const Submission& submission);

// The words behind "phalanx": "phalanx run …" or "phalanx train …", typed out, keeps its options; anything else is what the ranks run.
std::vector<std::string> run_line(const Submission& submission);

}  // namespace phalanx::cli
