// `phalanx plan`: what run would do, per host and rank. Text for people, JSON for programs.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "base/language.h"
#include "job/supervisor/supervisor.h"

namespace phalanx::cli {

// spares: of --spares and --nnodes MIN:MAX; an attempt's own state does not know them.
std::string plan_text(const job::State& state, base::Language language, const std::vector<job::HostRequest>& spares = {});
base::Json plan_json(const job::State& state, const std::vector<job::HostRequest>& spares = {});

}  // namespace phalanx::cli
