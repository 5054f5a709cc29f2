#include "machine/identity.h"

#include <pwd.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>

#include <fmt/format.h>

#include "base/sha256.h"
#include "base/text.h"
#include "machine/gpu/cuda_order.h"
#include "machine/small_files.h"
#include "os/clock.h"
#include "os/files.h"

namespace phalanx::machine {
namespace {

uint32_t usable_cpus() {
  cpu_set_t set;
  if (::sched_getaffinity(0, sizeof(set), &set) == 0) return std::max(1, CPU_COUNT(&set));
  return static_cast<uint32_t>(std::max(1L, ::sysconf(_SC_NPROCESSORS_ONLN)));
}

// $USER before the password database: a static program must not load foreign name services.
std::string user_name() {
  std::string user = os::environment_value("USER");
  if (user.empty()) user = os::environment_value("LOGNAME");
  return user.empty() ? "uid " + std::to_string(::getuid()) : user;
}

bool useful(const os::InterfaceAddress& a) { return a.up && !a.loopback && a.address.rfind("fe80:", 0) != 0; }

// Whatever netlink would say of links and addresses is here for less: names, states and addresses of all interfaces.
void add_interfaces(base::Sha256& hash) {
  base::Result<std::vector<os::InterfaceAddress>> all = os::interface_addresses();
  if (!all.ok()) return;
  for (const os::InterfaceAddress& a : *all) hash.update(fmt::format("{} {} {}\n", a.interface, a.address, a.up));
}

}  // namespace

std::string fingerprint(const Identity& id, const char* const* environment) {
  base::Sha256 hash;
  hash.update(os::boot_id() + "\n");
  for (const char* file : {"/proc/net/route", "/etc/hosts", "/etc/nccl.conf"})
    if (base::Result<std::string> text = os::read_file(file, 1 << 20); text.ok()) hash.update(*text);
  char space[64] = "";
  if (::readlink("/proc/self/ns/net", space, sizeof(space) - 1) > 0) hash.update(space);
  add_interfaces(hash);
  hash.update(fmt::format("{} {} {} {}\n", id.hostname, id.user, id.cpus, id.gpus));
  for (const char* const* e = environment; e && *e; ++e)
    for (std::string_view prefix : {"NCCL_", "GLOO_", "CUDA_", "UCX_", "OMP_", "LD_LIBRARY_PATH=", "PATH="})
      if (std::string_view(*e).starts_with(prefix)) hash.update(std::string(*e) + "\n");
  return hash.hex().substr(0, 32);
}

uint32_t count_gpus(const std::string& root) {
  size_t known = names_in(root + "/proc/driver/nvidia/gpus").size();
  if (known > 0) return static_cast<uint32_t>(known);
  uint32_t devices = 0;
  for (const std::string& name : names_in(root + "/dev"))
    if (name.rfind("nvidia", 0) == 0 && base::is_number(std::string_view(name).substr(6))) ++devices;
  return devices;
}

Identity identify(const std::string& root, const char* visible_devices) {
  Identity id;
  char name[256] = "";
  ::gethostname(name, sizeof(name) - 1);
  id.hostname = name;
  id.user = user_name();
  id.cpus = usable_cpus();
  id.gpus = count_gpus(root);
  if (visible_devices) id.gpus = count_selected(visible_devices, id.gpus);
  base::Result<std::vector<os::InterfaceAddress>> all = os::interface_addresses();
  if (all.ok()) std::copy_if(all->begin(), all->end(), std::back_inserter(id.addresses), useful);
  return id;
}

}  // namespace phalanx::machine
