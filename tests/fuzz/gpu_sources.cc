// Whatever the NVML reader, nvidia-smi or a kernel log might hold: facts stay within their limits and can be written and read back.
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "base/json_fields.h"
#include "host/cuda_order.h"
#include "host/gpu_sources.h"

// The first byte chooses the parser.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  host::GpuFacts facts;
  switch (data[0] % 4) {
    case 0: host::read_nvml_lines(text, facts); break;
    case 1: host::read_smi_table(text, facts); break;
    case 2: facts.xids = host::parse_kernel_log(text, 1000, 1'700'000'000); break;
    default: {
      host::Gpu g;
      g.uuid = "GPU-ac50e9bd";
      g.mig_devices = {"MIG-1"};
      facts.devices = {g, g};
      facts.devices[1].index = 1;
      for (host::CudaOrder order : {host::CudaOrder::kFastestFirst, host::CudaOrder::kPciBusId})
        for (int64_t index : host::select_gpus(facts, std::string(text), order).devices) CHECK(index == 0 || index == 1);
      CHECK(host::count_selected(text, 2) <= 2);
    }
  }
  CHECK(facts.devices.size() <= 64 && facts.xids.size() <= 64);
  for (const host::Gpu& g : facts.devices) CHECK(g.processes.size() <= 256 && g.nvlinks.size() <= 256);
  base::Result<base::Json> json = base::parse_json(base::to_text(base::to_json(facts)));
  CHECK(json.ok() && base::from_json<host::GpuFacts>(*json).ok());
  return 0;
}
