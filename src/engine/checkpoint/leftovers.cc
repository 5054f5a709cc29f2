// What ended saves leave in a folder of checkpoints, and the marks by which our own files are known.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "base/text.h"
#include "base/try.h"
#include "base/unicode.h"
#include "engine/checkpoint/folder.h"
#include "engine/checkpoint/owner.h"
#include "os/fd.h"
#include "os/files.h"

namespace phalanx::engine::checkpoint {
namespace {

// ".saving-step-00000200.<token>.<sequence>", and nothing that merely starts alike.
struct SavingName {
  std::string_view token;
  int64_t sequence = 0;
};
std::optional<SavingName> parse_saving_name(std::string_view name) {
  const std::vector<std::string_view> parts = base::split(name, '.');
  if (parts.size() != 4 || !parts[0].empty() || !parts[1].starts_with("saving-")) return std::nullopt;
  auto number = base::parse_int(parts[3], 0, INT64_MAX);
  if (!step_of(parts[1].substr(std::string_view("saving-").size())) || parts[2].empty() || !number.ok()) return std::nullopt;
  return SavingName{parts[2], *number};
}

bool is_removing_name(std::string_view name) {
  if (!name.starts_with(kRemovingPrefix)) return false;
  const std::string_view what = name.substr(kRemovingPrefix.size());
  return what.starts_with(kStepPrefix) || what.starts_with(kSavingPrefix) || what.starts_with(kReplacedPrefix);
}

std::optional<int64_t> step_replaced(std::string_view name) {
  return name.starts_with(kReplacedPrefix) ? step_of(name.substr(kReplacedPrefix.size())) : std::nullopt;
}

// The start of a file is enough to know it: records and manifests begin with their magic.
base::Result<std::string> head_of(const std::string& path) {
  os::Fd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  while (!fd.valid() && errno == EINTR) fd = os::Fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!fd.valid() && (errno == ENOENT || errno == ENOTDIR || errno == ELOOP)) return std::string();
  if (!fd.valid()) return io_error("open", path, errno);
  std::string head;
  char buffer[256];
  while (head.size() < sizeof(buffer)) {
    const os::IoStep step = os::read_step(fd.get(), buffer, sizeof(buffer) - head.size());
    if (step.kind == os::IoStep::kError && step.error_number != EISDIR) return io_error("read", path, step.error_number);
    if (step.kind != os::IoStep::kBytes) break;
    head.append(buffer, step.bytes);
  }
  return head;
}

bool has_magic(std::string_view head, std::string_view magic) {
  return head.starts_with('{') && head.find(fmt::format("\"{}\"", magic)) != std::string_view::npos &&
         head.find("\"magic\"") != std::string_view::npos;
}

bool is_done_mark(std::string_view text) {
  const std::string_view hash = base::trim(text);
  return hash.size() == 64 && hash.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

// A save that was killed while it gave a checkpoint the name of an older one of the same step, without a system call that exchanges them.
// The older one gets its name back unless the newer has it already.
base::Status settle_replaced(const std::string& folder, const std::string& name, int64_t step, std::vector<std::string>& away) {
  const std::string aside = folder + "/" + name, place = folder + "/" + name_of_step(step);
  TRY_ASSIGN(const bool newer, is_there(place + "/" + kDoneFile));
  if (newer) return away.push_back(aside), base::ok();
  if (rename(aside.c_str(), place.c_str()) != 0) return io_error("rename", aside, errno);
  return sync_path(folder);
}

}  // namespace

base::Result<bool> is_ours(const std::string& path) {
  TRY_ASSIGN(const std::string done, head_of(path + "/" + kDoneFile));
  if (is_done_mark(done)) return true;
  TRY_ASSIGN(const std::string manifest, head_of(path + "/" + kManifestFile));
  if (has_magic(manifest, "phalanx-checkpoint")) return true;
  TRY_ASSIGN(const std::vector<std::string> names, names_in(path));
  for (const std::string& name : names) {
    if (!name.starts_with("shard-") || !name.ends_with(".json")) continue;
    TRY_ASSIGN(const std::string record, head_of(path + "/" + name));
    if (has_magic(record, "phalanx-shard")) return true;
  }
  return false;
}

// Under the lock dead saves are only renamed, which takes milliseconds; their files go after that. So an old attempt cannot take a newer
// one's unfinished save for a dead one, and a claim does not wait for the removal of terabytes.
base::Status clean_leftovers(const std::string& folder, std::string_view token, int64_t sequence, Removals* removals) {
  std::vector<std::string> away;
  {
    TRY_ASSIGN(OwnerLock lock, OwnerLock::take(folder));
    TRY(still_owner(folder, token));
    TRY_ASSIGN(const std::vector<std::string> names, names_in(folder));
    for (const std::string& name : names) {
      const std::string path = folder + "/" + name;
      const std::optional<SavingName> saving = parse_saving_name(name);
      if (is_removing_name(name) || name.starts_with(".owner.tmp.") || name.starts_with("best.json.tmp.")) {
        away.push_back(path);
      } else if (auto step = step_replaced(name)) {
        TRY(settle_replaced(folder, name, *step, away));
      } else if (saving && !(saving->token == token && saving->sequence >= sequence)) {
        TRY_ASSIGN(const std::string removing, move_away(path));
        if (!removing.empty()) away.push_back(removing);
      }
    }
  }
  for (const std::string& path : away) {
    TRY(remove_tree(path));
    if (removals) removals->push_back(fmt::format("removed {}, left behind by an interrupted save", path));
  }
  return base::ok();
}

}  // namespace phalanx::engine::checkpoint
