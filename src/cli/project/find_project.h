// Where the project file lies, and whether it may be used.
//
// A project file decides which program ssh starts here (ProxyCommand) and what is preloaded into every rank, so one that another user can
// write would hand over this user's account. It is used only if this user or root owns it and every folder above it, and nobody else can
// write to any of them (a folder with the sticky bit may be writable: its entries cannot be replaced). What a group can write is safe if
// nobody else is in the group: with a umask of 002 every file is like that.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace phalanx::cli {

struct FoundProject {
  std::string path;  // absolute
  std::string text;
};

// The phalanx.yaml in `folder` (absolute, without links) or the nearest above it; the last folder looked at is `home`, the root of the
// file system that `folder` is on, or one whose entries may not be looked up. What another user has left in a folder where everyone may
// leave files is passed over: it could otherwise keep everybody who works below from starting. Error kConfig: it is not a regular file, or
// not safe as said above; another kind: the disk failed.
base::Result<std::optional<FoundProject>> find_project(const std::string& folder, const std::string& home);

// The same of any regular file (an absolute path; links among its folders are followed): only this user and root can change it. False also
// where that cannot be found out.
bool only_ours(const std::string& path);

// Whether no other user is in the group: it has this user's name and no other member, and is nobody else's first group. Only what the two
// files list (/etc/passwd, /etc/group) is known; a group that they do not list is not private.
bool is_private_group(gid_t group, uid_t user, std::string_view passwd, std::string_view groups);

// The file that --project names. Naming it is consent, as it is for --hostfile: owner and mode are not looked at.
base::Result<FoundProject> read_project(const std::string& path, const std::string& folder);

}  // namespace phalanx::cli
