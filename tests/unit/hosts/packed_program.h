// A program as deployment sends it, made of any text.
#pragma once

#include <string>

#include "base/gzip.h"
#include "base/sha256.h"
#include "hosts/connect/payload.h"

namespace phalanx::hosts {

struct PackedProgram {
  explicit PackedProgram(std::string text) : program(std::move(text)), gzip(base::gzip(program).value()) {}
  AgentProgram image() const { return {.build = "0123abcd", .sha256 = base::sha256_hex(program), .bytes = program.size(), .gzip = gzip}; }

  std::string program, gzip;
};

}  // namespace phalanx::hosts
