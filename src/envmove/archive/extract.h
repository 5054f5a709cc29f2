// An archive from somewhere is written below a folder, and nowhere else: every name is checked, every step of a path is opened below the
// one before it without following links, and what an archive says of owners is not heard. tar in its dialects, plain or compressed with
// gzip or zstd, read by libarchive.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "base/result.h"
#include "os/fd.h"

namespace phalanx::envmove {

// What `env pack` says of an archive in its first entry, "<name>/.phalanx-env.json" (docs/formats/packed-environment.md).
inline constexpr const char* kPackedFacts = ".phalanx-env.json";
struct PackedFacts {
  std::string prefix;  // the place that its files name; empty: nobody knows
  uint64_t bytes = 0, files = 0;
};
std::string encode(const PackedFacts& facts);
// nullopt: malformed. Bounded.
std::optional<PackedFacts> decode_facts(std::string_view text);

struct Extracted {
  std::optional<PackedFacts> facts;
  uint64_t bytes = 0;
  size_t files = 0;  // and links
};

struct ExtractLimits {
  uint64_t bytes = 1ULL << 44;
  size_t entries = 2'000'000;
  uint64_t reserve = 16 << 20;  // of the disk, which stays free
};

// archive: read from where it stands. into: an empty folder of ours. Error kConfig: a path that is absolute, has "..", is too long or deep,
// or leads through a link or a file; a second entry of one name; a hard link to what is not there; a device; beyond the limits; damaged.
// Error kUnfit: the disk has too little space, which is known before anything is written where the archive has facts. After an error what
// was written so far is there.
base::Result<Extracted> extract(const os::Fd& archive, const os::Fd& into, const ExtractLimits& limits,
                                const std::function<void(uint64_t bytes)>& progress);

}  // namespace phalanx::envmove
