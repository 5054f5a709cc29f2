// The words of --gpus: "auto", a number for every host, or "HOST:INDEX,INDEX[@HOST:INDEX…]" with indices as nvidia-smi shows them.
#pragma once

#include <string_view>

#include "base/result.h"
#include "job/choose/choose.h"

namespace phalanx::cli {

// Error (kUsage): what is wrong with the value, without the flag's name. most: ranks per host.
base::Result<job::GpuRequest> parse_gpu_request(std::string_view value, int64_t most);
// Adds a value that parse_gpu_request has accepted.
void add_gpu_request(std::string_view value, job::GpuRequest& wish);

}  // namespace phalanx::cli
