#include "doctor/catalogue.h"

#include <strings.h>

#include "doctor/checks/rows.h"

namespace phalanx::doctor {
std::vector<const Row*> catalogue() {
  static constexpr std::span<const Row> (*kTables[])() = {
      // gpu
      gpu_driver_rows,
      gpu_health_rows,
      gpu_log_rows,
      gpu_use_rows,
      // visibility
      visibility_rows,
      visible_count_rows,
      // network
      network_mesh_rows,
      network_choice_rows,
      network_ifname_rows,
      network_host_rows,
      network_link_rows,
      // infiniband
      infiniband_port_rows,
      infiniband_use_rows,
      // nccl
      nccl_library_rows,
      nccl_name_rows,
      nccl_transport_rows,
      nccl_habit_rows,
      nccl_conf_rows,
      // rendezvous
      meeting_rows,
      name_rows,
      // software
      program_rows,
      package_rows,
      library_rows,
      environment_rows,
      // storage
      shared_memory_rows,
      space_rows,
      mount_rows,
      path_rows,
      // time
      time_rows,
      // limits
      process_limit_rows,
      machine_limit_rows,
      // process
      process_rows,
      // container
      container_rows,
      // command
      shell_rows,
      launch_rows,
      command_file_rows,
      accelerate_rows,
      deepspeed_rows,
      llamafactory_rows,
      lightning_rows,
      python_rows,
      // data
      data_script_rows,
      data_config_rows,
      // speed
      gpu_speed_rows,
      host_speed_rows,
  };
  std::vector<const Row*> all;
  for (auto* rows : kTables)
    for (const Row& row : rows()) all.push_back(&row);
  return all;
}

const Row* find_row(std::string_view code) {
  for (const Row* row : catalogue())
    if (row->code.size() == code.size() && ::strncasecmp(row->code.data(), code.data(), code.size()) == 0) return row;
  return nullptr;
}

}  // namespace phalanx::doctor
