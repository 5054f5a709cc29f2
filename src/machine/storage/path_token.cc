#include "machine/storage/path_token.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "base/sha256.h"
#include "os/fd.h"

namespace phalanx::machine {
namespace {

constexpr int64_t kEnd = 1 << 20;
constexpr size_t kMostEntries = 65'536;
constexpr size_t kMostSizes = 1024;

bool differs_by_nature(std::string_view name) {
  auto ends = [&](std::string_view end) { return name.size() >= end.size() && name.substr(name.size() - end.size()) == end; };
  return name[0] == '.' || ends(".lock") || ends(".tmp") || ends(".pyc") || name == "__pycache__" || name.substr(0, 6) == "cache-";
}

bool add_piece(int fd, int64_t from, int64_t bytes, base::Sha256& hash) {
  std::vector<char> buffer(static_cast<size_t>(bytes));
  int64_t done = 0;
  while (done < bytes) {
    ssize_t n = ::pread(fd, buffer.data() + done, static_cast<size_t>(bytes - done), from + done);
    if (n <= 0) return false;
    done += n;
  }
  hash.update(std::string_view(buffer.data(), buffer.size()));
  return true;
}

std::string short_form(base::Sha256& hash) { return hash.hex().substr(0, 16); }

ContentToken of_file(int fd, int64_t size) {
  base::Sha256 hash;
  hash.update(fmt::format("file {}\n", size));
  if (!add_piece(fd, 0, std::min(size, kEnd), hash)) return {};
  if (size > kEnd && !add_piece(fd, std::max(kEnd, size - kEnd), std::min(kEnd, size - kEnd), hash)) return {};
  return {short_form(hash), -1};
}

ContentToken of_folder(const std::string& path, os::Mono end) {
  DIR* dir = ::opendir(path.c_str());
  if (!dir) return {};
  std::vector<std::string> names;
  int64_t entries = 0;
  bool whole = true;
  while (dirent* entry = ::readdir(dir)) {
    std::string_view name = entry->d_name;
    if (name == "." || name == "..") continue;
    if (static_cast<size_t>(++entries) > kMostEntries || os::mono_now() > end) {
      whole = false;
      break;
    }
    if (!differs_by_nature(name)) names.emplace_back(name);
  }
  std::sort(names.begin(), names.end());
  base::Sha256 hash;
  hash.update("folder\n");
  for (size_t i = 0; i < names.size() && whole; ++i) {
    hash.update(names[i]);
    struct stat s{};
    if (i < kMostSizes && ::fstatat(::dirfd(dir), names[i].c_str(), &s, 0) == 0 && S_ISREG(s.st_mode))
      hash.update(fmt::format(" {}", static_cast<int64_t>(s.st_size)));
    hash.update("\n");
    whole = os::mono_now() <= end;
  }
  ::closedir(dir);
  entries = std::min<int64_t>(entries, kMostEntries);
  return {whole ? short_form(hash) : "", whole || entries == static_cast<int64_t>(kMostEntries) ? entries : -1};
}

}  // namespace

ContentToken content_token(const std::string& path, os::milliseconds budget) {
  struct stat s{};
  if (::stat(path.c_str(), &s) != 0) return {};
  if (S_ISDIR(s.st_mode)) return of_folder(path, os::mono_now() + budget);
  if (!S_ISREG(s.st_mode)) return {};
  os::Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  return fd.valid() ? of_file(fd.get(), s.st_size) : ContentToken{};
}

}  // namespace phalanx::machine
