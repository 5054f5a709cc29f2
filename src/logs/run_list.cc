#include "logs/run_list.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "base/text.h"
#include "base/unicode.h"
#include "os/fd.h"
#include "os/files.h"

namespace logs {
namespace {

using base::ErrorKind;

constexpr size_t kSuffix = 4;

os::Fd open_folder(const std::string& path) { return os::Fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)); }

bool held(int folder) {
  base::Result<os::Fd> events = os::open_regular(folder, "events.jsonl");
  return events.ok() && ::flock(events->get(), LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

// A link to a folder is none: in a shared folder it may lead anywhere.
bool is_folder(int parent, const char* name) {
  struct stat s{};
  return ::fstatat(parent, name, &s, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(s.st_mode);
}

std::vector<std::string> ids_in(const std::string& base) {
  std::vector<std::string> ids;
  DIR* folder = ::opendir(base.c_str());
  if (!folder) return ids;
  while (dirent* entry = ::readdir(folder))
    if (is_run_id(entry->d_name) && is_folder(::dirfd(folder), entry->d_name)) ids.emplace_back(entry->d_name);
  ::closedir(folder);
  std::sort(ids.rbegin(), ids.rend());
  return ids;
}

// What `latest` names, if the run is ours; else the newest of ours, and the newest of all where none is. In a shared folder, whoever has
// written `latest` last would otherwise choose what everybody else sees.
std::string newest_of(const std::string& base, const std::vector<std::string>& ids) {
  auto ours = [&](const std::string& id) { return os::only_ours(open_folder(base + "/" + id)); };
  char target[64];
  ssize_t n = ::readlink((base + "/latest").c_str(), target, sizeof(target));
  std::string named(target, n > 0 ? static_cast<size_t>(n) : 0);
  if (is_run_id(named) && ours(named)) return named;
  auto newest = std::find_if(ids.begin(), ids.end(), ours);
  return newest == ids.end() ? ids.front() : *newest;
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

Run look_at_run(const std::string& path, const std::string& id) {
  Run run{id, path, base::Json::object(), Life::kLost, "", false, 0};
  struct stat info{};
  if (::lstat(path.c_str(), &info) != 0) return run;
  run.owner = info.st_uid;
  os::Fd folder = open_folder(path);
  if (!folder.valid()) {
    if (errno == EACCES) run.life = Life::kElsewhere;
    return run;
  }
  // The lock first: a launcher that ends between the two looks has written its verdict before.
  bool alive = held(folder.get());
  base::Result<os::Fd> file = os::open_regular(folder.get(), "run.json");
  run.ours = os::only_ours(folder) && (!file.ok() || os::only_ours(*file));
  base::Result<std::string> text = file.ok() ? os::read_rest(*file, "run.json", kMaxRecordBytes) : base::Result<std::string>(file.error());
  base::Result<base::Json> json = text.ok() ? base::parse_json(*text, kMaxRecordBytes) : base::Result<base::Json>(text.error());
  if (json.ok() && json->is_object()) run.record = std::move(json).value();
  auto launcher = run.record.find("launcher");
  std::string host = launcher == run.record.end() ? "" : base::get_string(*launcher, "host").value_or("");
  // On this machine the process itself tells, with locks or without. Of another one the lock may.
  const os::ProcessMark mark = launcher == run.record.end() ? os::ProcessMark{} : mark_of(*launcher);
  const os::Lives lives = os::lives(mark);
  const bool unknown = lives == os::Lives::kUnknown;
  const bool same_machine = host == this_machine() && (mark.machine_id.empty() || mark.machine_id == os::own_mark().machine_id);
  if (base::get_string(run.record, "state") == "ended") {
    run.life = Life::kEnded;
  } else if (lives == os::Lives::kYes || (unknown && alive)) {
    run.life = Life::kAlive;
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
  return base::fail(ErrorKind::kConfig, "the run " + run.id + " is not yours")
      .because("its folder or its run.json is owned by another user, is a link, or can be written to by others")
      .with_hint("ls -ld " + run.path + " " + run.path + "/run.json");
}

std::vector<Run> list_runs(const std::string& base) {
  std::vector<Run> runs;
  for (const std::string& id : ids_in(base)) runs.push_back(look_at_run(base + "/" + id, id));
  return runs;
}

base::Result<Run> find_run(const std::string& base, std::string_view word) {
  std::vector<std::string> ids = ids_in(base);
  if (ids.empty()) return base::fail(ErrorKind::kUsage, "there is no run yet").because("nothing lies in " + base);
  if (word.empty() || word == "latest") {
    std::string id = newest_of(base, ids);
    return look_at_run(base + "/" + id, id);
  }
  std::vector<std::string> fitting;
  for (const std::string& id : ids)
    if (id.starts_with(word) || (word.size() == kSuffix && id.ends_with(word))) fitting.push_back(id);
  if (fitting.empty())
    return base::fail(ErrorKind::kUsage, fmt::format("there is no run {}", base::quote(word))).with_hint("phalanx ps -a");
  if (fitting.size() > 1)
    return base::fail(ErrorKind::kUsage, fmt::format("{} runs begin or end with {}", fitting.size(), base::quote(word)))
        .because("of them " + fitting[0] + " and " + fitting[1])
        .with_hint("give more of the id; phalanx ps -a lists them");
  return look_at_run(base + "/" + fitting[0], fitting[0]);
}

}  // namespace logs
