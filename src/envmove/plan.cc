// What rehoming would do: reads everything, changes nothing.
#include <unistd.h>

#include <algorithm>
#include <mutex>
#include <set>

#include <fmt/format.h>

#include "base/sha256.h"
#include "base/text.h"
#include "base/try.h"
#include "envmove/below.h"
#include "envmove/bytecode.h"
#include "envmove/each_file.h"
#include "envmove/journal.h"
#include "envmove/rehome.h"
#include "envmove/scan_file.h"
#include "envmove/votes.h"
#include "os/files.h"

namespace phalanx::envmove {
namespace {

std::string folder_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "" : path.substr(0, slash);
}

class Planner {
 public:
  Planner(const Environment& environment, Plan& plan) : environment_(environment), plan_(plan) {}

  base::Status look(const File& file) {
    if (file.path == kJournal) return base::ok();
    if (file.is_link()) {
      if (moved_path(file.target, plan_.move) != file.target) add({file.path, true, 1, {}, {}, 0});
      return base::ok();
    }
    const std::string path = environment_.root + "/" + file.path;
    auto at = environment_.managed.find(file.path);
    const Managed* managed = at == environment_.managed.end() ? nullptr : &at->second;
    TRY_ASSIGN(const os::Fd opened, open_below(environment_, file.path));
    const Move move = move_of_file(plan_.move, managed);
    if (move.old_prefixes.empty()) return base::ok();
    TRY_ASSIGN(Scanned scanned, scan_file(opened, path, file.path, managed, move));
    if (!scanned.holds_old_prefix || scanned.file_class == FileClass::kBytecode) return base::ok();
    if (scanned.file_class == FileClass::kOpaque) {
      std::lock_guard lock(mutex_);
      plan_.untouched.push_back(file.path);
      return base::ok();
    }
    TRY_ASSIGN(std::string data, os::read_rest(opened, path, kMostRewrittenBytes));
    Rewritten now = rewrite(file.path, data, scanned.file_class, managed, move);
    if (now.hits == 0) return base::ok();
    if (!now.problem.empty()) {
      std::lock_guard lock(mutex_);
      plan_.problems.push_back({file.path, std::move(now.problem)});
      return base::ok();
    }
    add({file.path, false, now.hits, base::sha256_hex(data), base::sha256_hex(now.data), now.data.size()});
    return base::ok();
  }

  // The folders that must take new files, or lose compiled ones.
  void ask_folders() {
    const StaleBytecode stale(plan_.changes);
    std::set<std::string> asked;
    auto ask = [&](const std::string& path) {
      const std::string folder = environment_.root + "/" + folder_of(path);
      if (asked.insert(folder).second && access(folder.c_str(), W_OK | X_OK) != 0)
        plan_.problems.push_back({path, base::system_error("write to", folder).message});
    };
    for (const Change& change : plan_.changes) ask(change.path);
    for (const File& file : environment_.files)
      if (!file.is_link() && stale.has(file.path)) ask(file.path);
  }

 private:
  void add(Change change) {
    std::lock_guard lock(mutex_);
    plan_.changes.push_back(std::move(change));
  }

  const Environment& environment_;
  Plan& plan_;
  std::mutex mutex_;
};

}  // namespace

base::Result<Plan> plan_rehome(const Environment& environment, Move move, const Progress& progress) {
  Plan plan;
  plan.move = std::move(move);
  TRY_ASSIGN(std::optional<Journal> journal, read_journal(environment));
  if (journal) {
    plan.resumed = true;
    journal->move.old_prefixes.push_back(journal->move.new_prefix);  // it may have been moved on meanwhile
    for (const std::string& old : journal->move.old_prefixes) plan.move.old_prefixes.push_back(old);
  }
  auto& olds = plan.move.old_prefixes;
  std::sort(olds.begin(), olds.end());
  olds.erase(std::unique(olds.begin(), olds.end()), olds.end());
  std::erase(olds, plan.move.new_prefix);
  if (olds.empty() && environment.managed.empty()) return plan;
  plan.move.gone =
      std::all_of(olds.begin(), olds.end(), [&](const std::string& old) { return !is_within(old, plan.move.new_prefix) || is_gone(old); });
  Planner planner(environment, plan);
  std::atomic<size_t> done = 0;
  base::Status looked = each_of(environment.files.size(), [&](size_t i) -> base::Status {
    TRY(planner.look(environment.files[i]));
    if (progress) progress(++done, environment.files.size());
    return base::ok();
  });
  TRY(looked);
  planner.ask_folders();
  auto by_path = [](const auto& a, const auto& b) { return a.path < b.path; };
  std::sort(plan.changes.begin(), plan.changes.end(), by_path);
  std::sort(plan.problems.begin(), plan.problems.end(), by_path);
  std::sort(plan.untouched.begin(), plan.untouched.end());
  return plan;
}

}  // namespace phalanx::envmove
