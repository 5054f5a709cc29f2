// Text of the kernel and of administrators: mountinfo, fstab, cgroup, stat lines, CPU lists, logind.conf, tables of sockets.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "host/cgroups.h"
#include "host/mounts.h"
#include "host/process_table.h"
#include "host/shared_memory.h"
#include "host/small_files.h"
#include "host/sockets.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  std::vector<host::Mount> mounts = host::parse_mountinfo(text);
  for (const host::Mount& m : mounts) {
    CHECK(!m.mount_point.empty() && m.mount_point[0] == '/');
    CHECK(host::mount_of(mounts, m.mount_point) != nullptr);
    host::split_source(m.source);
    host::is_network_fs(m.fs_type);
  }
  for (const host::FstabEntry& e : host::parse_fstab(text)) host::split_source(e.source);
  std::vector<host::CgroupLine> lines = host::parse_cgroup(text);
  for (const char* controller : {"memory", "pids", ""}) CHECK(host::cgroup_chain(controller, lines, mounts).folders.size() <= 64);
  host::ProcessStat stat;
  host::parse_stat(text, stat);
  CHECK(host::hide_secrets(text).size() <= 204);
  CHECK(host::count_cpulist(text) >= 0);
  host::remove_ipc_in(text);
  host::value_after(text, "MemTotal");
  host::Listener listener;
  if (host::parse_listener(text, listener)) CHECK(!listener.address.empty());
  return 0;
}
