// Which of this machine's environment variables travel to the ranks, and which of the hosts' own are stale there. Pure.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "wire/messages.h"

namespace phalanx::cli {

// Names that are passed on without being asked for: what training libraries read, and the locale. docs/formats/environment.md.
std::span<const std::string_view> default_exports();
// Names no rank may inherit: they describe another launcher's job. Globs, for Prepare.unset.
std::vector<std::string> stale_variables();

struct ExportRules {
  std::vector<std::string> globs;  // --export
  bool defaults = true;            // not --no-export
};
// `environ_block`: "K=V" strings. CUDA_VISIBLE_DEVICES names devices of this machine only: it travels if its exact name is in
// globs, never through a pattern. Error kUsage: a malformed glob.
base::Result<wire::Variables> select_exports(const char* const* environ_block, const ExportRules& rules);

}  // namespace phalanx::cli
