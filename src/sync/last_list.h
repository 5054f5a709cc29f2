// The list of the last copy of a folder, kept on the launching machine: hosts that still have that copy are sent only what changed of it.
// One file; that it is missing, of another copy or unwritable costs time only.
#pragma once

#include <string>

namespace phalanx::sync {

struct ListChanges {
  std::string bytes;   // of changes_between(); empty: the list itself is to be sent
  std::string digest;  // SHA-256 of the list, 32 bytes
};
ListChanges changes_since(const std::string& file, const std::string& list);
void keep_list(const std::string& file, const std::string& list);

}  // namespace phalanx::sync
