#include "base/sha256.h"

#include <gtest/gtest.h>

#include <cstdio>

namespace phalanx::base {
namespace {

// Vectors of FIPS 180-4 and NIST's example page.
TEST(Sha256, KnownVectors) {
  EXPECT_EQ(sha256_hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256_hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256_hex("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(sha256_hex(std::string(1'000'000, 'a')), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, PiecesGiveTheSame) {
  std::string text(300, 'q');
  for (size_t cut = 0; cut <= text.size(); cut += 7) {
    Sha256 hash;
    hash.update(std::string_view(text).substr(0, cut));
    hash.update(std::string_view(text).substr(cut));
    EXPECT_EQ(hash.hex(), sha256_hex(text));
  }
}

// RFC 4231, test cases 1 to 4, 6 and 7 (5 is about truncation).
TEST(HmacSha256, Rfc4231) {
  auto hex = [](const std::string& key, const std::string& message) {
    std::string out;
    for (unsigned char byte : hmac_sha256(key, message)) {
      char digits[3];
      std::snprintf(digits, sizeof(digits), "%02x", byte);
      out += digits;
    }
    return out;
  };
  std::string counting;
  for (char c = 1; c <= 25; ++c) counting += c;
  EXPECT_EQ(hex(std::string(20, '\x0b'), "Hi There"), "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
  EXPECT_EQ(hex("Jefe", "what do ya want for nothing?"), "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  EXPECT_EQ(hex(std::string(20, '\xaa'), std::string(50, '\xdd')), "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe");
  EXPECT_EQ(hex(counting, std::string(50, '\xcd')), "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b");
  EXPECT_EQ(hex(std::string(131, '\xaa'), "Test Using Larger Than Block-Size Key - Hash Key First"),
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
  EXPECT_EQ(hex(std::string(131, '\xaa'),
                "This is a test using a larger than block-size key and a larger than block-size data. The key needs to be hashed before "
                "being used by the HMAC algorithm."),
            "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2");
}

TEST(EqualSecrets, EveryByteCounts) {
  std::string a(32, 'k');
  EXPECT_TRUE(equal_secrets(a, a));
  EXPECT_FALSE(equal_secrets(a, a.substr(1)));
  for (size_t i = 0; i < a.size(); ++i) {
    std::string b = a;
    b[i] = static_cast<char>(b[i] ^ 0x80);
    EXPECT_FALSE(equal_secrets(a, b)) << i;
  }
}

}  // namespace
}  // namespace phalanx::base
