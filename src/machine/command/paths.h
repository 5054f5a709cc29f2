// Which keys and options name paths, and which of their values are paths of this machine.
#pragma once

#include <string>
#include <string_view>

namespace phalanx::machine {

// "input", "output", "cache", "any"; empty: the key names no path. `key` as in read_arguments: '_' for '-'; of "data.path" the last part.
std::string path_role(std::string_view key);
// The key takes hub ids too ("org/name"), so that a value that is not here is not missed.
bool takes_hub_id(std::string_view key);
// The value can be a path: no URL, no '$', no glob, no "none"/"true"/number.
bool looks_like_path(const std::string& value);
// Joined to `directory` unless absolute; "~/" with `home`; "." and ".." taken out.
std::string absolute_path(const std::string& value, const std::string& directory, const std::string& home);

// The text with values of what looks like a secret replaced by "***": assignments and keys whose name says so
// (launch_line.h), tokens of well-known shape. only_quoted: only quoted literals (Python).
std::string without_secrets(const std::string& text, bool only_quoted);

}  // namespace phalanx::machine
