#include "agent/looks/forked_look.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>

#include <fmt/format.h>

#include "base/try.h"
#include "os/clock.h"
#include "os/guarded.h"

namespace phalanx::agent {
namespace {

constexpr os::milliseconds kWatched{500};  // before the patience is over: whether the child moves
constexpr size_t kMostBytes = 15 << 20;    // fits a frame

void close_between(unsigned first, unsigned last) {
  if (first > last || ::close_range(first, last, 0) == 0) return;
  for (unsigned fd = first; fd <= std::min(last, 1024U); ++fd) ::close(static_cast<int>(fd));  // before Linux 5.9
}

// Nothing of the agent's stays open here but what the look needs: a child that cannot be ended would hold the launcher's stream open.
void leave_descriptors(int pipe, std::vector<int> kept) {
  int null = ::open("/dev/null", O_RDWR);
  if (pipe != 3) ::dup2(pipe, 3);
  for (int fd : {0, 1, 2})
    if (null >= 0) ::dup2(null, fd);
  std::sort(kept.begin(), kept.end());
  unsigned from = 4;
  for (int fd : kept) {
    if (fd < 4) continue;
    close_between(from, static_cast<unsigned>(fd) - 1);
    from = static_cast<unsigned>(fd) + 1;
  }
  close_between(from, ~0U);
}

[[noreturn]] void run_child(const std::function<std::string()>& look, const std::string& process, int pipe, pid_t parent,
                            const std::vector<int>& kept) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);
  ::setpgid(0, 0);
  ::prctl(PR_SET_NAME, process.c_str());
  for (int s : {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGCHLD}) ::signal(s, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  leave_descriptors(pipe, kept);
  std::string text = look();
  ::_exit(os::write_all(3, text, "the answer").ok() ? 0 : 1);
}

}  // namespace

ForkedLook::~ForkedLook() { kill(); }

void ForkedLook::start(std::function<std::string()> look, Patience patience, Done done, const std::vector<int>& kept) {
  kill();
  done_ = std::move(done);
  patience_ = patience;
  base::Status forked = fork_child(look, kept);
  if (forked.ok()) return;
  loop_.after(os::nanoseconds(0), [done = done_, error = forked.error()] { done(base::Error(error)); });
}

base::Status ForkedLook::fork_child(const std::function<std::string()>& look, const std::vector<int>& kept) {
  TRY_ASSIGN(os::PipeEnds ends, os::make_pipe());
  TRY(os::set_nonblocking(ends.read.get()));
  pid_t self = ::getpid();
  pid_t pid = ::fork();
  if (pid < 0) return base::system_error("fork", name_);
  if (pid == 0) run_child(look, process_, ends.write.get(), self, kept);
  ::setpgid(pid, pid);  // whoever is first: from here on the group can be killed
  group_ = pid;
  text_.clear();
  pipe_ = std::move(ends.read);
  TRY_ASSIGN(watch_, loop_.watch(pipe_.get(), EPOLLIN, [this](uint32_t) { read_more(); }));
  began_ = os::mono_now();
  wait_on();
  return base::ok();
}

// For the rest of the usual patience, less what is needed to see whether the child still moves.
void ForkedLook::wait_on() {
  const os::milliseconds watched = std::min(kWatched, patience_.usual / 2);
  const os::nanoseconds left = std::max<os::nanoseconds>(patience_.usual - watched - (os::mono_now() - began_), os::nanoseconds(0));
  timer_ = loop_.after(left, [this, watched] { timer_ = loop_.after(watched, [this, steps = os::steps_of(group_)] { late(steps); }); });
}

// steps: of the child (os/guarded.h), kWatched ago.
void ForkedLook::late(const std::string& steps) {
  timer_ = 0;
  const os::nanoseconds waited = os::mono_now() - began_;
  if (waited < patience_.most && os::steps_of(group_) != steps) return wait_on();
  answer(base::fail(base::ErrorKind::kTimeout,
                    fmt::format("{} did not answer for {:.1f} s", name_, static_cast<double>(waited.count()) / 1e9)));
}

void ForkedLook::read_more() {
  char buffer[32 << 10];
  for (;;) {
    os::IoStep step = os::read_step(pipe_.get(), buffer, sizeof(buffer));
    if (step.kind == os::IoStep::kWouldBlock) return;
    if (step.kind != os::IoStep::kBytes) break;
    text_.append(buffer, step.bytes);
    if (text_.size() > kMostBytes) break;
  }
  if (text_.empty()) return answer(base::fail(base::ErrorKind::kInternal, name_ + " died"));
  if (text_.size() > kMostBytes) return answer(base::fail(base::ErrorKind::kInternal, fmt::format("{} returned too much data", name_)));
  answer(std::move(text_));
}

void ForkedLook::answer(base::Result<std::string> result) {
  forget();
  if (!result.ok() && group_ > 0) ::kill(-group_, SIGKILL);
  done_(std::move(result));
}

void ForkedLook::forget() {
  if (watch_) loop_.unwatch(watch_);
  if (timer_) loop_.cancel(timer_);
  watch_ = timer_ = 0;
  pipe_.reset();
}

void ForkedLook::kill() {
  if (pipe_.valid()) ::kill(-group_, SIGKILL);
  forget();
}

}  // namespace phalanx::agent
