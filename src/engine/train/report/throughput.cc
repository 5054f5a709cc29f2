#include "engine/train/report/throughput.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/ones.h>
#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <chrono>

#include "base/text.h"

namespace phalanx::engine::train {
namespace {

// Dense TFLOPS: bf16 and fp16 on tensor cores with fp32 sums, and fp32 without them. Sources: NVIDIA's data sheets of each product
// (half of the figures "with sparsity"); of 3090 and 4090 appendix A of the white papers of GA102 and AD102.
struct Peak {
  std::string_view words;  // all of them are words of the name
  double half = 0, single = 0;
};
constexpr std::array kPeaks{
    // The more exact name first.
    Peak{"H200 NVL", 835.5, 60},   Peak{"H200", 989.4, 67},    Peak{"H100 NVL", 835.5, 60}, Peak{"H100 PCIe", 756, 51},
    Peak{"H100", 989.4, 67},       Peak{"H800 PCIe", 756, 51}, Peak{"H800", 989.4, 67},     Peak{"H20", 148, 44},
    Peak{"A100", 312, 19.5},       Peak{"A800", 312, 19.5},    Peak{"A40", 149.7, 37.4},    Peak{"A30", 165, 10.3},
    Peak{"A10", 125, 31.2},        Peak{"L40S", 362, 91.6},    Peak{"L40", 181, 90.5},      Peak{"L4", 121, 30.3},
    Peak{"RTX 4090", 165.2, 82.6}, Peak{"RTX 3090", 71, 35.6},
};

bool has_words(const std::vector<std::string_view>& name, std::string_view wanted) {
  for (std::string_view word : base::split_words(wanted))
    if (std::find(name.begin(), name.end(), word) == name.end()) return false;
  return true;
}

}  // namespace

double flops_per_token(int64_t parameters, int64_t layers, int64_t width, int64_t context) {
  const auto n = static_cast<double>(parameters - context * width);
  return 6 * n + 12.0 * static_cast<double>(layers) * static_cast<double>(width) * static_cast<double>(context);
}

std::optional<double> gpu_peak(std::string_view name, at::ScalarType dtype) {
  const std::string spaced = base::replace_all(name, "-", " ");  // "NVIDIA A100-SXM4-80GB"
  const std::vector<std::string_view> words = base::split_words(spaced);
  // Ti and Laptop are other chips under the same number.
  for (std::string_view other : {"MIG", "Laptop", "Ti", "D"})
    if (has_words(words, other)) return std::nullopt;
  for (const Peak& peak : kPeaks)
    if (has_words(words, peak.words)) return (dtype == at::kFloat ? peak.single : peak.half) * 1e12;
  return std::nullopt;
}

// By the driver's own library, which is there wherever CUDA works, so that no CUDA header is needed.
std::string gpu_name(int index) {
  void* driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!driver) return "";
  auto init = reinterpret_cast<int (*)(unsigned)>(dlsym(driver, "cuInit"));
  auto get = reinterpret_cast<int (*)(int*, int)>(dlsym(driver, "cuDeviceGet"));
  auto name_of = reinterpret_cast<int (*)(char*, int, int)>(dlsym(driver, "cuDeviceGetName"));
  std::array<char, 256> name{};
  int device = 0;
  const bool known = init && get && name_of && init(0) == 0 && get(&device, index) == 0 &&
                     name_of(name.data(), static_cast<int>(name.size()) - 1, device) == 0;
  return known ? name.data() : "";  // the library stays open: torch uses it too
}

double measure_cpu(at::ScalarType dtype) {
  using Clock = std::chrono::steady_clock;
  using Seconds = std::chrono::duration<double>;
  at::NoGradGuard no_grad;
  constexpr Seconds budget{0.1};
  const auto start = Clock::now();
  double best = 0;
  at::Tensor product;
  // Larger products while they are quick: a small one does not keep many cores busy, a large one would take too long on a slow one. Then
  // the same again until the time is up: on a busy host most of them are interrupted.
  int64_t n = 256;
  at::Tensor a = at::ones({n, n}, at::TensorOptions().dtype(dtype));
  for (int i = 1; i == 1 || Clock::now() - start < budget; ++i) {
    const auto before = Clock::now();
    product = at::mm(a, a);
    const Seconds took = Clock::now() - before;
    best = std::max(best, 2.0 * static_cast<double>(n * n * n) / took.count());
    if (i % 3 != 0 || n == 2048 || Clock::now() - start + 24 * took > budget) continue;  // 24: three products of twice the size
    n *= 2;
    a = at::ones({n, n}, a.options());
  }
  return best;
}

}  // namespace phalanx::engine::train
