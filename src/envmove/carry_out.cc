// The plan becomes files: each beside the one it replaces, then renamed.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "base/sha256.h"
#include "base/text.h"
#include "base/try.h"
#include "base/unicode.h"
#include "envmove/below.h"
#include "envmove/bytecode.h"
#include "envmove/each_file.h"
#include "envmove/hashes.h"
#include "envmove/journal.h"
#include "envmove/rehome.h"
#include "envmove/replace_file.h"
#include "envmove/scan_file.h"
#include "os/files.h"

namespace phalanx::envmove {
namespace {

using base::ErrorKind;

// Names of one file, to be replaced by names of one file.
using Group = std::vector<const Change*>;

std::vector<Group> groups_of(const Environment& environment, const std::vector<Change>& changes) {
  std::vector<Group> out;
  std::map<std::pair<dev_t, ino_t>, size_t> linked;
  for (const Change& change : changes) {
    const File* file = environment.find(change.path);
    if (!file || file->is_link() || file->stat.st_nlink < 2) {
      out.push_back({&change});
      continue;
    }
    auto [at, is_new] = linked.emplace(std::pair{file->stat.st_dev, file->stat.st_ino}, out.size());
    if (is_new) out.emplace_back();
    out[at->second].push_back(&change);
  }
  return out;
}

base::Status change_group(const Environment& environment, const Move& move, const Group& group) {
  const Change& first = *group.front();
  const File* file = environment.find(first.path);
  if (!file) return base::fail(ErrorKind::kInternal, fmt::format("no such file in the plan: {}", base::quote(first.path)));
  if (first.link) {
    TRY_ASSIGN(const Spot spot, find_spot(environment, first.path));
    return replace_link(spot, moved_path(file->target, move));
  }
  auto at = environment.managed.find(first.path);
  const Managed* managed = at == environment.managed.end() ? nullptr : &at->second;
  TRY_ASSIGN(const Content before, read_below(environment, first.path, kMostRewrittenBytes));
  if (base::sha256_hex(before.data) != first.old_sha256)
    return base::fail(ErrorKind::kConfig, fmt::format("{} has changed since it was read", base::quote(before.spot.path)))
        .with_hint(fmt::format("stop what writes there, and start again: phalanx env rehome {}", base::shell_quote(environment.root)));
  const FileClass file_class = classify(first.path, std::string_view(before.data).substr(0, kClassifiedBytes), managed);
  Rewritten now = rewrite(first.path, before.data, file_class, managed, move_of_file(move, managed));
  TRY(replace_file(before.spot, now.data, before.stat));
  for (size_t i = 1; i < group.size(); ++i) {
    TRY_ASSIGN(const Spot other, find_spot(environment, group[i]->path));
    TRY(replace_by_name_of(other, before.spot));
  }
  return base::ok();
}

base::Status remove_stale_bytecode(const Environment& environment, const std::vector<Change>& changes) {
  const StaleBytecode stale(changes);
  for (const File& file : environment.files) {
    if (file.is_link() || !stale.has(file.path)) continue;
    TRY_ASSIGN(const Spot spot, find_spot(environment, file.path));
    if (unlinkat(spot.folder.get(), spot.name.c_str(), 0) != 0 && errno != ENOENT) return base::system_error("remove", spot.path);
  }
  return base::ok();
}

// What was meant to be changed, then and now: the first hash of a file is that of its record.
std::vector<Change> joined(std::vector<Change> before, const std::vector<Change>& now) {
  std::map<std::string, Change> all;
  for (Change& change : before) all.emplace(change.path, std::move(change));
  for (const Change& change : now) {
    auto [at, is_new] = all.emplace(change.path, change);
    if (is_new) continue;
    at->second.new_sha256 = change.new_sha256;
    at->second.new_size = change.new_size;
  }
  std::vector<Change> out;
  for (auto& [path, change] : all) out.push_back(std::move(change));
  return out;
}

}  // namespace

base::Status carry_out(const Environment& environment, const Plan& plan, const Progress& progress) {
  TRY_ASSIGN(std::optional<Journal> before, read_journal(environment));
  if (plan.changes.empty() && !before) return base::ok();
  Journal journal{plan.move, joined(before ? std::move(before->changes) : std::vector<Change>(), plan.changes)};
  TRY(write_journal(environment, journal));
  std::vector<Group> groups = groups_of(environment, plan.changes);
  std::atomic<size_t> done = 0;
  base::Status changed = each_of(groups.size(), [&](size_t i) -> base::Status {
    TRY(change_group(environment, plan.move, groups[i]));
    if (progress) progress(done += groups[i].size(), plan.changes.size());
    return base::ok();
  });
  TRY(changed);
  TRY(remove_stale_bytecode(environment, journal.changes));
  TRY(correct_hashes(environment, journal.changes));
  if (unlinkat(environment.folder->get(), kJournal, 0) != 0) return base::system_error("remove", environment.root + "/" + kJournal);
  return base::ok();
}

}  // namespace phalanx::envmove
