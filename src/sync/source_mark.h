// Whether the target of a push is the very directory that is pushed, on a host that shares its file system. Numbers of devices and inodes
// tell nothing between hosts, so the launcher puts an empty file with a random name into the directory until every host has looked for it.
#pragma once

#include <string>
#include <string_view>

namespace phalanx::sync {

class SourceMark {
 public:
  SourceMark() = default;
  ~SourceMark() { remove(); }
  SourceMark(const SourceMark&) = delete;
  SourceMark& operator=(const SourceMark&) = delete;

  // Where the directory cannot be written to there is none, and name() stays empty. Removes what a killed launcher has left a day ago.
  void make(const std::string& directory);
  void remove();
  const std::string& name() const { return name_; }

 private:
  std::string directory_, name_;
};

// name: as a launcher has sent it; of another form it is found nowhere.
bool holds_mark(const std::string& directory, std::string_view name);

}  // namespace phalanx::sync
