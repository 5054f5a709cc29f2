// Who may write into a folder of checkpoints. An old attempt that was thought dead may come back: the last attempt to claim a folder
// owns it, and the others find out before they publish or remove anything.
//
// The token lies in <folder>/.owner. Claims, and every "am I still the owner? then rename", happen under a lock on that file, so no claim
// fits between the question and the rename. A file system without locks (ENOLCK, ENOSYS, EOPNOTSUPP) has only the question.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "os/fd.h"

namespace phalanx::engine::checkpoint {

// A token names an attempt and is equal on its ranks: 16 random hex digits.
std::string make_token();
base::Status claim(const std::string& folder, std::string_view token);
base::Status still_owner(const std::string& folder, std::string_view token);  // Error kConfig: another attempt has it

// Held while it lives. It belongs to the open file and not to the process, so it also keeps out other threads of this process.
class OwnerLock {
 public:
  // Error: there is no .owner (claim first); kTimeout: another attempt keeps the lock, which it otherwise does for milliseconds.
  static base::Result<OwnerLock> take(const std::string& folder);

 private:
  explicit OwnerLock(os::Fd file) : file_(std::move(file)) {}
  os::Fd file_;
};

}  // namespace phalanx::engine::checkpoint
