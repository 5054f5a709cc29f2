#include "agent/probe_duty.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>

#include <fmt/format.h>

#include "base/json_fields.h"
#include "host/probe.h"
#include "os/files.h"
#include "os/guarded.h"

namespace agent {
namespace {

constexpr os::milliseconds kReserve{300};     // beyond the deadline, for what the child does after it
constexpr os::milliseconds kPrefixLook{300};  // for a look at path_prefix, which may lie on a dead server
constexpr size_t kMostBytes = 15 << 20;       // fits a frame
constexpr int64_t kLongestDeadlineMs = 60'000;

host::ProbeRequest probe_request(const wire::Probe& m, const Environment& host) {
  host::ProbeRequest request;
  request.argv = m.argv;
  request.directory = m.directory;
  request.deadline = os::milliseconds(std::clamp<int64_t>(m.deadline_ms, 200, kLongestDeadlineMs));
  for (const wire::ProbePeer& peer : m.peers) request.peers.push_back({peer.name, peer.addresses});
  for (uint32_t port : m.ports) request.ports.push_back(static_cast<int>(port));
  request.names = m.names;
  request.paths = m.paths;
  bool prefix_exists = false;
  if (!m.path_prefix.empty()) {
    auto looked = os::run_guarded({{"prefix", [&m] { return std::string(os::is_folder(m.path_prefix) ? "y" : "n"); }}}, kPrefixLook);
    prefix_exists = looked[0].ok() && *looked[0] == "y";
  }
  wire::Prepare prepare;
  prepare.set = m.set;
  prepare.unset = m.unset;
  prepare.path_prefix = m.path_prefix;
  request.environment = job_environment(host, prepare, prefix_exists);
  return request;
}

// Nothing of the agent's stays open here: a child that cannot be ended would hold the launcher's stream open.
void leave_descriptors(int pipe) {
  int null = ::open("/dev/null", O_RDWR);
  if (pipe != 3) ::dup2(pipe, 3);
  for (int fd : {0, 1, 2})
    if (null >= 0) ::dup2(null, fd);
  if (::close_range(4, ~0U, 0) == 0) return;
  for (int fd = 4; fd < 1024; ++fd) ::close(fd);  // before Linux 5.9
}

[[noreturn]] void run_child(const wire::Probe& message, const Environment& host, int pipe, pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);
  ::setpgid(0, 0);
  ::prctl(PR_SET_NAME, "phalanx-probe");
  for (int s : {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGCHLD}) ::signal(s, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  leave_descriptors(pipe);
  std::string text = base::to_text(base::to_json(host::probe(probe_request(message, host))));
  ::_exit(os::write_all(3, text, "facts").ok() ? 0 : 1);
}

}  // namespace

ProbeDuty::~ProbeDuty() { kill(); }

void ProbeDuty::start(const wire::Probe& request, const Environment& host) {
  kill();
  base::Status forked = fork_child(request, host);
  if (forked.ok()) return;
  wire::Probed failed;
  failed.outcome = {false, forked.error()};
  loop_.after(os::nanoseconds(0), [this, failed] { done_(failed); });
}

base::Status ProbeDuty::fork_child(const wire::Probe& request, const Environment& host) {
  TRY_ASSIGN(os::PipeEnds ends, os::make_pipe());
  TRY(os::set_nonblocking(ends.read.get()));
  pid_t self = ::getpid();
  pid_t pid = ::fork();
  if (pid < 0) return base::system_error("fork", "the probe");
  if (pid == 0) run_child(request, host, ends.write.get(), self);
  ::setpgid(pid, pid);  // whoever is first: from here on the group can be killed
  group_ = pid;
  text_.clear();
  pipe_ = std::move(ends.read);
  TRY_ASSIGN(watch_, loop_.watch(pipe_.get(), EPOLLIN, [this](uint32_t) { read_more(); }));
  os::milliseconds patience = os::milliseconds(std::min<int64_t>(request.deadline_ms, kLongestDeadlineMs)) + kReserve;
  timer_ = loop_.after(patience, [this, patience] {
    timer_ = 0;
    wire::Probed late;
    late.outcome = {false, base::fail(base::ErrorKind::kTimeout,
                                      fmt::format("the probe gave no answer for {:.1f} s", static_cast<double>(patience.count()) / 1000))};
    answer(std::move(late));
  });
  return base::ok();
}

void ProbeDuty::read_more() {
  char buffer[32 << 10];
  for (;;) {
    os::IoStep step = os::read_step(pipe_.get(), buffer, sizeof(buffer));
    if (step.kind == os::IoStep::kWouldBlock) return;
    if (step.kind != os::IoStep::kBytes) break;
    text_.append(buffer, step.bytes);
    if (text_.size() > kMostBytes) break;
  }
  wire::Probed probed;
  if (text_.empty() || text_.size() > kMostBytes)
    probed.outcome = {false, base::fail(base::ErrorKind::kInternal, text_.empty() ? "the probe died" : "the probe found too much")};
  else probed.json = std::move(text_);
  answer(std::move(probed));
}

void ProbeDuty::answer(wire::Probed probed) {
  forget();
  if (!probed.outcome.ok && group_ > 0) ::kill(-group_, SIGKILL);
  done_(std::move(probed));
}

void ProbeDuty::forget() {
  if (watch_) loop_.unwatch(watch_);
  if (timer_) loop_.cancel(timer_);
  watch_ = timer_ = 0;
  pipe_.reset();
}

void ProbeDuty::kill() {
  if (pipe_.valid()) ::kill(-group_, SIGKILL);
  forget();
}

}  // namespace agent
