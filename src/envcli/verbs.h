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
base::Result<int> pack(const Request& request, const envmove::Environment& environment);
// Then what verify says of it.
base::Result<int> unpack(const Request& request);
// For the launcher's `env push`: contents that no file has go to the descriptor kAsideFd, the list (sync/prepared.h) to kAnswerFd.
inline constexpr int kAsideFd = 3, kAnswerFd = 4;
base::Result<int> prepare(const Request& request, const envmove::Environment& environment);
// For the launcher's `env diff`: reads what hosts said from standard input. 1: they differ.
base::Result<int> compare(const Request& request);

}  // namespace phalanx::envcli
