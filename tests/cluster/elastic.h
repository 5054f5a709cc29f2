// A training of the engine on several hosts that loses one of them: what the test of elastic runs and the soak have in common.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "cluster.h"

namespace phalanx::testbed {

// What is done to a host while the training runs.
enum class Blow { kPowerOff, kEveryProcess, kStandsStill, kCut, kBlackHole, kAgentKilled, kRankKilled };
inline constexpr int kBlows = 7;
const char* name(Blow blow);

struct Trial {
  Blow blow = Blow::kPowerOff;
  std::string host = "h2";
  int64_t step = 25;  // struck when the training has said that it has done so many
  bool spare = true;  // h5 stands by; else the run goes on with three hosts
};

struct TrialResult {
  bool ended = false;
  int exit_code = 0;
  double loss = 0;                   // of the last step
  std::map<int64_t, double> losses;  // by step, as far as they were written
  int64_t resumed = 0;               // behind this step; 0: it began anew
  std::string talk;                  // stderr
  std::string left;                  // processes of the run on hosts that live
  double seconds = 0;
};

// 4 hosts with 2 ranks each, and h5. Checkpoints lie in a folder all hosts see.
class ElasticTraining {
 public:
  static constexpr int64_t kSteps = 120, kCheckpointEvery = 20;
  // folder: an empty one outside the hosts' own; phalanx: the launcher, with the engine beside it.
  ElasticTraining(std::string folder, std::string phalanx, std::string corpus);

  // An undisturbed run of two ranks on h1: the batches are the same, however many ranks share them.
  TrialResult undisturbed(const Cluster& cluster);
  TrialResult on_hosts(const Cluster& cluster, const std::string& hosts);  // undisturbed too, with 2 ranks on each of them
  TrialResult disturbed(const Cluster& cluster, const Trial& trial);

 private:
  Command command(const std::vector<std::string>& options, const std::string& out) const;
  TrialResult result(const Cluster& cluster, const Outcome& outcome, const std::string& out) const;
  int64_t steps_done(const std::string& out) const;

  std::string folder_, phalanx_;
  int trials_ = 0;
};

}  // namespace phalanx::testbed
