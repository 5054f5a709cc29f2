// Makes one system call on the files below one folder fail. faults.cc defines open, rename, read, … in the program itself, so every call of
// ours and of libstdc++'s passes through it; calls on other files are passed on.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace phalanx::faults {

inline constexpr int kShort = -1;  // instead of an errno: read, pread and write handle half of the bytes
inline constexpr int kHang = -2;   // the call never returns; before it, a byte is written to the descriptor of tell_hang()

struct Call {
  std::string name;  // "rename"
  std::string path;
  bool moves_bytes = false;  // kShort makes sense
  std::string to = {};       // of a rename
};

// From now on the calls below `folder` are counted, from 0, in all threads; number `at` (-1: none) fails with `error`.
void watch(const std::string& folder, int at, int error);
// Ends that. `injected`: the call number `at` was made and failed.
struct Seen {
  std::vector<Call> calls;
  bool injected = false;
};
Seen stop();

// Where a hang is told; -1: nowhere.
void tell_hang(int fd);
// As on a file system that cannot exchange two names: renameat2 fails with EINVAL.
void refuse_exchange(bool refuse);
// Called before each call that is counted, in its thread; calls it makes itself are not counted.
void before_each(std::function<void(const Call&)> hook);

}  // namespace phalanx::faults
