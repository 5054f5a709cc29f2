// Text of the kernel and of administrators: mountinfo, fstab, cgroup, stat lines, CPU lists, logind.conf, tables of sockets.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "machine/cgroups.h"
#include "machine/network/sockets.h"
#include "machine/ranks/process_table.h"
#include "machine/small_files.h"
#include "machine/storage/mounts.h"
#include "machine/storage/shared_memory.h"

using namespace phalanx;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  std::vector<machine::Mount> mounts = machine::parse_mountinfo(text);
  for (const machine::Mount& m : mounts) {
    PHALANX_CHECK(!m.mount_point.empty() && m.mount_point[0] == '/');
    PHALANX_CHECK(machine::mount_of(mounts, m.mount_point) != nullptr);
    machine::split_source(m.source);
    machine::is_network_fs(m.fs_type);
  }
  for (const machine::FstabEntry& e : machine::parse_fstab(text)) machine::split_source(e.source);
  std::vector<machine::CgroupLine> lines = machine::parse_cgroup(text);
  for (const char* controller : {"memory", "pids", ""})
    PHALANX_CHECK(machine::cgroup_chain(controller, lines, mounts).folders.size() <= 64);
  machine::ProcessStat stat;
  machine::parse_stat(text, stat);
  PHALANX_CHECK(machine::hide_secrets(text).size() <= 204);
  PHALANX_CHECK(machine::count_cpulist(text) >= 0);
  machine::remove_ipc_in(text);
  machine::value_after(text, "MemTotal");
  machine::Listener listener;
  if (machine::parse_listener(text, listener)) PHALANX_CHECK(!listener.address.empty());
  return 0;
}
