// Nodes of the Slurm allocation that the launcher runs in: one step per node, whose only task is the agent. No ssh is needed, and slurmd
// ends what is left of a step when the job ends.
//
// srun's options, and why (srun(1), Slurm 20.11 and newer; read in 22.05):
//   --unbuffered       without it slurmstepd sends whole lines only, and frames have no lines; its terminal is raw, all bytes pass
//   --overlap          the step shares the node with the batch step and with steps that the user starts
//   --mem=0            all memory of the job on that node
//   --export=ALL       the variables and modules of the job script, also under `sbatch --export=NONE`, which srun would take over
//   trap '' TERM       scancel and the time limit signal all steps and the launcher at once: the launcher stops the ranks with their grace
//   --kill-on-bad-exit --mpi=none --quiet, and --ntasks-per-node=1 against the variable of the job
#pragma once

#include <string>

#include "hosts/connect/transport.h"

namespace phalanx::hosts {

struct SlurmOptions {
  std::string program = "srun";
  std::string build;  // of the agent that is deployed
};

class SlurmTransport : public Transport {
 public:
  explicit SlurmTransport(SlurmOptions options) : options_(std::move(options)) {}
  Launch launch(const Target& target, int attempt) const override;
  base::Error explain(const Target& target, const Death& death) const override;
  bool may_retry(const Death& death) const override;

 private:
  SlurmOptions options_;
};

}  // namespace phalanx::hosts
