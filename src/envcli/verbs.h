// What each verb of phalanx-env does, one file per verb. Returns the exit code; errors come back as values and are printed by main alone.
#pragma once

#include "base/result.h"
#include "envcli/request.h"
#include "envmove/environment.h"

namespace phalanx::envcli {

base::Result<int> show(const Request& request, const envmove::Environment& environment);
base::Result<int> rehome(const Request& request, const envmove::Environment& environment);
// 3 (base::ErrorKind::kUnfit) when programs of the environment will fail.
base::Result<int> verify(const Request& request, const envmove::Environment& environment);

}  // namespace phalanx::envcli
