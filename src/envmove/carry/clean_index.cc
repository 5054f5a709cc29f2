#include "envmove/carry/clean_index.h"

#include <algorithm>

#include "base/sha256.h"
#include "os/files.h"
#include "sync/manifest.h"

namespace phalanx::envmove {
namespace {

constexpr std::string_view kMagic = "phalanx no prefix 1\n";
constexpr size_t kKeyBytes = 16;

std::string key_of(std::string_view path, std::string_view content) {
  base::Sha256 hash;
  hash.update(content);
  hash.update(path);
  return hash.bytes().substr(0, kKeyBytes);
}

}  // namespace

CleanIndex::CleanIndex(const std::string& folder, const std::string& root, const Move& move) {
  if (folder.empty()) return;
  std::string key = "prefixes\n" + root + "\n" + move.new_prefix;
  for (const std::string& old : move.old_prefixes) key += "\n" + old;
  file_ = folder + "/" + base::sha256_hex(key).substr(0, 32);
  const auto bytes = os::read_if_present(file_, kMagic.size() + sync::kMostEntries * kKeyBytes);
  if (!bytes.ok() || !*bytes || !(*bytes)->starts_with(kMagic)) return;
  const std::string_view keys = std::string_view(**bytes).substr(kMagic.size());
  for (size_t at = 0; at + kKeyBytes <= keys.size(); at += kKeyBytes) before_.emplace(keys.substr(at, kKeyBytes));
}

bool CleanIndex::holds(std::string_view path, std::string_view content) {
  if (before_.empty()) return false;
  std::string key = key_of(path, content);
  if (!before_.contains(key)) return false;
  std::lock_guard lock(mutex_);
  now_.insert(std::move(key));
  return true;
}

void CleanIndex::add(std::string_view path, std::string_view content) {
  if (file_.empty()) return;
  std::string key = key_of(path, content);
  std::lock_guard lock(mutex_);
  now_.insert(std::move(key));
}

void CleanIndex::save() {
  if (file_.empty() || now_ == before_ || now_.size() > sync::kMostEntries) return;
  std::string bytes(kMagic);
  for (const std::string& key : now_) bytes += key;
  if (os::make_folders(file_.substr(0, file_.rfind('/'))).ok()) (void)os::write_file_atomic(file_, bytes, 0600, os::Durable::kNo);
}

}  // namespace phalanx::envmove
