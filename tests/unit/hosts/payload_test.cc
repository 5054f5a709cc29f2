#include "hosts/connect/payload.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/sha256.h"
#include "hosts/packed_program.h"

namespace phalanx::hosts {
namespace {

PackedProgram some_program() {
  std::string text;
  for (int i = 0; text.size() < (1 << 20); ++i) text += std::to_string(i * 7919);
  return PackedProgram(std::move(text));
}

TEST(Payload, AHeaderOfTheUnpackedProgramAndTheBytesOfEither) {
  const PackedProgram packed = some_program();
  Payload payload(packed.image());
  const std::string facts = fmt::format("{} {}", base::sha256_hex(packed.program), packed.program.size());
  for (int asked = 0; asked < 2; ++asked) {
    EXPECT_EQ(payload.message(Encoding::kGzip).value(), fmt::format("{} gzip {}\n", facts, packed.gzip.size()) + packed.gzip);
    EXPECT_EQ(payload.message(Encoding::kRaw).value(), fmt::format("{} raw {}\n", facts, packed.program.size()) + packed.program);
  }
  // What was given before stays where it is: connections send from it in turns.
  EXPECT_EQ(payload.message(Encoding::kGzip).value().data(), payload.message(Encoding::kGzip).value().data());
}

TEST(Payload, AProgramThatCannotBeUnpackedIsAnErrorForAHostWithoutGzip) {
  PackedProgram packed = some_program();
  packed.gzip[packed.gzip.size() / 2] ^= 1;
  Payload payload(packed.image());
  EXPECT_FALSE(payload.message(Encoding::kRaw).ok());
  EXPECT_TRUE(payload.message(Encoding::kGzip).ok());  // the host finds out, and asks for it as it is
}

}  // namespace
}  // namespace phalanx::hosts
