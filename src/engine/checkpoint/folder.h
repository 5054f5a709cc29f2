// The folder that holds a run's checkpoints: names, the newest, the best, removal, and who may write.
//
//   <folder>/step-00000200/      a checkpoint, complete if it holds DONE
//   <folder>/.saving-…           one under way, or left by a crash
//   <folder>/.removing-…         on its way out
//   <folder>/.owner              the token of the attempt that may write here
//   <folder>/best.json           which one is best
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace engine::checkpoint {

inline constexpr std::string_view kStepPrefix = "step-", kSavingPrefix = ".saving-", kRemovingPrefix = ".removing-";
inline constexpr const char *kManifestFile = "manifest.json", *kDoneFile = "DONE";

std::string name_of_step(int64_t step);                        // "step-00000200"
std::optional<int64_t> step_of(std::string_view name);         // of that
std::vector<std::string> names_in(const std::string& folder);  // unordered; none if it cannot be read

// Paths of the complete checkpoints in `folder`, oldest first; none if the folder does not exist.
std::vector<std::string> list(const std::string& folder);
std::optional<std::string> latest(const std::string& folder);

// Renamed first, so that no reader ever sees a half-removed one.
base::Status remove_checkpoint(const std::string& path);
base::Status remove_all(const std::string& folder);  // every complete checkpoint in it, and the best mark

// The checkpoint that is kept whatever its age.
struct Best {
  int64_t step = 0;
  std::string metric;  // "validation_loss"
  double value = 0;
};
std::optional<Best> best(const std::string& folder);  // nullopt: none, unreadable, or its checkpoint is gone
base::Status mark_best(const std::string& folder, const Best& best);

// Removes all complete checkpoints but the newest `keep` (0 keeps all) and the best.
base::Status prune(const std::string& folder, int64_t keep);

// Several processes that believe to be the same run (an old attempt that was thought dead) must not write one folder: the last to
// claim it may, and the others find out before they publish anything. A token names an attempt and is equal on its ranks.
std::string make_token();  // 16 random hex digits
base::Status claim(const std::string& folder, std::string_view token);
base::Status still_owner(const std::string& folder, std::string_view token);  // Error kConfig: another attempt has it

// Removes what ended saves left: half-removed checkpoints, steps without DONE, and unfinished saves but those of `token` that
// have a number of at least `sequence`.
base::Status clean_leftovers(const std::string& folder, std::string_view token, int64_t sequence);

// ".saving-step-00000200.<token>.<sequence>": where one save grows. The ranks of an attempt count their saves alike.
std::string saving_name(int64_t step, std::string_view token, int64_t sequence);

// Errors of files that a user can do something about: a full disk, missing rights (kUnfit, with a hint); else kInternal.
base::Error io_error(std::string_view operation, const std::string& path, int error_number);
base::Status sync_path(const std::string& path);
base::Status write_bytes(int fd, std::string_view bytes, const std::string& path);  // all of them
base::Status write_durably(const std::string& path, std::string_view content);      // temporary file, fsync, rename

}  // namespace engine::checkpoint
