#include "sync/last_list.h"

#include <optional>

#include "base/sha256.h"
#include "os/files.h"
#include "sync/manifest.h"

namespace phalanx::sync {

ListChanges changes_since(const std::string& file, const std::string& list) {
  ListChanges changes;
  base::Result<std::optional<std::string>> last = os::read_if_present(file, kMostManifestBytes);
  if (file.empty() || !last.ok() || !*last) return changes;
  const base::Result<Listing> before = Listing::read(std::move(**last)), now = Listing::read(list);
  if (!before.ok() || !now.ok()) return changes;
  changes.bytes = changes_between(*before, *now);
  if (changes.bytes.size() > list.size() / 2) changes.bytes.clear();
  base::Sha256 hash;
  hash.update(list);
  changes.digest = hash.bytes();
  return changes;
}

void keep_list(const std::string& file, const std::string& list) {
  if (!file.empty() && os::make_folders(file.substr(0, file.rfind('/'))).ok())
    (void)os::write_file_atomic(file, list, 0600, os::Durable::kNo);
}

}  // namespace phalanx::sync
