#include "agent/scratch.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "os/files.h"
#include "scratch.h"

namespace phalanx::agent {
namespace {

struct InOwnFolder : testing::Test {
  void SetUp() override { ::setenv("TMPDIR", folder.c_str(), 1); }
  void TearDown() override { before.empty() ? ::unsetenv("TMPDIR") : ::setenv("TMPDIR", before.c_str(), 1); }
  std::string before = os::environment_value("TMPDIR");
  std::string folder = scratch::folder("agent-scratch-test");
};

using ScratchFolder = InOwnFolder;

TEST_F(ScratchFolder, OfAKilledAgentIsRemovedByItsName) {
  std::string path;
  {
    std::optional<Scratch> scratch = Scratch::create("20261121-073102-a3f9");
    ASSERT_TRUE(scratch.has_value());
    path = scratch->path();
  }
  ASSERT_TRUE(os::make_folders(path + "/0").ok());
  std::ofstream(path + "/0/error.json") << "{}";
  remove_scratch(path);
  EXPECT_FALSE(os::is_folder(path));
}

TEST_F(ScratchFolder, OnlyThatOfARunIsRemovedAndNoLinkIsFollowed) {
  std::string other = folder + "/data", link = folder + "/phalanx-run-20261121-073102-a3f9-link";
  ASSERT_EQ(::mkdir(other.c_str(), 0700), 0);
  std::ofstream(other + "/checkpoint") << "weights";
  remove_scratch(other);
  ASSERT_EQ(::symlink(other.c_str(), link.c_str()), 0);
  remove_scratch(link);
  EXPECT_TRUE(scratches_of("20261121-073102-a3f9").empty());
  EXPECT_EQ(::access((other + "/checkpoint").c_str(), F_OK), 0);
}

TEST_F(ScratchFolder, AllOfOneRunAndNoneOfAnother) {
  for (const char* id : {"20261121-073102-a3f9", "20261121-073102-a3f9", "20261121-073102-a3f8"})
    ASSERT_TRUE(Scratch::create(id).has_value());
  std::vector<std::string> found = scratches_of("20261121-073102-a3f9");
  EXPECT_EQ(found.size(), 2u);
  for (const std::string& path : found) remove_scratch(path);
  EXPECT_TRUE(scratches_of("20261121-073102-a3f9").empty());
  EXPECT_EQ(scratches_of("20261121-073102-a3f8").size(), 1u);
}

TEST_F(ScratchFolder, AFileLeftThereIsReadAndNothingElse) {
  std::string file = folder + "/error.json", link = folder + "/link", fifo = folder + "/fifo";
  std::ofstream(file) << "{}";
  EXPECT_EQ(read_left_file(file, 100), "{}");
  EXPECT_EQ(read_left_file(file, 1), "") << "larger than it may be";
  ASSERT_EQ(::symlink(file.c_str(), link.c_str()), 0);
  EXPECT_EQ(read_left_file(link, 100), "");
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  EXPECT_EQ(read_left_file(fifo, 100), "") << "and it did not wait for a writer";
  EXPECT_EQ(read_left_file(folder + "/none", 100), "");
}

}  // namespace
}  // namespace phalanx::agent
