// Which physical GPU a CUDA index means, and what a CUDA_VISIBLE_DEVICES value selects.
//
// NVML and nvidia-smi count GPUs in PCI bus order. CUDA does so only with CUDA_DEVICE_ORDER=PCI_BUS_ID; without it the order is
// FASTEST_FIRST, "from fastest to slowest using a simple heuristic" (CUDA programming guide, environment variables), which NVIDIA
// does not publish. Ours: multiprocessors × cores each × highest clock, then compute capability, memory, PCI address. Equal cards keep
// PCI order. `certain` is false where cards of different models stand next to each other and those figures do not all agree.
//
// Values are read as the driver does, in PyTorch's words of it (torch/cuda/__init__.py, _parse_visible_devices): the first entry says
// whether all are indices, "GPU-…" or "MIG-…"; an index is the number its entry starts with; the list ends at the first entry that
// is not valid; an entry given twice leaves nothing at all.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "machine/gpu/facts.h"

namespace phalanx::machine {

enum class CudaOrder { kFastestFirst, kPciBusId };

// Of a CUDA_DEVICE_ORDER value; unset and unknown words are FASTEST_FIRST.
CudaOrder cuda_order_of(const std::optional<std::string>& value);

struct CudaEnumeration {
  std::vector<int64_t> devices;  // NVML indices; position n is CUDA's device n
  bool certain = true;
};
// GPUs that cannot be asked (Gpu::fault) are not enumerated by CUDA and are left out.
CudaEnumeration enumerate_gpus(const GpuFacts& facts, CudaOrder order);

struct Selection {
  std::vector<int64_t> devices;  // NVML indices of the physical GPUs, in the order in which the program numbers them
  std::string refused;           // the entry at which the list ended or that was given twice; empty if all were good
  enum class Why { kNone, kNoSuchIndex, kNotANumber, kNoSuchUuid, kAmbiguous, kMixed, kTwice } why = Why::kNone;
  bool by_index = false;  // the value holds indices: what they mean depends on the order
};
// value: none if the variable is not set (every GPU is seen).
Selection select_gpus(const GpuFacts& facts, const std::optional<std::string>& value, CudaOrder order);

// The same for a machine of which only the number of GPUs is known; UUIDs are taken to be right.
uint32_t count_selected(std::string_view value, uint32_t present);

// CUDA cores per multiprocessor of a compute capability; 0 if unknown. (CUDA programming guide, "Arithmetic instructions":
// results per clock cycle per multiprocessor, 32-bit floating-point add.)
int64_t cores_per_multiprocessor(int64_t major, int64_t minor);

}  // namespace phalanx::machine
