// What deployment sends.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace cluster {

// The binary that deployment sends: read once, hashed once, shared by all connections of a launch.
class Payload {
 public:
  explicit Payload(std::string path) : path_(std::move(path)) {}
  base::Result<std::string_view> header_and_bytes();  // "<sha256> <size>\n" + the file; valid as long as this is

 private:
  std::string path_;
  std::string cached_;
};

}  // namespace cluster
