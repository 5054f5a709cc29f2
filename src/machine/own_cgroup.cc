#include "machine/own_cgroup.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cerrno>

#include "base/text.h"
#include "machine/cgroups.h"
#include "machine/storage/mounts.h"
#include "os/clock.h"
#include "os/files.h"

namespace phalanx::machine {
namespace {

constexpr size_t kMostBytes = 1 << 20;

// systemd marks what it delegates (systemd.resource-control(5), Delegate=): "trusted." by the system, "user." by a user's own systemd.
bool is_marked_delegated(const std::string& folder) {
  for (const char* name : {"trusted.delegate", "user.delegate"}) {
    char value[8] = "";
    if (::getxattr(folder.c_str(), name, value, sizeof(value) - 1) == 1 && value[0] == '1') return true;
  }
  return false;
}

// A user who owns the group was given it. Root owns them all: it must be marked, or be the root of what is seen, which no systemd manages.
bool is_delegated(const std::string& folder, bool topmost) {
  struct stat s{};
  if (::stat(folder.c_str(), &s) != 0 || s.st_uid != ::geteuid() || ::access(folder.c_str(), W_OK) != 0) return false;
  return s.st_uid != 0 || topmost || is_marked_delegated(folder);
}

std::string last_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

// The folder of a group of ours; invalid: error_number says why.
os::Fd open_group(const std::string& path, int& error_number) {
  error_number = EINVAL;
  if (!path.starts_with('/') || !last_name(path).starts_with(OwnCgroup::kPrefix)) return {};
  os::Fd folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  error_number = folder.valid() ? 0 : errno;
  struct stat s{};
  if (folder.valid() && ::fstat(folder.get(), &s) == 0 && s.st_uid == ::geteuid() && (s.st_mode & 022) == 0) return folder;
  if (folder.valid()) error_number = EPERM;
  return {};
}

OwnCgroup::Content look_at(const os::Fd& folder) {
  base::Result<os::Fd> events = os::open_regular(folder.get(), "cgroup.events");
  base::Result<std::string> text =
      events.ok() ? os::read_rest(*events, "cgroup.events", kMostBytes) : base::Result<std::string>(events.error());
  if (!text.ok()) return OwnCgroup::Content::kUnknown;
  for (std::string_view line : base::split_lines(*text)) {
    if (line == "populated 0") return OwnCgroup::Content::kEmpty;
    if (line == "populated 1") return OwnCgroup::Content::kPopulated;
  }
  return OwnCgroup::Content::kUnknown;
}

}  // namespace

std::optional<OwnCgroup> OwnCgroup::create(const std::string& name, const std::string& root) {
  base::Result<std::string> lines = os::read_file(root + "/proc/self/cgroup", kMostBytes);
  base::Result<std::string> mounts = os::read_file(root + "/proc/self/mountinfo", kMostBytes);
  if (!lines.ok() || !mounts.ok()) return std::nullopt;
  CgroupChain chain = cgroup_chain("", parse_cgroup(*lines), parse_mountinfo(*mounts));
  if (!chain.version_2 || chain.folders.empty()) return std::nullopt;
  const std::string parent = root + chain.folders.front();
  if (!is_delegated(parent, chain.folders.size() == 1)) return std::nullopt;
  const std::string path = parent + "/" + kPrefix + name;
  if (::mkdir(path.c_str(), 0755) != 0) return std::nullopt;
  os::Fd procs(::open((path + "/cgroup.procs").c_str(), O_WRONLY | O_CLOEXEC));
  if (!procs.valid() || ::access((path + "/cgroup.kill").c_str(), W_OK) != 0 || look(path) != Content::kEmpty) {
    ::rmdir(path.c_str());
    return std::nullopt;
  }
  return OwnCgroup(path, std::move(procs));
}

bool OwnCgroup::holds(pid_t pid) const { return processes(path_).count(pid) > 0; }

OwnCgroup::Content OwnCgroup::look(const std::string& path) {
  int error_number = 0;
  os::Fd folder = open_group(path, error_number);
  if (folder.valid()) return look_at(folder);
  // A group that holds a process cannot be removed. That the folder above is there tells a removed group from groups that are not mounted
  // here.
  const std::string above = path.substr(0, path.rfind('/'));
  if (error_number != ENOENT) return Content::kUnknown;
  base::Result<bool> there = os::is_present(above + "/cgroup.procs");
  return there.ok() && *there ? Content::kGone : Content::kUnknown;
}

bool OwnCgroup::kill(const std::string& path) {
  int error_number = 0;
  os::Fd folder = open_group(path, error_number);
  if (!folder.valid() || look_at(folder) == Content::kUnknown) return false;
  os::Fd kill(::openat(folder.get(), "cgroup.kill", O_WRONLY | O_CLOEXEC | O_NOFOLLOW));
  return kill.valid() && ::write(kill.get(), "1", 1) == 1;
}

bool OwnCgroup::remove(const std::string& path) {
  int error_number = 0;
  os::Fd folder = open_group(path, error_number);
  return folder.valid() && look_at(folder) == Content::kEmpty && ::rmdir(path.c_str()) == 0;
}

// The kernel tells of every change in cgroup.events by POLLPRI.
void OwnCgroup::await_empty(const std::string& path, std::chrono::milliseconds most) {
  const os::Mono end = os::mono_now() + most;
  int error_number = 0;
  os::Fd folder = open_group(path, error_number);
  base::Result<os::Fd> events =
      folder.valid() ? os::open_regular(folder.get(), "cgroup.events") : base::system_error("open", path, error_number);
  while (events.ok() && os::mono_now() < end) {
    char text[4096];
    const ssize_t n = ::pread(events->get(), text, sizeof(text), 0);  // a change after this wakes the poll
    if (n <= 0 || std::string_view(text, static_cast<size_t>(n)).find("populated 1") == std::string_view::npos) return;
    pollfd changed{events->get(), POLLPRI, 0};
    ::poll(&changed, 1, static_cast<int>((end - os::mono_now()).count() / 1'000'000) + 1);
  }
}

std::set<int64_t> OwnCgroup::processes(const std::string& path) {
  std::set<int64_t> pids;
  int error_number = 0;
  os::Fd folder = open_group(path, error_number);
  if (!folder.valid()) return pids;
  base::Result<os::Fd> file = os::open_regular(folder.get(), "cgroup.procs");
  base::Result<std::string> text = file.ok() ? os::read_rest(*file, "cgroup.procs", kMostBytes) : base::Result<std::string>(file.error());
  if (!text.ok()) return pids;
  for (std::string_view line : base::split_lines(*text))
    if (base::Result<int64_t> pid = base::parse_int(line, 1, INT32_MAX); pid.ok()) pids.insert(*pid);
  return pids;
}

}  // namespace phalanx::machine
