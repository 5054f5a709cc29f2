// The checks, as one table per source of this folder; doctor/catalogue.cc joins them in this order. A line is a group of codes/checks/:
// gpu, visibility, network, infiniband, nccl, rendezvous, software, storage, time, limits, process, container, command, data, speed.
#pragma once

#include <span>

#include "doctor/catalogue.h"

#define PHALANX_ROWS(X)                                                                                \
  X(gpu_driver) X(gpu_health) X(gpu_log) X(gpu_use)                                                    \
  X(visibility) X(visible_count)                                                                       \
  X(network_mesh) X(network_choice) X(network_ifname) X(network_host) X(network_link)                  \
  X(infiniband_port) X(infiniband_use)                                                                 \
  X(nccl_library) X(nccl_name) X(nccl_transport) X(nccl_habit) X(nccl_conf)                            \
  X(meeting) X(name)                                                                                   \
  X(program) X(package) X(library) X(environment)                                                      \
  X(shared_memory) X(space) X(mount) X(path)                                                           \
  X(time)                                                                                              \
  X(process_limit) X(machine_limit)                                                                    \
  X(process)                                                                                           \
  X(container)                                                                                         \
  X(shell) X(launch) X(command_file) X(accelerate) X(deepspeed) X(llamafactory) X(lightning) X(python) \
  X(data_script) X(data_config)                                                                        \
  X(gpu_speed) X(host_speed)

namespace phalanx::doctor {

#define PHALANX_DECLARE(name) std::span<const Row> name##_rows();
PHALANX_ROWS(PHALANX_DECLARE)
#undef PHALANX_DECLARE

}  // namespace phalanx::doctor
