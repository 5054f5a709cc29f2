// The far side of one copy: a list of files comes in, what is missing is asked for, contents are written under their hashes, and the tree
// is built beside its place and renamed into it. Whatever ends a session in between leaves whole blobs, which the next one does not ask
// for.
//
// Trusts the list no further than decode() has checked it. Waits for the disk; build() in portions.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/sha256.h"
#include "sync/store.h"

namespace phalanx::sync {

class Receiver {
 public:
  // name: of the copy to be made.
  static base::Result<Receiver> begin(Store store, std::string name, Manifest manifest);

  // Positions of entries of the manifest whose content is to be sent, in this order, one after the other; each content once.
  const std::vector<uint32_t>& wanted() const { return wanted_; }
  // Bytes of the contents. Error: more than was asked for; the disk is full; a content has another hash, because the file was changed while
  // it was sent.
  base::Status receive(std::string_view bytes);
  bool complete() const { return next_ == wanted_.size(); }
  // After complete(): makes up to `most` entries. True: the copy is in its place.
  base::Result<bool> build(size_t most);
  size_t built() const { return made_; }
  std::string path() const { return store_.copy_path(name_); }

 private:
  Receiver(Store store, std::string name, Manifest manifest)
      : store_(std::move(store)), name_(std::move(name)), manifest_(std::move(manifest)) {}
  struct Writing {
    os::Fd folder, file;
    std::string name;
    uint64_t left = 0;
    base::Sha256 hash;
  };
  void plan();
  base::Status check_space() const;
  base::Status open_blob();
  base::Status close_blob();
  base::Status start_tree();
  base::Status make(size_t index);
  base::Status copy_blob(const Entry& entry, const os::Fd& from, const os::Fd& to);
  base::Result<os::Fd> folder_of(const std::string& path, std::string& name);
  base::Error disk_error(const char* doing, const std::string& path, int error_number) const;

  Store store_;
  std::string name_;
  Manifest manifest_;
  std::vector<uint32_t> wanted_;
  uint64_t wanted_bytes_ = 0, tree_bytes_ = 0;
  size_t tree_files_ = 0;
  size_t next_ = 0;  // of wanted_
  std::optional<Writing> writing_;
  // Of the free copy, when it is used: which of our entries it has already.
  std::optional<Manifest> before_;
  std::vector<Seen> before_seen_;
  std::vector<int64_t> same_as_;  // per entry: its position in before_, or -1
  bool started_ = false, cloning_ = true;
  os::Fd copy_, tree_, last_folder_;
  std::string last_path_;
  std::vector<Seen> seen_;
  size_t made_ = 0;
};

}  // namespace phalanx::sync
