#include "base/tar.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <fstream>

#include "base/gzip.h"

namespace phalanx::base {
namespace {

std::string shell(const std::string& command) {
  std::string out;
  FILE* pipe = ::popen(command.c_str(), "r");
  std::array<char, 4096> buffer;
  while (size_t n = std::fread(buffer.data(), 1, buffer.size(), pipe)) out.append(buffer.data(), n);
  ::pclose(pipe);
  return out;
}

class Tar : public testing::Test {
 protected:
  void SetUp() override { ASSERT_NE(::mkdtemp(folder_.data()), nullptr); }
  void TearDown() override { shell("rm -rf " + folder_); }
  std::string folder_ = "/tmp/phalanx-tar-XXXXXX";
};

TEST_F(Tar, OtherProgramsReadWhatIsWritten) {
  TarWriter tar(1'700'000'000);
  std::string deep(120, 'd');
  std::string block(512, 'b'), big(3'000'000, 'x');
  ASSERT_TRUE(tar.add("a/empty", ""));
  ASSERT_TRUE(tar.add("a/block", block));
  ASSERT_TRUE(tar.add("a/" + deep + "/big", big));
  EXPECT_FALSE(tar.add("", "x"));
  EXPECT_FALSE(tar.add(std::string(101, 'n'), "x")) << "no place to split the name";
  EXPECT_FALSE(tar.add(std::string(300, 'p') + "/x", "x"));
  std::string archive = std::move(tar).finish();
  EXPECT_EQ(archive.size() % 512, 0u);
  Result<std::string> packed = gzip(archive);
  ASSERT_TRUE(packed.ok());
  EXPECT_LT(packed->size(), archive.size() / 50);
  std::ofstream(folder_ + "/t.tar.gz", std::ios::binary) << *packed;
  EXPECT_EQ(shell("cd " + folder_ + " && tar tzf t.tar.gz"), "a/empty\na/block\na/" + deep + "/big\n");
  EXPECT_EQ(shell("cd " + folder_ + " && tar xzf t.tar.gz && cat a/block"), block);
  EXPECT_EQ(shell("cd " + folder_ + " && stat -c '%s %a %Y' a/" + deep + "/big"), "3000000 600 1700000000\n");
}

TEST(Gzip, NothingIsATextToo) {
  Result<std::string> packed = gzip("");
  ASSERT_TRUE(packed.ok());
  EXPECT_EQ(packed->substr(0, 2), "\x1f\x8b");
}

TEST(Gunzip, GivesBackWhatWasPackedAndNothingElse) {
  std::string text;
  for (int i = 0; text.size() < 300'000; ++i) text += std::to_string(i * 7919);
  const std::string packed = gzip(text).value();
  EXPECT_EQ(gunzip(packed, text.size()).value(), text);
  EXPECT_EQ(gunzip(gzip("").value(), 0).value(), "");
  EXPECT_FALSE(gunzip(packed, text.size() - 1).ok()) << "more than was allowed";
  EXPECT_FALSE(gunzip(packed + "x", text.size()).ok()) << "something follows";
  EXPECT_FALSE(gunzip("", 10).ok());
  for (size_t cut = 0; cut < packed.size(); cut += 997) EXPECT_FALSE(gunzip(packed.substr(0, cut), text.size()).ok()) << cut;
  for (size_t at = 10; at < packed.size(); at += 997) {
    std::string damaged = packed;
    damaged[at] ^= 4;
    EXPECT_FALSE(gunzip(damaged, text.size()).ok()) << at;
  }
}

}  // namespace
}  // namespace phalanx::base
