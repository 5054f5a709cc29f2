#include "logs/runs/old_runs.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include "base/counted.h"
#include "base/text.h"
#include "logs/runs/run_list.h"
#include "os/clock.h"
#include "os/fd.h"
#include "os/files.h"

namespace phalanx::logs {
namespace {

// How the folder of a run is called while it is removed: no verb shows it any more, and what a crash left of it is found again.
constexpr std::string_view kLeaving = ".removed-";
constexpr size_t kSecondBytes = 15;  // of an id: "20261121-073102"
// Phalanx did not exist before: a time before it was written by a machine whose clock was wrong.
constexpr std::string_view kFirstTime = "2026-01-01T00:00:00.000Z";

constexpr std::chrono::days kZones{2};      // more than the times in ids can be off UTC
constexpr std::chrono::days kLostStays{1};  // far longer than the longest lease

// The folders of a run: its own, those below it, and "attempt_0/3", where --split-logs writes.
enum class Place { kRun, kRanks, kFacts, kAttempt, kStreams };

// The names of what Phalanx writes into them (docs/formats/run-directory.md).
bool is_file_of(Place place, std::string_view name) {
  const std::string_view whole = name;
  name = name.substr(0, name.find(".tmp."));
  const bool unfinished = name.size() < whole.size();
  switch (place) {
    case Place::kRun:
      for (std::string_view own : {"run.json", "masks.json"})
        if (name == own) return true;
      for (std::string_view own : {"events.jsonl", "progress.jsonl", "launcher.log", "control", "reserve"})
        if (whole == own) return true;
      return false;
    case Place::kFacts: return name.ends_with(".json") && base::is_number(name.substr(0, name.size() - 5));
    case Place::kRanks:
      if (name.ends_with(".1")) name.remove_suffix(2);
      return !unfinished && (name.ends_with(".log") || name.ends_with(".times")) && base::is_number(name.substr(0, name.rfind('.')));
    case Place::kAttempt: return false;
    case Place::kStreams:
      if (name.ends_with(".log.1") && !unfinished) name.remove_suffix(2);
      return name == "stdout.log" || name == "stderr.log" || name == "error.json";
  }
  return false;
}

// What such a folder in it is; nothing: not one of a run.
std::optional<Place> folder_in(Place place, std::string_view name) {
  constexpr std::string_view kAttempt = "attempt_";
  if (place == Place::kRun && name == "ranks") return Place::kRanks;
  if (place == Place::kRun && name == "facts") return Place::kFacts;
  if (place == Place::kRun && name.starts_with(kAttempt) && base::is_number(name.substr(kAttempt.size()))) return Place::kAttempt;
  if (place == Place::kAttempt && base::is_number(name)) return Place::kStreams;
  return std::nullopt;
}

struct Entry {
  std::string name;
  struct stat status;
};

// Nothing: the folder could not be read to its end.
std::optional<std::vector<Entry>> entries_of(int folder) {
  int copy = ::openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR* stream = copy < 0 ? nullptr : ::fdopendir(copy);
  if (!stream) {
    if (copy >= 0) ::close(copy);
    return std::nullopt;
  }
  struct Close {
    void operator()(DIR* open) const { ::closedir(open); }
  };
  const std::unique_ptr<DIR, Close> closing(stream);
  std::vector<Entry> entries;
  for (;;) {
    errno = 0;
    const dirent* entry = ::readdir(stream);
    if (!entry) break;
    Entry found{entry->d_name, {}};
    if (found.name == "." || found.name == "..") continue;
    if (::fstatat(folder, entry->d_name, &found.status, AT_SYMLINK_NOFOLLOW) != 0) return std::nullopt;
    entries.push_back(std::move(found));
  }
  if (errno != 0) return std::nullopt;
  return entries;
}

bool is_private_to_us(const struct stat& s) { return s.st_uid == ::geteuid() && (s.st_mode & 022) == 0; }

os::Fd enter(int folder, const std::string& name) {
  return os::Fd(::openat(folder, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

// A run's folder, open: what is done goes by this descriptor, never again by a name that could mean something else by then.
struct Folder {
  os::Fd fd;
  struct stat status{};
};

std::optional<Folder> open_private(int parent, const std::string& name) {
  Folder folder{enter(parent, name), {}};
  if (!folder.fd.valid() || ::fstat(folder.fd.get(), &folder.status) != 0 || !is_private_to_us(folder.status)) return std::nullopt;
  return folder;
}

// Only what Phalanx writes, and all of it ours, on one file system.
bool holds_only_a_run(const os::Fd& folder, Place place, const struct stat& run) {
  auto entries = folder.valid() ? entries_of(folder.get()) : std::nullopt;
  if (!entries) return false;
  return std::all_of(entries->begin(), entries->end(), [&](const Entry& entry) {
    if (entry.status.st_uid != run.st_uid || entry.status.st_dev != run.st_dev) return false;
    if (S_ISREG(entry.status.st_mode) || (S_ISSOCK(entry.status.st_mode) && place == Place::kRun)) return is_file_of(place, entry.name);
    const std::optional<Place> inner = S_ISDIR(entry.status.st_mode) ? folder_in(place, entry.name) : std::nullopt;
    return inner && holds_only_a_run(enter(folder.get(), entry.name), *inner, run);
  });
}
bool holds_only_a_run(const Folder& run) { return holds_only_a_run(run.fd, Place::kRun, run.status); }

// When a file of the run was last written to, in seconds since 1970; nothing: it cannot be told.
std::optional<int64_t> last_written(const Folder& run) {
  int64_t last = 0;
  auto look = [&](int folder) {
    auto entries = entries_of(folder);
    if (!entries) return false;
    for (const Entry& entry : *entries) last = std::max<int64_t>(last, entry.status.st_mtime);
    return true;
  };
  const os::Fd ranks = enter(run.fd.get(), "ranks");
  if (!look(run.fd.get()) || (ranks.valid() && !look(ranks.get()))) return std::nullopt;
  return last;
}

// The launcher of a run without a verdict, and whatever obeys it, is known to be gone.
bool is_gone(const base::Json& launcher, os::Lives lives) {
  if (lives == os::Lives::kNo) return true;
  return os::is_of_earlier_boot(logs::mark_of(launcher)) && base::get_string(launcher, "host") == this_machine();
}

// When it ended, in seconds since 1970; nothing: it has not, or nobody can tell.
std::optional<int64_t> ended_at(const Folder& run, const std::string& id, int64_t wall_ns) {
  base::Result<os::Fd> file = os::open_regular(run.fd.get(), "run.json");
  struct stat s{};
  if (!file.ok() || ::fstat(file->get(), &s) != 0 || !is_private_to_us(s)) return std::nullopt;
  base::Result<std::string> text = os::read_rest(*file, "run.json", kMaxRecordBytes);
  base::Result<base::Json> record = text.ok() ? base::parse_json(*text, kMaxRecordBytes) : base::Result<base::Json>(text.error());
  if (!record.ok() || !record->is_object()) return std::nullopt;
  if (base::get_int(*record, "schema") != 1 || base::get_string(*record, "id") != id) return std::nullopt;
  const base::Json launcher = record->contains("launcher") ? (*record)["launcher"] : base::Json::object();
  const os::Lives lives = os::lives(logs::mark_of(launcher));
  if (lives == os::Lives::kYes) return std::nullopt;
  const bool ended = base::get_string(*record, "state") == "ended";
  if (!ended && !is_gone(launcher, lives)) return std::nullopt;
  // The process that writes the files of a run holds this lock to its end. Where there are no locks, only its launcher's death counts.
  base::Result<os::Fd> events = os::open_regular(run.fd.get(), "events.jsonl");
  if (!events.ok()) return std::nullopt;
  if (::flock(events->get(), LOCK_SH | LOCK_NB) != 0 && (errno == EWOULDBLOCK || lives != os::Lives::kNo)) return std::nullopt;
  std::optional<int64_t> at = ended ? os::parse_iso_time(base::get_string(*record, "ended").value_or("")) : last_written(run);
  if (!at || *at < *os::parse_iso_time(kFirstTime)) return std::nullopt;
  if (!ended && wall_ns / 1'000'000'000 - *at < std::chrono::seconds(kLostStays).count()) return std::nullopt;
  return at;
}

// When it began, in seconds since 1970, as its id says; nothing: that is no time.
std::optional<int64_t> began_at(std::string_view id) {
  return os::parse_iso_time(fmt::format("{}-{}-{}T{}:{}:{}.000Z", id.substr(0, 4), id.substr(4, 2), id.substr(6, 2), id.substr(9, 2),
                                        id.substr(11, 2), id.substr(13, 2)));
}

// Removes nothing that a run does not have, and no folder that still holds something. False: it could not be read.
bool empty_out(const os::Fd& folder, Place place) {
  auto entries = folder.valid() ? entries_of(folder.get()) : std::nullopt;
  if (!entries) return false;
  for (const Entry& entry : *entries) {
    if (!S_ISDIR(entry.status.st_mode)) {
      if (is_file_of(place, entry.name)) ::unlinkat(folder.get(), entry.name.c_str(), 0);
    } else if (const std::optional<Place> inner = folder_in(place, entry.name)) {
      (void)empty_out(enter(folder.get(), entry.name), *inner);
      ::unlinkat(folder.get(), entry.name.c_str(), AT_REMOVEDIR);
    }
  }
  return true;
}
// Empty: all of it is gone. Else what is left.
std::string empty_out(const Folder& run, int base, const std::string& name) {
  if (!empty_out(run.fd, Place::kRun)) return "cannot list " + name;
  return ::unlinkat(base, name.c_str(), AT_REMOVEDIR) == 0 ? "" : base::system_error("rmdir", name).message;
}

class Sweep {
 public:
  Sweep(os::Fd base, const Keeping& keeping, const Removing& removing) : base_(std::move(base)), keeping_(keeping), removing_(removing) {}

  void work(const std::string& current, int64_t wall_ns) {
    auto entries = entries_of(base_.get());
    if (!entries) return;
    for (const Entry& entry : *entries) {
      const std::string id = entry.name.starts_with(kLeaving) ? entry.name.substr(kLeaving.size()) : "";
      if (is_run_id(id) && !finish(id)) return;
    }
    char target[64];
    const ssize_t n = ::readlinkat(base_.get(), "latest", target, sizeof(target));
    const std::string latest(target, n > 0 ? static_cast<size_t>(n) : 0);
    std::vector<std::string> ids;
    for (const Entry& entry : *entries)
      if (is_run_id(entry.name) && S_ISDIR(entry.status.st_mode) && is_private_to_us(entry.status)) ids.push_back(entry.name);
    // Newest first. Of runs of one second nobody knows the order, but that `latest` names the last of them.
    std::sort(ids.begin(), ids.end(), [&](const std::string& a, const std::string& b) {
      const std::string_view second_a = std::string_view(a).substr(0, kSecondBytes), second_b = std::string_view(b).substr(0, kSecondBytes);
      if (second_a != second_b) return second_a > second_b;
      return (a == latest) != (b == latest) ? a == latest : a > b;
    });
    // Age is measured from the end of a run before this one, or from now if that is earlier: a clock that is wrong today alone makes
    // nothing old.
    std::optional<int64_t> reference;
    for (size_t i = 0; i < ids.size(); ++i) {
      if (ids[i] == current || ids[i] == latest || (reference && i < keeping_.runs && is_young(i, ids[i], *reference))) continue;
      auto run = open_private(base_.get(), ids[i]);
      std::optional<int64_t> ended = run ? ended_at(*run, ids[i], wall_ns) : std::nullopt;
      if (!ended) continue;
      if (!reference) reference = std::min(*ended, wall_ns / 1'000'000'000);
      const std::string why = why_removed(i, *reference - *ended);
      if (!why.empty() && holds_only_a_run(*run) && !remove(*run, ids[i], why)) return;
    }
  }

 private:
  // It stays, whatever its record says: so hundreds of runs cost no more than their names. A run has not ended before it began.
  bool is_young(size_t position, const std::string& id, int64_t reference) const {
    const std::optional<int64_t> began = began_at(id);
    return position < keeping_.whatever_age || (began && std::chrono::seconds(reference - *began) < keeping_.age - kZones);
  }
  // position: how many of our runs are newer. Empty: it stays.
  std::string why_removed(size_t position, int64_t seconds) const {
    if (position >= keeping_.runs) return base::counted("the limit of {} newer runs was reached (--keep-runs)", keeping_.runs);
    if (position >= keeping_.whatever_age && std::chrono::seconds(seconds) > keeping_.age)
      return base::counted("it ended more than {} days before the latest runs", keeping_.age.count());
    return "";
  }

  // False: nothing more is to be done.
  bool remove(const Folder& run, const std::string& id, const std::string& why) {
    const std::string leaving = std::string(kLeaving) + id;
    if (!removing_(id, why, "")) return false;
    if (keeping_.list_only) return true;
    if (::renameat2(base_.get(), id.c_str(), base_.get(), leaving.c_str(), RENAME_NOREPLACE) != 0 &&
        (errno != EINVAL || ::renameat(base_.get(), id.c_str(), base_.get(), leaving.c_str()) != 0))
      return removing_(id, why, base::system_error("rename", id).cause);
    return clear(run, id, why);
  }

  // What an earlier removal has left.
  bool finish(const std::string& id) {
    auto run = open_private(base_.get(), std::string(kLeaving) + id);
    if (!run || !holds_only_a_run(*run)) return true;
    constexpr const char* kWhy = "an earlier removal was interrupted";
    return removing_(id, kWhy, "") && (keeping_.list_only || clear(*run, id, kWhy));
  }

  bool clear(const Folder& run, const std::string& id, const std::string& why) {
    const std::string leaving = std::string(kLeaving) + id;
    struct stat now{};
    if (::fstatat(base_.get(), leaving.c_str(), &now, AT_SYMLINK_NOFOLLOW) != 0 || now.st_ino != run.status.st_ino ||
        now.st_dev != run.status.st_dev)
      return removing_(id, why, "the directory was replaced by another one");
    const std::string problem = empty_out(run, base_.get(), leaving);
    return problem.empty() || removing_(id, why, problem);
  }

  os::Fd base_;
  const Keeping& keeping_;
  const Removing& removing_;
};

}  // namespace

void remove_old_runs(const std::string& base, const std::string& current, const Keeping& keeping, int64_t wall_ns,
                     const Removing& removing) {
  if (keeping.runs == 0) return;
  os::Fd folder(::open(base.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder.valid()) Sweep(std::move(folder), keeping, removing).work(current, wall_ns);
}

}  // namespace phalanx::logs
