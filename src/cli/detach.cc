#include "cli/detach.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>

#include <fmt/format.h>

#include "base/try.h"
#include "cli/records/runs.h"
#include "os/loop.h"
#include "os/process.h"
#include "words/message.h"
#include "words/said.h"

namespace phalanx::cli {
namespace {

constexpr size_t kMostWord = 128;

void print_next(const std::string& id, bool quiet, base::Language language) {
  std::printf("%s\n", id.c_str());
  std::fflush(stdout);
  if (quiet) return;
  std::fputs(
      words::tr(language, "phalanx: the run continues without this terminal\n\n  phalanx logs -f {0}\n  phalanx stop {0}\n", id).c_str(),
      stderr);
}

// The child has ended before its word; it has said why, unless something has killed it.
int end_of(pid_t child) {
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {}
  if (WIFEXITED(status)) return WEXITSTATUS(status);
  base::Error error =
      base::fail(base::ErrorKind::kInternal, fmt::format("the launcher was killed by {}", os::signal_name(WTERMSIG(status))));
  std::fputs(words::render(error, language_here()).c_str(), stderr);
  return 128 + WTERMSIG(status);
}

base::Result<int> wait_for_word(pid_t child, int word, bool quiet, base::Language language) {
  TRY_ASSIGN(std::unique_ptr<os::Loop> loop, os::Loop::create());
  for (int s : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) TRY(loop->on_signal(s, [child, s](const signalfd_siginfo&) { ::kill(child, s); }));
  std::string text;
  auto read = [&](uint32_t) {
    char buffer[kMostWord];
    os::IoStep step = os::read_step(word, buffer, sizeof(buffer));
    if (step.kind == os::IoStep::kWouldBlock) return;
    if (step.kind == os::IoStep::kBytes) text.append(buffer, step.bytes);
    if (step.kind != os::IoStep::kBytes || text.ends_with('\n') || text.size() > kMostWord) loop->stop();
  };
  TRY(os::set_nonblocking(word));
  TRY_ASSIGN(os::WatchId watch, loop->watch(word, EPOLLIN, read));
  loop->run();
  loop->unwatch(watch);
  if (!text.ends_with('\n')) return end_of(child);
  text.pop_back();
  print_next(text, quiet, language);
  return 0;
}

}  // namespace

base::Result<Detached> part(bool quiet, base::Language language) {
  TRY_ASSIGN(os::PipeEnds word, os::make_pipe());
  std::fflush(nullptr);
  pid_t child = ::fork();
  if (child < 0) return base::system_error("fork", "the launcher");
  if (child == 0) {
    if (::setsid() < 0) return base::system_error("setsid", "");
    return Detached{std::nullopt, std::move(word.write)};
  }
  word.write.reset();
  TRY_ASSIGN(int code, wait_for_word(child, word.read.get(), quiet, language));
  return Detached{code, {}};
}

base::Result<os::Relay> leave_terminal(const std::string& log) {
  os::Fd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  if (!null.valid()) return base::system_error("open", "/dev/null");
  base::Result<os::Relay> relay = os::Relay::to_file(log);
  int err = relay.ok() ? relay->fd() : null.get();
  if (::dup2(null.get(), STDIN_FILENO) < 0 || ::dup2(null.get(), STDOUT_FILENO) < 0 || ::dup2(err, STDERR_FILENO) < 0)
    return base::system_error("dup2", log);
  return relay;
}

void say_ready(os::Fd word, const std::string& run_id) {
  // The parent may be gone: the run goes on all the same.
  if (!os::write_all(word.get(), run_id + "\n", "the word to the parent").ok()) return;
}

}  // namespace phalanx::cli
