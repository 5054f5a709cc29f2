#include "agent/guard.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include <fmt/format.h>

#include "agent/agent.h"
#include "os/family.h"
#include "os/files.h"
#include "os/process.h"

namespace agent {
namespace {

// Termination requests go to the agent, which ends its ranks in order; the guard only stays until it has.
pid_t agent_pid = 0;
void forward(int signal_number) {
  if (agent_pid > 0) ::kill(agent_pid, signal_number);
}

int stand_guard(pid_t child) {
  agent_pid = child;
  struct sigaction action{};
  action.sa_handler = forward;
  for (int s : {SIGTERM, SIGINT, SIGHUP, SIGQUIT}) ::sigaction(s, &action, nullptr);
  ::close(STDIN_FILENO);  // the stream belongs to the agent: its end must be seen when the agent ends
  ::close(STDOUT_FILENO);
  int status = 0;
  while (::waitpid(child, &status, 0) != child) {}
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
    os::kill_descendants(std::chrono::milliseconds(kKillMilliseconds));
    return 0;
  }
  os::KillOutcome outcome = os::kill_descendants(std::chrono::milliseconds(kKillMilliseconds));
  if (!WIFSIGNALED(status)) return WEXITSTATUS(status);
  std::string line =
      fmt::format("phalanx-agent was killed by {}; its {} processes were ended", os::signal_name(WTERMSIG(status)), outcome.killed);
  if (outcome.left > 0) line += fmt::format(", {} could not be", outcome.left);
  line += "\n";
  if (::write(STDERR_FILENO, line.data(), line.size()) < 0) {}
  return 128 + WTERMSIG(status);
}

int fail_start(const base::Error& error) {
  std::fputs(error.render().c_str(), stderr);
  return base::exit_code(error.kind);
}

// A deployed agent was started in the folder of its own program (cluster/deploy.cc says why). It goes on where a login starts, with the
// variables that say so: the ranks inherit them, and the cache may be removed.
void leave_program_folder() {
  if (os::current_folder() + "/phalanx" != os::self_executable()) return;
  const char* home = ::getenv("HOME");
  if (!home || ::chdir(home) != 0) home = "/";
  if (::chdir(home) != 0) return;
  ::setenv("PWD", home, 1);
  ::unsetenv("OLDPWD");
}

}  // namespace

int run_guarded(char** argv) {
  leave_program_folder();
  ::signal(SIGPIPE, SIG_IGN);
  base::Status reaper = os::become_subreaper();
  if (!reaper.ok()) return fail_start(reaper.error());
  base::Result<os::PipeEnds> lifeline = os::make_pipe();
  if (!lifeline.ok()) return fail_start(lifeline.error());
  pid_t child = ::fork();
  if (child < 0) return fail_start(base::system_error("fork", "agent"));
  if (child > 0) {
    lifeline->read.reset();
    os::set_process_title(argv, "phalanx-guard", "phalanx-guard");
    int code = stand_guard(child);
    return code;
  }
  lifeline->write.reset();
  os::set_process_title(argv, "phalanx-agent", "phalanx-agent");
  return run_agent(std::move(lifeline->read));
}

}  // namespace agent
