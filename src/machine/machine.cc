#include <fcntl.h>
#include <sched.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "base/text.h"
#include "machine/identity.h"
#include "machine/probe.h"
#include "machine/small_files.h"
#include "os/clock.h"
#include "os/fd.h"
#include "os/files.h"

namespace phalanx::machine {
namespace {

// PRETTY_NAME="Debian GNU/Linux 12 (bookworm)" of os-release(5).
std::string distribution(const std::string& root) {
  base::Result<std::string> text = os::read_file(root + "/etc/os-release", 64 << 10);
  if (!text.ok()) text = os::read_file(root + "/usr/lib/os-release", 64 << 10);
  if (!text.ok()) return "";
  for (std::string_view line : base::split_lines(*text)) {
    if (line.substr(0, 12) != "PRETTY_NAME=") continue;
    std::string_view value = base::trim(line.substr(12));
    if (value.size() >= 2 && (value.front() == '"' || value.front() == '\'') && value.back() == value.front())
      value = value.substr(1, value.size() - 2);
    return std::string(value.substr(0, 200));
  }
  return "";
}

// "GNU C Library (…) stable release version 2.36." is a string of the library itself (csu/version.c). Its read-only data lie behind its
// code, so windows are read from the end.
std::string glibc_version(const std::string& path) {
  constexpr off_t kWindow = 128 << 10, kOverlap = 512;
  os::Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat info{};
  if (!file.valid() || ::fstat(file.get(), &info) != 0) return "";
  std::string text(static_cast<size_t>(kWindow + kOverlap), '\0');
  for (off_t end = info.st_size; end > 0; end -= kWindow) {
    off_t begin = std::max<off_t>(0, end - kWindow);
    ssize_t got = ::pread(file.get(), text.data(), text.size(), begin);
    if (got <= 0) return "";
    std::string_view window = std::string_view(text).substr(0, static_cast<size_t>(got));
    size_t name = window.find("GNU C Library");
    size_t version = name == std::string_view::npos ? name : window.find("release version ", name);
    if (version == std::string_view::npos || version - name > 256) continue;
    version += 16;
    size_t stop = version;
    while (stop < window.size() && window[stop] >= '.' && window[stop] <= '9' && window[stop] != '/') ++stop;
    while (stop > version && window[stop - 1] == '.') --stop;
    return std::string(window.substr(version, stop - version));
  }
  return "";
}

std::string glibc(const std::string& root) {
  for (const char* folder : {"/lib/x86_64-linux-gnu", "/lib/aarch64-linux-gnu", "/lib64", "/usr/lib64", "/usr/lib", "/lib"})
    if (std::string version = glibc_version(root + folder + "/libc.so.6"); !version.empty()) return version;
  return "";
}

std::string container(const ProbeRequest& r) {
  if (r.environment.count("KUBERNETES_SERVICE_HOST") || os::exists(r.root + "/var/run/secrets/kubernetes.io")) return "kubernetes";
  if (os::exists(r.root + "/.dockerenv")) return "docker";
  if (os::exists(r.root + "/run/.containerenv")) return "podman";
  if (os::exists(r.root + "/.singularity.d") || r.environment.count("APPTAINER_CONTAINER") || r.environment.count("SINGULARITY_CONTAINER"))
    return "apptainer";
  std::string groups = read_word(r.root + "/proc/1/cgroup");
  for (auto [mark, name] : {std::pair("kubepods", "kubernetes"), {"/docker", "docker"}, {"libpod", "podman"}, {"/lxc", "lxc"}})
    if (groups.find(mark) != std::string::npos) return name;
  std::string init = read_word(r.root + "/proc/1/environ");  // readable for root only
  if (init.find("container=lxc") != std::string::npos) return "lxc";
  if (init.find("container=systemd-nspawn") != std::string::npos) return "nspawn";
  return "";
}

std::vector<std::string> numa_cpus(const std::string& root) {
  std::vector<std::string> lists;
  for (int node = 0; node < 256; ++node) {
    std::string folder = root + "/sys/devices/system/node/node" + std::to_string(node);
    if (!os::is_folder(folder)) break;
    lists.push_back(read_word(folder + "/cpulist"));
  }
  return lists;
}

int64_t usable_cpus() {
  cpu_set_t set;
  if (::sched_getaffinity(0, sizeof(set), &set) == 0) return CPU_COUNT(&set);
  return ::sysconf(_SC_NPROCESSORS_ONLN);  // more CPUs than a cpu_set_t holds
}

std::string user_of(const ProbeRequest& r) {
  for (const char* name : {"USER", "LOGNAME"})
    if (auto found = r.environment.find(name); found != r.environment.end() && !found->second.empty()) return found->second;
  return identify(r.root, nullptr).user;
}

}  // namespace

Machine probe_machine(const ProbeRequest& r) {
  Machine m;
  m.hostname = read_word(r.root + "/proc/sys/kernel/hostname");
  m.boot_id = os::boot_id(r.root);
  m.net_space = own_space(r.root + "/proc", "net");
  m.pid_space = own_space(r.root + "/proc", "pid");
  if (r.root.empty()) m.outside = parse_outside(os::environment_value(kOutsideVariable));
  m.machine_id = read_word(r.root + "/etc/machine-id");
  m.kernel = read_word(r.root + "/proc/sys/kernel/osrelease");
  m.distribution = distribution(r.root);
  m.glibc = glibc(r.root);
  utsname names{};
  if (::uname(&names) == 0) m.architecture = names.machine;
  m.container = container(r);
  m.user = user_of(r);
  m.uid = ::getuid();
  m.cpus_online = count_cpulist(read_word(r.root + "/sys/devices/system/cpu/online"));
  m.cpus_usable = r.root.empty() ? usable_cpus() : m.cpus_online;
  m.numa_cpus = numa_cpus(r.root);
  base::Result<std::string> memory = os::read_file(r.root + "/proc/meminfo", 64 << 10);
  if (memory.ok()) {
    m.memory_bytes = value_after(*memory, "MemTotal").value_or(0) * 1024;
    m.memory_available_bytes = value_after(*memory, "MemAvailable").value_or(0) * 1024;
  }
  return m;
}

}  // namespace phalanx::machine
