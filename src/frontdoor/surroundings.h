// What a launcher would find around it: the environment, files, programs. The doors see the world only through this, so that they can be
// tested with files that nobody has.
#pragma once

#include <optional>
#include <string>

#include "base/result.h"

namespace phalanx::frontdoor {

class Surroundings {
 public:
  virtual ~Surroundings() = default;
  // A variable of this process; none: it is not set.
  virtual std::optional<std::string> variable(const std::string& name) const = 0;
  // The content of a file, relative to folder(); none: it does not exist. Error: nobody knows, or it is too large.
  virtual base::Result<std::optional<std::string>> file(const std::string& path) const = 0;
  // Whether only this user and root can change the file, or a folder above it. What nobody named is used only then: variables can run
  // programs.
  virtual bool only_ours(const std::string& path) const = 0;
  // Whether PATH has a program of this name.
  virtual bool has_program(const std::string& name) const = 0;
  // The current working directory.
  virtual std::string folder() const = 0;
};

}  // namespace phalanx::frontdoor
