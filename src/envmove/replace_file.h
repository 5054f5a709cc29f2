// A file of an environment gets new content under the same name: a new file beside it, with the same permissions, times and owner, renamed
// over it. Other names of the old file keep the old content.
#pragma once

#include <string_view>

#include "envmove/below.h"

namespace phalanx::envmove {

// like: of the file that was read there. Its bits that lend rights (setuid, setgid) do not go to another content.
base::Status replace_file(const Spot& spot, std::string_view content, const struct stat& like);
base::Status replace_link(const Spot& spot, const std::string& target);
// `spot` becomes another name of the file `other`.
base::Status replace_by_name_of(const Spot& spot, const Spot& other);

}  // namespace phalanx::envmove
