// `phalanx plan`: what run would do, per host and rank. Text for people, JSON for programs.
#pragma once

#include <string>

#include "base/json.h"
#include "base/language.h"
#include "job/supervisor/supervisor.h"

namespace phalanx::cli {

std::string plan_text(const job::State& state, base::Language language);
base::Json plan_json(const job::State& state);

}  // namespace phalanx::cli
