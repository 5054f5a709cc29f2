// Bugs of other software that were fixed in a release: codes/bugs/<component>.tsv, from release notes and closed issues.
#pragma once

#include <span>
#include <string_view>
#include <vector>

namespace phalanx::codes {

struct KnownBug {
  std::string_view component;             // "nccl": the name of its file
  std::string_view from;                  // first affected release; empty: unknown, then all before `fixed`
  std::string_view fixed;                 // first release without it
  std::vector<std::string_view> trigger;  // a log that shows the bug contains all of them
  std::string_view workaround;            // a setting or a step as one types it; may be empty
  std::string_view what;                  // from the source, in English
  std::string_view source;                // URL
};

// Unpacked at the first call.
std::span<const KnownBug> known_bugs();

}  // namespace phalanx::codes
