#include "base/lz4.h"

#include <gtest/gtest.h>

#include <random>

using namespace phalanx;

namespace {

std::string packed(std::string_view bytes) {
  std::string block;
  base::lz4_compress(bytes, block);
  return block;
}
bool gives(std::string_view block, std::string_view bytes) {
  std::string out = "what was there before";
  return base::lz4_decompress(block, bytes.size(), out) && out == bytes;
}

// By hand, from the description of the format.
TEST(Lz4, BlocksOfTheFormatAreRead) {
  EXPECT_TRUE(gives(std::string("\x50hello", 6), "hello"));
  EXPECT_TRUE(gives(std::string("\x13"
                                "a\x01\x00"
                                "\x50"
                                "bcdef",
                                10),
                    "aaaaaaaabcdef"))
      << "a match that overlaps itself";
  EXPECT_TRUE(gives(std::string("\xf0\x00"
                                "0123456789abcde",
                                17),
                    "0123456789abcde"))
      << "15 literals need a second count";
  EXPECT_TRUE(gives(std::string("\x00", 1), ""));
}

TEST(Lz4, MalformedBlocksAreRefused) {
  std::string out;
  for (const std::string& block : {std::string(), std::string("\x50hell", 5), std::string("\x50hello!", 7),
                                   std::string("\x13"
                                               "a\x02\x00"
                                               "\x00",
                                               5),
                                   std::string("\x13"
                                               "a\x00\x00"
                                               "\x00",
                                               5),
                                   std::string("\x13"
                                               "a\x01",
                                               3),
                                   std::string("\xf0\xff\xff", 3), std::string("\x51hello\x01", 7)})
    EXPECT_FALSE(base::lz4_decompress(block, 5, out)) << testing::PrintToString(block);
  EXPECT_FALSE(base::lz4_decompress(packed("hello"), 4, out));
  EXPECT_FALSE(base::lz4_decompress(packed("hello"), 6, out));
  EXPECT_FALSE(base::lz4_decompress(packed("hello"), base::kMostLz4Bytes + 1, out));
}

TEST(Lz4, EverythingComesBack) {
  std::minstd_rand random(7);
  for (int i = 0; i < 3000; ++i) {
    std::string bytes;
    const size_t size = random() % (i % 100 == 0 ? 100'000 : 300), letters = 1 + random() % (i % 7 == 0 ? 256 : 4);
    while (bytes.size() < size)
      if (random() % 20 == 0 && bytes.size() > 50) bytes += bytes.substr(random() % bytes.size(), random() % 100);
      else bytes += static_cast<char>(random() % letters);
    ASSERT_TRUE(gives(packed(bytes), bytes)) << i;
  }
  const std::string same(base::kMostLz4Bytes, 'x');
  EXPECT_LT(packed(same).size(), 5000U);
  EXPECT_TRUE(gives(packed(same), same));
}

TEST(Lz4, BytesThatDoNotRepeatGrowLittle) {
  std::mt19937 random(3);
  std::string bytes(200'000, '\0');
  for (char& c : bytes) c = static_cast<char>(random());
  EXPECT_LT(packed(bytes).size(), bytes.size() + bytes.size() / 200);
  EXPECT_TRUE(gives(packed(bytes), bytes));
}

}  // namespace
