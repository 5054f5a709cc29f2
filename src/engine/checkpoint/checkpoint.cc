#include "engine/checkpoint/checkpoint.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "base/sha256.h"
#include "base/text.h"
#include "base/unicode.h"
#include "os/clock.h"
#include "os/fd.h"
#include "os/files.h"

namespace engine::checkpoint {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kMagic = "phalanx-checkpoint";
constexpr int64_t kVersion = 1;
constexpr std::string_view kPrefix = "step-", kUnfinished = ".saving-";
constexpr size_t kMaxManifestBytes = 1 << 20;
constexpr const char *kManifest = "manifest.json", *kDone = "DONE", *kModel = "model.safetensors", *kOptimizer = "optimizer.safetensors";

base::Status sync_path(const std::string& path) {
  os::Fd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid() || fsync(fd.get()) != 0) return base::system_error("fsync", path);
  return base::ok();
}

// The DONE mark goes first, so that what is half removed is no checkpoint.
base::Status remove_checkpoint(const std::string& path) {
  std::error_code error;
  fs::remove(path + "/" + kDone, error);
  if (!error) TRY(sync_path(path));
  fs::remove_all(path, error);
  if (error) return base::fail(base::ErrorKind::kInternal, fmt::format("cannot remove {}", base::quote(path))).because(error.message());
  return base::ok();
}

std::optional<int64_t> step_of(const std::string& name) {
  if (!name.starts_with(kPrefix)) return std::nullopt;
  std::string_view digits = std::string_view(name).substr(kPrefix.size());
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

base::Json record_of(const char* name, const FileRecord& file) { return {{"name", name}, {"bytes", file.bytes}, {"sha256", file.sha256}}; }

base::Status write_folder(const std::string& folder, const Snapshot& snapshot, const StageHook& stage) {
  stage("model");
  TRY_ASSIGN(FileRecord model, write_tensors(folder + "/" + kModel, snapshot.model));
  stage("optimizer");
  TRY_ASSIGN(FileRecord optimizer, write_tensors(folder + "/" + kOptimizer, snapshot.optimizer));
  stage("manifest");
  base::Json manifest = {{"magic", kMagic}, {"version", kVersion}, {"step", snapshot.step}, {"about", snapshot.about}};
  manifest["files"] = base::Json::array({record_of(kModel, model), record_of(kOptimizer, optimizer)});
  TRY(os::write_file_atomic(folder + "/" + kManifest, base::to_text(manifest, 2) + "\n", 0644));
  return sync_path(folder);
}

// The manifest's text, if DONE vouches for it.
base::Result<std::string> vouched_manifest(const std::string& path) {
  TRY_ASSIGN(std::string done, os::read_file(path + "/" + kDone, 4096));
  TRY_ASSIGN(std::string manifest, os::read_file(path + "/" + kManifest, kMaxManifestBytes));
  if (base::trim(done) != base::sha256_hex(manifest))
    return base::fail(base::ErrorKind::kConfig, "its manifest.json is not the one its DONE mark was written for");
  return manifest;
}

base::Result<FileRecord> find_record(const base::Json& manifest, const char* name) {
  auto files = manifest.find("files");
  if (files != manifest.end() && files->is_array())
    for (const base::Json& file : *files) {
      auto bytes = base::get_int(file, "bytes");
      auto hash = base::get_string(file, "sha256");
      if (base::get_string(file, "name") == name && bytes && *bytes >= 0 && hash) return FileRecord{static_cast<uint64_t>(*bytes), *hash};
    }
  return base::fail(base::ErrorKind::kConfig, fmt::format("its manifest has no record of {}", name));
}

base::Result<Loaded> load_vouched(const std::string& path) {
  TRY_ASSIGN(std::string text, vouched_manifest(path));
  TRY_ASSIGN(base::Json manifest, base::parse_json(text, kMaxManifestBytes));
  if (base::get_string(manifest, "magic") != kMagic) return base::fail(base::ErrorKind::kConfig, "its manifest is not a checkpoint's");
  auto version = base::get_int(manifest, "version");
  if (version != kVersion)
    return base::fail(base::ErrorKind::kConfig,
                      fmt::format("its version is {}; this program reads version {}", version.value_or(-1), kVersion));
  auto step = base::get_int(manifest, "step");
  if (!step || *step < 0) return base::fail(base::ErrorKind::kConfig, "its manifest has no step");
  Loaded loaded{*step, manifest.value("about", base::Json::object()), {}, {}};
  TRY_ASSIGN(FileRecord model, find_record(manifest, kModel));
  TRY_ASSIGN(FileRecord optimizer, find_record(manifest, kOptimizer));
  TRY_ASSIGN(loaded.model, read_tensors(path + "/" + kModel, model));
  TRY_ASSIGN(loaded.optimizer, read_tensors(path + "/" + kOptimizer, optimizer));
  return loaded;
}

}  // namespace

base::Result<std::string> save(const std::string& folder, const Snapshot& snapshot, int64_t keep, const StageHook& hook) {
  auto stage = [&](std::string_view name) {
    if (hook) hook(name);
  };
  TRY(os::make_folders(folder, 0755));
  for (const std::string& name : names_in(folder))
    if (name.starts_with(kUnfinished) || (step_of(name) && !os::exists(folder + "/" + name + "/" + kDone)))
      TRY(remove_checkpoint(folder + "/" + name));

  const std::string name = fmt::format("{}{:08}", kPrefix, snapshot.step);
  const std::string unfinished = folder + "/" + std::string(kUnfinished) + name, path = folder + "/" + name;
  TRY(os::make_folders(unfinished, 0755));
  TRY(write_folder(unfinished, snapshot, stage));
  TRY_ASSIGN(std::string manifest, os::read_file(unfinished + "/" + kManifest, kMaxManifestBytes));
  stage("rename");
  if (os::exists(path)) TRY(remove_checkpoint(path));
  if (rename(unfinished.c_str(), path.c_str()) != 0) return base::system_error("rename", unfinished);
  TRY(sync_path(folder));
  stage("done");
  TRY(os::write_file_atomic(path + "/" + kDone, base::sha256_hex(manifest) + "\n", 0644));
  TRY(sync_path(path));
  stage("prune");
  std::vector<std::string> all = list(folder);
  for (size_t i = 0; keep > 0 && i + static_cast<size_t>(keep) < all.size(); ++i) TRY(remove_checkpoint(all[i]));
  return path;
}

std::vector<std::string> list(const std::string& folder) {
  std::vector<std::pair<int64_t, std::string>> found;
  for (const std::string& name : names_in(folder)) {
    std::string path = folder + "/" + name;
    if (auto step = step_of(name); step && os::exists(path + "/" + kDone)) found.emplace_back(*step, path);
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

base::Status remove_all(const std::string& folder) {
  for (const std::string& path : list(folder)) TRY(remove_checkpoint(path));
  return base::ok();
}

base::Result<Loaded> load(const std::string& path) {
  auto loaded = load_vouched(path);
  if (!loaded.ok()) {
    base::Error error = std::move(loaded).error();
    if (error.cause.empty()) error.cause = std::exchange(error.message, fmt::format("cannot load the checkpoint {}", base::quote(path)));
    error.kind = base::ErrorKind::kConfig;
    return error;
  }
  return loaded;
}

}  // namespace engine::checkpoint
