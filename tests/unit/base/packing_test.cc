#include "base/packing.h"

#include <gtest/gtest.h>

#include <random>

using namespace phalanx;

namespace {

using base::Effort;
using base::Packing;

constexpr Effort kAll[] = {Effort::kLeast, Effort::kLittle, Effort::kMuch};

struct Block {
  Packing packing;
  std::string bytes;
};
Block packed(std::string_view bytes, Effort effort) {
  Block block;
  block.packing = base::Packer().pack(bytes, effort, block.bytes);
  return block;
}
bool gives(Packing packing, std::string_view block, std::string_view bytes) {
  std::string out = "what was there before";
  return base::unpack(packing, block, bytes.size(), out) && out == bytes;
}
bool comes_back(std::string_view bytes, Effort effort) {
  const Block block = packed(bytes, effort);
  EXPECT_EQ(block.packing, effort == Effort::kLeast ? Packing::kLz4 : Packing::kDeflate);
  return gives(block.packing, block.bytes, bytes);
}

// By hand, from the description of the format.
TEST(Packing, BlocksOfLz4AreRead) {
  EXPECT_TRUE(gives(Packing::kLz4, std::string("\x50hello", 6), "hello"));
  EXPECT_TRUE(gives(Packing::kLz4,
                    std::string("\x13"
                                "a\x01\x00"
                                "\x50"
                                "bcdef",
                                10),
                    "aaaaaaaabcdef"))
      << "a match that overlaps itself";
  EXPECT_TRUE(gives(Packing::kLz4,
                    std::string("\xf0\x00"
                                "0123456789abcde",
                                17),
                    "0123456789abcde"))
      << "15 literals need a second count";
  EXPECT_TRUE(gives(Packing::kLz4, std::string("\x00", 1), ""));
}

TEST(Packing, MalformedBlocksOfLz4AreRefused) {
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
    EXPECT_FALSE(base::unpack(Packing::kLz4, block, 5, out)) << testing::PrintToString(block);
}

// By hand, from RFC 1951: a stored block, and one with the fixed codes.
TEST(Packing, BlocksOfDeflateAreRead) {
  EXPECT_TRUE(gives(Packing::kDeflate, std::string("\x01\x05\x00\xfa\xffhello", 10), "hello"));
  EXPECT_TRUE(gives(Packing::kDeflate, std::string("\x4b\x04\x00", 3), "a"));
  EXPECT_TRUE(gives(Packing::kDeflate, std::string("\x03\x00", 2), ""));
}

TEST(Packing, MalformedBlocksOfDeflateAreRefused) {
  std::string out;
  for (const std::string& block : {std::string(), std::string("\x01\x05\x00\xfa\xffhell", 9), std::string("\x01\x05\x00\xfb\xffhello", 10),
                                   std::string("\x01\x05\x00\xfa\xffhello!", 11), std::string("\x07", 1), std::string("\x4b\x04\x00", 3),
                                   std::string("\x00\x05\x00\xfa\xffhello", 10)})
    EXPECT_FALSE(base::unpack(Packing::kDeflate, block, 5, out)) << testing::PrintToString(block);
}

TEST(Packing, ABlockOfAnotherSizeIsRefused) {
  std::string out;
  for (Effort effort : kAll) {
    const Block block = packed("hello", effort);
    EXPECT_FALSE(base::unpack(block.packing, block.bytes, 4, out));
    EXPECT_FALSE(base::unpack(block.packing, block.bytes, 6, out));
    EXPECT_FALSE(base::unpack(block.packing, block.bytes, base::kMostPackedBytes + 1, out));
    EXPECT_FALSE(base::unpack(block.packing, std::string(2 * base::kMostPackedBytes, 'x'), base::kMostPackedBytes, out));
  }
}

TEST(Packing, EverythingComesBack) {
  std::minstd_rand random(7);
  for (int i = 0; i < 3000; ++i) {
    std::string bytes;
    const size_t size = random() % (i % 100 == 0 ? 100'000 : 300), letters = 1 + random() % (i % 7 == 0 ? 256 : 4);
    while (bytes.size() < size)
      if (random() % 20 == 0 && bytes.size() > 50) bytes += bytes.substr(random() % bytes.size(), random() % 100);
      else bytes += static_cast<char>(random() % letters);
    ASSERT_TRUE(comes_back(bytes, kAll[i % 3])) << i;
  }
  const std::string same(base::kMostPackedBytes, 'x');
  for (Effort effort : kAll) {
    EXPECT_LT(packed(same, effort).bytes.size(), 5000U);
    EXPECT_TRUE(comes_back(same, effort));
  }
}

TEST(Packing, BytesThatDoNotRepeatGrowLittle) {
  std::mt19937 random(3);
  std::string bytes(200'000, '\0');
  for (char& c : bytes) c = static_cast<char>(random());
  for (Effort effort : kAll) {
    EXPECT_LT(packed(bytes, effort).bytes.size(), bytes.size() + bytes.size() / 200);
    EXPECT_TRUE(comes_back(bytes, effort));
  }
}

// Pieces of what was there before, as texts and programs have them.
TEST(Packing, MoreEffortGivesShorterBlocks) {
  std::minstd_rand random(5);
  std::string bytes;
  while (bytes.size() < 200'000) {
    bytes += std::to_string(random());
    const size_t from = random() % bytes.size();
    bytes += bytes.substr(from, 3 + random() % 12);
  }
  const size_t least = packed(bytes, Effort::kLeast).bytes.size(), little = packed(bytes, Effort::kLittle).bytes.size();
  EXPECT_LT(little, least * 3 / 4);
  EXPECT_LT(packed(bytes, Effort::kMuch).bytes.size(), little * 19 / 20);
}

TEST(Packing, ABlockIsAppended) {
  std::string out = "before";
  base::Packer packer;
  for (Effort effort : kAll) {
    const size_t size = out.size();
    const Packing packing = packer.pack("hello hello", effort, out);
    EXPECT_TRUE(out.starts_with("before"));
    EXPECT_TRUE(gives(packing, std::string_view(out).substr(size), "hello hello"));
  }
}

}  // namespace
