#include "host_init.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <pwd.h>
#include <sched.h>
#include <signal.h>
#include <sys/inotify.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <set>

#include "base/text.h"
#include "base/try.h"
#include "cgroup.h"
#include "state.h"
#include "tool.h"

namespace phalanx::testbed {

namespace {

base::Status mount_at(const char* type, const std::string& source, const std::string& target, unsigned long flags,
                      const std::string& data = {}) {
  if (::mount(source.c_str(), target.c_str(), type, flags, data.c_str()) == 0) return base::ok();
  return base::system_error(fmt::format("mount {} at", type ? type : source), target);
}

base::Status cover(const std::string& target, const Area& area, int mode) {
  TRY(make_folder(target, mode));
  return mount_at("tmpfs", "testbed", target, MS_NOSUID, fmt::format("size={}k,mode={:o}", area.size_kib, mode));
}

// After the testbed's own files are in.
base::Status seal(const std::string& target, const Area& area) {
  if (!area.noexec && !area.read_only) return base::ok();
  unsigned long flags = MS_REMOUNT | MS_NOSUID | (area.noexec ? MS_NOEXEC : 0) | (area.read_only ? MS_RDONLY : 0);
  return mount_at("tmpfs", "testbed", target, flags, fmt::format("size={}k", area.size_kib));
}

// A path vanishes by an overlay over its parent folder that holds nothing but a whiteout.
base::Status hide(const std::string& path, size_t number) {
  auto slash = path.rfind('/');
  if (slash == std::string::npos || slash == 0) {
    return base::fail(base::ErrorKind::kUsage, "absent: " + path + ": an absolute path below a folder is needed");
  }
  std::string parent = path.substr(0, slash), base = fmt::format("/run/testbed/absent{}", number);
  TRY(make_folder(base + "/work"));
  TRY(make_folder(base + "/upper"));
  std::string whiteout = base + "/upper/" + path.substr(slash + 1);
  if (::mknod(whiteout.c_str(), S_IFCHR, makedev(0, 0)) != 0) return base::system_error("mknod", whiteout);
  return mount_at("overlay", "testbed", parent, 0, fmt::format("lowerdir={0},upperdir={1}/upper,workdir={1}/work", parent, base));
}

// A file of /etc becomes the host's own, if the machine has one.
base::Status replace_etc(const std::string& name, const std::string& text) {
  std::string own = "/run/testbed/" + name, target = "/etc/" + name;
  if (::access(target.c_str(), F_OK) != 0) return base::ok();
  TRY(write_text(own, text));
  return mount_at(nullptr, own, target, MS_BIND);
}

// Without the 200 libraries that Python's torch loads and does not use its start takes a quarter less (tools/make_empty_libraries).
base::Status start_torch_sooner() {
  const char* cache = TESTBED_BINARY_DIR "/empty_libraries/ld.so.cache";
  if (::access(cache, R_OK) != 0) return base::ok();
  return mount_at(nullptr, cache, "/etc/ld.so.cache", MS_BIND);
}

base::Status make_mounts(const HostPlan& plan, const std::string& home) {
  TRY(mount_at(nullptr, "none", "/", MS_REC | MS_PRIVATE));
  std::vector<os::Fd> kept;
  std::vector<std::pair<std::string, std::string>> shown = plan.renamed;
  for (const std::string& path : plan.visible) shown.emplace_back(path, path);
  for (const auto& [folder, name] : shown) {
    kept.emplace_back(::open(folder.c_str(), O_PATH | O_CLOEXEC));
    if (!kept.back().valid()) return base::system_error("open", folder);
  }
  TRY(mount_at("proc", "proc", "/proc", MS_NOSUID | MS_NODEV | MS_NOEXEC));
  // A fresh sysfs shows this network's devices only; the cgroups mounted on the old one are carried over by a folder of /run.
  const HostOptions& own = plan.options;
  TRY(cover("/run", own.run, 0755));
  TRY(make_folder("/run/testbed/cgroup"));
  TRY(mount_at(nullptr, "/sys/fs/cgroup", "/run/testbed/cgroup", MS_BIND | MS_REC));
  TRY(mount_at("sysfs", "sysfs", "/sys", MS_NOSUID | MS_NODEV | MS_NOEXEC));
  TRY(mount_at(nullptr, "/run/testbed/cgroup", "/sys/fs/cgroup", MS_BIND | MS_REC));
  if (::umount2("/run/testbed/cgroup", MNT_DETACH) != 0) return base::system_error("umount", "/run/testbed/cgroup");
  TRY(cover("/tmp", own.tmp, 01777));
  TRY(cover("/var/tmp", own.var_tmp, 01777));
  TRY(cover("/dev/shm", own.shm, 01777));
  TRY(cover("/var/log", Area{}, 0755));
  TRY(cover(home, own.home, 0700));
  for (const char* folder : {"/run/sshd", "/run/lock"}) TRY(make_folder(folder));
  for (size_t i = 0; i < kept.size(); ++i) {
    struct stat now{}, then{};
    const std::string& name = shown[i].second;
    bool seen = ::stat(name.c_str(), &now) == 0 && ::fstat(kept[i].get(), &then) == 0 && now.st_ino == then.st_ino;
    if (seen) continue;
    TRY(make_folder(name));
    TRY(mount_at(nullptr, fmt::format("/proc/self/fd/{}", kept[i].get()), name, MS_BIND | MS_REC));
  }
  TRY(start_torch_sooner());
  TRY(replace_etc("hostname", own.name + "\n"));
  TRY(replace_etc("hosts", plan.hosts_file));
  TRY(replace_etc("machine-id", fmt::format("{:032x}\n", 0x1000 + plan.index)));
  TRY(make_users(plan.worker));
  for (size_t i = 0; i < own.absent.size(); ++i) TRY(hide(own.absent[i], i));
  return base::ok();
}

base::Status make_home(const HostPlan& plan, const std::string& home) {
  std::string ssh = home + "/.ssh";
  TRY(make_folder(ssh, 0700));
  TRY(write_text(ssh + "/id_ed25519", plan.client_key, 0600));
  TRY(write_text(ssh + "/id_ed25519.pub", plan.client_public));
  TRY(write_text(ssh + "/known_hosts", plan.known_hosts, 0600));
  TRY(write_text(ssh + "/authorized_keys", plan.options.login == Login::kAccepted ? plan.client_public : "", 0600));
  TRY(seal(home, plan.options.home));
  TRY(seal("/tmp", plan.options.tmp));
  TRY(seal("/var/tmp", plan.options.var_tmp));
  return seal("/dev/shm", plan.options.shm);
}

base::Status make_network(const HostPlan& plan) {
  std::string batch = fmt::format("link set lo up\naddr add {}/16 dev eth0\naddr add fd77::{:x}/64 dev eth0 nodad\nlink set eth0 up\n",
                                  plan.address, plan.index == 0 ? 0xffff : plan.index);
  TRY(run_tool({"ip", "-batch", "-"}, batch));
  return base::ok();
}

// For most words sshd keeps the first value it meets, for some (MaxStartups) the last: no word is given twice. ssh's default key
// exchange, which resists quantum computers, costs a login about twice the processor time.
std::string sshd_config(const HostPlan& plan) {
  std::vector<std::string> lines = plan.options.sshd_config;
  if (plan.options.login == Login::kPasswordOnly) lines.insert(lines.end(), {"PubkeyAuthentication no", "PasswordAuthentication yes"});
  std::set<std::string> given;
  if (plan.ssh_as_it_comes) given.insert("kexalgorithms");
  for (const auto& line : lines) given.insert(base::to_lower(line.substr(0, line.find(' '))));
  for (const char* line :
       {"Port 22", "HostKey /run/testbed/host_key", "PidFile /run/testbed/sshd.pid", "PermitRootLogin yes", "PasswordAuthentication no",
        "KbdInteractiveAuthentication no", "UsePAM no", "UseDNS no", "PrintMotd no", "PrintLastLog no", "StrictModes no", "MaxStartups 500",
        "MaxSessions 500", "AcceptEnv LANG LC_*", "KexAlgorithms curve25519-sha256", "Subsystem sftp internal-sftp"}) {
    std::string text = line;
    if (!given.contains(base::to_lower(text.substr(0, text.find(' '))))) lines.push_back(text);
  }
  return base::join(lines, "\n") + "\n";
}

// Returns when sshd listens: it writes its pid file after that.
base::Status start_sshd(const HostPlan& plan) {
  TRY(write_text("/run/testbed/host_key", plan.host_key, 0600));
  TRY(write_text("/run/testbed/sshd_config", sshd_config(plan)));
  os::Fd notify(::inotify_init1(IN_CLOEXEC));
  if (::inotify_add_watch(notify.get(), "/run/testbed", IN_CLOSE_WRITE) < 0) return base::system_error("inotify", "/run/testbed");
  pid_t pid = ::fork();
  if (pid < 0) return base::system_error("fork", "sshd");
  if (pid == 0) {
    sigset_t none;
    sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    ::execl("/usr/sbin/sshd", "/usr/sbin/sshd", "-D", "-f", "/run/testbed/sshd_config", "-E", "/run/testbed/sshd.log", nullptr);
    ::_exit(127);
  }
  os::Fd child(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  while (::access("/run/testbed/sshd.pid", F_OK) != 0) {
    pollfd fds[2] = {{notify.get(), POLLIN, 0}, {child.get(), POLLIN, 0}};
    ::poll(fds, 2, 10'000);
    char events[4096];
    if (fds[0].revents != 0 && ::read(notify.get(), events, sizeof events) < 0) return base::system_error("read", "inotify");
    if (fds[1].revents != 0 || (fds[0].revents | fds[1].revents) == 0) {
      auto log = read_text("/run/testbed/sshd.log");
      return base::fail(base::ErrorKind::kUnfit, "sshd did not start").because(log.ok() ? *log : "");
    }
  }
  return base::ok();
}

base::Status make_host(const HostPlan& plan, int netns) {
  passwd* root = ::getpwuid(0);
  std::string home = root != nullptr ? root->pw_dir : "/root";
  TRY(join_cgroup(plan.cgroup));
  if (::setns(netns, CLONE_NEWNET) != 0) return base::system_error("setns", "network of the host");
  const std::string& name = plan.options.name;
  if (::sethostname(name.data(), name.size()) != 0) return base::system_error("sethostname", name);
  TRY(make_mounts(plan, home));
  TRY(make_home(plan, home));
  TRY(make_network(plan));
  return start_sshd(plan);
}

}  // namespace

std::string host_address(int index) { return index == 0 ? "10.77.255.1" : fmt::format("10.77.0.{}", index); }

void run_host(const HostPlan& plan, int netns, int ready) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::prctl(PR_SET_NAME, "testbed-host");
  ::signal(SIGPIPE, SIG_DFL);
  ::setsid();
  auto made = make_host(plan, netns);
  std::string word = made.ok() ? "ok" : plan.options.name + ": " + made.error().message + ": " + made.error().cause;
  if (::write(ready, word.data(), word.size()) < 0 || !made.ok()) ::_exit(1);
  ::close_range(3, ~0U, 0);
  sigset_t child;
  sigemptyset(&child);
  sigaddset(&child, SIGCHLD);
  ::sigprocmask(SIG_BLOCK, &child, nullptr);
  while (true) {
    while (::waitpid(-1, nullptr, WNOHANG) > 0) {}
    siginfo_t info;
    ::sigwaitinfo(&child, &info);
  }
}

}  // namespace phalanx::testbed
