#include "cli/exit_code.h"

namespace phalanx::cli {

int check_exit_code(const job::State& state, const job::Verdict& verdict, const doctor::Examination& examination, FailOn fail_on) {
  if (verdict.kind == job::Verdict::Kind::kInterrupted) return verdict.exit_code;
  for (size_t h = 0; h < state.hosts.size(); ++h)
    if (state.hosts[h].refusal) return base::exit_code(state.hosts[h].refusal->kind);
  for (const doctor::HostView& host : state.survey.situation.hosts)
    if (!host.probed) return base::exit_code(base::ErrorKind::kUnreachable);
  if (fail_on == FailOn::kNever) return 0;
  for (const base::Error& refusal : verdict.refusals) return base::exit_code(refusal.kind);
  int found = examination.errors;
  if (fail_on != FailOn::kError) found += examination.warnings;
  if (fail_on == FailOn::kNote) found += examination.notes;
  return found > 0 ? base::exit_code(base::ErrorKind::kUnfit) : 0;
}

}  // namespace phalanx::cli
