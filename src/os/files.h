// Files and folders: whole reads with a limit, and writes that are either the old content or the new one.
#pragma once

#include <sys/stat.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "os/fd.h"

namespace phalanx::os {

// Whole content. A file larger than max_bytes is an error (kConfig).
base::Result<std::string> read_file(const std::string& path, size_t max_bytes);

// Lookups with three outcomes. Only ENOENT and ENOTDIR mean "it does not exist"; after any other failure (EIO, ESTALE, EACCES, …) nobody
// knows, and that is an Error which names the path. What decides about removing or starting over must use these.
base::Result<bool> is_present(const std::string& path);
base::Result<bool> is_present_folder(const std::string& path);  // false also for what is no folder
base::Result<std::optional<std::string>> read_if_present(const std::string& path, size_t max_bytes);
base::Result<std::optional<std::vector<std::string>>> names_if_present(const std::string& folder);  // unordered, without . and ..

// For files in a folder that others may write to: opens only a regular file, follows no link at the end of the path, and does not wait for
// the writer of a FIFO. folder: a descriptor that `name` is relative to, or AT_FDCWD. Error kConfig: something else lies there.
base::Result<Fd> open_regular(int folder, const std::string& name);
base::Result<Fd> open_regular(const std::string& path);
// Nothing where no regular file lies: no file, a link, a FIFO. An Error means that nobody knows.
base::Result<std::optional<Fd>> open_regular_if_present(int folder, const std::string& name);
base::Result<std::optional<Fd>> open_regular_if_present(const std::string& path);
// The same for "ranks/0.log" below `folder`: neither the folder itself nor any step of the name may be a link. Who may make folders there
// could otherwise let us read a file of our own and show or pack it as theirs.
base::Result<std::optional<Fd>> open_regular_below(const std::string& folder, std::string_view name);
base::Result<std::string> read_rest(const Fd& file, const std::string& path, size_t max_bytes);
// The bytes at `from`; fewer only where the file ends.
base::Result<size_t> read_at(const Fd& file, const std::string& path, off_t from, char* data, size_t size);
base::Result<struct stat> stat_of(const Fd& file, const std::string& path);
// Whether it is owned by this user or by root, and neither group nor others can write to it.
bool only_ours(const struct stat& file);
// For the name of a new file: other hosts may write to the same folder, and have equal process ids.
std::string random_suffix();
// Temp file beside `path`, fsync, rename, fsync of the folder. mode as for open(2). Without fsync a crash of the machine may leave an empty
// or partial file; for what its reader can check and make again.
enum class Durable { kYes, kNo };
base::Status write_file_atomic_at(int folder, const std::string& name, std::string_view content, unsigned mode = 0600,
                                  Durable durable = Durable::kYes);  // folder: what `name` is relative to
base::Status write_file_atomic(const std::string& path, std::string_view content, unsigned mode = 0600, Durable durable = Durable::kYes);
// mkdir -p; new folders get `mode`. An existing folder is fine.
base::Status make_folders(const std::string& path, unsigned mode = 0700);
// Makes it if it is missing. True: a folder, no link, owned by us, 0700, and nobody but us and root can put another in its place: no
// folder above it belongs to another user, or is writable for others without the sticky bit.
bool private_folder(const std::string& path);
// Whether nobody but us and root can put something else in the place of what a folder holds.
bool only_ours_to_change(const std::string& folder);
bool is_folder(const std::string& path);  // false also where it cannot be looked up
bool exists(const std::string& path);     // likewise
std::string current_folder();             // "": it has been removed, or cannot be looked up
std::string self_executable();            // /proc/self/exe resolved: for messages, and for what lies beside it
// Opens and starts the very program this process runs, also after another was put in its place.
inline constexpr const char* kOwnProgram = "/proc/self/exe";
std::string environment_value(const char* name, std::string_view fallback = "");

}  // namespace phalanx::os
