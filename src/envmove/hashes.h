// Records of hashes follow what was rewritten: pip's RECORD and conda's sha256_in_prefix. Only where the record held the hash of the old
// content: what had been changed by hand before stays reported as changed.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <unordered_map>

#include "base/result.h"
#include "envmove/rehome.h"

namespace phalanx::envmove {

// Which records must follow these changes, and how they read then. Pure. Both arguments outlive it.
class HashCorrections {
 public:
  HashCorrections(const Environment& environment, const std::vector<Change>& changes);
  // Below the root, in the order of the environment's files: those that may hold a hash of what was changed.
  std::vector<std::string> records() const;
  // nullopt: it stays as it is.
  std::optional<std::string> corrected(const std::string& record, const std::string& text) const;

 private:
  const Environment& environment_;
  std::unordered_map<std::string, const Change*> changed_;
  std::map<std::string, std::map<std::string, std::string>> of_conda_;  // record -> old hash -> new hash
};

// May be called again with the same changes: what is correct stays as it is.
base::Status correct_hashes(const Environment& environment, const std::vector<Change>& changes);

}  // namespace phalanx::envmove
