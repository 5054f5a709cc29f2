// submit: a job script for Slurm, written and handed to sbatch.
#include <errno.h>
#include <stdio.h>
#include <sys/wait.h>

#include "base/try.h"
#include "cli/flags/verbs.h"
#include "cli/records/named_run.h"
#include "cli/submit_script.h"
#include "os/files.h"

namespace phalanx::cli {
namespace {

// sbatch reads the script from its standard input, and says the number of the job itself.
base::Result<int> hand_to_sbatch(const std::string& script) {
  FILE* sbatch = ::popen("exec sbatch", "we");
  if (!sbatch) return base::system_error("popen", "sbatch");
  const bool whole = std::fwrite(script.data(), 1, script.size(), sbatch) == script.size();
  const int status = ::pclose(sbatch);
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 1;
  if (code == 127)
    return base::fail(base::ErrorKind::kUnfit, "sbatch is not in PATH")
        .with_hint("submit on a machine that has Slurm, or print the script with --dry-run and take it there");
  if (code == 0 && !whole) return base::fail(base::ErrorKind::kUnfit, "sbatch did not read the whole job script");
  if (code != 0)
    return base::fail(base::ErrorKind::kUnfit, "sbatch refused the job").with_hint("phalanx submit --dry-run prints the script");
  return 0;
}

}  // namespace

base::Result<int> submit_verb(const Invocation& invocation) {
  Submission submission;
  if (std::optional<std::string> nodes = invocation.value(Flag::kNodes)) submission.nodes = std::stoi(*nodes);
  submission.name = invocation.value(Flag::kName).value_or("");
  if (!submission.name.empty()) TRY(check_run_name(submission.name));
  submission.options = invocation.values(Flag::kSbatch);
  submission.requeue = invocation.has(Flag::kRequeue);
  submission.command = invocation.operands;
  submission.program = os::self_executable();
  submission.directory = os::current_folder();
  if (submission.command.empty())
    return base::fail(base::ErrorKind::kUsage, "submit needs a command").with_hint("phalanx submit --nodes 2 -- python train.py");
  if (submission.directory.empty())
    return base::fail(base::ErrorKind::kUsage, "the current directory does not exist any more").with_hint("cd to another one");
  TRY_ASSIGN(const std::string script, job_script(submission));
  if (!invocation.has(Flag::kDryRun)) return hand_to_sbatch(script);
  std::fputs(script.c_str(), stdout);
  return 0;
}

}  // namespace phalanx::cli
