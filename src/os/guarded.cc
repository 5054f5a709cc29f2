// One worker, a forked child, takes call after call from a shared counter and sends each answer through its pipe. Nearly every call
// answers within a millisecond, so nearly always one fork is enough: a fork with its page faults costs more than most calls.
// A call that blocks keeps its worker. When nothing has arrived for kHandOver and calls are left that nobody has taken, another
// worker is forked for those; so k calls that hang delay the others by k hand-overs and no more.
#include "os/guarded.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <optional>

#include <fmt/format.h>

#include "base/text.h"
#include "os/clock.h"
#include "os/fd.h"
#include "os/files.h"
#include "os/process.h"

namespace phalanx::os {
namespace {

constexpr size_t kMostBytes = 16 << 20;  // of one answer
constexpr milliseconds kReap{200};       // for a worker that has closed its pipe to be gone
constexpr milliseconds kHandOver{25};
constexpr int kBusyHandOvers = 8;   // so many in a row are waited for a worker that is runnable: then it computes, or the machine is busy
constexpr milliseconds kLook{100};  // between two looks at whether a worker still moves
constexpr uint32_t kBegins = 0xffffffff;  // in place of a length: the worker has begun this call

struct Header {
  uint32_t call = 0;
  uint32_t length = 0;
};

// The number of the next call that no worker has taken, in memory shared with the workers.
class Counter {
 public:
  Counter() : page_(::mmap(nullptr, sizeof(std::atomic<uint32_t>), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) {
    if (page_ == MAP_FAILED) page_ = nullptr;
    else new (page_) std::atomic<uint32_t>(0);
  }
  ~Counter() {
    if (page_) ::munmap(page_, sizeof(std::atomic<uint32_t>));
  }
  Counter(const Counter&) = delete;
  Counter& operator=(const Counter&) = delete;
  bool valid() const { return page_ != nullptr; }
  std::atomic<uint32_t>& next() { return *static_cast<std::atomic<uint32_t>*>(page_); }

 private:
  void* page_;
};

struct Worker {
  pid_t pid = 0;
  Fd pipe;
  std::string received;          // not yet a whole answer
  std::optional<uint32_t> call;  // the one it is in
  std::string steps;             // steps_of() it, when it had said nothing for a while
  Mono moved_at;                 // when it was seen to move: it was forked, it said something, its steps were others
  bool open = true;
};

// A child in state D outlives us. It must not hold what others wait to see closed: the pipe of a guarded call that this one is
// nested in, or the terminal or ssh channel of the agent. So it keeps nothing but its own pipe, as descriptor 3.
void keep_only(int out) {
  int null = ::open("/dev/null", O_RDWR);
  for (int standard : {0, 1, 2})
    if (null >= 0 && null != standard) ::dup2(null, standard);
  constexpr int kOut = 3;
  if (out != kOut) ::dup2(out, kOut);
  if (::close_range(kOut + 1, ~0U, 0) == 0) return;
  for (int fd = kOut + 1; fd < 4096; ++fd) ::close(fd);  // Linux before 5.9
}

[[noreturn]] void run_worker(const std::vector<Guarded>& calls, Counter& counter, int out, pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);
  keep_only(out);
  out = 3;
  for (int s : {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGCHLD, SIGPIPE}) ::signal(s, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  auto put = [&](Header header, const std::string& bytes) {
    std::string frame(reinterpret_cast<const char*>(&header), sizeof(header));
    return write_all(out, frame + bytes, "the pipe of a guarded call").ok();
  };
  for (uint32_t i; (i = counter.next().fetch_add(1)) < calls.size();) {
    if (!put({i, kBegins}, "")) ::_exit(1);
    std::string answer = calls[i].call();
    if (answer.size() > kMostBytes || !put({i, static_cast<uint32_t>(answer.size())}, answer)) ::_exit(1);
  }
  ::_exit(0);
}

// The fields of /proc/PID/stat behind the name: state first. Empty if it cannot be read.
std::vector<std::string_view> stat_fields(const std::string& text) {
  size_t close = text.rfind(')');
  return close == std::string::npos ? std::vector<std::string_view>{} : base::split_words(std::string_view(text).substr(close + 1));
}

bool runnable(pid_t pid) {
  base::Result<std::string> stat = read_file(fmt::format("/proc/{}/stat", pid), 4096);
  if (!stat.ok()) return false;
  std::vector<std::string_view> fields = stat_fields(*stat);
  return !fields.empty() && fields[0] == "R";
}

// All workers of one run_guarded().
class Crew {
 public:
  explicit Crew(const std::vector<Guarded>& calls) : calls_(calls), answers_(calls.size()) {}
  std::vector<base::Result<std::string>> run(const Patience& patience);

 private:
  void hire();
  bool untaken() { return counter_.next().load() < calls_.size(); }
  bool all_answered() const {
    return std::all_of(answers_.begin(), answers_.end(), [](const auto& answer) { return answer.has_value(); });
  }
  bool wait(Mono until);  // for what workers send; false: nothing came
  void read_some(Worker& worker);
  bool take_frame(Worker& worker);
  void over(Worker& worker);
  bool busy() const;
  void look(Mono now);
  bool goes_on(Mono now, const Patience& patience) const;
  base::Error unanswered(size_t call, Mono begin, const Patience& patience) const;

  const std::vector<Guarded>& calls_;
  std::vector<std::optional<base::Result<std::string>>> answers_;
  std::vector<Worker> workers_;
  Counter counter_;
};

void Crew::hire() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return;
  Worker worker;
  worker.pipe = Fd(ends[0]);
  Fd out(ends[1]);
  pid_t self = ::getpid();
  worker.moved_at = mono_now();
  worker.pid = ::fork();
  if (worker.pid < 0) return;
  if (worker.pid == 0) run_worker(calls_, counter_, out.get(), self);
  workers_.push_back(std::move(worker));
}

bool Crew::take_frame(Worker& worker) {
  Header header;
  if (worker.received.size() < sizeof(header)) return false;
  std::memcpy(&header, worker.received.data(), sizeof(header));
  if (header.length == kBegins) {
    worker.call = header.call;
    worker.received.erase(0, sizeof(header));
    return true;
  }
  if (header.length > kMostBytes) {  // it is not what a worker writes: its memory is damaged
    over(worker);
    return false;
  }
  if (worker.received.size() < sizeof(header) + header.length) return false;
  if (header.call < answers_.size()) answers_[header.call] = worker.received.substr(sizeof(header), header.length);
  worker.call.reset();
  worker.received.erase(0, sizeof(header) + header.length);
  return true;
}

void Crew::read_some(Worker& worker) {
  char buffer[64 << 10];
  ssize_t got = ::read(worker.pipe.get(), buffer, sizeof(buffer));
  if (got < 0 && errno == EINTR) return;
  if (got <= 0) return over(worker);
  worker.moved_at = mono_now();
  worker.received.append(buffer, static_cast<size_t>(got));
  while (take_frame(worker)) {}
}

// Its pipe is closed: it has no more calls to take, or it died in one. It is not waited for beyond kReap: a call may have closed the pipe,
// and a process that ends may have to wait for a file system that it wrote to.
void Crew::over(Worker& worker) {
  worker.open = false;
  worker.pipe.reset();
  int status = 0;
  Mono most = mono_now() + kReap;
  pid_t reaped = 0;
  for (bool killed = false; (reaped = ::waitpid(worker.pid, &status, WNOHANG)) == 0 || (reaped < 0 && errno == EINTR);) {
    if (mono_now() > most && killed) break;
    if (mono_now() > most) {
      ::kill(worker.pid, SIGKILL);
      killed = true;
      most = mono_now() + kReap;
    }
    ::poll(nullptr, 0, 1);
  }
  if (!worker.call) return;
  if (reaped != worker.pid) status = 0;
  const std::string& name = calls_[*worker.call].name;
  answers_[*worker.call] =
      WIFSIGNALED(status) ? base::fail(base::ErrorKind::kInternal, fmt::format("{}: killed by {}", name, signal_name(WTERMSIG(status))))
                          : base::fail(base::ErrorKind::kInternal, fmt::format("{}: the answer could not be sent", name));
}

bool Crew::wait(Mono until) {
  std::vector<pollfd> polls;
  std::vector<Worker*> asked;
  for (Worker& worker : workers_) {
    if (!worker.open) continue;
    polls.push_back({worker.pipe.get(), POLLIN, 0});
    asked.push_back(&worker);
  }
  int64_t left_ms = std::max<int64_t>(0, (until - mono_now()).count() / 1'000'000);
  int ready = ::poll(polls.data(), polls.size(), static_cast<int>(left_ms));
  for (size_t i = 0; i < polls.size() && ready > 0; ++i)
    if (polls[i].revents) read_some(*asked[i]);
  return ready > 0;
}

bool Crew::busy() const {
  return std::any_of(workers_.begin(), workers_.end(), [](const Worker& worker) { return worker.open && runnable(worker.pid); });
}

void Crew::look(Mono now) {
  for (Worker& worker : workers_) {
    if (!worker.open) continue;
    std::string steps = steps_of(worker.pid);
    if (steps == worker.steps) continue;
    if (!worker.steps.empty()) worker.moved_at = now;
    worker.steps = std::move(steps);
  }
}

// What hangs stands still in one place. What is slow moves now and then.
bool Crew::goes_on(Mono now, const Patience& patience) const {
  return std::any_of(workers_.begin(), workers_.end(),
                     [&](const Worker& worker) { return worker.open && now - worker.moved_at < patience.still; });
}

base::Error Crew::unanswered(size_t call, Mono begin, const Patience& patience) const {
  auto worker = std::find_if(workers_.begin(), workers_.end(), [&](const Worker& w) { return w.open && w.call == call; });
  const Mono now = mono_now();
  double seconds = static_cast<double>((now - begin).count()) / 1e9;
  if (worker == workers_.end() || runnable(worker->pid))
    return base::fail(base::ErrorKind::kUnreachable, fmt::format("not finished after {:.1f} s: the machine is busy", seconds));
  if (now - worker->moved_at < patience.still)
    return base::fail(base::ErrorKind::kUnreachable, fmt::format("not finished after {:.1f} s: it continues, slowly", seconds));
  return base::fail(base::ErrorKind::kTimeout, fmt::format("no answer for {:.1f} s{}", seconds, stuck_in(worker->pid)));
}

std::vector<base::Result<std::string>> Crew::run(const Patience& patience) {
  Mono begin = mono_now(), end = begin + patience.deadline, last = begin + patience.most;
  int busy_hand_overs = 0;
  if (counter_.valid() && !calls_.empty()) hire();
  while (!workers_.empty() && !all_answered()) {
    bool any_open = std::any_of(workers_.begin(), workers_.end(), [](const Worker& worker) { return worker.open; });
    if (!any_open && !untaken()) break;
    if (!any_open) hire();
    Mono now = mono_now();
    // Past the deadline, more time is given where the machine was too busy to run a worker, and where one is slow and not stuck.
    if (now >= end && (now >= last || !(busy() || goes_on(now, patience)))) break;
    bool more_hands = untaken();
    if (wait(std::min(more_hands || now >= end ? now + kHandOver : std::min(now + kLook, end), last))) {
      busy_hand_overs = 0;
      continue;
    }
    look(mono_now());  // not after an answer: where all answer at once, nobody is looked at
    if (!more_hands) continue;
    if (busy() && ++busy_hand_overs < kBusyHandOvers) continue;
    busy_hand_overs = 0;
    hire();
  }
  while (wait(mono_now())) {}  // what has come in the meantime, so that an answer that is there is never called missing
  std::vector<base::Result<std::string>> results;
  for (size_t i = 0; i < calls_.size(); ++i) {
    if (answers_[i]) results.push_back(*std::move(answers_[i]));
    else results.push_back(unanswered(i, begin, patience));
  }
  for (Worker& worker : workers_) {
    if (!worker.open) continue;
    ::kill(worker.pid, SIGKILL);
    ::waitpid(worker.pid, nullptr, WNOHANG);
  }
  return results;
}

}  // namespace

std::string steps_of(pid_t pid) {
  base::Result<std::string> status = read_file(fmt::format("/proc/{}/status", pid), 16 << 10);
  if (!status.ok()) return "";
  const size_t at = status->find("voluntary_ctxt_switches:");  // and, behind it, the involuntary ones
  return at == std::string::npos ? "" : status->substr(at);
}

std::string stuck_in(pid_t pid) {
  std::string folder = fmt::format("/proc/{}", pid);
  base::Result<std::string> stat = read_file(folder + "/stat", 4096);
  if (!stat.ok()) return "";
  std::vector<std::string_view> fields = stat_fields(*stat);
  if (fields.empty()) return "";
  base::Result<std::string> where = read_file(folder + "/wchan", 256);
  std::string text = fmt::format("; the process is in state {}", fields[0]);
  return where.ok() && !where->empty() && *where != "0" ? text + fmt::format(", waiting in {}", *where) : text;
}

std::vector<base::Result<std::string>> run_guarded(const std::vector<Guarded>& calls, const Patience& patience) {
  return Crew(calls).run(patience);
}

}  // namespace phalanx::os
