// The helper's lines into facts.
#include <unistd.h>

#include <algorithm>
#include <map>

#include "base/fields.h"
#include "base/json_fields.h"
#include "base/text.h"
#include "machine/gpu/cuda_order.h"
#include "machine/gpu/nvml_image.h"
#include "machine/gpu/sources.h"
#include "os/capture.h"
#include "os/files.h"

namespace phalanx::machine {
namespace {

constexpr size_t kMostLines = 20'000;
constexpr int64_t kMostGpus = 64;
constexpr size_t kMostBeside = 256;  // processes or links of one GPU

// One line. What a line does not have stays as it is.
struct Line {
  std::string kind, driver, call, error, name, uuid, pci, remote;
  int64_t index = -1, code = 0, cuda = 0, a = -1, b = -1, pid = 0, used = 0, link = 0, active = 0, errors = 0;
  std::optional<int64_t> cc_major, cc_minor, cores, numa_node, memory, memory_used, memory_reserved, persistence, compute_mode, display,
      mig, temperature, power, power_limit, power_default, clock_sm, clock_sm_max, clock_application, clock_application_default, throttle,
      utilization, replays, pcie_generation, pcie_generation_max, pcie_width, pcie_width_max, ecc, ecc_volatile, ecc_aggregate,
      remapped_correctable, remapped_uncorrectable, remap_pending, remap_failed, retired_pages, fabric_state, read, write, level,
      remote_kind;
};
PHALANX_FIELDS(Line, kind, driver, call, error, name, uuid, pci, remote, index, code, cuda, a, b, pid, used, link, active, errors, cc_major,
               cc_minor, cores, numa_node, memory, memory_used, memory_reserved, persistence, compute_mode, display, mig, temperature,
               power, power_limit, power_default, clock_sm, clock_sm_max, clock_application, clock_application_default, throttle,
               utilization, replays, pcie_generation, pcie_generation_max, pcie_width, pcie_width_max, ecc, ecc_volatile, ecc_aggregate,
               remapped_correctable, remapped_uncorrectable, remap_pending, remap_failed, retired_pages, fabric_state, read, write, level,
               remote_kind);

std::string fault_of(const Line& line) { return line.error.empty() ? "NVML error " + std::to_string(line.code) : line.error; }

std::optional<bool> yes(const std::optional<int64_t>& value) { return value ? std::optional(*value != 0) : std::nullopt; }

std::string compute_mode(const std::optional<int64_t>& mode) {
  if (!mode) return "";
  switch (*mode) {
    case 0: return "default";
    case 2: return "prohibited";
    case 1:
    case 3: return "exclusive_process";
    default: return "unknown";
  }
}

// nvmlGpuP2PStatus_t
std::string p2p_words(const std::optional<int64_t>& status) {
  static const char* const kWords[] = {
      "ok", "chipset not supported", "GPU not supported", "topology not supported", "disabled by regkey", "not supported"};
  if (!status) return "";
  return *status >= 0 && *status < 6 ? kWords[*status] : "unknown";
}
// nvmlGpuTopologyLevel_t, in nvidia-smi's words
std::string level_words(const std::optional<int64_t>& level) {
  static const std::map<int64_t, std::string> kWords = {{0, "PIX"}, {10, "PIX"}, {20, "PXB"}, {30, "PHB"}, {40, "NODE"}, {50, "SYS"}};
  auto found = level ? kWords.find(*level) : kWords.end();
  return found == kWords.end() ? "" : found->second;
}
std::string generation_words(int64_t generation) {
  static const char* const kWords[] = {
      "", "2.5 GT/s PCIe", "5.0 GT/s PCIe", "8.0 GT/s PCIe", "16.0 GT/s PCIe", "32.0 GT/s PCIe", "64.0 GT/s PCIe"};
  return generation > 0 && generation < 7 ? kWords[generation] : "";
}

void set_health(const Line& line, Gpu& g) {
  g.ecc = yes(line.ecc);
  g.ecc_volatile_uncorrected = line.ecc_volatile;
  g.ecc_aggregate_uncorrected = line.ecc_aggregate;
  g.remapped_correctable = line.remapped_correctable;
  g.remapped_uncorrectable = line.remapped_uncorrectable;
  g.remap_pending = line.remap_pending.value_or(0) != 0;
  g.remap_failed = line.remap_failed.value_or(0) != 0;
  g.retired_pages = line.retired_pages;
  g.fabric_state = line.fabric_state;
}

Gpu gpu_of(const Line& line) {
  Gpu g;
  g.index = line.index;
  g.name = line.name;
  g.uuid = line.uuid;
  g.pci = base::to_lower(line.pci);
  if (line.code != 0) g.fault = fault_of(line);
  g.cc_major = line.cc_major.value_or(0);
  g.cc_minor = line.cc_minor.value_or(0);
  int64_t cores = cores_per_multiprocessor(g.cc_major, g.cc_minor);
  if (cores > 0 && line.cores) g.sm_count = *line.cores / cores;
  g.memory_bytes = line.memory.value_or(0);
  g.memory_used_bytes = line.memory_used.value_or(0);
  g.memory_reserved_bytes = line.memory_reserved;
  g.numa_node = line.numa_node.value_or(-1);
  g.persistence = yes(line.persistence);
  g.compute_mode = compute_mode(line.compute_mode);
  g.mig = yes(line.mig);
  g.display_active = yes(line.display);
  g.temperature_c = line.temperature;
  g.power_mw = line.power;
  g.power_limit_mw = line.power_limit;
  g.power_limit_default_mw = line.power_default;
  g.clock_sm_mhz = line.clock_sm;
  g.clock_sm_max_mhz = line.clock_sm_max;
  g.clock_application_mhz = line.clock_application;
  g.clock_application_default_mhz = line.clock_application_default;
  g.throttle_reasons = line.throttle;
  g.utilization_percent = line.utilization;
  g.pcie_replays = line.replays;
  set_health(line, g);
  if (line.pcie_width && !g.pci.empty())
    g.pcie = {{g.pci, generation_words(line.pcie_generation.value_or(0)), generation_words(line.pcie_generation_max.value_or(0)),
               *line.pcie_width, line.pcie_width_max.value_or(0), false}};
  return g;
}

Gpu* find_gpu(GpuFacts& facts, int64_t index) {
  auto found = std::find_if(facts.devices.begin(), facts.devices.end(), [&](const Gpu& g) { return g.index == index; });
  return found == facts.devices.end() ? nullptr : &*found;
}

void take_beside(const Line& line, Gpu& g) {
  if (line.kind == "process" && g.processes.size() < kMostBeside) {
    GpuProcess p;
    p.pid = line.pid;
    p.used_bytes = std::max<int64_t>(0, line.used);
    g.processes.push_back(std::move(p));
  } else if (line.kind == "mig" && g.mig_devices.size() < kMostBeside) {
    g.mig_devices.push_back(line.uuid);
  } else if (line.kind == "link" && g.nvlinks.size() < kMostBeside) {
    g.nvlinks.push_back({line.link, line.active != 0, line.errors, base::to_lower(line.remote), line.remote_kind == 2});
  }
}

void take(const Line& line, GpuFacts& facts) {
  if (line.kind == "system") {
    facts.source = "nvml";
    facts.driver = line.driver;
    facts.cuda_driver = line.cuda;
  } else if (line.kind == "error") {
    facts.nvml_error = fault_of(line);
  } else if (line.kind == "gpu" && line.index >= 0 && line.index < kMostGpus && !find_gpu(facts, line.index)) {
    facts.devices.push_back(gpu_of(line));
  } else if (line.kind == "pair" && find_gpu(facts, line.a) && find_gpu(facts, line.b) && facts.pairs.size() < kMostGpus * kMostGpus / 2) {
    facts.pairs.push_back({line.a, line.b, p2p_words(line.read), p2p_words(line.write), level_words(line.level)});
  } else if (Gpu* g = find_gpu(facts, line.index)) {
    take_beside(line, *g);
  }
}

// The library files of a machine that lies under a folder; for this machine none: the helper knows where to look.
std::vector<std::string> library_files(const ProbeRequest& request) {
  auto named = request.environment.find("PHALANX_NVML");
  std::string wanted = named != request.environment.end() ? named->second : os::environment_value("PHALANX_NVML");
  if (!wanted.empty()) return {wanted};
  std::vector<std::string> files;
  if (request.root.empty()) return files;
  for (const char* folder : {"/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib"})
    if (std::string file = request.root + folder + "/libnvidia-ml.so.1"; os::exists(file)) files.push_back(file);
  return files;
}

}  // namespace

void read_nvml_lines(std::string_view output, GpuFacts& facts) {
  size_t count = 0;
  for (std::string_view text : base::split_lines(output)) {
    if (++count > kMostLines) break;
    base::Result<base::Json> json = base::parse_json(text, 16 << 10);
    if (!json.ok()) continue;  // the last line before a crash, or what a library prints
    base::Result<Line> line = base::from_json<Line>(*json);
    if (line.ok()) take(*line, facts);
  }
}

bool ask_nvml(const ProbeRequest& request, std::chrono::milliseconds deadline, GpuFacts& facts) {
  std::vector<std::string> files = library_files(request);
  if (nvml_image().empty() || (!request.root.empty() && files.empty())) return false;
  os::CaptureSpec spec;
  spec.program = "nvml-helper";
  spec.image = nvml_image();
  spec.arguments = {"phalanx-nvml"};
  spec.arguments.insert(spec.arguments.end(), files.begin(), files.end());
  for (const char* name : {"LD_LIBRARY_PATH", "PATH"})
    if (std::string value = os::environment_value(name); !value.empty()) spec.environment.push_back(std::string(name) + "=" + value);
  spec.deadline = deadline;
  os::Captured answer = os::capture(spec);
  if (!answer.started) return false;
  read_nvml_lines(answer.output, facts);
  bool answered = !facts.source.empty();
  bool no_library = answer.output.find("\"call\":\"dlopen\"") != std::string::npos;
  if (no_library) facts.nvml_error.clear();
  if (!answer.fault.empty() && !no_library) facts.nvml_error = answer.fault;
  return answered || !facts.nvml_error.empty();
}

}  // namespace phalanx::machine
