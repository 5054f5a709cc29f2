// Applies the rules of codes/rules/ to the configuration files of a job.
#pragma once

#include "doctor/catalogue.h"

namespace phalanx::doctor {

// The check of a row whose code has rules: one finding for each rule and file that meet.
void check_config_rules(const Situation& situation, Findings& findings);

}  // namespace phalanx::doctor
