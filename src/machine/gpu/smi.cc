// nvidia-smi's table, where NVML could not be loaded (a system without glibc, a library in an unusual place).
#include <algorithm>
#include <map>

#include "base/text.h"
#include "machine/gpu/sources.h"
#include "os/capture.h"
#include "os/clock.h"
#include "os/files.h"

namespace phalanx::machine {
namespace {

constexpr size_t kMostGpus = 64;
// compute_cap came with driver 510: it is asked for first and left out when it is not known.
constexpr const char* kColumns =
    "index,name,uuid,pci.bus_id,memory.total,memory.used,driver_version,persistence_mode,compute_mode,ecc.mode.current,temperature.gpu,"
    "power.draw,power.limit,utilization.gpu,pcie.link.width.current,pcie.link.width.max,clocks.max.sm";

// "memory.total [MiB]" → "memory.total"
std::string column_name(std::string_view text) {
  text = base::trim(text);
  return std::string(base::trim(text.substr(0, text.find('['))));
}

// Digits and at most one point; "[N/A]", "[Not Supported]" and all else: none.
std::optional<double> number(std::string_view text) {
  double value = 0, scale = 0;
  if (text.empty() || text.size() > 15) return std::nullopt;
  for (char c : text) {
    if (c == '.' && scale == 0) {
      scale = 1;
      continue;
    }
    if (c < '0' || c > '9') return std::nullopt;
    value = value * 10 + (c - '0');
    if (scale > 0) scale *= 10;
  }
  return scale > 0 ? value / scale : value;
}

std::string short_pci(std::string_view bus) {
  std::string text = base::to_lower(bus);
  return text.size() == 16 && text.substr(0, 4) == "0000" ? text.substr(4) : text;  // nvidia-smi writes an eight-digit domain
}

using Fields = std::map<std::string, std::string_view>;

std::optional<int64_t> whole(const Fields& f, const char* name, double factor = 1) {
  auto found = f.find(name);
  std::optional<double> value = found == f.end() ? std::nullopt : number(found->second);
  return value ? std::optional(static_cast<int64_t>(*value * factor)) : std::nullopt;
}
std::string text(const Fields& f, const char* name) {
  auto found = f.find(name);
  return found == f.end() || found->second.starts_with("[") ? "" : std::string(found->second.substr(0, 200));
}
std::optional<bool> on(const Fields& f, const char* name) {
  std::string value = text(f, name);
  if (value != "Enabled" && value != "Disabled") return std::nullopt;
  return value == "Enabled";
}

Gpu gpu_of(const Fields& f, int64_t position) {
  Gpu g;
  g.index = whole(f, "index").value_or(position);
  g.name = text(f, "name");
  g.uuid = text(f, "uuid");
  g.pci = short_pci(text(f, "pci.bus_id"));
  std::string capability = text(f, "compute_cap");
  size_t point = capability.find('.');
  if (point != std::string::npos) {
    g.cc_major = base::parse_int(capability.substr(0, point), 0, 99).ok() ? *base::parse_int(capability.substr(0, point), 0, 99) : 0;
    g.cc_minor = base::parse_int(capability.substr(point + 1), 0, 99).ok() ? *base::parse_int(capability.substr(point + 1), 0, 99) : 0;
  }
  constexpr double kMiB = 1 << 20;
  g.memory_bytes = whole(f, "memory.total", kMiB).value_or(0);
  g.memory_used_bytes = whole(f, "memory.used", kMiB).value_or(0);
  g.persistence = on(f, "persistence_mode");
  std::string mode = base::to_lower(text(f, "compute_mode"));
  g.compute_mode = base::replace_all(mode, " ", "_");  // "Exclusive_Process"
  g.ecc = on(f, "ecc.mode.current");
  g.temperature_c = whole(f, "temperature.gpu");
  g.power_mw = whole(f, "power.draw", 1000);
  g.power_limit_mw = whole(f, "power.limit", 1000);
  g.utilization_percent = whole(f, "utilization.gpu");
  g.clock_sm_max_mhz = whole(f, "clocks.max.sm");
  if (std::optional<int64_t> width = whole(f, "pcie.link.width.current"); width && !g.pci.empty())
    g.pcie = {{g.pci, "", "", *width, whole(f, "pcie.link.width.max").value_or(0), false}};
  return g;
}

std::string find_smi(const ProbeRequest& request) {
  for (const char* path : {"/usr/bin/nvidia-smi", "/usr/local/bin/nvidia-smi", "/usr/lib/wsl/lib/nvidia-smi", "/opt/bin/nvidia-smi",
                           "/run/current-system/sw/bin/nvidia-smi", "/usr/local/nvidia/bin/nvidia-smi"})
    if (os::exists(request.root + path)) return request.root + path;
  return "";
}

}  // namespace

bool read_smi_table(std::string_view csv, GpuFacts& facts) {
  std::vector<std::string_view> lines = base::split_lines(csv);
  if (lines.size() < 2) return false;
  std::vector<std::string> names;
  for (std::string_view name : base::split(lines[0], ',')) names.push_back(column_name(name));
  if (std::find(names.begin(), names.end(), "uuid") == names.end()) return false;
  for (size_t i = 1; i < lines.size() && facts.devices.size() < kMostGpus; ++i) {
    std::vector<std::string_view> values = base::split(lines[i], ',');
    if (values.size() != names.size()) continue;
    Fields f;
    for (size_t c = 0; c < names.size(); ++c) f[names[c]] = base::trim(values[c]);
    if (facts.driver.empty()) facts.driver = text(f, "driver_version");
    facts.devices.push_back(gpu_of(f, static_cast<int64_t>(i) - 1));
  }
  facts.source = "nvidia-smi";
  return true;
}

bool ask_smi(const ProbeRequest& request, std::chrono::milliseconds deadline, GpuFacts& facts) {
  os::Mono end = os::mono_now() + deadline;
  std::string program = find_smi(request);
  if (program.empty()) return false;
  for (bool with_capability : {true, false}) {
    os::CaptureSpec spec;
    spec.program = program;
    spec.arguments = {program, std::string("--query-gpu=") + kColumns + (with_capability ? ",compute_cap" : ""), "--format=csv,nounits"};
    spec.environment = {"PATH=/usr/bin:/bin", "LC_ALL=C"};
    spec.deadline = std::chrono::duration_cast<std::chrono::milliseconds>(end - os::mono_now());
    if (spec.deadline.count() <= 0) break;
    os::Captured answer = os::capture(spec);
    if (answer.fault.empty() && read_smi_table(answer.output, facts)) return true;
    if (answer.timed_out) facts.nvml_error = "nvidia-smi: " + answer.fault;
    if (answer.timed_out) break;
  }
  return false;
}

}  // namespace phalanx::machine
