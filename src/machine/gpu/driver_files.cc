// What the driver shows as files, and who uses its devices.
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <climits>

#include "base/text.h"
#include "machine/gpu/sources.h"
#include "machine/small_files.h"
#include "os/family.h"
#include "os/files.h"

namespace phalanx::machine {
namespace {

constexpr size_t kMostNames = 4096;

// "535.129.03"
bool is_version(std::string_view text) {
  size_t points = 0;
  for (char c : text) {
    if (c == '.') ++points;
    else if (c < '0' || c > '9') return false;
  }
  return points >= 1 && points <= 2 && text.size() >= 5 && text.size() <= 16 && text.front() != '.' && text.back() != '.';
}

// "Model: \t NVIDIA GeForce RTX 3090"
Gpu gpu_of(const std::string& root, const std::string& address, int64_t index) {
  Gpu g;
  g.index = index;
  g.pci = base::to_lower(address);
  base::Result<std::string> text = os::read_file(root + "/proc/driver/nvidia/gpus/" + address + "/information", 16 << 10);
  if (!text.ok()) return g;
  for (std::string_view line : base::split_lines(*text)) {
    size_t colon = line.find(':');
    if (colon == std::string_view::npos) continue;
    std::string value(base::trim(line.substr(colon + 1)).substr(0, 128));
    if (line.substr(0, colon) == "Model") g.name = value;
    if (line.substr(0, colon) == "GPU UUID" && value.find('?') == std::string::npos) g.uuid = value;  // "GPU-????…" before the first use
  }
  return g;
}

std::string user_name(const std::string& root, int64_t uid) {
  base::Result<std::string> text = os::read_file(root + "/etc/passwd", 4 << 20);
  if (text.ok()) {
    for (std::string_view line : base::split_lines(*text)) {
      std::vector<std::string_view> parts = base::split(line, ':');
      if (parts.size() > 2 && parts[2] == std::to_string(uid)) return std::string(parts[0]);
    }
  }
  return "uid " + std::to_string(uid);
}

double uptime(const std::string& root) {
  base::Result<std::string> text = os::read_file(root + "/proc/uptime", 256);
  return text.ok() ? ::strtod(text->c_str(), nullptr) : 0;
}

// Field 22 of stat: clock ticks after boot at which it started. The name before may hold blanks and brackets.
int64_t age(const std::string& root, const std::string& folder) {
  base::Result<std::string> stat = os::read_file(folder + "/stat", 4096);
  size_t close = stat.ok() ? stat->rfind(')') : std::string::npos;
  if (close == std::string::npos) return 0;
  std::vector<std::string_view> words = base::split_words(std::string_view(*stat).substr(close + 1));
  if (words.size() < 20) return 0;
  base::Result<int64_t> ticks = base::parse_int(words[19], 0, INT64_MAX);
  double now = uptime(root), per_second = static_cast<double>(::sysconf(_SC_CLK_TCK));
  return ticks.ok() && now > 0 ? std::max<int64_t>(0, static_cast<int64_t>(now - static_cast<double>(*ticks) / per_second)) : 0;
}

// In a pid namespace of our own NVML's numbers are another namespace's: the process here that happens to have the number is believed
// only if it has one of the driver's devices open.
bool holds_gpu(const std::string& folder) {
  for (const std::string& fd : names_in(folder + "/fd")) {
    char target[PATH_MAX];
    ssize_t n = ::readlink((folder + "/fd/" + fd).c_str(), target, sizeof(target));
    if (n > 0 && std::string_view(target, static_cast<size_t>(n)).starts_with("/dev/nvidia")) return true;
  }
  return false;
}

void describe(const std::string& root, bool own_pids, GpuProcess& p) {
  std::string folder = root + "/proc/" + std::to_string(p.pid);
  base::Result<std::string> status = os::read_file(folder + "/status", 64 << 10);
  if (!status.ok() || (own_pids && !holds_gpu(folder))) return;
  p.visible = true;
  for (std::string_view line : base::split_lines(*status)) {
    std::vector<std::string_view> words = base::split_words(line);
    if (words.size() < 2) continue;
    base::Result<int64_t> value = base::parse_int(words[1], 0, INT64_MAX);
    if (words[0] == "Name:") p.name = std::string(base::trim(line.substr(5)).substr(0, 64));
    if (words[0] == "PPid:" && value.ok()) p.parent = *value;
    if (words[0] == "Uid:" && value.ok()) p.user = user_name(root, *value);
  }
  p.age_s = age(root, folder);
}

}  // namespace

std::string driver_library_version(const std::string& root) {
  for (const char* folder : {"/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib"}) {
    for (const char* name : {"libnvidia-ml.so.1", "libcuda.so.1"}) {
      char target[PATH_MAX];
      if (!::realpath((root + folder + "/" + name).c_str(), target)) continue;
      std::string_view path = target;
      size_t so = path.rfind(".so.");
      if (so != std::string_view::npos && is_version(path.substr(so + 4))) return std::string(path.substr(so + 4));
    }
  }
  return "";
}

void read_driver_files(const std::string& root, GpuFacts& facts) {
  base::Result<std::string> version = os::read_file(root + "/proc/driver/nvidia/version", 16 << 10);
  if (version.ok()) {
    std::string_view first = std::string_view(*version).substr(0, version->find('\n'));
    facts.open_module = first.find("Open Kernel Module") != std::string_view::npos;
    for (std::string_view word : base::split_words(first))
      if (facts.kernel_module.empty() && is_version(word)) facts.kernel_module = word;
  }
  for (const std::string& name : names_in(root + "/dev"))
    if (name.starts_with("nvidia") && base::is_number(std::string_view(name).substr(6))) ++facts.device_nodes;
  facts.uvm_node = os::exists(root + "/dev/nvidia-uvm");
  struct stat info{};
  facts.modprobe = ::stat((root + "/usr/bin/nvidia-modprobe").c_str(), &info) == 0 && (info.st_mode & S_ISUID) != 0;
  facts.own_pids = root.empty() && os::in_own_pid_namespace();
  if (!facts.devices.empty()) return;
  for (const std::string& address : names_in(root + "/proc/driver/nvidia/gpus"))
    if (facts.devices.size() < 64) facts.devices.push_back(gpu_of(root, address, static_cast<int64_t>(facts.devices.size())));
  if (!facts.devices.empty() && facts.source.empty()) facts.source = "proc";
}

void describe_gpu_processes(const std::string& root, GpuFacts& facts) {
  for (Gpu& g : facts.devices)
    for (GpuProcess& p : g.processes) describe(root, facts.own_pids, p);
}

void find_fabric_manager(const std::string& root, GpuFacts& facts) {
  if (!facts.nvswitch) return;
  size_t looked_at = 0;
  for (const std::string& pid : names_in(root + "/proc")) {
    if (!base::is_number(pid) || ++looked_at > kMostNames * 8) continue;
    base::Result<std::string> comm = os::read_file(root + "/proc/" + pid + "/comm", 64);
    if (comm.ok() && comm->starts_with("nv-fabricmanage")) {  // the kernel keeps 15 bytes of a name
      facts.fabric_manager = "active";
      return;
    }
  }
  if (facts.own_pids) return;
  facts.fabric_manager = os::exists(root + "/usr/bin/nv-fabricmanager") ? "inactive" : "missing";
}

}  // namespace phalanx::machine
