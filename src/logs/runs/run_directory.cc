#include "logs/runs/run_directory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <ctime>

#include "os/clock.h"
#include "os/files.h"

namespace phalanx::logs {
namespace {

constexpr int64_t kPart = 1'000'000'000 / 256;

// The first two hex digits are the 256ths of the second: runs of one second sort as they began. The others are random.
std::string new_id(int64_t wall_ns) {
  time_t seconds = static_cast<time_t>(wall_ns / 1'000'000'000);
  const int64_t part = wall_ns % 1'000'000'000 / kPart;
  tm local{};
  ::localtime_r(&seconds, &local);
  char date[32];
  std::strftime(date, sizeof(date), "%Y%m%d-%H%M%S", &local);
  uint8_t random = 0;
  if (::getrandom(&random, sizeof(random), 0) != sizeof(random)) random = static_cast<uint8_t>(::getpid());
  return fmt::format("{}-{:02x}{:02x}", date, part, random);
}

// A link is replaced by renaming another over it: at no moment is there none.
void point_latest_at(const std::string& base, const std::string& id) {
  std::string temporary = base + "/.latest." + id;
  std::string link = base + "/latest";
  if (::symlink(id.c_str(), temporary.c_str()) != 0) return;  // a file system without links: `latest` is a convenience
  if (::rename(temporary.c_str(), link.c_str()) != 0) ::unlink(temporary.c_str());
}

// Without it, a run on a full disk could not record its own end. It is given up for that (DiskFiles::replace). ENOSPC or EDQUOT: there is
// no room even now, so nobody could find out what the run left where, or stop it. 0 also where the file system reserves nothing.
int reserve_room(const os::Fd& folder) {
  os::Fd file(::openat(folder.get(), "reserve", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  int error = file.valid() ? ::posix_fallocate(file.get(), 0, RunDirectory::kReserveBytes) : errno;
  if (file.valid() && error != 0) ::unlinkat(folder.get(), "reserve", 0);
  return error == ENOSPC || error == EDQUOT ? error : 0;
}

template <typename Call>
int without_interruption(Call call) {
  int result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

// What a run that cannot be recorded has made so far, so that nobody takes it for one that was lost.
void remove_begun(const os::Fd& folder, const std::string& path) {
  ::unlinkat(folder.get(), "events.jsonl", 0);
  ::unlinkat(folder.get(), "ranks", AT_REMOVEDIR);
  ::rmdir(path.c_str());  // only if it is empty
}

constexpr const char* kOtherFolder = "choose another folder with --log-dir";

}  // namespace

base::Result<std::string> RunDirectory::base_folder(const std::string& log_dir) {
  if (!log_dir.empty()) return log_dir.starts_with('/') ? log_dir : os::current_folder() + "/" + log_dir;
  std::string state = os::environment_value("XDG_STATE_HOME");
  if (state.starts_with('/')) return state + "/phalanx/runs";  // the XDG specification: a relative value is ignored
  std::string home = os::environment_value("HOME");
  if (home.starts_with('/')) return home + "/.local/state/phalanx/runs";
  return base::fail(base::ErrorKind::kConfig, "no directory for the logs of this run")
      .because("HOME and XDG_STATE_HOME are not set")
      .with_hint(kOtherFolder);
}

base::Result<RunDirectory> RunDirectory::create(const std::string& base, int64_t wall_ns) {
  auto failed = [](base::Error error) {
    error.kind = base::ErrorKind::kConfig;
    return std::move(error).within("creating the directory of this run").with_hint(kOtherFolder);
  };
  if (base::Status made = os::make_folders(base, 0700); !made.ok()) return failed(std::move(made).error());
  std::string id, path;
  for (int attempt = 0;; ++attempt) {
    id = new_id(wall_ns + attempt * kPart);
    path = base + "/" + id;
    if (without_interruption([&] { return ::mkdir(path.c_str(), 0700); }) == 0) break;
    if (errno != EEXIST || attempt == 1000) return failed(base::system_error("mkdir", path));
  }
  // From here on by descriptor: in a folder that others may write to, the name can lead to their folder, or to another one of ours.
  os::Fd folder(without_interruption([&] { return ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC); }));
  if (!folder.valid()) {
    base::Error error = base::system_error("open", path);
    ::rmdir(path.c_str());
    return failed(std::move(error));
  }
  if (without_interruption([&] { return ::mkdirat(folder.get(), "ranks", 0700); }) != 0) {
    base::Error error = base::system_error("mkdir", path + "/ranks");
    remove_begun(folder, path);
    return failed(std::move(error));
  }
  constexpr int kNew = O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC | O_NOFOLLOW;
  os::Fd events(without_interruption([&] { return ::openat(folder.get(), "events.jsonl", kNew, 0600); }));
  if (!events.valid()) {
    base::Error error = base::system_error("create", path + "/events.jsonl");
    remove_begun(folder, path);
    return failed(std::move(error));
  }
  if (const int full = reserve_room(folder); full != 0) {
    remove_begun(folder, path);
    return failed(base::fail(base::ErrorKind::kConfig,
                             fmt::format("there is no room for the record of this run in {}: {}", base, std::strerror(full))));
  }
  ::flock(events.get(), LOCK_EX);  // (logs/runs/run_list.h); a file system without locks does without
  point_latest_at(base, id);
  return RunDirectory(std::move(id), std::move(path), std::move(folder), std::move(events));
}

std::string RunDirectory::rank_log_path(int rank) const { return fmt::format("{}/ranks/{}.log", path_, rank); }

void RunDirectory::write_to(Files& files) {
  files_ = &files;
  events_ = files.log(path_ + "/events.jsonl", Form::kJsonLines, 0);
}

void RunDirectory::write_record(const base::Json& record) const { files_->replace(path_ + "/run.json", base::to_text(record, 2) + "\n"); }

void RunDirectory::event(int64_t wall_ns, const std::string& name, const base::Json& fields) {
  base::Json line = {{"v", 1}, {"t", os::iso_time(wall_ns)}, {"event", name}};
  if (fields.is_object())
    for (auto it = fields.begin(); it != fields.end(); ++it)
      if (!line.contains(it.key())) line[it.key()] = it.value();
  files_->append(events_, base::to_text(line) + "\n");
}

}  // namespace phalanx::logs
