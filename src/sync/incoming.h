// The far side of what is sent, whatever becomes of it: a list of files came in, what is missing is asked for, and contents are written
// under their hashes. Whatever ends a session in between leaves whole contents, which the next one does not ask for, and the beginning of
// a large one, which it goes on with.
//
// Trusts the list no further than decode() has checked it. Waits for the disk; build() in portions.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/sha256.h"
#include "sync/store.h"

namespace phalanx::sync {

// What is there of a content that was cut off.
struct Partial {
  uint32_t entry = 0;  // of the list
  uint64_t bytes = 0;  // 0: nothing is
};

class Incoming {
 public:
  virtual ~Incoming() = default;
  Incoming(const Incoming&) = delete;
  Incoming& operator=(const Incoming&) = delete;

  // Positions of entries of the list whose content is to be sent, in this order, one after the other; each content once.
  const std::vector<uint32_t>& wanted() const { return wanted_; }
  // One of them, of which only the bytes from here on are to be sent.
  const Partial& partial() const { return partial_; }
  // Bytes of the contents. Error: more than was asked for; the disk is full; a content has another hash, because the file was changed while
  // it was sent.
  base::Status receive(std::string_view bytes);
  bool complete() const { return next_ == wanted_.size(); }
  size_t received() const { return next_; }  // whole contents
  // After a content had another hash, what was received of it is gone. The bytes of the contents before it, as they were received; nothing:
  // that was not the error, or it had begun before this session, and its beginning is gone too.
  std::optional<uint64_t> begin_content_again();

  // After complete(): makes up to `most` entries. True: everything is in its place.
  virtual base::Result<bool> build(size_t most) = 0;
  virtual size_t built() const = 0;
  virtual std::string path() const = 0;
  // Of a push: files that are gone at the source.
  virtual size_t removed() const { return 0; }
  virtual size_t stayed() const { return 0; }

 protected:
  Incoming(Store store, Listing manifest) : store_(std::move(store)), manifest_(std::move(manifest)) {}
  Incoming(Incoming&&) = default;

  // After wanted_ and the sums are known.
  void find_partial();
  base::Status check_space() const;
  base::Error disk_error(const char* doing, const std::string& path, int error_number) const;  // path: below the store
  // The content of a blob into a new file; `path` is how errors call it. Hashes it again: a damaged blob is removed.
  base::Status copy_content(const EntryView& entry, const os::Fd& from, const os::Fd& to, const std::string& path);
  base::Result<os::Fd> open_content(const EntryView& entry) const;
  // A content has come, under its name in the store; `file` is open on it.
  virtual base::Status arrived(uint32_t entry, const os::Fd& file);

  Store store_;
  Listing manifest_;
  std::vector<uint32_t> wanted_;
  uint64_t wanted_bytes_ = 0;
  uint64_t tree_bytes_ = 0;  // that are needed beside the contents
  size_t tree_files_ = 0;

 private:
  struct Writing {
    int folder = -1;
    os::Fd file;
    std::string name;
    uint64_t left = 0;
    base::Sha256 hash;
  };
  base::Status open_blob();
  base::Status take_whole(std::string_view content);
  base::Status read_partial(Writing& writing);
  base::Status close_blob();

  Partial partial_;
  size_t next_ = 0;  // of wanted_
  std::optional<Writing> writing_;
  bool cloning_ = true;
  bool mismatch_ = false;  // the last error was that of a hash
};

inline constexpr int kNewFile = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
timespec time_of(int64_t ns);

}  // namespace phalanx::sync
