// A file of an environment gets new content under the same name: a new file beside it, with the same mode, times and owner, renamed over
// it. Other names of the old file keep the old content.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace phalanx::envmove {

base::Status replace_file(const std::string& path, std::string_view content);  // a regular file
base::Status replace_link(const std::string& path, const std::string& target);
// `path` becomes another name of the file `other`.
base::Status replace_by_name_of(const std::string& path, const std::string& other);

}  // namespace phalanx::envmove
