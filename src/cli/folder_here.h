// A folder of this machine that is sent to hosts, by --sync or push.
#pragma once

#include <string>

#include "base/result.h"

namespace phalanx::cli {

// Without links. Error: kUsage.
base::Result<std::string> real_path(const std::string& path);

// Keys, tokens and caches of this user are neither code nor data. what: the flag or verb that would copy them. Error: kUsage.
base::Status holds_no_home(const std::string& root, const std::string& what);

// The name of a copy; sorts by time, and no two are the same.
base::Result<std::string> new_copy_name();

// Where a scan of `root` keeps its hashes; empty: nowhere. what: scans that take the same files.
std::string index_file(const std::string& root, const std::string& what);

}  // namespace phalanx::cli
