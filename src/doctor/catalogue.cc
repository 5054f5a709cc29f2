#include "doctor/catalogue.h"

#include <strings.h>

namespace phalanx::doctor {
std::vector<const Row*> catalogue() {
  std::vector<const Row*> all;
  for (auto* rows : {gpu_rows, visibility_rows, network_rows, infiniband_rows, nccl_rows, rendezvous_rows, software_rows, storage_rows,
                     time_rows, limits_rows, process_rows, command_rows, data_rows, speed_rows})
    for (const Row& row : rows()) all.push_back(&row);
  return all;
}

const Row* find_row(std::string_view code) {
  for (const Row* row : catalogue())
    if (row->code.size() == code.size() && ::strncasecmp(row->code.data(), code.data(), code.size()) == 0) return row;
  return nullptr;
}

}  // namespace phalanx::doctor
