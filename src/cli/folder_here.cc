#include "cli/folder_here.h"

#include <sys/random.h>

#include <cstdlib>

#include <fmt/format.h>

#include "base/sha256.h"
#include "base/try.h"
#include "cli/records/check_memory.h"
#include "os/clock.h"
#include "os/files.h"

namespace phalanx::cli {

using base::ErrorKind;

base::Result<std::string> real_path(const std::string& path) {
  char* resolved = ::realpath(path.c_str(), nullptr);
  if (!resolved) {
    base::Error error = base::system_error("open", path);
    error.kind = ErrorKind::kUsage;
    return error;
  }
  std::string text(resolved);
  std::free(resolved);
  return text;
}

base::Status holds_no_home(const std::string& root, const std::string& what) {
  const std::string home = os::environment_value("HOME");
  if (home.empty()) return base::ok();
  const base::Result<std::string> real = real_path(home);
  if (!real.ok() || *real == "/" || !(*real + "/").starts_with(root == "/" ? "/" : root + "/")) return base::ok();
  return base::fail(ErrorKind::kUsage, fmt::format("{} would copy {}, which holds your home directory", what, root))
      .because("with it keys, tokens and caches would be copied")
      .with_hint("move what is to be copied to a directory of its own, and name that one");
}

base::Result<std::string> new_copy_name() {
  unsigned char bytes[6];
  if (::getrandom(bytes, sizeof(bytes), 0) != static_cast<ssize_t>(sizeof(bytes))) return base::system_error("getrandom", "6 bytes");
  std::string time;
  for (char c : os::iso_time(os::wall_now_ns()).substr(0, 19))
    if (c >= '0' && c <= '9') time += c;
    else if (c == 'T') time += '-';
  time += '-';
  for (unsigned char byte : bytes) time += fmt::format("{:02x}", byte);
  return time;
}

std::string index_file(const std::string& root, const std::string& what) {
  const std::string cache = cache_folder();
  return cache.empty() ? "" : cache + "/sync-index/" + base::sha256_hex(what.empty() ? root : what + " " + root).substr(0, 32);
}

}  // namespace phalanx::cli
