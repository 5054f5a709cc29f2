// Records of installed packages: conda-meta/*.json, *.dist-info, and what leads to code elsewhere (*.pth, *.egg-link, direct_url.json).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "envmove/environment.h"

namespace phalanx::envmove {

// Fills packages, managed, editables and unread of an environment whose root and files are known. A record that cannot be understood is
// listed in unread and otherwise passed over.
void read_packages(Environment& environment);

// One record of conda, for tests: error text in `fault`.
struct CondaRecord {
  Package package;
  struct Path {
    std::string path;
    Managed managed;
  };
  std::vector<Path> paths;  // those with a placeholder or a hash of the installed file
};
base::Result<CondaRecord> parse_conda_record(std::string_view text);

// "my_package" of "my_package-1.2.dist-info"; the name as PEP 503 has it, "my-package".
std::optional<Package> package_of_dist_info(std::string_view folder);

// A line of RECORD: "bin/torchrun,sha256=…,212", with quotes where the path has a comma. path is relative to site-packages.
struct RecordLine {
  std::string path;
  std::string hash;  // "sha256=" and base64url without padding; empty for RECORD itself and for what was made at installation
  std::string size;
};
std::optional<RecordLine> parse_record_line(std::string_view line);
std::string record_line(const RecordLine& line);
// The hash as RECORD writes it, of 64 hex digits.
std::string record_hash(std::string_view sha256_hex);

// "file:///data/my%20code" of direct_url.json as a path; empty: another host's, or no file. And back, as urllib.parse.quote has it.
std::string path_of_url(std::string_view url);
std::string url_of_path(std::string_view path);

// "../../../bin/torchrun" seen from "lib/python3.11/site-packages" is "bin/torchrun"; empty: it leaves the root.
std::string resolve(std::string_view folder, std::string_view path);

}  // namespace phalanx::envmove
