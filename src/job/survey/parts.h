// Inside the supervisor's checks: what of the job they are made with.
#pragma once

#include "job/supervisor/supervisor.h"

namespace phalanx::job {

// What was asked of the GPUs, in all its forms: --gpus, slots of the host list, slots chosen by a filter, --nproc-per-node.
GpuRequest wish_of(const State& state);
doctor::JobView job_view(const Job& job);

}  // namespace phalanx::job
