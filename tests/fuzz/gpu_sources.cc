// Whatever the NVML reader, nvidia-smi or a kernel log might hold: facts stay within their limits and can be written and read back.
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "base/json_fields.h"
#include "machine/gpu/cuda_order.h"
#include "machine/gpu/sources.h"

using namespace phalanx;

// The first byte chooses the parser.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  machine::GpuFacts facts;
  switch (data[0] % 4) {
    case 0: machine::read_nvml_lines(text, facts); break;
    case 1: machine::read_smi_table(text, facts); break;
    case 2: facts.xids = machine::parse_kernel_log(text, 1000, 1'700'000'000); break;
    default: {
      machine::Gpu g;
      g.uuid = "GPU-ac50e9bd";
      g.mig_devices = {"MIG-1"};
      facts.devices = {g, g};
      facts.devices[1].index = 1;
      for (machine::CudaOrder order : {machine::CudaOrder::kFastestFirst, machine::CudaOrder::kPciBusId})
        for (int64_t index : machine::select_gpus(facts, std::string(text), order).devices) PHALANX_CHECK(index == 0 || index == 1);
      PHALANX_CHECK(machine::count_selected(text, 2) <= 2);
    }
  }
  PHALANX_CHECK(facts.devices.size() <= 64 && facts.xids.size() <= 64);
  for (const machine::Gpu& g : facts.devices) PHALANX_CHECK(g.processes.size() <= 256 && g.nvlinks.size() <= 256);
  base::Result<base::Json> json = base::parse_json(base::to_text(base::to_json(facts)));
  PHALANX_CHECK(json.ok() && base::from_json<machine::GpuFacts>(*json).ok());
  return 0;
}
