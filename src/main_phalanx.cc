// phalanx: the launcher. A table of contents: which verb, which file.
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>

#include <cstdio>
#include <string>
#include <vector>

#include "agent/guard.h"
#include "base/sha256.h"
#include "cli/flags/verbs.h"
#include "os/descriptor_limit.h"
#include "os/fd.h"

using namespace phalanx;

namespace {

// `phalanx selfcheck SHA256`: the far side of deployment.
int selfcheck(const std::string& expected) {
  os::Fd file(::open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
  if (!file.valid()) return 1;
  base::Sha256 hash;
  static char buffer[128 << 10];
  for (;;) {
    os::IoStep step = os::read_step(file.get(), buffer, sizeof(buffer));
    if (step.kind == os::IoStep::kEnd) return hash.hex() == expected ? 0 : 1;
    if (step.kind != os::IoStep::kBytes) return 1;
    hash.update(std::string_view(buffer, step.bytes));
  }
}

base::Result<int> dispatch(const cli::Invocation& invocation) {
  switch (invocation.verb) {
    case cli::Verb::kRun:
    case cli::Verb::kPlan:
    case cli::Verb::kTrain: return cli::run_verb(invocation);
    case cli::Verb::kBench: return cli::bench_verb(invocation);
    case cli::Verb::kCheck: return cli::check_verb(invocation);
    case cli::Verb::kExplain: return cli::explain_verb(invocation);
    case cli::Verb::kFit: return cli::fit_verb(invocation);
    case cli::Verb::kPs: return cli::ps_verb(invocation);
    case cli::Verb::kLogs: return cli::logs_verb(invocation);
    case cli::Verb::kAttach: return cli::attach_verb(invocation);
    case cli::Verb::kStop: return cli::stop_verb(invocation);
    case cli::Verb::kWhy: return cli::why_verb(invocation);
    case cli::Verb::kReport: return cli::report_verb(invocation);
    case cli::Verb::kHelp: return cli::help_verb(invocation);
    case cli::Verb::kCompletion: return cli::completion_verb(invocation);
    case cli::Verb::kVersion: return cli::version_verb(invocation);
    case cli::Verb::kAgent: break;
  }
  return base::fail(base::ErrorKind::kUsage, "`agent` is started by phalanx itself");
}

int report(const base::Error& error) {
  std::fputs(error.render().c_str(), stderr);
  return base::exit_code(error.kind);
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> args(argv + 1, argv + argc);
  ::prctl(PR_SET_NAME, "phalanx");  // started by way of /proc/self/exe it would be called "exe"
  if (args.size() == 1 && args[0] == "agent") return agent::run_guarded(argv);
  if (args.size() == 2 && args[0] == "selfcheck") return selfcheck(args[1]);
  ::signal(SIGPIPE, SIG_IGN);
  os::raise_descriptor_limit();
  base::Result<cli::Invocation> invocation = cli::parse_command_line(args);
  if (!invocation.ok()) return report(invocation.error());
  base::Result<int> code = dispatch(*invocation);
  return code.ok() ? *code : report(code.error());
}
