#include "cli/records/check_memory.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <fmt/format.h>

#include "base/json_fields.h"
#include "base/sha256.h"
#include "base/text.h"
#include "base/try.h"
#include "os/build_id.h"
#include "os/clock.h"
#include "os/files.h"

namespace phalanx::cli {
namespace {

constexpr size_t kMostBytes = 32 << 20;
constexpr time_t kOld_s = 24 * 3600;  // a file of another job that nobody has used for so long is removed

std::string folder() {
  const std::string ours = cache_folder();
  if (ours.empty() || !os::make_folders(ours.substr(0, ours.rfind('/')), 0700).ok()) return "";
  if (!os::private_folder(ours) || !os::private_folder(ours + "/checks")) return "";
  return ours + "/checks";
}

// Everything that a check's answer may depend on, except what the hosts' fingerprints say.
std::string key_of(const job::Job& job) {
  std::string key = fmt::format("{}\n{}\n{}\n", os::build_id(), job.directory, job.path_prefix);
  auto add = [&](std::string_view what, const std::string& value) { key += fmt::format("{} {} {}\n", what, value.size(), value); };
  for (const job::HostRequest& host : job.hosts) {
    add("host", host.target.name);
    add("to", fmt::format("{} {} {}", host.target.destination, host.target.port, host.slots.value_or(-1)));
    if (const hosts::Container& container = host.target.container)
      add("in", fmt::format("{} {}", hosts::to_text(container), fmt::join(container.arguments, "\n")));
    for (int slot : host.selected) add("slot", std::to_string(slot));
  }
  for (const std::string& word : job.argv) add("argv", word);
  for (const auto& [name, value] : job.set) add("set", name + "=" + value);
  for (const std::string& name : job.unset) add("unset", name);
  for (const std::string& path : job.paths) add("path", path);
  for (const doctor::Acceptance& one : job.accepted) add("accepted", fmt::format("{} {}", one.code, fmt::join(one.hosts, ",")));
  add("interface", job.wish.interface);
  add("gpus", std::to_string(job.wish.count.value_or(-1)));
  for (const auto& [host, list] : job.wish.lists) add("gpu", fmt::format("{} {}", host, fmt::join(list, ",")));
  add("rule", fmt::format("{} {} {}", job.rule ? static_cast<int>(*job.rule) : -1, job.count, static_cast<int>(job.preflight)));
  return key;
}

// The first line of the file: when it was found, on a clock that nobody sets and that begins anew with the machine, and what is no
// host's own. Each further line is a host, so that never more than one host's tree of JSON is in memory: it is ten times its text.
struct Kept {
  std::string boot;
  int64_t found_ns = 0;
  job::Remembered remembered;
};
PHALANX_FIELDS(Kept, boot, found_ns, remembered);

template <typename T>
base::Result<T> read_line(std::string_view line) {
  TRY_ASSIGN(base::Json json, base::parse_json(line));
  return base::from_json<T>(json);
}

void remove_old(const std::string& folder) {
  DIR* dir = ::opendir(folder.c_str());
  if (!dir) return;
  while (dirent* entry = ::readdir(dir)) {
    struct stat info{};
    if (::fstatat(::dirfd(dir), entry->d_name, &info, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(info.st_mode)) continue;
    if (info.st_mtime + kOld_s < ::time(nullptr)) ::unlinkat(::dirfd(dir), entry->d_name, 0);
  }
  ::closedir(dir);
}

}  // namespace

std::string cache_folder() {
  std::string cache = os::environment_value("XDG_CACHE_HOME"), home = os::environment_value("HOME");
  if (cache.empty() && !home.empty()) cache = home + "/.cache";
  return cache.empty() || cache[0] != '/' ? "" : cache + "/phalanx";
}

CheckMemory::CheckMemory(const job::Job& job, std::chrono::milliseconds most_age) : most_age_(most_age) {
  if (most_age.count() == 0 || job.preflight == job::Preflight::kOff || job.dry_run || job.check_only) return;
  std::string at = folder();
  if (!at.empty()) path_ = at + "/" + base::sha256_hex(key_of(job)).substr(0, 32) + ".json";
}

std::shared_ptr<job::Remembered> CheckMemory::load() const {
  if (path_.empty()) return nullptr;
  base::Result<std::string> text = os::read_file(path_, kMostBytes);
  if (!text.ok()) return nullptr;
  std::vector<std::string_view> lines = base::split_lines(*text);
  base::Result<Kept> kept = read_line<Kept>(lines.empty() ? "" : lines.front());
  if (!kept.ok() || kept->boot.empty() || kept->boot != os::boot_id()) return nullptr;
  os::nanoseconds age = os::mono_now() - os::Mono{kept->found_ns};
  if (age.count() < 0 || age > most_age_) return nullptr;
  for (size_t i = 1; i < lines.size(); ++i) {
    base::Result<job::RememberedHost> host = read_line<job::RememberedHost>(lines[i]);
    if (!host.ok()) return nullptr;
    kept->remembered.hosts.push_back(std::move(host).value());
  }
  return std::make_shared<job::Remembered>(std::move(kept->remembered));
}

// A run whose ranks failed says nothing against its hosts; one that was refused, lost a host or hung does.
void CheckMemory::keep(const job::State& state, const job::Verdict& verdict) const {
  using Kind = job::Verdict::Kind;
  if (path_.empty()) return;
  bool against = verdict.kind == Kind::kRefused || verdict.kind == Kind::kHostLost || verdict.kind == Kind::kHung || verdict.attempt > 0;
  if (against) {
    ::unlink(path_.c_str());
    return;
  }
  if (!state.survey.examined) return;  // it ended before its checks did: what is kept stays, and ages
  std::optional<job::Remembered> remembered = job::to_remember(state);
  if (!remembered) {
    ::unlink(path_.c_str());
    return;
  }
  std::vector<job::RememberedHost> hosts = std::exchange(remembered->hosts, {});
  Kept kept{os::boot_id(), state.survey.examined_at.ns, *std::move(remembered)};
  std::string text = base::to_text(base::to_json(kept)) + "\n";
  for (const job::RememberedHost& host : hosts) text += base::to_text(base::to_json(host)) + "\n";
  if (!os::write_file_atomic(path_, text, 0600, os::Durable::kNo).ok()) return;
  remove_old(path_.substr(0, path_.rfind('/')));
}

}  // namespace phalanx::cli
