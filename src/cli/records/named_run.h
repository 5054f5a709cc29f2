// Runs with a name of the user's (`run --name`): found by it like by an id.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "logs/runs/run_list.h"

namespace phalanx::cli {

inline constexpr size_t kMostNameBytes = 64;

// Letters, digits, '.', '_' and '-', beginning with a letter or a digit; nothing that an id, its end or "latest" could be.
// Error kUsage.
base::Status check_run_name(std::string_view name);

// Of several runs with one name: the newest; or, of those that have not ended, the only one, else the newest of all.
enum class OfOneName { kNewest, kGoingOn };

// word: as of logs::find_run, or the name of a run of this user. Error kUsage: of kGoingOn, several have not ended.
base::Result<logs::Run> find_named_run(const std::string& folder, std::string_view word, OfOneName wanted = OfOneName::kNewest);

}  // namespace phalanx::cli
