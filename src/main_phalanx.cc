// phalanx: the launcher. A table of contents: which verb, which file.
#include <signal.h>
#include <sys/prctl.h>

#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "agent/clean_builds.h"
#include "agent/guard.h"
#include "cli/agent_image.h"
#include "cli/flags/verbs.h"
#include "cli/front_door.h"
#include "cli/project/project.h"
#include "cli/records/runs.h"
#include "hosts/join/relay_to_node.h"
#include "os/descriptor_limit.h"
#include "words/said.h"

using namespace phalanx;

namespace {

base::Result<int> dispatch(const cli::Invocation& invocation) {
  switch (invocation.verb) {
    case cli::Verb::kRun:
    case cli::Verb::kPlan:
    case cli::Verb::kTrain: return cli::run_verb(invocation);
    case cli::Verb::kSubmit: return cli::submit_verb(invocation);
    case cli::Verb::kBench: return cli::bench_verb(invocation);
    case cli::Verb::kCheck: return cli::check_verb(invocation);
    case cli::Verb::kExplain: return cli::explain_verb(invocation);
    case cli::Verb::kFit: return cli::fit_verb(invocation);
    case cli::Verb::kPs: return cli::ps_verb(invocation);
    case cli::Verb::kLogs: return cli::logs_verb(invocation);
    case cli::Verb::kAttach: return cli::attach_verb(invocation);
    case cli::Verb::kStop: return cli::stop_verb(invocation);
    case cli::Verb::kWait: return cli::wait_verb(invocation);
    case cli::Verb::kInspect: return cli::inspect_verb(invocation);
    case cli::Verb::kExec: return cli::exec_verb(invocation);
    case cli::Verb::kPush: return cli::push_verb(invocation);
    case cli::Verb::kClean: return cli::clean_verb(invocation);
    case cli::Verb::kEnv: return cli::env_verb(invocation);
    case cli::Verb::kConfig: return cli::config_verb(invocation);
    case cli::Verb::kInit: return cli::init_verb(invocation);
    case cli::Verb::kStacks: return cli::stacks_verb(invocation);
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
  std::fputs(words::render(error, cli::language_here()).c_str(), stderr);
  return base::exit_code(error.kind);
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> args(argv + 1, argv + argc);
  ::prctl(PR_SET_NAME, "phalanx");  // started by way of /proc/self/exe it would be called "exe"
  if (args.size() == 1 && args[0] == "agent") return agent::run_guarded(argv, cli::agent_image().build);
  if (args.size() == 2 && args[0] == "agent" && args[1] == "relay") return hosts::relay_to_node();
  if (args.size() >= 2 && args[0] == "agent" && args[1] == "clean")
    return agent::print_clean_builds(cli::agent_image().build, args.size() == 3 && args[2] == "--yes");
  ::signal(SIGPIPE, SIG_IGN);
  os::raise_descriptor_limit();
  if (const std::optional<std::string> launcher = cli::launcher_asked_for_help(argv[0], args)) args = {"help", *launcher};
  base::Result<std::optional<cli::FrontDoor>> door = cli::open_front_door(argv[0], args);
  if (!door.ok()) return report(door.error());
  if (*door) args = (*door)->args;
  base::Result<cli::Invocation> invocation = cli::parse_command_line(args);
  if (!invocation.ok()) return report(invocation.error());
  base::Status project = cli::use_project(*invocation);
  if (!project.ok()) return report(project.error());
  if (*door) {
    base::Status hosts = cli::settle_hosts(**door, *invocation);
    if (!hosts.ok()) return report(hosts.error());
    cli::show(**door, *invocation);
  }
  base::Result<int> code = dispatch(*invocation);
  return code.ok() ? *code : report(code.error());
}
