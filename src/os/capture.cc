#include "os/capture.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>

#include "os/clock.h"
#include "os/fd.h"
#include "os/files.h"
#include "os/guarded.h"
#include "os/process.h"

namespace phalanx::os {
namespace {

constexpr int kImageFd = 3;

// Kernels from 6.3 want to be told that a memory file is to be run; older ones do not know the flag.
Fd memory_file(std::string_view image) {
  constexpr unsigned kExec = 0x10;
  int fd = static_cast<int>(::syscall(SYS_memfd_create, "phalanx-helper", MFD_CLOEXEC | kExec));
  if (fd < 0) fd = static_cast<int>(::syscall(SYS_memfd_create, "phalanx-helper", MFD_CLOEXEC));
  Fd file(fd);
  if (file.valid() && !write_all(file.get(), image, "a memory file").ok()) file.reset();
  return file;
}

// A folder of our own with the program in it, where memory files may not be run; removed once the program has started.
struct PrivateFile {
  std::string folder, path;
  PrivateFile() = default;
  PrivateFile(const PrivateFile&) = delete;
  PrivateFile& operator=(const PrivateFile&) = delete;
  ~PrivateFile() {
    if (!path.empty()) ::unlink(path.c_str());
    if (!folder.empty()) ::rmdir(folder.c_str());
  }
  bool make(const std::string& parent, std::string_view image) {
    std::string name = parent + "/phalanx-helper-XXXXXX";
    if (!::mkdtemp(name.data())) return false;
    folder = name;
    path = name + "/helper";
    Fd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0700));
    return file.valid() && write_all(file.get(), image, path).ok();
  }
};

base::Result<pid_t> start_image(const CaptureSpec& spec, SpawnSpec child) {
  Fd memory = memory_file(spec.image);
  base::Result<pid_t> pid = base::fail(base::ErrorKind::kUnfit, "no memory file");
  if (memory.valid()) {
    SpawnSpec by_memory = child;
    by_memory.program = "/proc/self/fd/" + std::to_string(kImageFd);
    by_memory.fds.emplace_back(memory.get(), kImageFd);
    pid = spawn(by_memory);
  }
  for (const std::string& parent : {environment_value("TMPDIR", "/tmp"), std::string("/dev/shm"), std::string("/var/tmp")}) {
    if (pid.ok()) break;
    PrivateFile file;
    if (!file.make(parent, spec.image)) continue;
    child.program = file.path;
    pid = spawn(child);
  }
  return pid;
}

base::Result<pid_t> start(const CaptureSpec& spec, int out) {
  SpawnSpec child;
  child.program = spec.program;
  child.arguments = spec.arguments;
  child.environment = spec.environment;
  child.fds = {{out, 1}};
  child.death_signal = SIGKILL;
  return spec.image.empty() ? spawn(child) : start_image(spec, std::move(child));
}

// True when the program has closed its end before `end`.
bool read_until(int fd, Mono end, const CaptureSpec& spec, std::string& output) {
  char buffer[64 << 10];
  while (true) {
    auto left = std::chrono::duration_cast<milliseconds>(end - mono_now()).count();
    if (left <= 0) return false;
    pollfd p{fd, POLLIN, 0};
    int ready = ::poll(&p, 1, static_cast<int>(left));
    if (ready < 0 && errno != EINTR) return false;
    if (ready <= 0) continue;
    ssize_t got = ::read(fd, buffer, sizeof(buffer));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return true;
    output.append(buffer, std::min(static_cast<size_t>(got), spec.most_bytes - std::min(spec.most_bytes, output.size())));
  }
}

// A program that has closed its output but does not end is given until `end`, too.
bool reap_until(pid_t pid, Mono end, int& status) {
  Fd handle(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  while (true) {
    pid_t got = ::waitpid(pid, &status, handle.valid() ? WNOHANG : 0);
    if (got == pid) return true;
    if (got < 0 && errno != EINTR) return false;
    auto left = std::chrono::duration_cast<milliseconds>(end - mono_now()).count();
    if (left <= 0) return false;
    pollfd p{handle.get(), POLLIN, 0};
    if (handle.valid()) ::poll(&p, 1, static_cast<int>(left));
  }
}

}  // namespace

Captured capture(const CaptureSpec& spec) {
  Captured result;
  base::Result<PipeEnds> pipe = make_pipe();
  if (!pipe.ok()) {
    result.fault = pipe.error().message;
    return result;
  }
  Mono end = mono_now() + spec.deadline;
  base::Result<pid_t> pid = start(spec, pipe->write.get());
  pipe->write.reset();
  if (!pid.ok()) {
    result.fault = pid.error().message;
    return result;
  }
  result.started = true;
  int status = 0;
  bool ended = read_until(pipe->read.get(), end, spec, result.output) && reap_until(*pid, end, status);
  if (!ended) {
    result.timed_out = true;
    result.fault = fmt::format("no answer for {:.1f} s{}", static_cast<double>(spec.deadline.count()) / 1000, stuck_in(*pid));
    ::kill(*pid, SIGKILL);
    ::waitpid(*pid, nullptr, WNOHANG);  // one in state D cannot be waited for
  } else if (WIFSIGNALED(status)) {
    result.fault = "killed by " + signal_name(WTERMSIG(status));
  } else {
    result.exit_code = WEXITSTATUS(status);
    if (result.exit_code != 0) result.fault = "exit code " + std::to_string(result.exit_code);
  }
  return result;
}

}  // namespace phalanx::os
