#include "logs/runs/run_list.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/counted.h"
#include "base/text.h"
#include "base/try.h"
#include "base/unicode.h"
#include "os/fd.h"
#include "os/files.h"

namespace phalanx::logs {
namespace {

using base::ErrorKind;

constexpr size_t kSuffix = 4;

// Nothing where there is no folder, or a link in its place.
base::Result<std::optional<os::Fd>> open_folder(const std::string& path) {
  int fd = -1;
  do fd = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  while (fd < 0 && errno == EINTR);
  if (fd < 0 && (errno == ENOENT || errno == ENOTDIR || errno == ELOOP)) return std::optional<os::Fd>();
  if (fd < 0) return base::system_error("open", path);
  return std::optional<os::Fd>(os::Fd(fd));
}

// Whether somebody holds the lock. A file system without locks says "no" as well.
base::Result<bool> held(int folder) {
  TRY_ASSIGN(const std::optional<os::Fd> events, os::open_regular_if_present(folder, "events.jsonl"));
  if (!events) return false;
  int failed = 0;
  do failed = ::flock(events->get(), LOCK_SH | LOCK_NB);
  while (failed != 0 && errno == EINTR);
  return failed != 0 && errno == EWOULDBLOCK;
}

// A link to a folder is none: in a shared folder it may lead anywhere.
bool may_be_folder(const std::string& path) {
  struct stat s{};
  return ::lstat(path.c_str(), &s) == 0 ? S_ISDIR(s.st_mode) : errno != ENOENT;
}

// Ours where nobody can tell: then it is a run that cannot be read, and said to be.
uid_t owner_of(const std::string& path) {
  struct stat s{};
  return ::lstat(path.c_str(), &s) == 0 ? s.st_uid : ::getuid();
}

// Another user's folder that we may not look into.
bool is_closed_to_us(const std::string& path, uid_t owner) {
  if (owner == ::getuid()) return false;
  os::Fd folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  return !folder.valid() && errno == EACCES;
}

base::Result<std::vector<std::string>> ids_in(const std::string& base) {
  base::Result<std::optional<std::vector<std::string>>> names = os::names_if_present(base);
  if (!names.ok()) return cannot_read(names.error(), "the list of runs", base);
  std::vector<std::string> ids;
  for (std::string& name : *names ? **names : std::vector<std::string>())
    if (is_run_id(name) && may_be_folder(base + "/" + name)) ids.push_back(std::move(name));
  std::sort(ids.rbegin(), ids.rend());
  return ids;
}

// Also of a folder that only its owner can open.
base::Result<bool> folder_is_ours(const std::string& path) {
  struct stat s{};
  int failed = 0;
  do failed = ::lstat(path.c_str(), &s);
  while (failed != 0 && errno == EINTR);
  if (failed != 0 && errno == ENOENT) return false;
  if (failed != 0) return cannot_read(base::system_error("stat", path), "the run", path);
  return S_ISDIR(s.st_mode) && os::only_ours(s);
}

// What `latest` names; "" where there is no such link. EINVAL: it is no link.
base::Result<std::string> named_latest(const std::string& base) {
  const std::string path = base + "/latest";
  char target[64];
  ssize_t n = 0;
  do n = ::readlink(path.c_str(), target, sizeof(target));
  while (n < 0 && errno == EINTR);
  if (n < 0 && errno != ENOENT && errno != EINVAL) return cannot_read(base::system_error("readlink", path), "the newest run", path);
  return std::string(target, n > 0 ? static_cast<size_t>(n) : 0);
}

// What `latest` names, if the run is ours; else the newest of ours, and the newest of all where none is. In a shared folder, whoever has
// written `latest` last would otherwise choose what everybody else sees.
base::Result<std::string> newest_of(const std::string& base, const std::vector<std::string>& ids) {
  TRY_ASSIGN(const std::string named, named_latest(base));
  std::vector<std::string> by_rank{ids};
  if (is_run_id(named)) by_rank.insert(by_rank.begin(), named);
  for (const std::string& id : by_rank) {
    TRY_ASSIGN(const bool ours, folder_is_ours(base + "/" + id));
    if (ours) return id;
  }
  return ids.front();
}

// What the two looks at a run's folder tell, before anything is concluded from it.
base::Status read_run(const std::string& path, Run& run, base::Result<bool>& locked) {
  TRY_ASSIGN(const std::optional<os::Fd> folder, open_folder(path));
  if (!folder) return base::ok();
  // The lock first: a launcher that ends between the two looks has written its verdict before.
  locked = held(folder->get());
  TRY_ASSIGN(const struct stat of_folder, os::stat_of(*folder, path));
  run.ours = os::only_ours(of_folder);
  TRY_ASSIGN(const std::optional<os::Fd> file, os::open_regular_if_present(folder->get(), "run.json"));
  if (!file) return base::ok();
  TRY_ASSIGN(const struct stat of_file, os::stat_of(*file, path + "/run.json"));
  run.ours = run.ours && os::only_ours(of_file);
  TRY_ASSIGN(const std::string text, os::read_rest(*file, path + "/run.json", kMaxRecordBytes));
  base::Result<base::Json> json = base::parse_json(text, kMaxRecordBytes);
  if (json.ok() && json->is_object()) run.record = std::move(json).value();
  return base::ok();
}

base::Error not_ours(const Run& run) {
  return base::fail(ErrorKind::kConfig, fmt::format("the run {} is not yours", run.id))
      .because("its directory or its run.json is owned by another user, is a link, or is writable by others")
      .with_hint("ls -ld " + base::shell_quote(run.path) + " " + base::shell_quote(run.path + "/run.json"));
}

}  // namespace

base::Json describe_mark(const os::ProcessMark& mark) {
  return {{"host", this_machine()},
          {"pid", mark.pid},
          {"machine_id", mark.machine_id},
          {"boot_id", mark.boot_id},
          {"pid_namespace", mark.pid_namespace},
          {"started", mark.started}};
}

os::ProcessMark mark_of(const base::Json& launcher) {
  if (!launcher.is_object()) return {};
  return {base::get_string(launcher, "machine_id").value_or(""), base::get_string(launcher, "boot_id").value_or(""),
          base::get_string(launcher, "pid_namespace").value_or(""), base::get_int(launcher, "pid").value_or(0),
          base::get_int(launcher, "started").value_or(0)};
}

bool is_run_id(std::string_view text) {
  constexpr std::string_view kShape = "dddddddd-dddddd-xxxx";
  if (text.size() != kShape.size()) return false;
  for (size_t i = 0; i < text.size(); ++i) {
    bool digit = text[i] >= '0' && text[i] <= '9', hex = digit || (text[i] >= 'a' && text[i] <= 'f');
    if (kShape[i] == 'd' ? !digit : kShape[i] == 'x' ? !hex : text[i] != '-') return false;
  }
  return true;
}

std::string this_machine() {
  char name[256] = "";
  ::gethostname(name, sizeof(name) - 1);
  return name;
}

base::Error cannot_read(base::Error error, const std::string& what, const std::string& path) {
  return base::fail(ErrorKind::kConfig, fmt::format("cannot read {}", what))
      .because(error.message + (error.message.find(path) == std::string::npos ? ", in " + path : ""))
      .with_hint(fmt::format("ls -ld {}, then repeat the command once the file system answers", base::shell_quote(path)));
}

Run look_at_run(const std::string& path, const std::string& id) {
  Run run{id, path, base::Json::object(), Life::kLost, ""};
  run.owner = owner_of(path);
  if (is_closed_to_us(path, run.owner)) {
    run.life = Life::kElsewhere;
    return run;
  }
  base::Result<bool> locked = false;
  base::Status read = read_run(path, run, locked);
  auto launcher = run.record.find("launcher");
  std::string host = launcher == run.record.end() ? "" : base::get_string(*launcher, "host").value_or("");
  // On this machine the process itself tells, with locks or without. Of another one the lock may.
  const os::ProcessMark mark = launcher == run.record.end() ? os::ProcessMark{} : mark_of(*launcher);
  const os::Lives lives = os::lives(mark);
  const bool unknown = lives == os::Lives::kUnknown;
  const bool same_machine = host == this_machine() && (mark.machine_id.empty() || mark.machine_id == os::own_mark().machine_id);
  if (!read.ok() && run.owner == ::getuid()) run.unreadable = cannot_read(read.error(), fmt::format("the run {}", id), path);
  if (read.ok() && base::get_string(run.record, "state") == "ended") {
    run.life = Life::kEnded;
  } else if (lives == os::Lives::kYes || (unknown && locked.ok() && *locked)) {
    run.life = Life::kAlive;
  } else if (run.unreadable) {
    run.life = Life::kUnknown;
  } else if (unknown && !host.empty() && !same_machine) {
    run.life = Life::kElsewhere;
    run.launcher_host = host;
  } else if (!run.ours && run.record.empty()) {
    run.life = Life::kElsewhere;
  }
  return run;
}

base::Status must_be_ours(const Run& run) {
  if (run.ours) return base::ok();
  return not_ours(run);
}

base::Status rewrite_record(const Run& run, const std::function<void(base::Json&)>& change) {
  const std::string name = run.path + "/run.json";
  TRY_ASSIGN(const std::optional<os::Fd> folder, open_folder(run.path));
  if (!folder) return not_ours(run);
  TRY_ASSIGN(const struct stat of_folder, os::stat_of(*folder, run.path));
  TRY_ASSIGN(const os::Fd file, os::open_regular(folder->get(), "run.json"));
  TRY_ASSIGN(const struct stat of_file, os::stat_of(file, name));
  if (!os::only_ours(of_folder) || !os::only_ours(of_file)) return not_ours(run);
  TRY_ASSIGN(const std::string text, os::read_rest(file, name, kMaxRecordBytes));
  TRY_ASSIGN(base::Json record, base::parse_json(text, kMaxRecordBytes));
  if (record != run.record)
    return base::fail(ErrorKind::kConfig, fmt::format("run.json of {} has changed meanwhile", run.id)).because("in " + run.path);
  change(record);
  base::Status written = os::write_file_atomic_at(folder->get(), "run.json", base::to_text(record, 2) + "\n");
  return written.ok() ? base::ok() : base::Status(base::Error(written.error()).within("writing " + name));
}

base::Result<std::vector<Run>> list_runs(const std::string& base) {
  TRY_ASSIGN(const std::vector<std::string> ids, ids_in(base));
  std::vector<Run> runs;
  for (const std::string& id : ids) runs.push_back(look_at_run(base + "/" + id, id));
  return runs;
}

base::Result<Run> find_run(const std::string& base, std::string_view word) {
  auto look = [&](const std::string& id) -> base::Result<Run> {
    Run run = look_at_run(base + "/" + id, id);
    if (run.unreadable) return *std::move(run.unreadable);
    return run;
  };
  TRY_ASSIGN(const std::vector<std::string> ids, ids_in(base));
  if (ids.empty()) return base::fail(ErrorKind::kUsage, "there are no runs yet").because(fmt::format("no runs found in {}", base));
  if (word.empty() || word == "latest") {
    TRY_ASSIGN(const std::string id, newest_of(base, ids));
    return look(id);
  }
  std::vector<std::string> fitting;
  for (const std::string& id : ids)
    if (id.starts_with(word) || (word.size() == kSuffix && id.ends_with(word))) fitting.push_back(id);
  if (fitting.empty()) return base::fail(ErrorKind::kUsage, fmt::format("no such run: {}", base::quote(word))).with_hint("phalanx ps -a");
  if (fitting.size() > 1)
    return base::fail(ErrorKind::kUsage, base::counted("the ids of {} runs begin or end with {}", fitting.size(), base::quote(word)))
        .because(fmt::format("of them {} and {}", fitting[0], fitting[1]))
        .with_hint("write more of the id; phalanx ps -a lists the runs");
  return look(fitting[0]);
}

}  // namespace phalanx::logs
