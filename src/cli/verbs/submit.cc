// submit: a job script for Slurm, written and handed to sbatch; or a manifest for Kubernetes, handed to kubectl.
#include <errno.h>
#include <stdio.h>
#include <sys/wait.h>

#include <fmt/format.h>

#include "base/try.h"
#include "cli/by_hand/pod_manifest.h"
#include "cli/flags/verbs.h"
#include "cli/records/named_run.h"
#include "cli/submit_script.h"
#include "os/files.h"

namespace phalanx::cli {
namespace {

// Both read what they are given from their standard input, and say the name of the job themselves.
struct Receiver {
  const char* program;
  const char* line;
  const char* has;  // "submit on a machine that has …"
};
constexpr Receiver kSlurm{"sbatch", "exec sbatch", "Slurm"};
constexpr Receiver kKubernetes{"kubectl", "exec kubectl create -f -", "kubectl and a kubeconfig"};

base::Result<int> hand_over(const Receiver& to, const std::string& text) {
  FILE* pipe = ::popen(to.line, "we");
  if (!pipe) return base::system_error("popen", to.program);
  const bool whole = std::fwrite(text.data(), 1, text.size(), pipe) == text.size();
  const int status = ::pclose(pipe);
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 1;
  if (code == 127)
    return base::fail(base::ErrorKind::kUnfit, fmt::format("{} is not in PATH", to.program))
        .with_hint(fmt::format("submit on a machine that has {}, or print the text with --dry-run and take it there", to.has));
  if (code == 0 && !whole) return base::fail(base::ErrorKind::kUnfit, fmt::format("{} did not read the whole text", to.program));
  if (code != 0)
    return base::fail(base::ErrorKind::kUnfit, fmt::format("{} refused the job", to.program))
        .with_hint("phalanx submit --dry-run prints the text");
  return 0;
}

}  // namespace

base::Result<int> submit_verb(const Invocation& invocation) {
  Submission submission;
  if (std::optional<std::string> nodes = invocation.value(Flag::kNodes)) submission.nodes = std::stoi(*nodes);
  submission.name = invocation.value(Flag::kName).value_or("");
  if (!submission.name.empty()) TRY(check_run_name(submission.name));
  submission.options = invocation.values(Flag::kSbatch);
  submission.image = invocation.value(Flag::kImage).value_or("");
  if (std::optional<std::string> gpus = invocation.value(Flag::kGpusPerNode)) submission.gpus_per_node = std::stoi(*gpus);
  submission.volumes = invocation.values(Flag::kVolume);
  submission.requeue = invocation.has(Flag::kRequeue);
  submission.command = invocation.operands;
  submission.program = os::self_executable();
  submission.directory = os::current_folder();
  if (submission.command.empty())
    return base::fail(base::ErrorKind::kUsage, "submit needs a command").with_hint("phalanx submit --nodes 2 -- python train.py");
  if (submission.directory.empty())
    return base::fail(base::ErrorKind::kUsage, "the current directory does not exist any more").with_hint("cd to another one");
  const bool pods = !submission.image.empty();
  TRY_ASSIGN(const std::string text, pods ? pod_manifest(submission) : job_script(submission));
  if (!invocation.has(Flag::kDryRun)) return hand_over(pods ? kKubernetes : kSlurm, text);
  std::fputs(text.c_str(), stdout);
  return 0;
}

}  // namespace phalanx::cli
