// The manifest that `phalanx submit --image` hands to kubectl: a headless Service and an Indexed Job, whose pods start in manual mode
// (cli/by_hand/pod_place.h) and meet at the name of the first pod. Pure.
//
// Fields: batch/v1 Job, v1 Service and v1 PodSpec of the Kubernetes API. No pod is started again after a failure (backoffLimit 0): the
// whole run has then ended in every pod. The token that the pods share is the key "token" of the Secret "phalanx-token".
#pragma once

#include <string>

#include "base/result.h"
#include "cli/submit_script.h"

namespace phalanx::cli {

// Errors: kUsage, a name or a volume that Kubernetes would refuse, or an option that is for Slurm.
base::Result<std::string> pod_manifest(const Submission& submission);

}  // namespace phalanx::cli
