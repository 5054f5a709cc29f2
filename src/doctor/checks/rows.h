// The checks, as one table per source of this folder; doctor/catalogue.cc joins them. Groups are those of codes/checks/.
#pragma once

#include <span>

#include "doctor/catalogue.h"

namespace phalanx::doctor {

// gpu: what the driver, the health counters, the kernel's log and other users say
std::span<const Row> gpu_driver_rows();
std::span<const Row> gpu_health_rows();
std::span<const Row> gpu_log_rows();
std::span<const Row> gpu_use_rows();

// visibility
std::span<const Row> visibility_rows();
std::span<const Row> visible_count_rows();

// network: the mesh test; which address NCCL and Gloo would take; *_SOCKET_IFNAME; addresses and routes; links
std::span<const Row> network_mesh_rows();
std::span<const Row> network_choice_rows();
std::span<const Row> network_ifname_rows();
std::span<const Row> network_host_rows();
std::span<const Row> network_link_rows();

// infiniband: states, rates, counters; what NCCL needs to use them
std::span<const Row> infiniband_port_rows();
std::span<const Row> infiniband_use_rows();

// nccl: which libnccl; names and values of variables; contradictions; debugging left on; conf files
std::span<const Row> nccl_library_rows();
std::span<const Row> nccl_name_rows();
std::span<const Row> nccl_transport_rows();
std::span<const Row> nccl_habit_rows();
std::span<const Row> nccl_conf_rows();

// rendezvous: master address and port; host names, and one machine that is named twice
std::span<const Row> meeting_rows();
std::span<const Row> name_rows();

// software: the program and its Python; packages; glibc, CUDA, leftovers of builds; variables
std::span<const Row> program_rows();
std::span<const Row> package_rows();
std::span<const Row> library_rows();
std::span<const Row> environment_rows();

// storage
std::span<const Row> shared_memory_rows();
std::span<const Row> space_rows();
std::span<const Row> mount_rows();
std::span<const Row> path_rows();

// time
std::span<const Row> time_rows();

// limits: files, processes, locked memory, stack; control groups, CPUs, memory, kernel settings
std::span<const Row> process_limit_rows();
std::span<const Row> machine_limit_rows();

// process
std::span<const Row> process_rows();

// container
std::span<const Row> container_rows();

// command: by kind of file
std::span<const Row> shell_rows();
std::span<const Row> launch_rows();
std::span<const Row> command_file_rows();
std::span<const Row> accelerate_rows();
std::span<const Row> deepspeed_rows();
std::span<const Row> llamafactory_rows();
std::span<const Row> lightning_rows();
std::span<const Row> python_rows();

// data
std::span<const Row> data_script_rows();
std::span<const Row> data_config_rows();

// speed: GPUs; CPUs, threads, NUMA, hosts against each other, sockets
std::span<const Row> gpu_speed_rows();
std::span<const Row> host_speed_rows();

}  // namespace phalanx::doctor
