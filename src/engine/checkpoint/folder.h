// The folder that holds a run's checkpoints: names, the newest, the best, and removal.
//
//   <folder>/step-00000200/      a checkpoint, complete if it holds DONE
//   <folder>/.saving-…           one under way, or left by a crash
//   <folder>/.removing-…         on its way out
//   <folder>/.replaced-…         an older checkpoint of the same step, while a newer one takes its name
//   <folder>/.owner              the token of the attempt that may write here (owner.h)
//   <folder>/best.json           which one is best
//
// A lookup has three outcomes: yes, no, and an Error where the file system did not answer (EIO, ESTALE, EACCES, …). An Error never
// leads to a removal or to "there are no checkpoints". Only what is provably ours is removed, and every removal is reported.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace phalanx::engine::checkpoint {

inline constexpr std::string_view kStepPrefix = "step-", kSavingPrefix = ".saving-", kRemovingPrefix = ".removing-",
                                  kReplacedPrefix = ".replaced-";
inline constexpr const char *kManifestFile = "manifest.json", *kDoneFile = "DONE";

std::string name_of_step(int64_t step);                 // "step-00000200"
std::optional<int64_t> step_of(std::string_view name);  // of that
// Unordered; none if the folder does not exist.
base::Result<std::vector<std::string>> names_in(const std::string& folder);
base::Result<bool> is_there(const std::string& path);

// Paths of the complete checkpoints in `folder`, oldest first; none if the folder does not exist.
base::Result<std::vector<std::string>> list(const std::string& folder);
base::Result<std::optional<std::string>> latest(const std::string& folder);

// Whether the folder `path` holds a file that only this program writes: a manifest, a rank's record, a DONE mark with a hash. Another
// tool's folder of the same name does not.
base::Result<bool> is_ours(const std::string& path);

// One line for the log per thing removed: its path, and why.
using Removals = std::vector<std::string>;

// Renamed first, so that no reader ever sees a half-removed one.
base::Status remove_checkpoint(const std::string& path);
// Every complete checkpoint of ours in it, and the best mark.
base::Status remove_all(const std::string& folder, Removals* removals = nullptr);

// The checkpoint that is kept whatever its age.
struct Best {
  int64_t step = 0;
  std::string metric;  // "validation_loss"
  double value = 0;
};
// nullopt: no checkpoint is marked, or the marked one does not exist. Error also for a mark that cannot be understood: then nobody knows
// which checkpoint is the best.
base::Result<std::optional<Best>> best(const std::string& folder);
base::Status mark_best(const std::string& folder, const Best& best);

// Removes all complete checkpoints but the newest `keep` (0 keeps all), the best, and `saved`, the step that was just written. Removes
// nothing if one of them cannot be looked up.
struct Prune {
  int64_t keep = 0;
  int64_t saved = -1;
};
base::Status prune(const std::string& folder, const Prune& how, Removals* removals = nullptr);

// Removes what ended saves left: half-removed checkpoints, and unfinished saves but those of `token` that have a number of at least
// `sequence`. A step-… folder without DONE is left alone. Error: the attempt `token` does not own the folder (owner.h).
base::Status clean_leftovers(const std::string& folder, std::string_view token, int64_t sequence, Removals* removals = nullptr);

// ".saving-step-00000200.<token>.<sequence>": where one save grows. The ranks of an attempt count their saves alike.
std::string saving_name(int64_t step, std::string_view token, int64_t sequence);

// An Error of kind kUnfit that says what to do: make room, get the rights, check the file system.
base::Error io_error(std::string_view operation, const std::string& path, int error_number);
base::Error cannot_tell(base::Error error);  // the same for an Error of os/files.h
base::Status remove_tree(const std::string& path);
base::Result<std::string> move_away(const std::string& path);  // to ".removing-…", its new path; "" if it does not exist
std::string folder_of(const std::string& path);                // the folder it lies in
base::Status sync_path(const std::string& path);
base::Status write_bytes(int fd, std::string_view bytes, const std::string& path);  // all of them
base::Status write_durably(const std::string& path, std::string_view content);      // temporary file, fsync, rename

}  // namespace phalanx::engine::checkpoint
