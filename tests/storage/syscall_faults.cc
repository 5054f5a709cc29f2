#include "syscall_faults.h"

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <climits>
#include <condition_variable>
#include <cstddef>
#include <cstring>
#include <fstream>
#include <mutex>
#include <thread>

#include "base/check.h"
#include "os/fd.h"
#include "os/local_socket.h"
#include "watched_calls.h"

namespace phalanx::storage {
namespace {

std::vector<sock_filter> make_filter() {
  std::vector<sock_filter> filter{BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, arch)),
                                  BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kArchitecture, 1, 0), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
                                  BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr))};
  for (const Watched& call : kWatched) {
    filter.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<uint32_t>(call.number), 0, 1));
    filter.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF));
  }
  filter.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
  return filter;
}

// In the child, before exec: makes the filter and sends the descriptor that its calls are heard on.
int install(const std::vector<sock_filter>& filter) {
  sock_fprog program{static_cast<unsigned short>(filter.size()), const_cast<sock_filter*>(filter.data())};
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return -1;
  return static_cast<int>(
      ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV, &program));
}

std::string proc(pid_t pid, const std::string& name) { return "/proc/" + std::to_string(pid) + "/" + name; }

std::string link_of(pid_t pid, const std::string& name) {
  char target[PATH_MAX];
  const ssize_t n = ::readlink(proc(pid, name).c_str(), target, sizeof(target));
  return n > 0 ? std::string(target, static_cast<size_t>(n)) : "";
}

std::string text_at(pid_t pid, uint64_t address) {
  const os::Fd memory(::open(proc(pid, "mem").c_str(), O_RDONLY | O_CLOEXEC));
  char text[PATH_MAX];
  // A string may end close before memory that is not mapped, so never more than to the end of a page.
  size_t got = 0;
  while (memory.valid() && got < sizeof(text)) {
    const size_t page = 4096 - (address + got) % 4096;
    const ssize_t n = ::pread(memory.get(), text + got, std::min(page, sizeof(text) - got), static_cast<off_t>(address + got));
    if (n <= 0) break;
    if (const void* end = std::memchr(text + got, 0, static_cast<size_t>(n)))
      return std::string(text, static_cast<size_t>(static_cast<const char*>(end) - text));
    got += static_cast<size_t>(n);
  }
  return "";
}

std::string descriptor_path(pid_t pid, uint64_t fd) {
  if (static_cast<int>(fd) == AT_FDCWD) return link_of(pid, "cwd");
  return link_of(pid, "fd/" + std::to_string(static_cast<int>(fd)));
}

std::string path_of(const Watched& call, const seccomp_notif& asked) {
  const pid_t pid = static_cast<pid_t>(asked.pid);
  const uint64_t* arguments = reinterpret_cast<const uint64_t*>(asked.data.args) + call.argument;
  if (call.names == Names::kDescriptor) return descriptor_path(pid, arguments[0]);
  std::string path = text_at(pid, arguments[call.names == Names::kAt ? 1 : 0]);
  if (path.starts_with('/')) return path;
  const std::string from = descriptor_path(pid, call.names == Names::kAt ? arguments[0] : static_cast<uint64_t>(AT_FDCWD));
  return path.empty() ? from : from + "/" + path;
}

std::string name_of(pid_t pid) {
  std::string name;
  std::getline(std::ifstream(proc(pid, "comm")), name);
  return name;
}

// Half of what was asked for, done in the place of the process. Below 0: -errno.
ssize_t do_half(const seccomp_notif& asked) {
  const pid_t pid = static_cast<pid_t>(asked.pid);
  const os::Fd process(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  const os::Fd file(static_cast<int>(::syscall(SYS_pidfd_getfd, process.get(), static_cast<int>(asked.data.args[0]), 0)));
  const os::Fd memory(::open(proc(pid, "mem").c_str(), O_RDWR | O_CLOEXEC));
  if (!file.valid() || !memory.valid()) return -EIO;
  std::vector<char> bytes(static_cast<size_t>(asked.data.args[2]) / 2);
  const off_t at = static_cast<off_t>(asked.data.args[1]), offset = static_cast<off_t>(asked.data.args[3]);
  const int number = asked.data.nr;
  ssize_t n = 0;
  if (number == SYS_write || number == SYS_pwrite64) {
    if (::pread(memory.get(), bytes.data(), bytes.size(), at) != static_cast<ssize_t>(bytes.size())) return -EFAULT;
    n = number == SYS_write ? ::write(file.get(), bytes.data(), bytes.size()) : ::pwrite(file.get(), bytes.data(), bytes.size(), offset);
  } else {
    n = number == SYS_read ? ::read(file.get(), bytes.data(), bytes.size()) : ::pread(file.get(), bytes.data(), bytes.size(), offset);
    if (n > 0 && ::pwrite(memory.get(), bytes.data(), static_cast<size_t>(n), at) != n) return -EFAULT;
  }
  return n < 0 ? -errno : n;
}

// One place collects the children of this process: those that Watch has started, and those that were left to it. A process that nobody has
// waited for keeps its filter on older kernels, and the end of all of them would not be seen.
class Children {
 public:
  // Forks under the lock, so that the end of an earlier process with the same id is not taken for this one's.
  pid_t fork() {
    std::lock_guard lock(mutex_);
    const pid_t child = ::fork();
    if (child > 0) ends_.erase(child);
    return child;
  }
  std::optional<int> end_of(pid_t pid) {
    std::lock_guard lock(mutex_);
    int status = 0;
    for (pid_t ended; (ended = ::waitpid(-1, &status, WNOHANG)) > 0;) ends_[ended] = status;
    auto known = ends_.find(pid);
    return known == ends_.end() ? std::nullopt : std::optional<int>(known->second);
  }

 private:
  std::mutex mutex_;
  std::map<pid_t, int> ends_;
};
Children& children() {
  static Children all;
  return all;
}

}  // namespace

struct Watch::Impl {
  Program program;
  Fault fault;
  pid_t pid = -1;
  os::Fd listener;
  std::thread thread;
  std::atomic<bool> ending{false}, injected{false}, releasing{false};
  mutable std::mutex mutex;
  std::map<std::string, std::vector<Call>> calls;
  std::string where;
  std::optional<uint64_t> hanging;  // the thread's
  bool all_ended = false;
  std::condition_variable changed;

  void start();
  void serve();
  void answer(const seccomp_notif& asked);
  // What happens to this call.
  int decide(const Watched& call, const seccomp_notif& asked);
  void reply(uint64_t id, int error, int64_t value, bool go_on) {
    seccomp_notif_resp response{};
    response.id = id;
    response.error = error;
    response.val = value;
    response.flags = go_on ? SECCOMP_USER_NOTIF_FLAG_CONTINUE : 0;
    (void)::ioctl(listener.get(), SECCOMP_IOCTL_NOTIF_SEND, &response);  // fails when the process has been killed meanwhile
  }
};

void Watch::Impl::start() {
  const std::vector<sock_filter> filter = make_filter();
  std::vector<char*> argv, environment;
  for (std::string& word : program.argv) argv.push_back(word.data());
  for (std::string& word : program.environment) environment.push_back(word.data());
  argv.push_back(nullptr);
  environment.push_back(nullptr);
  constexpr int kNew = O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC;
  const os::Fd in(::open("/dev/null", O_RDONLY | O_CLOEXEC)), out(::open(program.output.c_str(), kNew, 0600)),
      err(::open((program.output + ".err").c_str(), kNew, 0600));
  int ends[2];
  PHALANX_CHECK(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
  os::Fd ours(ends[0]), theirs(ends[1]);
  pid = children().fork();
  if (pid == 0) {
    ::setsid();
    const int heard = (::dup2(in.get(), 0), ::dup2(out.get(), 1), ::dup2(err.get(), 2), ::chdir(program.folder.c_str())) == 0 ? 0 : -1;
    const int fd = heard == 0 ? install(filter) : -1;
    if (fd < 0 || !os::send_descriptor(theirs.get(), fd)) ::_exit(125);
    ::close(fd);
    ::execve(argv[0], argv.data(), environment.data());
    ::_exit(126);
  }
  theirs.reset();
  listener = os::receive_descriptor(ours.get());
}

int Watch::Impl::decide(const Watched& call, const seccomp_notif& asked) {
  std::string path = path_of(call, asked);
  if (path != program.watched && !path.starts_with(program.watched + "/")) return kNoFault;
  const std::string process = name_of(static_cast<pid_t>(asked.pid));
  // The process may have been killed while it was looked at: its memory would be another's.
  if (::ioctl(listener.get(), SECCOMP_IOCTL_NOTIF_ID_VALID, &asked.id) != 0) return kNoFault;
  std::lock_guard lock(mutex);
  std::vector<Call>& seen = calls[process];
  const bool moves_bytes = call.moves_bytes && asked.data.args[2] > 1;
  const bool this_one = process == fault.process && static_cast<int>(seen.size()) == fault.at && fault.error != kNoFault;
  seen.push_back({call.name, path, moves_bytes});
  if (!this_one || (fault.error == kShort && !moves_bytes)) return kNoFault;
  where = process + ": " + call.name + " " + path;
  injected = true;
  return fault.error;
}

void Watch::Impl::answer(const seccomp_notif& asked) {
  const Watched* call = std::find_if(std::begin(kWatched), std::end(kWatched), [&](const Watched& w) { return w.number == asked.data.nr; });
  const int what = call == std::end(kWatched) ? kNoFault : decide(*call, asked);
  if (what == kHang) {
    hanging = asked.id;
  } else if (what == kShort) {
    const ssize_t n = do_half(asked);
    reply(asked.id, n < 0 ? static_cast<int>(n) : 0, n < 0 ? 0 : n, false);
  } else {
    reply(asked.id, -what, 0, what == kNoFault);
  }
}

void Watch::Impl::serve() {
  while (!ending) {
    if (hanging && releasing) {
      reply(*hanging, 0, 0, true);
      hanging.reset();
    }
    pollfd ready{listener.get(), POLLIN, 0};
    if (::poll(&ready, 1, 10) <= 0) continue;
    if (!(ready.revents & POLLIN)) break;  // POLLHUP: the last process with the filter has ended
    seccomp_notif asked{};
    if (::ioctl(listener.get(), SECCOMP_IOCTL_NOTIF_RECV, &asked) == 0) answer(asked);
  }
  std::lock_guard lock(mutex);
  all_ended = !ending;
  changed.notify_all();
}

std::string Watch::unavailable() {
  const std::vector<sock_filter> filter = make_filter();
  const pid_t child = ::fork();
  if (child == 0) ::_exit(install(filter) >= 0 ? 0 : errno);
  int status = 0;
  ::waitpid(child, &status, 0);
  return status == 0 ? "" : std::string("seccomp with user notification is needed (Linux 5.19): ") + std::strerror(WEXITSTATUS(status));
}

Watch::Watch(const Program& program, Fault fault) : impl_(std::make_unique<Impl>()) {
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);  // what outlives the program stays below us, so we may look into its memory and end it
  impl_->program = program;
  impl_->fault = std::move(fault);
  impl_->start();
  PHALANX_CHECK(impl_->listener.valid());
  impl_->thread = std::thread([this] { impl_->serve(); });
}

Watch::~Watch() {
  impl_->ending = true;
  impl_->thread.join();
  // Without anybody to answer, a call of theirs fails with ENOSYS and they end; those that hang in one are killed by name of their session.
  if (!children().end_of(impl_->pid)) ::kill(-impl_->pid, SIGKILL);
  impl_->listener.reset();
  (void)wait(std::chrono::seconds(5));
}

std::optional<int> wait_for(pid_t pid, std::chrono::milliseconds most) {
  const os::Fd process(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));  // invalid once it was collected
  pollfd ended{process.get(), POLLIN, 0};
  if (process.valid()) (void)::poll(&ended, 1, static_cast<int>(most.count()));
  return children().end_of(pid);
}

pid_t Watch::pid() const { return impl_->pid; }

std::optional<int> Watch::wait(std::chrono::milliseconds most) { return wait_for(impl_->pid, most); }

void Watch::release() { impl_->releasing = true; }

bool Watch::wait_for_all(std::chrono::milliseconds most) {
  const auto end = std::chrono::steady_clock::now() + most;
  std::unique_lock lock(impl_->mutex);
  while (!impl_->all_ended && std::chrono::steady_clock::now() < end) {
    (void)children().end_of(impl_->pid);
    impl_->changed.wait_for(lock, std::chrono::milliseconds(20));
  }
  return impl_->all_ended;
}

bool Watch::injected() const { return impl_->injected; }
std::string Watch::injected_at() const {
  std::lock_guard lock(impl_->mutex);
  return impl_->where;
}
const std::map<std::string, std::vector<Call>>& Watch::calls() const { return impl_->calls; }

}  // namespace phalanx::storage
