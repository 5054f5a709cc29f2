#include "engine/checkpoint/folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "base/json.h"
#include "base/text.h"
#include "base/unicode.h"
#include "os/fd.h"
#include "os/files.h"

namespace engine::checkpoint {
namespace {

namespace fs = std::filesystem;

constexpr const char *kOwnerFile = "/.owner", *kBestFile = "/best.json";
constexpr std::string_view kBestMagic = "phalanx-best";

std::string parent_of(const std::string& path) { return fs::path(path).parent_path().string(); }

base::Status remove_tree(const std::string& path) {
  std::error_code error;
  fs::remove_all(path, error);
  if (error) return io_error("remove", path, error.value());
  return base::ok();
}

// The token and number in ".saving-step-00000200.<token>.<sequence>".
bool is_live(std::string_view name, std::string_view token, int64_t sequence) {
  std::vector<std::string_view> parts = base::split(name, '.');
  if (parts.size() != 4 || parts[2] != token) return false;
  auto number = base::parse_int(parts[3], 0, INT64_MAX);
  return number.ok() && *number >= sequence;
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

std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) names.push_back(it->path().filename());
  return names;
}

std::vector<std::string> list(const std::string& folder) {
  std::vector<std::pair<int64_t, std::string>> found;
  for (const std::string& name : names_in(folder)) {
    std::string path = folder + "/" + name;
    if (auto step = step_of(name); step && os::exists(path + "/" + kDoneFile)) found.emplace_back(*step, path);
  }
  std::sort(found.begin(), found.end());
  std::vector<std::string> paths;
  for (auto& [step, path] : found) paths.push_back(std::move(path));
  return paths;
}

std::optional<std::string> latest(const std::string& folder) {
  std::vector<std::string> all = list(folder);
  return all.empty() ? std::nullopt : std::optional(all.back());
}

base::Status remove_checkpoint(const std::string& path) {
  static std::atomic<int> count{0};
  const fs::path place(path);
  const std::string away = fmt::format("{}/{}{}.{}.{}", parent_of(path), kRemovingPrefix, place.filename().string(), getpid(), ++count);
  if (rename(path.c_str(), away.c_str()) != 0) {
    if (errno == ENOENT) return base::ok();
    return io_error("rename", path, errno);
  }
  TRY(sync_path(parent_of(path)));
  return remove_tree(away);
}

base::Status remove_all(const std::string& folder) {
  for (const std::string& path : list(folder)) TRY(remove_checkpoint(path));
  if (unlink((folder + kBestFile).c_str()) != 0 && errno != ENOENT) return io_error("remove", folder + kBestFile, errno);
  return base::ok();
}

std::optional<Best> best(const std::string& folder) {
  auto text = os::read_file(folder + kBestFile, 4096);
  if (!text.ok()) return std::nullopt;
  auto json = base::parse_json(*text, 4096);
  if (!json.ok() || base::get_string(*json, "magic") != kBestMagic || base::get_int(*json, "version") != 1) return std::nullopt;
  auto step = base::get_int(*json, "step");
  if (!step || *step < 0 || !os::exists(folder + "/" + name_of_step(*step) + "/" + kDoneFile)) return std::nullopt;
  return Best{*step, base::get_string(*json, "metric").value_or(""), base::get_number(*json, "value").value_or(0)};
}

base::Status mark_best(const std::string& folder, const Best& best) {
  base::Json json = {{"magic", kBestMagic}, {"version", 1}, {"step", best.step}, {"metric", best.metric}, {"value", best.value}};
  TRY(write_durably(folder + kBestFile, base::to_text(json, 2) + "\n"));
  return sync_path(folder);
}

base::Status prune(const std::string& folder, int64_t keep) {
  if (keep <= 0) return base::ok();
  const std::vector<std::string> all = list(folder);
  const std::optional<Best> kept = best(folder);
  for (size_t i = 0; i + static_cast<size_t>(keep) < all.size(); ++i)
    if (!kept || fs::path(all[i]).filename() != name_of_step(kept->step)) TRY(remove_checkpoint(all[i]));
  return base::ok();
}

std::string make_token() {
  uint64_t random = 0;
  CHECK(getrandom(&random, sizeof(random), 0) == static_cast<ssize_t>(sizeof(random)));
  return fmt::format("{:016x}", random);
}

base::Status claim(const std::string& folder, std::string_view token) {
  TRY(write_durably(folder + kOwnerFile, std::string(token) + "\n"));
  return sync_path(folder);
}

base::Status still_owner(const std::string& folder, std::string_view token) {
  auto owner = os::read_file(folder + kOwnerFile, 256);
  if (!owner.ok()) return std::move(owner).error();
  if (base::trim(*owner) == token) return base::ok();
  return base::fail(base::ErrorKind::kConfig, fmt::format("another run writes its checkpoints to {}", base::quote(folder)))
      .because("it, or a later attempt of this one, has claimed the folder since this one began")
      .with_hint("end one of the two, or give them folders of their own");
}

base::Status clean_leftovers(const std::string& folder, std::string_view token, int64_t sequence) {
  for (const std::string& name : names_in(folder)) {
    const std::string path = folder + "/" + name;
    if (name.starts_with(kRemovingPrefix)) TRY(remove_tree(path));
    const bool dead_save = name.starts_with(kSavingPrefix) && !is_live(name, token, sequence);
    const bool half_written = name.starts_with(".owner.tmp.") || name.starts_with("best.json.tmp.");
    if (half_written) TRY(remove_tree(path));
    if (dead_save || (step_of(name) && !os::exists(path + "/" + kDoneFile))) TRY(remove_checkpoint(path));
  }
  return base::ok();
}

std::string saving_name(int64_t step, std::string_view token, int64_t sequence) {
  return fmt::format("{}{}.{}.{}", kSavingPrefix, name_of_step(step), token, sequence);
}

base::Error io_error(std::string_view operation, const std::string& path, int error_number) {
  base::Error error = base::system_error(operation, base::quote(path, 400), error_number);
  if (error_number == ENOSPC || error_number == EDQUOT) {
    error.kind = base::ErrorKind::kUnfit;
    error.hint = "make room on that disk, or keep fewer checkpoints (checkpoint.keep)";
  } else if (error_number == EACCES || error_number == EPERM || error_number == EROFS) {
    error.kind = base::ErrorKind::kUnfit;
    error.hint = "give this user the right to write there, or use another folder";
  }
  return error;
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

}  // namespace engine::checkpoint
