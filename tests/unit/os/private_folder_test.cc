#include "os/files.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

namespace phalanx::os {
namespace {

namespace fs = std::filesystem;

class PrivateFolder : public testing::Test {
 protected:
  void SetUp() override {
    top_ = fs::temp_directory_path() / "phalanx-private-XXXXXX";
    ASSERT_TRUE(::mkdtemp(top_.data()));
  }
  void TearDown() override { fs::remove_all(top_); }
  std::string top_;
};

TEST_F(PrivateFolder, IsMadeAndIsOurs) {
  EXPECT_TRUE(private_folder(top_ + "/a/b"));
  struct stat s{};
  ASSERT_EQ(::stat((top_ + "/a/b").c_str(), &s), 0);
  EXPECT_EQ(s.st_mode & 07777, 0700u);
}

TEST_F(PrivateFolder, IsRefusedWhereOthersCouldExchangeIt) {
  fs::create_directory(top_ + "/shared");
  ASSERT_EQ(::chmod((top_ + "/shared").c_str(), 0777), 0);
  EXPECT_FALSE(private_folder(top_ + "/shared/ours"));
  ASSERT_EQ(::chmod((top_ + "/shared").c_str(), 01777), 0);
  EXPECT_TRUE(private_folder(top_ + "/shared/ours"));
}

TEST_F(PrivateFolder, IsRefusedBelowAFolderOfAnotherUser) {
  if (::getuid() != 0) GTEST_SKIP() << "only root can give a folder away";
  fs::create_directory(top_ + "/theirs");
  ASSERT_EQ(::chown((top_ + "/theirs").c_str(), 61'202, 61'202), 0);
  EXPECT_FALSE(private_folder(top_ + "/theirs/ours"));
}

TEST_F(PrivateFolder, LinksAndOpenModesAreRefused) {
  ASSERT_TRUE(private_folder(top_ + "/real"));
  fs::create_directory_symlink(top_ + "/real", top_ + "/link");
  EXPECT_FALSE(private_folder(top_ + "/link"));
  ASSERT_EQ(::chmod((top_ + "/real").c_str(), 0750), 0);
  EXPECT_FALSE(private_folder(top_ + "/real"));
}

}  // namespace
}  // namespace phalanx::os
