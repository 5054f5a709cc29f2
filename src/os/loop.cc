#include "os/loop.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/try.h"

namespace phalanx::os {

base::Result<std::unique_ptr<Loop>> Loop::create() {
  std::unique_ptr<Loop> loop(new Loop);
  loop->epoll_ = Fd(::epoll_create1(EPOLL_CLOEXEC));
  if (!loop->epoll_.valid()) return base::system_error("epoll_create1", "");
  sigemptyset(&loop->signal_set_);
  return loop;
}

Loop::~Loop() = default;

base::Result<WatchId> Loop::watch(int fd, uint32_t events, FdCallback callback) {
  WatchId id = next_id_++;
  epoll_event event{};
  event.events = events;
  event.data.u64 = id;
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) return base::system_error("epoll_ctl ADD", std::to_string(fd));
  watches_[id] = std::make_shared<Watch>(Watch{fd, events, std::move(callback)});
  return id;
}

void Loop::rewatch(WatchId id, uint32_t events) {
  auto it = watches_.find(id);
  if (it == watches_.end() || it->second->events == events) return;
  it->second->events = events;
  epoll_event event{};
  event.events = events;
  event.data.u64 = id;
  PHALANX_CHECK(::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, it->second->fd, &event) == 0);
}

void Loop::unwatch(WatchId id) {
  auto it = watches_.find(id);
  if (it == watches_.end()) return;
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, it->second->fd, nullptr);
  watches_.erase(it);
}

TimerId Loop::after(nanoseconds delay, TimerCallback callback) {
  TimerId id = next_id_++;
  Mono due = mono_now() + delay;
  timers_[{due.ns, id}] = std::make_shared<Timer>(Timer{due, nanoseconds(0), std::move(callback)});
  timer_due_[id] = due.ns;
  return id;
}

TimerId Loop::every(nanoseconds period, TimerCallback callback) {
  PHALANX_CHECK(period.count() > 0);
  TimerId id = after(period, std::move(callback));
  timers_[{timer_due_[id], id}]->period = period;
  return id;
}

void Loop::cancel(TimerId id) {
  auto it = timer_due_.find(id);
  if (it == timer_due_.end()) return;
  timers_.erase({it->second, id});
  timer_due_.erase(it);
}

base::Status Loop::on_signal(int signal_number, SignalCallback callback) {
  sigaddset(&signal_set_, signal_number);
  if (::sigprocmask(SIG_BLOCK, &signal_set_, nullptr) != 0) return base::system_error("sigprocmask", "");
  int fd = ::signalfd(signals_.valid() ? signals_.get() : -1, &signal_set_, SFD_CLOEXEC | SFD_NONBLOCK);
  if (fd < 0) return base::system_error("signalfd", "");
  signal_callbacks_[signal_number] = std::move(callback);
  if (!signals_.valid()) {
    signals_ = Fd(fd);
    TRY(watch(fd, EPOLLIN, [this](uint32_t) { read_signals(); }));
  }
  return base::ok();
}

base::Status Loop::on_child(ChildCallback callback) {
  child_callback_ = std::move(callback);
  return on_signal(SIGCHLD, [this](const signalfd_siginfo&) { reap(); });
}

void Loop::read_signals() {
  std::array<signalfd_siginfo, 16> infos;
  ssize_t n = ::read(signals_.get(), infos.data(), sizeof(infos));
  for (ssize_t i = 0; i * static_cast<ssize_t>(sizeof(signalfd_siginfo)) < n; ++i) {
    auto it = signal_callbacks_.find(static_cast<int>(infos[i].ssi_signo));
    if (it == signal_callbacks_.end()) continue;
    SignalCallback callback = it->second;
    callback(infos[i]);
  }
}

// One SIGCHLD can stand for many exits.
void Loop::reap() {
  for (;;) {
    int status = 0;
    pid_t pid = ::waitpid(-1, &status, WNOHANG);
    if (pid <= 0) return;
    if (child_callback_) child_callback_(pid, status);
  }
}

void Loop::run_timers() {
  Mono now = mono_now();
  while (!timers_.empty() && timers_.begin()->first.first <= now.ns && !stopped_) {
    auto [key, timer] = *timers_.begin();
    timers_.erase(timers_.begin());
    if (timer->period.count() > 0) {
      timer->due = std::max(timer->due + timer->period, now);
      timers_[{timer->due.ns, key.second}] = timer;
      timer_due_[key.second] = timer->due.ns;
    } else {
      timer_due_.erase(key.second);
    }
    timer->callback();
  }
}

void Loop::poll(milliseconds most) {
  nanoseconds wait = most;
  if (!timers_.empty()) wait = std::min(wait, std::max(nanoseconds(0), Mono{timers_.begin()->first.first} - mono_now()));
  timespec timeout{static_cast<time_t>(wait.count() / 1'000'000'000), static_cast<long>(wait.count() % 1'000'000'000)};
  std::array<epoll_event, 128> events;
  int n = ::epoll_pwait2(epoll_.get(), events.data(), static_cast<int>(events.size()), &timeout, nullptr);
  if (n < 0 && errno == ENOSYS) {  // before Linux 5.11
    int ms = static_cast<int>((wait.count() + 999'999) / 1'000'000);
    n = ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), ms);
  }
  for (int i = 0; i < n && !stopped_; ++i) {
    WatchId id = events[i].data.u64;  // a copy: epoll_event is packed, and a reference into it may be misaligned
    auto it = watches_.find(id);
    if (it == watches_.end()) continue;  // cancelled by an earlier callback of this round
    std::shared_ptr<Watch> watch = it->second;
    watch->callback(events[i].events);
  }
  run_timers();
}

void Loop::run() {
  stopped_ = false;
  while (!stopped_) poll(milliseconds(60'000));
}

}  // namespace phalanx::os
