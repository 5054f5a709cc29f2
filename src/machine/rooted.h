// Files under a root: "" is this machine, else a folder that stands in for one. Paths are absolute inside that root, and links
// are followed inside it, so that a built tree never reads the machine it lies on. Whatever cannot be read is as if it were not.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace phalanx::machine {

class Rooted {
 public:
  explicit Rooted(std::string root);

  // The path with every link followed, inside the root: "/usr/bin/python3.11" for "/usr/bin/python3"; empty if there is none.
  std::string resolve(const std::string& path) const;
  // Where the file lies for open(2); links followed. Of a path that does not exist, root and path put together.
  std::string on_disk(const std::string& path) const;

  bool exists(const std::string& path) const;
  bool is_file(const std::string& path) const;  // a regular file, links followed
  bool is_folder(const std::string& path) const;
  bool is_program(const std::string& path) const;  // a regular file that may be executed
  int64_t size(const std::string& path) const;     // -1: none
  // The first max_bytes of a regular file; nothing of a FIFO, a device or a file that is not there.
  std::optional<std::string> read(const std::string& path, size_t max_bytes) const;
  // Names in a folder without "." and "..", at most max_names, sorted.
  std::vector<std::string> list(const std::string& path, size_t max_names) const;

 private:
  std::string root_;
};

// "/a/b" for "/a/b/c", "/" for "/a"; "" for a word without a slash.
std::string_view folder_of(std::string_view path);
std::string_view name_of(std::string_view path);  // "c"
// "/a//b/./c/../d" to "/a/b/d", by words alone.
std::string plain_path(std::string_view path);
std::string absolute_path(std::string_view path, std::string_view folder);

}  // namespace phalanx::machine
