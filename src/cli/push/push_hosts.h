// What `push` and `env push` share: which hosts they go to, and what they say of those.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "cli/flags/run_options.h"
#include "job/copy/copy_to_hosts.h"

namespace phalanx::cli {

// Error kUsage: no hosts were given, in the words of `missing`. example: a line with some.
base::Result<std::vector<hosts::Target>> targets_of(const RunOptions& options, const std::string& missing, const std::string& example);

// The same error of several hosts is said once.
std::vector<base::Error> folded_errors(const std::vector<job::CopiedHost>& hosts);

// Of a whole push; `hosts` has an object per host.
base::Json push_json(const std::string& root, const sync::Manifest& manifest, const std::vector<job::CopiedHost>& hosts);

}  // namespace phalanx::cli
