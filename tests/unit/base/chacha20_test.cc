#include "base/chacha20.h"

#include <gtest/gtest.h>

#include <fmt/format.h>

namespace phalanx::base {
namespace {

// RFC 8439, section 2.4.2.
TEST(ChaCha20, EncryptsTheTextOfTheStandard) {
  std::string key;
  for (int i = 0; i < 32; ++i) key += static_cast<char>(i);
  const std::string nonce("\0\0\0\0\0\0\0\x4a\0\0\0\0", 12);
  const std::string plain =
      "Ladies and Gentlemen of the class of '99: If I could offer you only one tip for the future, sunscreen would be it.";
  std::string bytes = plain;
  chacha20(bytes, key, nonce, 1);
  std::string hex;
  for (unsigned char c : bytes) hex += fmt::format("{:02x}", c);
  EXPECT_EQ(
      hex,
      "6e2e359a2568f98041ba0728dd0d6981e97e7aec1d4360c20a27afccfd9fae0bf91b65c5524733ab8f593dabcd62b3571639d624e65152ab8f530c359f0861d"
      "807ca0dbf500d6a6156a38e088a22b65e52bc514d16ccf806818ce91ab77937365af90bbf74a35be6b40b8eedf2785e42874d");
  chacha20(bytes, key, nonce, 1);
  EXPECT_EQ(bytes, plain);
}

// Whatever instructions this machine has, and wherever a text ends among the blocks that are made side by side.
TEST(ChaCha20, EveryCodeMakesTheSameStream) {
  const std::string key(kChaChaKeyBytes, 'k'), nonce(kChaChaNonceBytes, 'n');
  for (size_t size : {0u, 1u, 31u, 63u, 64u, 65u, 255u, 256u, 257u, 511u, 512u, 513u, 1025u, 262'145u})
    for (uint32_t counter : {0u, 1u, 0xffff'fffdu}) {
      std::string best(size, 'x'), portable = best, by_block = best;
      chacha20(best, key, nonce, counter);
      chacha20(portable, key, nonce, counter, ChaChaCode::kPortable);
      EXPECT_EQ(best, portable) << size << " from " << counter;
      if (size > 2048) continue;
      for (size_t at = 0; at < size; at += 64) {
        std::string block = by_block.substr(at, 64);
        chacha20(block, key, nonce, counter + static_cast<uint32_t>(at / 64), ChaChaCode::kPortable);
        by_block.replace(at, block.size(), block);
      }
      EXPECT_EQ(best, by_block) << size << " from " << counter;
    }
}

}  // namespace
}  // namespace phalanx::base
