// Which GPUs can serve a rank.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "job/choose/parts.h"

namespace phalanx::job {
namespace {

using doctor::Words;
using machine::Gpu;
using words::tr;

constexpr int64_t kMiB = int64_t{1} << 20;
constexpr int64_t kGiB = int64_t{1} << 30;
constexpr int64_t kContextBytes = 64 * kMiB;  // less than any CUDA context of a program that computes

// "sm_86" → 86, "compute_90" → 90, "sm_90a" → 90; 0: not understood.
int64_t number_in(std::string_view arch) {
  size_t at = arch.find('_');
  if (at == std::string_view::npos) return 0;
  std::string_view digits = arch.substr(at + 1);
  while (!digits.empty() && (digits.back() < '0' || digits.back() > '9')) digits.remove_suffix(1);
  base::Result<int64_t> number = base::parse_int(digits, 10, 999);
  return number.ok() ? *number : 0;
}

// Machine code runs on its own major version from its minor upwards (except the "a" and "f" kinds, which run on nothing else);
// PTX ("compute_") is compiled by the driver for anything newer. CUDA C++ programming guide, "Application compatibility".
bool runs_on(std::string_view arch, int64_t capability) {
  int64_t built = number_in(arch);
  if (built == 0 || built > capability) return false;
  bool special = arch.back() < '0' || arch.back() > '9';
  if (special) return built == capability;
  return arch.substr(0, 8) == "compute_" || built / 10 == capability / 10;
}

// What draws the desktop holds memory on the GPU and leaves it to compute all the same.
bool draws_the_desktop(const std::string& name) {
  static constexpr std::string_view kNames[] = {"Xorg",         "Xwayland",    "X",    "gnome-shell", "gnome-remote-de", "kwin_x11",
                                                "kwin_wayland", "plasmashell", "sddm", "gdm",         "lightdm",         "Xvfb"};
  return std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames);
}

}  // namespace

std::string model_of(const Gpu& gpu) {
  return fmt::format("{}, {}.{}, {} GiB", gpu.name, gpu.cc_major, gpu.cc_minor, (gpu.memory_bytes + kGiB / 2) / kGiB);
}

std::optional<Words> unfit(const Gpu& gpu, const machine::SoftwareFacts& software) {
  if (!gpu.fault.empty()) return tr("GPU {} does not answer ({})", gpu.index, gpu.fault);
  if (gpu.remap_failed) return tr("GPU {} has failed memory (row remapping failed)", gpu.index);
  if (gpu.mig.value_or(false)) return tr("GPU {} is split by MIG", gpu.index);
  if (gpu.compute_mode == "prohibited") return tr("GPU {} is in compute mode \"prohibited\"", gpu.index);
  int64_t capability = gpu.cc_major * 10 + gpu.cc_minor;
  const std::vector<std::string>& archs = software.torch_archs;
  if (capability > 0 && !archs.empty() &&
      std::none_of(archs.begin(), archs.end(), [&](const std::string& a) { return !a.empty() && runs_on(a, capability); }))
    return tr("this build of torch does not support GPU {} ({}, {}.{}); it was compiled for {}", gpu.index, gpu.name, gpu.cc_major,
              gpu.cc_minor, base::join(archs, " "));
  return std::nullopt;
}

std::optional<Words> busy(const Gpu& gpu) {
  int64_t explained = 0;
  for (const machine::GpuProcess& p : gpu.processes) {
    explained += p.used_bytes;
    if (draws_the_desktop(p.name) || (p.used_bytes > 0 && p.used_bytes < kContextBytes)) continue;
    std::string who = fmt::format("{}{} {}", p.user.empty() ? "" : p.user + ": ", p.name.empty() ? "pid" : p.name, p.pid);
    std::string holds = p.used_bytes > 0 ? ", " + base::format_bytes(static_cast<uint64_t>(p.used_bytes)) : "";
    return tr("GPU {} is busy ({}{})", gpu.index, who, holds);
  }
  // Processes of another pid namespace are counted by the driver and not listed.
  if (gpu.memory_used_bytes - explained <= std::max(kGiB, gpu.memory_bytes / 10)) return std::nullopt;
  std::string used = base::format_bytes(static_cast<uint64_t>(gpu.memory_used_bytes));
  return tr("GPU {} is busy ({} in use by processes that are not visible here)", gpu.index, used);
}

}  // namespace phalanx::job
