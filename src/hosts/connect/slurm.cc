#include "hosts/connect/slurm.h"

#include <sys/wait.h>

#include <array>

#include <fmt/format.h>

#include "base/text.h"
#include "hosts/connect/container_start.h"
#include "os/process.h"

namespace phalanx::hosts {
namespace {

using base::ErrorKind;

// What srun says on stderr → what to say to the user. Texts of Slurm 22.05 (slurm_errno.c, srun/libsrun, step_launch.c).
struct Row {
  const char* pattern;
  const char* message;  // {0}: host name
  const char* hint;     // {0}: node, {1}: job
};
constexpr std::array kRows = {
    Row{"Invalid job id specified", "{0}: its Slurm job has ended", "squeue -j {1}"},
    Row{"Job/step already completing or completed", "{0}: its Slurm job has ended", "squeue -j {1}"},
    Row{"Expired or invalid job", "{0}: its Slurm job has ended", "squeue -j {1}"},
    Row{"DUE TO TIME LIMIT", "{0}: the time limit of the Slurm job ended it", "scontrol show job {1}"},
    Row{"DUE TO NODE FAILURE", "{0}: the node failed", "scontrol show node {0}"},
    Row{"Node failure on", "{0}: the node failed", "scontrol show node {0}"},
    Row{"Required node not available", "{0}: Slurm does not give the node to this job", "scontrol show node {0}"},
    Row{"Requested node configuration is not available", "{0}: Slurm cannot start a step on the node", "scontrol show node {0}"},
    Row{"Invalid node name specified", "{0}: the node is not in the Slurm job", "scontrol show job {1}"},
    Row{"Requested node", "{0}: the node is not free for a step of this job", "scontrol show node {0}"},
    Row{"Unable to contact slurm controller", "{0}: the Slurm controller does not answer", "scontrol ping"},
    Row{"Socket timed out on send/recv", "{0}: Slurm does not answer", "scontrol ping"},
    Row{"Communication connection failure", "{0}: slurmd on the node cannot be reached", "scontrol show node {0}"},
    Row{"STEP", "{0}: Slurm cancelled the agent's step", "scontrol show job {1}"},
};

std::string last_lines(const std::string& text) {
  std::string trimmed(base::trim(text));
  return trimmed.empty() ? "srun printed no message" : base::replace_all(trimmed, "\n", "\n          ");
}

}  // namespace

Launch SlurmTransport::launch(const Target& target, int) const {
  Launch launch;
  launch.deploys = true;
  launch.argv = {options_.program,
                 "--jobid=" + target.slurm_job,
                 "--nodelist=" + target.destination,
                 "--nodes=1",
                 "--ntasks=1",
                 "--ntasks-per-node=1",
                 "--overlap",
                 "--mem=0",
                 "--export=ALL",
                 "--mpi=none",
                 "--kill-on-bad-exit=1",
                 "--unbuffered",
                 "--quiet",
                 "sh",
                 "-c",
                 "trap '' TERM; " + far_command(target, options_.build)};
  return launch;
}

base::Error SlurmTransport::explain(const Target& target, const Death& death) const {
  for (const Row& row : kRows) {
    if (death.stderr_text.find(row.pattern) == std::string::npos) continue;
    return base::fail(ErrorKind::kUnreachable, fmt::format(fmt::runtime(row.message), target.name))
        .because(last_lines(death.stderr_text))
        .with_hint(fmt::format(fmt::runtime(row.hint), target.destination, target.slurm_job));
  }
  std::string how = WIFSIGNALED(death.status) ? fmt::format("srun was killed by {}", os::signal_name(WTERMSIG(death.status)))
                                              : fmt::format("exit code {}", WEXITSTATUS(death.status));
  return base::fail(ErrorKind::kUnreachable, fmt::format("{}: the agent could not be started with srun ({})", target.name, how))
      .because(last_lines(death.stderr_text))
      .with_hint(try_by_hand(target));
}

// A controller that is busy with the steps of other nodes, and a program that somebody has open for writing.
bool SlurmTransport::may_retry(const Death& death) const {
  for (const char* pattern : {"Socket timed out on send/recv", "Resource temporarily unavailable", "Text file busy"})
    if (death.stderr_text.find(pattern) != std::string::npos) return true;
  return false;
}

}  // namespace phalanx::hosts
