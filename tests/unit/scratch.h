// Folders that last as long as the test program: mkdtemp below the temporary directory, removed with all that is in them when the
// program ends. A child that a test forks and that exits leaves them alone. Whoever is killed leaves them: ./x test looks for those.
#pragma once

#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace phalanx::scratch {

class Folders {
 public:
  ~Folders() {
    if (::getpid() != owner_) return;
    std::error_code ignored;
    for (const std::string& path : paths_) {
      open(path);
      std::filesystem::remove_all(path, ignored);
    }
  }
  std::string make(std::string_view name) {
    std::string path = std::filesystem::temp_directory_path().string() + "/phalanx-" + std::string(name) + "-XXXXXX";
    if (::mkdtemp(path.data()) == nullptr) return "";
    paths_.push_back(path);
    return path;
  }

 private:
  // Folders that a test closed: who is not root cannot empty them.
  static void open(const std::string& path) {
    namespace fs = std::filesystem;
    std::error_code failed;
    for (fs::recursive_directory_iterator at(path, failed), end; !failed && at != end; at.increment(failed)) {
      std::error_code ignored;
      if (at->symlink_status(ignored).type() == fs::file_type::directory)
        fs::permissions(at->path(), fs::perms::owner_all, fs::perm_options::add, ignored);
    }
  }

  pid_t owner_ = ::getpid();
  std::vector<std::string> paths_;
};

// The path of a new, empty folder; empty if there can be none.
inline std::string folder(std::string_view name) {
  static Folders all;
  return all.make(name);
}

}  // namespace phalanx::scratch
