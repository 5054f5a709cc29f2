// What each verb does, one function and one file per verb. Returns the exit code; errors come back as values and are
// printed by main alone.
#pragma once

#include "base/result.h"
#include "cli/flags/command_line.h"

namespace phalanx::cli {

base::Result<int> run_verb(const Invocation& invocation);  // run, plan, train
base::Result<int> submit_verb(const Invocation& invocation);
base::Result<int> check_verb(const Invocation& invocation);
base::Result<int> bench_verb(const Invocation& invocation);
base::Result<int> explain_verb(const Invocation& invocation);
base::Result<int> ps_verb(const Invocation& invocation);
base::Result<int> logs_verb(const Invocation& invocation);
base::Result<int> attach_verb(const Invocation& invocation);
base::Result<int> stop_verb(const Invocation& invocation);
base::Result<int> wait_verb(const Invocation& invocation);
base::Result<int> inspect_verb(const Invocation& invocation);
base::Result<int> exec_verb(const Invocation& invocation);
base::Result<int> push_verb(const Invocation& invocation);
base::Result<int> clean_verb(const Invocation& invocation);
base::Result<int> env_verb(const Invocation& invocation);
base::Result<int> config_verb(const Invocation& invocation);
base::Result<int> init_verb(const Invocation& invocation);
base::Result<int> stacks_verb(const Invocation& invocation);
base::Result<int> why_verb(const Invocation& invocation);
base::Result<int> report_verb(const Invocation& invocation);
base::Result<int> fit_verb(const Invocation& invocation);
base::Result<int> help_verb(const Invocation& invocation);
base::Result<int> completion_verb(const Invocation& invocation);
base::Result<int> version_verb(const Invocation& invocation);

}  // namespace phalanx::cli
