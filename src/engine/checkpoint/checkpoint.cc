#include "engine/checkpoint/checkpoint.h"

#include <fmt/format.h>
#include <unistd.h>

#include "base/sha256.h"
#include "base/text.h"
#include "base/unicode.h"
#include "os/files.h"

namespace engine::checkpoint {
namespace {

constexpr std::string_view kMagic = "phalanx-checkpoint";
constexpr int64_t kOldVersion = 1;
constexpr std::string_view kUnfinished = kSavingPrefix;
constexpr size_t kMaxManifestBytes = 1 << 20;
constexpr const char *kManifest = kManifestFile, *kDone = kDoneFile, *kModel = "model.safetensors", *kOptimizer = "optimizer.safetensors";

base::Json record_of(const char* name, const FileRecord& file) { return {{"name", name}, {"bytes", file.bytes}, {"sha256", file.sha256}}; }

base::Status write_folder(const std::string& folder, const Snapshot& snapshot, const StageHook& stage) {
  stage("model");
  TRY_ASSIGN(FileRecord model, write_tensors(folder + "/" + kModel, snapshot.model));
  stage("optimizer");
  TRY_ASSIGN(FileRecord optimizer, write_tensors(folder + "/" + kOptimizer, snapshot.optimizer));
  stage("manifest");
  base::Json manifest = {{"magic", kMagic}, {"version", kOldVersion}, {"step", snapshot.step}, {"about", snapshot.about}};
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
  if (version != kOldVersion)
    return base::fail(base::ErrorKind::kConfig,
                      fmt::format("its version is {}; this program reads version {}", version.value_or(-1), kOldVersion));
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

  const std::string name = name_of_step(snapshot.step);
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
