#include "engine/checkpoint/folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <filesystem>

#include "base/json.h"
#include "base/text.h"
#include "base/try.h"
#include "base/unicode.h"
#include "os/fd.h"
#include "os/files.h"

namespace phalanx::engine::checkpoint {
namespace {

namespace fs = std::filesystem;

constexpr const char* kBestFile = "/best.json";
constexpr std::string_view kBestMagic = "phalanx-best";
constexpr const char* kCheckFileSystem = "check that this file system works (mount, dmesg), then restart; no checkpoint was removed";

void report(Removals* removals, const std::string& path, std::string_view why) {
  if (removals) removals->push_back(fmt::format("removed {} ({})", path, why));
}

}  // namespace

std::string name_of_step(int64_t step) { return fmt::format("{}{:08}", kStepPrefix, step); }

std::optional<int64_t> step_of(std::string_view name) {
  if (!name.starts_with(kStepPrefix)) return std::nullopt;
  std::string_view digits = name.substr(kStepPrefix.size());
  size_t zeros = std::min(digits.find_first_not_of('0'), digits.size() - (digits.empty() ? 0 : 1));
  auto step = base::parse_int(digits.substr(zeros), 0, int64_t{1} << 62);
  return step.ok() ? std::optional(*step) : std::nullopt;
}

base::Result<std::vector<std::string>> names_in(const std::string& folder) {
  auto names = os::names_if_present(folder);
  if (!names.ok()) return cannot_tell(std::move(names).error());
  return std::move(*names).value_or(std::vector<std::string>());
}

base::Result<bool> is_there(const std::string& path) {
  auto there = os::is_present(path);
  if (!there.ok()) return cannot_tell(std::move(there).error());
  return *there;
}

base::Result<std::vector<std::string>> list(const std::string& folder) {
  std::vector<std::pair<int64_t, std::string>> found;
  TRY_ASSIGN(const std::vector<std::string> names, names_in(folder));
  for (const std::string& name : names) {
    const auto step = step_of(name);
    if (!step) continue;
    std::string path = folder + "/" + name;
    TRY_ASSIGN(const bool complete, is_there(path + "/" + kDoneFile));
    if (complete) found.emplace_back(*step, std::move(path));
  }
  std::sort(found.begin(), found.end());
  std::vector<std::string> paths;
  for (auto& [step, path] : found) paths.push_back(std::move(path));
  return paths;
}

base::Result<std::optional<std::string>> latest(const std::string& folder) {
  TRY_ASSIGN(std::vector<std::string> all, list(folder));
  return all.empty() ? std::nullopt : std::optional(std::move(all.back()));
}

base::Result<std::string> move_away(const std::string& path) {
  static std::atomic<int> count{0};
  const std::string name = fs::path(path).filename().string();
  const std::string away = fmt::format("{}/{}{}.{}.{}", folder_of(path), kRemovingPrefix, name, getpid(), ++count);
  if (rename(path.c_str(), away.c_str()) == 0) return away;
  if (errno == ENOENT) return std::string();
  return io_error("rename", path, errno);
}

base::Status remove_checkpoint(const std::string& path) {
  TRY_ASSIGN(const std::string away, move_away(path));
  if (away.empty()) return base::ok();
  TRY(sync_path(folder_of(path)));
  return remove_tree(away);
}

base::Status remove_all(const std::string& folder, Removals* removals) {
  TRY_ASSIGN(const std::vector<std::string> all, list(folder));
  for (const std::string& path : all) {
    TRY_ASSIGN(const bool ours, is_ours(path));
    if (!ours) continue;
    TRY(remove_checkpoint(path));
    report(removals, path, "checkpoint.existing=replace");
  }
  if (unlink((folder + kBestFile).c_str()) != 0 && errno != ENOENT) return io_error("remove", folder + kBestFile, errno);
  return base::ok();
}

base::Result<std::optional<Best>> best(const std::string& folder) {
  const std::string path = folder + kBestFile;
  auto text = os::read_if_present(path, 4096);
  if (!text.ok()) return cannot_tell(std::move(text).error());
  if (!*text) return std::optional<Best>();
  auto json = base::parse_json(**text, 4096);
  const bool known = json.ok() && base::get_string(*json, "magic") == kBestMagic && base::get_int(*json, "version") == 1;
  const auto step = known ? base::get_int(*json, "step") : std::nullopt;
  if (!step || *step < 0)
    return base::fail(base::ErrorKind::kConfig, fmt::format("{} does not name the best checkpoint", base::quote(path, 400)))
        .because("the file is damaged, or another version wrote it; no checkpoint is removed until the best one is known")
        .with_hint("remove that file; the next better validation loss writes a new one");
  TRY_ASSIGN(const bool there, is_there(folder + "/" + name_of_step(*step) + "/" + kDoneFile));
  if (!there) return std::optional<Best>();
  return std::optional(Best{*step, base::get_string(*json, "metric").value_or(""), base::get_number(*json, "value").value_or(0)});
}

base::Status mark_best(const std::string& folder, const Best& best) {
  base::Json json = {{"magic", kBestMagic}, {"version", 1}, {"step", best.step}, {"metric", best.metric}, {"value", best.value}};
  TRY(write_durably(folder + kBestFile, base::to_text(json, 2) + "\n"));
  return sync_path(folder);
}

base::Status prune(const std::string& folder, const Prune& how, Removals* removals) {
  if (how.keep <= 0) return base::ok();
  // Everything is looked up before anything is removed. What is not ours counts for nothing: ten folders of another tool must not push
  // out our newest ones.
  TRY_ASSIGN(const std::vector<std::string> all, list(folder));
  TRY_ASSIGN(const std::optional<Best> kept, best(folder));
  std::vector<std::string> ours;
  for (const std::string& path : all) {
    TRY_ASSIGN(const bool own, is_ours(path));
    if (own) ours.push_back(path);
  }
  for (size_t i = 0; i + static_cast<size_t>(how.keep) < ours.size(); ++i) {
    const std::string name = fs::path(ours[i]).filename().string();
    if (name == name_of_step(how.saved) || (kept && name == name_of_step(kept->step))) continue;
    TRY(remove_checkpoint(ours[i]));
    report(removals, ours[i], fmt::format("checkpoint.keep={}", how.keep));
  }
  return base::ok();
}

std::string saving_name(int64_t step, std::string_view token, int64_t sequence) {
  return fmt::format("{}{}.{}.{}", kSavingPrefix, name_of_step(step), token, sequence);
}

base::Error io_error(std::string_view operation, const std::string& path, int error_number) {
  base::Error error = base::system_error(operation, base::quote(path, 400), error_number);
  error.kind = base::ErrorKind::kUnfit;
  if (error_number == ENOSPC || error_number == EDQUOT) error.hint = "free space on that disk, or keep fewer checkpoints (checkpoint.keep)";
  else if (error_number == EACCES || error_number == EPERM || error_number == EROFS)
    error.hint = "grant this user read and write permission, or use another folder";
  else error.hint = kCheckFileSystem;
  return error;
}

base::Error cannot_tell(base::Error error) {
  if (error.kind == base::ErrorKind::kInternal) error.kind = base::ErrorKind::kUnfit;
  if (error.hint.empty()) error.hint = kCheckFileSystem;
  return error;
}

std::string folder_of(const std::string& path) { return fs::path(path).parent_path().string(); }

base::Status remove_tree(const std::string& path) {
  std::error_code error;
  fs::remove_all(path, error);
  if (error && error.value() != ENOENT) return io_error("remove", path, error.value());
  return base::ok();
}

base::Status sync_path(const std::string& path) {
  os::Fd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return io_error("open", path, errno);
  if (fsync(fd.get()) != 0) return io_error("fsync", path, errno);
  return base::ok();
}

base::Status write_bytes(int fd, std::string_view bytes, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t written = write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return io_error("write", path, errno);
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return base::ok();
}

base::Status write_durably(const std::string& path, std::string_view content) {
  const std::string temporary = fmt::format("{}.tmp.{}", path, getpid());
  os::Fd fd(open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644));
  if (!fd.valid()) return io_error("create", path, errno);
  base::Status written = write_bytes(fd.get(), content, path);
  if (written.ok() && fsync(fd.get()) != 0) written = io_error("fsync", path, errno);
  if (written.ok() && rename(temporary.c_str(), path.c_str()) != 0) written = io_error("rename", path, errno);
  if (!written.ok()) unlink(temporary.c_str());
  return written;
}

}  // namespace phalanx::engine::checkpoint
