#include "scale_trial.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include <fmt/format.h>

#include "base/try.h"
#include "os/descriptor_limit.h"
#include "os/files.h"
#include "os/process.h"
#include "scale_agents.h"

namespace phalanx::scale {
namespace {

constexpr os::milliseconds kPatience{120'000};
constexpr os::milliseconds kLookEvery{10};
constexpr size_t kKept = 64 << 10;
constexpr rlim_t kSoftLimit = 1024;
constexpr rlim_t kPerHost = 3, kOthers = 64;

double seconds(os::nanoseconds d) { return static_cast<double>(d.count()) / 1e9; }

class Run {
 public:
  Run(os::Loop& loop, Agents& agents, const Wish& wish) : loop_(loop), agents_(agents), wish_(wish) {}
  ~Run();
  base::Result<Trial> play();

 private:
  base::Status start();
  base::Status listen(os::Fd& from);
  void read(os::Fd& from, os::WatchId& watch);
  void look();  // at memory
  double cpu() const;
  void all_started();
  void end();
  void ended();

  os::Loop& loop_;
  Agents& agents_;
  const Wish& wish_;
  pid_t pid_ = -1;
  os::Fd out_, err_, handle_;
  os::WatchId out_watch_ = 0, err_watch_ = 0, handle_watch_ = 0;
  os::Mono began_, end_at_;
  std::optional<int> status_;
  double cpu_started_ = 0, cpu_before_end_ = 0;
  std::string line_;  // not whole yet
  Trial trial_;
};

Run::~Run() {
  for (os::WatchId id : {out_watch_, err_watch_, handle_watch_})
    if (id) loop_.unwatch(id);
  if (pid_ > 0 && !status_) {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
}

base::Status Run::start() {
  TRY_ASSIGN(os::PipeEnds out, os::make_pipe());
  TRY_ASSIGN(os::PipeEnds err, os::make_pipe());
  os::SpawnSpec spec;
  spec.program = wish_.phalanx;
  spec.arguments = {wish_.phalanx,
                    "run",
                    "-H",
                    fmt::format("h[0001-{:04}]", wish_.hosts),
                    "--nproc-per-node",
                    std::to_string(wish_.ranks_per_host),
                    "--no-export",
                    "--",
                    "python",
                    "train.py"};
  const std::string& home = wish_.folder;
  spec.environment = {"HOME=" + home,
                      "PATH=" + os::environment_value("PATH", "/usr/bin:/bin"),
                      "LANG=C.UTF-8",
                      "PHALANX_LANG=en",
                      "PHALANX_SSH=" + wish_.ssh,
                      "PHALANX_SCALE_AGENTS=" + home + "/" + Agents::kSocket};
  spec.directory = home;
  spec.fds = {{out.write.get(), 1}, {err.write.get(), 2}};
  spec.death_signal = SIGKILL;
  began_ = os::mono_now();
  TRY_ASSIGN(pid_, os::spawn(spec));
  out_ = std::move(out.read);
  err_ = std::move(err.read);
  handle_ = os::Fd(static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0)));
  if (!handle_.valid()) return base::system_error("pidfd_open", wish_.phalanx);
  TRY(os::set_nonblocking(out_.get()));
  TRY(os::set_nonblocking(err_.get()));
  TRY_ASSIGN(out_watch_, loop_.watch(out_.get(), EPOLLIN, [this](uint32_t) { read(out_, out_watch_); }));
  TRY_ASSIGN(err_watch_, loop_.watch(err_.get(), EPOLLIN, [this](uint32_t) { read(err_, err_watch_); }));
  TRY_ASSIGN(handle_watch_, loop_.watch(handle_.get(), EPOLLIN, [this](uint32_t) { ended(); }));
  return base::ok();
}

void Run::read(os::Fd& from, os::WatchId& watch) {
  static char buffer[64 << 10];
  os::IoStep step = os::read_step(from.get(), buffer, sizeof(buffer));
  if (step.kind == os::IoStep::kWouldBlock) return;
  if (step.kind != os::IoStep::kBytes) {
    loop_.unwatch(std::exchange(watch, 0));
    from.reset();
    return;
  }
  trial_.said.append(buffer, step.bytes);
  if (trial_.said.size() > kKept) trial_.said.erase(0, trial_.said.size() - kKept);
  if (&from != &err_ || end_at_.ns == 0 || trial_.told > 0) return;
  line_.append(buffer, step.bytes);
  const char* mark = wish_.ending == Ending::kFailure ? "error: " : "interrupted";
  if (line_.find(mark) != std::string::npos) trial_.told = seconds(os::mono_now() - end_at_);
}

void Run::look() {
  std::ifstream file(fmt::format("/proc/{}/status", pid_));
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("VmHWM:")) trial_.peak_bytes = std::strtoll(line.c_str() + 6, nullptr, 10) * 1024;
}

// The launcher has one thread. Of a process that has ended, and is not waited for yet, it can still be read.
double Run::cpu() const {
  std::ifstream file(fmt::format("/proc/{}/schedstat", pid_));
  double on_processor_ns = 0;
  file >> on_processor_ns;
  return on_processor_ns / 1e9;
}

void Run::all_started() {
  trial_.started = seconds(os::mono_now() - began_);
  cpu_started_ = trial_.cpu_start = cpu();
  loop_.after(wish_.runs, [this] { end(); });
}

void Run::end() {
  cpu_before_end_ = cpu();
  trial_.cpu_run = (cpu_before_end_ - cpu_started_) / seconds(wish_.runs);
  end_at_ = os::mono_now();
  if (wish_.ending == Ending::kFailure) agents_.fail(wish_.hosts * wish_.ranks_per_host / 2);
  else ::kill(pid_, SIGINT);
}

void Run::ended() {
  os::Mono now = os::mono_now();
  double all = cpu();
  int status = 0;
  if (::waitpid(pid_, &status, 0) != pid_) return;
  loop_.unwatch(std::exchange(handle_watch_, 0));
  status_ = status;
  if (end_at_.ns != 0) trial_.ended = seconds(now - end_at_);
  trial_.cpu_end = all - cpu_before_end_;
  trial_.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

base::Result<Trial> Run::play() {
  agents_.on_started([this] { all_started(); });
  TRY(start());
  os::TimerId looks = loop_.every(kLookEvery, [this] {
    if (!status_) look();
  });
  os::Mono deadline = began_ + kPatience;
  while (os::mono_now() < deadline && (!status_ || out_.valid() || err_.valid())) loop_.poll(os::milliseconds(100));
  loop_.cancel(looks);
  auto failed = [&](const std::string& what) {
    return base::fail(base::ErrorKind::kJobFailed, what)
        .because(trial_.said.substr(trial_.said.size() - std::min<size_t>(trial_.said.size(), 2000)));
  };
  if (!agents_.broken().empty()) return failed("the launcher sent what no agent understands: " + agents_.broken());
  if (!status_) return failed("the launcher did not end within two minutes");
  if (end_at_.ns == 0) return failed(fmt::format("the launcher ended by itself, with exit code {}", trial_.exit_code));
  if (agents_.living() > 0) return failed(fmt::format("{} ranks are left", agents_.living()));
  Agents::Sent sent = agents_.sent();
  trial_.start_bytes = static_cast<double>(sent.start_bytes) / wish_.hosts;
  trial_.most_start_bytes = static_cast<double>(sent.most_start_bytes);
  trial_.bytes = static_cast<double>(sent.bytes) / wish_.hosts;
  return std::move(trial_);
}

}  // namespace

base::Status set_limits(int hosts) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return base::system_error("getrlimit", "");
  rlim_t needed = kPerHost * static_cast<rlim_t>(hosts) + kOthers;
  if (limit.rlim_max < needed)
    return base::fail(base::ErrorKind::kUnfit, fmt::format("{} descriptors are needed, the hard limit is {}", needed, limit.rlim_max));
  limit.rlim_cur = std::min(kSoftLimit, limit.rlim_max);
  if (::setrlimit(RLIMIT_NOFILE, &limit) != 0) return base::system_error("setrlimit", "");
  os::raise_descriptor_limit();
  return base::ok();
}

base::Result<Trial> run_trial(const Wish& wish) {
  ::signal(SIGPIPE, SIG_IGN);  // of a launcher that has ended: its agents see it as they write
  TRY_ASSIGN(std::unique_ptr<os::Loop> loop, os::Loop::create());
  TRY_ASSIGN(std::unique_ptr<Agents> agents, Agents::create(*loop, wish.folder, wish.hosts));
  return Run(*loop, *agents, wish).play();
}

}  // namespace phalanx::scale
