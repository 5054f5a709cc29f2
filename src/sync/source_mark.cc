#include "sync/source_mark.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os/clock.h"
#include "os/fd.h"
#include "sync/scan.h"
#include "sync/store.h"
#include "wire/challenge.h"

namespace phalanx::sync {
namespace {

constexpr int64_t kLeftBehind_s = 24 * 3600;

bool is_mark(int folder, const std::string& name, struct stat& s) {
  return ::fstatat(folder, name.c_str(), &s, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(s.st_mode) && s.st_size == 0;
}

void remove_old(const os::Fd& folder) {
  const base::Result<std::vector<std::string>> names = names_in(folder.get());
  if (!names.ok()) return;
  for (const std::string& name : *names) {
    struct stat s{};
    if (name.starts_with(kSourceMark) && is_mark(folder.get(), name, s) &&
        s.st_mtim.tv_sec + kLeftBehind_s < os::wall_now_ns() / 1'000'000'000)
      (void)::unlinkat(folder.get(), name.c_str(), 0);
  }
}

}  // namespace

void SourceMark::make(const std::string& directory) {
  remove();
  const os::Fd folder(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const base::Result<std::string> random = wire::fresh_nonce();
  if (!folder.valid() || !random.ok()) return;
  remove_old(folder);
  const std::string name = kSourceMark + hex_of(*random);
  const os::Fd file(::openat(folder.get(), name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file.valid()) return;
  directory_ = directory;
  name_ = name;
}

void SourceMark::remove() {
  if (!name_.empty()) (void)::unlink((directory_ + "/" + name_).c_str());
  name_.clear();
}

bool holds_mark(const std::string& directory, std::string_view name) {
  struct stat s{};
  const std::string prefix = kSourceMark;
  if (!name.starts_with(prefix) || name.size() != prefix.size() + 2 * wire::kNonceBytes ||
      name.find_first_not_of("0123456789abcdef", prefix.size()) != std::string_view::npos)
    return false;
  return is_mark(AT_FDCWD, directory + "/" + std::string(name), s);
}

}  // namespace phalanx::sync
