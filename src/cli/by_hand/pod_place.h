// Which node of a run a Kubernetes pod is, from the variables that its controller gives it:
//   Kubeflow's PyTorchJob and TrainJob  PET_NNODES, PET_NODE_RANK, PET_MASTER_ADDR, PET_MASTER_PORT, PET_NPROC_PER_NODE; a PyTorchJob also
//                                       RANK, WORLD_SIZE (pods), MASTER_ADDR, MASTER_PORT, and older ones only these
//   Indexed Job, JobSet                 JOB_COMPLETION_INDEX; the number of pods is then --nnodes, and the first pod's name is this one's
//                                       with the index 0
// Sources: kubeflow/training-operator pkg/controller.v1/pytorch/envvar.go and master.go, kubeflow/trainer pkg/constants/constants.go,
// "Indexed Job for Parallel Processing with Static Work Assignment" and "Job with Pod-to-Pod Communication" of Kubernetes. Pure.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "cli/flags/run_options.h"

namespace phalanx::cli {

struct Pod {
  std::function<std::string(const char* name)> variable;  // empty: not set
  std::string hostname;
  std::string hosts_file;  // text of /etc/hosts, which has the pod's name with its domain if it is in a headless service
};

// Fills in what the user has not typed of --node-rank, --nnodes, --master-addr, --master-port and --nproc-per-node. Changes nothing outside
// Kubernetes, where hosts are named, and for one pod. True: the run is now one that is started in every pod. Error: kConfig, a variable
// that cannot be read; kUsage, an elastic job, whose number of pods is not fixed.
base::Result<bool> take_pod_place(const Pod& pod, RunOptions& options);

}  // namespace phalanx::cli
