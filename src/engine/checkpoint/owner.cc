#include "engine/checkpoint/owner.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/random.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>

#include "base/sha256.h"
#include "base/text.h"
#include "base/try.h"
#include "base/unicode.h"
#include "engine/checkpoint/folder.h"
#include "os/clock.h"
#include "os/files.h"

namespace phalanx::engine::checkpoint {
namespace {

constexpr const char* kOwnerFile = "/.owner";
constexpr size_t kMostOwnerBytes = 256;
constexpr auto kLockPatience = std::chrono::seconds(30);

// fcntl can wait for a lock only without a deadline, and an attempt that was stopped (SIGSTOP) with the lock in its hands would hold up
// the next one for ever. So this asks again and again.
base::Status lock(int fd, const std::string& path) {
  const os::Mono end = os::mono_now() + kLockPatience;
  for (int pause_ms = 1;; pause_ms = std::min(2 * pause_ms, 100)) {
    struct flock whole{};
    whole.l_type = F_WRLCK;
    whole.l_whence = SEEK_SET;
    if (fcntl(fd, F_OFD_SETLK, &whole) == 0) return base::ok();
    if (errno == ENOLCK || errno == ENOSYS || errno == EOPNOTSUPP) return base::ok();
    if (errno == EINTR) continue;
    if (errno != EAGAIN && errno != EACCES) return io_error("lock", path, errno);
    if (os::mono_now() >= end)
      return base::fail(base::ErrorKind::kTimeout, fmt::format("cannot lock {}", base::quote(path, 400)))
          .because(fmt::format("another process has held the lock for {}", base::format_duration(kLockPatience)))
          .with_hint("an earlier attempt of this run may be suspended on some host: resume or stop it, then restart");
    poll(nullptr, 0, pause_ms);
  }
}

base::Result<os::Fd> open_owner(const std::string& path, int more_flags) {
  os::Fd file(open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | more_flags, 0644));
  while (!file.valid() && errno == EINTR) file = os::Fd(open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | more_flags, 0644));
  if (!file.valid()) return io_error("open", path, errno);
  TRY(lock(file.get(), path));
  return file;
}

}  // namespace

std::string mark_of(std::string_view run) { return run.empty() ? "" : base::sha256_hex(run).substr(0, 32); }

std::string make_token() {
  uint64_t random = 0;
  PHALANX_CHECK(getrandom(&random, sizeof(random), 0) == static_cast<ssize_t>(sizeof(random)));
  return fmt::format("{:016x}", random);
}

// Written in place: a rename would put another file, with another lock, under the name. A crash in between leaves a token that is
// nobody's, and the next attempt claims the folder anyway.
base::Status claim(const std::string& folder, std::string_view token, std::string_view run) {
  const std::string path = folder + kOwnerFile, content = fmt::format("{}\n{}\n", token, mark_of(run));
  // Another user's, in a folder that both may write to: who may rename there may also replace it.
  if (::access(path.c_str(), F_OK) == 0 && ::access(path.c_str(), R_OK | W_OK) != 0) ::unlink(path.c_str());
  {
    TRY_ASSIGN(os::Fd file, open_owner(path, O_CREAT));
    TRY(write_bytes(file.get(), content, path));
    if (ftruncate(file.get(), static_cast<off_t>(content.size())) != 0) return io_error("truncate", path, errno);
    if (fsync(file.get()) != 0) return io_error("fsync", path, errno);
  }
  return sync_path(folder);
}

base::Status still_owner(const std::string& folder, std::string_view token) {
  auto owner = os::read_file(folder + kOwnerFile, kMostOwnerBytes);
  if (!owner.ok()) return cannot_tell(std::move(owner).error());
  if (owner->substr(0, owner->find('\n')) == token) return base::ok();
  return base::fail(base::ErrorKind::kConfig, fmt::format("another run writes its checkpoints to {}", base::quote(folder)))
      .because("that run, or a later attempt of this run, has claimed the folder since this attempt began")
      .with_hint("stop one of the two, or use separate folders");
}

void release(const std::string& folder, std::string_view token) {
  const base::Result<OwnerLock> lock = OwnerLock::take(folder);
  if (lock.ok() && still_owner(folder, token).ok()) ::unlink((folder + kOwnerFile).c_str());
}

base::Result<bool> began_earlier(const std::string& folder, const Attempt& attempt) {
  if (attempt.restarts == 0 || attempt.run.empty()) return false;
  auto owner = os::read_if_present(folder + kOwnerFile, kMostOwnerBytes);
  if (!owner.ok()) return cannot_tell(std::move(owner).error());
  const size_t end = *owner ? (*owner)->find('\n') : std::string::npos;
  return end != std::string::npos && base::trim(std::string_view(**owner).substr(end)) == mark_of(attempt.run);
}

base::Result<OwnerLock> OwnerLock::take(const std::string& folder) {
  TRY_ASSIGN(os::Fd file, open_owner(folder + kOwnerFile, 0));
  return OwnerLock(std::move(file));
}

}  // namespace phalanx::engine::checkpoint
