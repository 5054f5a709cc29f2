// How fast the links are: measured while the program starts, not before. A Python program imports its libraries for a second or more, and
// the network is idle. The bursts of the mesh test go over the listeners that it has left open, in the same rounds; a program that has
// ended by then is not disturbed. What they find are warnings, told once, about a second after the start.
#include <algorithm>

#include "job/survey/step.h"

namespace phalanx::job {
namespace {

// The codes that need bursts.
const std::vector<std::string>& measured_codes() {
  static const std::vector<std::string> codes = {"NET-SLOW-LINK", "NET-LOSS"};
  return codes;
}

}  // namespace

bool SurveyStep::measures_later() const { return !measures_first() && !job.dry_run && !c.ports.empty() && !c.situation.mesh.links.empty(); }

void SurveyStep::measure() {
  if (c.stage != Survey::Stage::kMeasuring || c.round > 0) return;
  c.mesh = c.situation.mesh;
  c.round = 1;
  dial_round();
}

void SurveyStep::end_speed() {
  c.stage = Survey::Stage::kDone;
  c.situation.mesh = std::move(c.mesh);
  stop_listening();
  doctor::Examination late = doctor::examine(c.situation, measured_codes());
  doctor::accept(c.situation, job.accepted, late);
  size_t told = c.examination.findings.size();
  std::move(late.findings.begin(), late.findings.end(), std::back_inserter(c.examination.findings));
  c.examination.errors += late.errors;
  c.examination.warnings += late.warnings;
  c.examination.notes += late.notes;
  c.examination.accepted += late.accepted;
  if (late.errors + late.warnings > 0) tell(Concerns{told});
}

}  // namespace phalanx::job
