// The directory that a push fills: where it may lie, what it may hold, and the record that a push leaves in it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "os/fd.h"
#include "sync/store.h"

namespace phalanx::sync {

struct Target {
  std::string path;  // without links
  os::Fd folder;
  bool made = false;  // it was not there
};

// Opens the target, and makes it where it is missing. path: absolute, without "..". Error (kUnfit), with the reason: it is no directory,
// belongs to another user, others may write to it or put another in its place, or, unless it may lie `among_others`, it holds files and no
// push has been there.
base::Result<Target> open_target(const std::string& path, bool among_others);

// False: since it was opened, a session that made it and could not begin has removed it.
bool is_in_its_place(const Target& target);

// TARGET/.phalanx-push (docs/formats/push-record.md): what pushes have put there and not removed again, and how it looked then.
struct Record {
  Listing manifest;
  std::vector<Seen> seen;  // per entry; a change time of 0: it was about to be put there, and size and time of the file decide
};
// Nothing: missing or malformed.
std::optional<Record> read_record(int target);
base::Status write_record(int target, const std::vector<EntryView>& entries, const std::vector<Seen>& seen);

// Whether an entry's file or link is still as its push has left it. s: what lstat says of it.
bool as_pushed(const EntryView& entry, const Seen& seen, const struct stat& s);

}  // namespace phalanx::sync
