// The far side's folder, <cache>/phalanx/sync (docs/formats/sync-store.md):
//
//   lock                     held by the one session that changes anything here
//   blobs/<2 hex>/<64 hex>   contents by their SHA-256; a name is only given to what was received whole and has this hash
//   copies/<name>/tree       a copy, which ranks start in; never linked to a blob
//   copies/<name>/manifest   what it was made from, and `seen`: inode and change time of everything in it, as it was made
//   free/                    the last copy that nobody wrote into, to be turned into the next one
//   copies/new.<name>        under construction; like blobs/new.*, anything so called is garbage to the next session
//
// Everything is 0700 and ours; every step of a path is opened below the one before it, following no link.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "os/fd.h"
#include "sync/manifest.h"

namespace phalanx::sync {

// A folder of ours below an open one, made where it is missing. Error: it is a link, of another user, or others may write to it.
base::Result<os::Fd> enter_own(int parent, const std::string& name);
// Below an open folder: "a/b", following no link.
base::Result<os::Fd> enter_below(int folder, std::string_view path);
// Whether what was opened is still what this name below `parent` leads to.
bool is_still_at(int parent, const std::string& name, const os::Fd& opened);
// Everything in a folder and the folder, on one file system, following no link. Others may remove the same meanwhile. False: something is
// left.
bool remove_tree(int parent, const std::string& name);
base::Result<std::vector<std::string>> names_in(int folder);
std::string hex_of(std::string_view digest);

// What a session may remove, and `phalanx clean` too. Only real folders of this user in `copies`, named like copies, of which the agent of
// a run stamps the one it uses daily; and blobs of which no copy that stays tells.
struct CopyKeeping {
  size_t whatever_age = 3;  // the copies used last
  int64_t unused_s = 30LL * 24 * 3600;
  bool list_only = false;
};
using CopyRemoved = std::function<void(const std::string& path, const std::string& problem)>;

struct Seen {
  uint64_t inode = 0;
  int64_t ctime_ns = 0;
  bool operator==(const Seen&) const = default;
};
// A copy's two lists.
struct Made {
  Listing manifest;
  std::vector<Seen> seen;  // one per entry; folders have zeros
};

class Store {
 public:
  // root: absolute. Makes the folders. Nothing: another session holds the lock, or was just removing the folder; to be tried again.
  static base::Result<std::optional<Store>> open(const std::string& root);
  // The same without making anything; nothing also where there is no store.
  static std::optional<Store> open_existing(const std::string& root);

  // Called again and again while a session reads contents or looks at files for long: who waits for it can be told that it is at work.
  std::function<void()> at_work = [] {};

  const std::string& root() const { return root_; }
  int blobs() const { return blobs_.get(); }
  int copies() const { return copies_.get(); }
  int top() const { return top_.get(); }
  std::string copy_path(const std::string& name) const { return root_ + "/copies/" + name + "/tree"; }

  bool has_blob(std::string_view digest, uint64_t size) const;
  // The folder of a blob, made where it is missing. It is looked at once in a session, and stays open until this object goes.
  base::Result<int> blob_folder(std::string_view digest) const;

  // Removes what interrupted sessions have left, then what `keeping` gives up.
  void tidy(const CopyKeeping& keeping, int64_t wall_ns, const CopyRemoved& removed);
  // Whether everything in the copy is as it was made; folders __pycache__ do not count and are removed.
  bool untouched(const std::string& name) const;
  // What the free copy was made from; null: there is none. Valid until the next call of another function here.
  const Listing* free_list();
  // The lists of the free copy, if there is one to make the next from. One that somebody wrote into since its run ended moves to
  // copies/late-<next>.
  std::optional<Made> untouched_free(const std::string& next);
  // The end of a run: an untouched copy becomes the free one. True: somebody wrote into it, and it stays. False also where it is not there;
  // what was built of it goes then.
  base::Result<bool> release(const std::string& name);

 private:
  Store() = default;
  static base::Result<std::optional<Store>> open_in(const std::string& root, bool make);
  void remove_unused_blobs(const CopyKeeping& keeping, int64_t wall_ns, const std::vector<std::string>& going, const CopyRemoved& removed);
  std::string root_;
  os::Fd top_, lock_, blobs_, copies_;
  // By the first byte of a digest. Which are there: as this session has found it, and nobody else makes any.
  struct BlobFolders {
    std::array<os::Fd, 256> open;
    std::array<bool, 256> there{};
  };
  std::unique_ptr<BlobFolders> folders_;
  std::optional<Listing> free_list_;  // where it has been asked for already
};

// Nothing: missing or malformed.
std::optional<Listing> read_manifest(int copy);
std::optional<std::vector<Seen>> read_seen(int copy, size_t entries);
base::Status write_lists(int copy, const Listing& manifest, const std::vector<Seen>& seen);
base::Result<Seen> look_at(int folder, const std::string& name);

// Where an agent of this user keeps its store: $XDG_CACHE_HOME or ~/.cache, and /phalanx/sync. Empty: neither is known.
std::string store_root();
// A run on this host works in the copy that `directory` lies in: it is not old.
void stamp_copy(const std::string& directory);
// The same for a copy on a host that waits, where nobody stamps it daily: it does not begin to grow old for so long.
inline constexpr int64_t kWaitingStamp_s = 30LL * 24 * 3600;
void stamp_copy_ahead(const std::string& directory);

}  // namespace phalanx::sync
