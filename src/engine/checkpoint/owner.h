// Who may write into a folder of checkpoints. An old attempt that was thought dead may come back: the last attempt to claim a folder
// owns it, and the others find out before they publish or remove anything.
//
// The token lies in <folder>/.owner, and in a second line the run that the attempt is one of. Claims, and every "am I still the owner? then
// rename", happen under a lock on that file, so no claim fits between the question and the rename. A file system without locks (ENOLCK,
// ENOSYS, EOPNOTSUPP) has only the question.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "os/fd.h"

namespace phalanx::engine::checkpoint {

// A token names an attempt and is equal on its ranks: 16 random hex digits.
std::string make_token();
base::Status claim(const std::string& folder, std::string_view token, std::string_view run = "");
base::Status still_owner(const std::string& folder, std::string_view token);  // Error kConfig: another attempt has it

// Nobody's from now on, if it was this attempt's.
void release(const std::string& folder, std::string_view token);

// Which attempt of which run this is, as the launcher says.
struct Attempt {
  std::string run;  // empty: unknown
  int64_t restarts = 0;
};
// A name of a run can be anything; equal names have equal marks. "" for "".
std::string mark_of(std::string_view run);
// An earlier attempt of this run has claimed the folder, so what lies there is this run's own: it is continued, whatever was asked for
// of what lay there before. Error: nobody knows.
base::Result<bool> began_earlier(const std::string& folder, const Attempt& attempt);

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
