#include "cli/records/full_disk.h"

#include <fmt/format.h>
#include <sys/statvfs.h>

#include <cerrno>
#include <cstring>
#include <optional>

#include "base/text.h"
#include "logs/runs/run_directory.h"
#include "machine/storage/mounts.h"
#include "os/files.h"

namespace phalanx::cli {
namespace {

constexpr size_t kMountsBytes = 4 << 20;

std::optional<machine::Mount> mount_under(const std::string& path) {
  base::Result<std::string> text = os::read_file("/proc/self/mountinfo", kMountsBytes);
  if (!text.ok()) return std::nullopt;
  const std::vector<machine::Mount> mounts = machine::parse_mountinfo(*text);
  const machine::Mount* mount = machine::mount_of(mounts, path);
  return mount ? std::optional(*mount) : std::nullopt;
}

// Biggest last; -x: not what is mounted below.
std::string look_command(const machine::Mount& mount) {
  return fmt::format("du -xh -d 2 {} | sort -h | tail", base::shell_quote(mount.mount_point));
}

// The nearest folder above that exists.
std::string existing(std::string folder) {
  while (folder.size() > 1 && !os::exists(folder)) folder.resize(std::max<size_t>(1, folder.rfind('/')));
  return folder;
}

}  // namespace

base::Error with_disk(base::Error error, const std::string& folder) {
  struct statvfs disk{};
  const std::optional<machine::Mount> mount = mount_under(folder);
  if (!mount || ::statvfs(existing(folder).c_str(), &disk) != 0) return error;
  const uint64_t free = disk.f_bavail * disk.f_frsize, total = disk.f_blocks * disk.f_frsize;
  const bool no_inodes = disk.f_files > 0 && disk.f_favail == 0;
  if (!no_inodes && free > 2 * logs::RunDirectory::kReserveBytes) return error;
  error.cause = no_inodes ? fmt::format("the {} file system {}, mounted at {}, has 0 of {} inodes free", mount->fs_type, mount->source,
                                        mount->mount_point, disk.f_files)
                          : fmt::format("the {} file system {}, mounted at {}, has {} of {} free", mount->fs_type, mount->source,
                                        mount->mount_point, base::format_bytes(free), base::format_bytes(total));
  error.hint =
      fmt::format("choose another folder with --log-dir, or make room: {} shows what fills it, phalanx clean what Phalanx can remove",
                  look_command(*mount));
  return error;
}

std::string warning_with_disk(const std::string& warning, const std::string& folder) {
  if (!warning.ends_with(std::strerror(ENOSPC)) && !warning.ends_with(std::strerror(EDQUOT))) return warning;
  const std::optional<machine::Mount> mount = mount_under(folder);
  if (!mount) return warning;
  return fmt::format("{}: it is the {} file system {}, mounted at {}; {} shows what fills it", warning, mount->fs_type, mount->source,
                     mount->mount_point, look_command(*mount));
}

}  // namespace phalanx::cli
