#include "machine/old_builds.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>

#include <fmt/format.h>

#include "scratch.h"

namespace phalanx::machine {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kDay = 86'400, kNow = 1'798'761'600;
constexpr BuildKeeping kFew{.whatever_age = 1, .builds = 4, .unused = std::chrono::days(30), .unused_crowded = std::chrono::days(5)};
const std::string kCurrent(40, 'c');

class OldBuilds : public testing::Test {
 protected:
  void SetUp() override {
    cache_ = scratch::folder("old-builds");
    ASSERT_FALSE(cache_.empty());
    make(kCurrent, 100);
  }
  static std::string id(int64_t number) { return fmt::format("{:040x}", number); }
  void make(const std::string& name, int64_t days_ago) const {
    const std::string path = cache_ + "/" + name;
    ASSERT_EQ(::mkdir(path.c_str(), 0700), 0);
    for (const char* file : {"phalanx", "packed", ".new.1234.56"}) std::ofstream(path + "/" + file) << "x";
    used(name, days_ago);
  }
  // Its last use; also what a change in the folder counts as.
  void used(const std::string& name, int64_t days_ago) const {
    const timespec at[2] = {{kNow - days_ago * kDay, 0}, {kNow - days_ago * kDay, 0}};
    ASSERT_EQ(::utimensat(AT_FDCWD, (cache_ + "/" + name).c_str(), at, 0), 0);
  }
  bool there(const std::string& name) const { return fs::exists(fs::symlink_status(cache_ + "/" + name)); }
  std::vector<std::string> tend(int64_t now = kNow, const BuildKeeping& keeping = kFew) const {
    std::vector<std::string> said;
    tend_builds(cache_, kCurrent, keeping, now * 1'000'000'000,
                [&](const std::string& build, const std::string& problem) { said.push_back(build + problem); });
    std::sort(said.begin(), said.end());
    return said;
  }
  std::string cache_;
};

TEST_F(OldBuilds, WhatWasNotUsedForLongIsRemovedAndReported) {
  make(id(1), 1);
  make(id(2), 20);
  make(id(3), 40);
  EXPECT_EQ(tend(), std::vector<std::string>{id(3)});
  EXPECT_FALSE(there(id(3)));
  for (const std::string& kept : {kCurrent, id(1), id(2)}) EXPECT_TRUE(fs::exists(cache_ + "/" + kept + "/phalanx")) << kept;
  std::ifstream log(cache_ + "/removed.log");
  std::string text{std::istreambuf_iterator<char>(log), {}};
  EXPECT_NE(text.find(" build " + id(3) + ": not used for 39 days\n"), std::string::npos) << text;
}

// As `phalanx clean` asks for it: first the list, then the removal, both counted from now.
TEST_F(OldBuilds, AreOnlyListedWhereTheListIsWanted) {
  make(id(1), 1);
  make(id(2), 3);
  BuildKeeping asked = kFew;
  asked.whatever_age = 0;
  asked.unused = asked.unused_crowded = std::chrono::days(2);
  asked.from_now = asked.list_only = true;
  EXPECT_EQ(tend(kNow, asked), std::vector<std::string>{id(2)});
  EXPECT_TRUE(there(id(2)));
  EXPECT_FALSE(fs::exists(cache_ + "/removed.log"));
  asked.list_only = false;
  EXPECT_EQ(tend(kNow, asked), std::vector<std::string>{id(2)});
  EXPECT_FALSE(there(id(2)));
  EXPECT_TRUE(there(id(1)));
}

TEST_F(OldBuilds, OfTooManyThoseUnusedForAFewDaysGoToo) {
  for (int64_t i = 1; i <= 4; ++i) make(id(i), i * 3);
  EXPECT_EQ(tend(), (std::vector<std::string>{id(3), id(4)}));
  EXPECT_TRUE(there(id(2)));
}

TEST_F(OldBuilds, AStartWithinTheHourNeedNotTendAgain) {
  constexpr int64_t kSecond = 1'000'000'000;
  const std::string folder = cache_ + "/" + kCurrent;
  EXPECT_FALSE(tended_lately(folder, kNow * kSecond)) << "tended 100 days ago";
  tend();
  EXPECT_TRUE(tended_lately(folder, kNow * kSecond));
  EXPECT_TRUE(tended_lately(folder, (kNow + 3599) * kSecond));
  EXPECT_FALSE(tended_lately(folder, (kNow + 3600) * kSecond));
  EXPECT_FALSE(tended_lately(folder, (kNow - 1) * kSecond)) << "the clock went back";
  EXPECT_FALSE(tended_lately(cache_ + "/none", kNow * kSecond));
  std::ofstream(folder + "/packed") << "newer";
  const timespec written[2] = {{kNow, 123}, {kNow, 123}};
  ASSERT_EQ(::utimensat(AT_FDCWD, folder.c_str(), written, 0), 0);
  EXPECT_FALSE(tended_lately(folder, kNow * kSecond)) << "a new build, which nobody has tended yet";
}

TEST_F(OldBuilds, TheBuildInUseSaysSo) {
  struct stat s{};
  tend();
  ASSERT_EQ(::stat((cache_ + "/" + kCurrent).c_str(), &s), 0);
  EXPECT_EQ(s.st_mtime, kNow);
}

TEST_F(OldBuilds, AWrongClockRemovesNothing) {
  for (int64_t i = 1; i <= 2; ++i) make(id(i), i);
  EXPECT_TRUE(tend(kNow + 10'000 * kDay).empty());
  EXPECT_TRUE(tend(0).empty());
}

TEST_F(OldBuilds, TheLastUsedStaysWhateverItsAge) {
  make(id(1), 5000);
  EXPECT_TRUE(tend().empty());
}

// Each of these was not used for long enough; it stays for another reason, and for that alone.
class OldBuildStays : public OldBuilds {
 protected:
  void SetUp() override {
    OldBuilds::SetUp();
    make(id(1), 1);
    make(id(9), 90);
  }
  void check(const std::function<void()>& restore) {
    used(id(9), 90);
    EXPECT_TRUE(tend().empty());
    EXPECT_TRUE(there(id(9)));
    restore();
    used(id(9), 90);
    EXPECT_EQ(tend(), std::vector<std::string>{id(9)});
  }
  std::string path() const { return cache_ + "/" + id(9); }
};

TEST_F(OldBuildStays, IfItHoldsAnotherFile) {
  std::ofstream(path() + "/notes.txt") << "mine";
  check([&] { fs::remove(path() + "/notes.txt"); });
}
TEST_F(OldBuildStays, IfItHoldsAFolder) {
  fs::create_directory(path() + "/.new.folder");
  check([&] { fs::remove(path() + "/.new.folder"); });
}
TEST_F(OldBuildStays, IfItHoldsALink) {
  fs::create_symlink("/etc/passwd", path() + "/.new.link");
  check([&] { fs::remove(path() + "/.new.link"); });
}
TEST_F(OldBuildStays, IfOthersMayWriteToIt) {
  ASSERT_EQ(::chmod(path().c_str(), 0770), 0);
  check([&] { ::chmod(path().c_str(), 0700); });
}
TEST_F(OldBuildStays, IfOthersMayWriteToTheCache) {
  ASSERT_EQ(::chmod(cache_.c_str(), 0777), 0);
  check([&] { ::chmod(cache_.c_str(), 0700); });
}
TEST_F(OldBuildStays, IfItIsSomebodyElses) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root";
  ASSERT_EQ(::chown(path().c_str(), 65534, 65534), 0);
  check([&] { ASSERT_EQ(::chown(path().c_str(), 0, 0), 0); });
}
TEST_F(OldBuildStays, IfItIsALink) {
  fs::rename(path(), cache_ + "/elsewhere");
  fs::create_directory_symlink(cache_ + "/elsewhere", path());
  check([&] {
    fs::remove(path());
    fs::rename(cache_ + "/elsewhere", path());
  });
}
TEST_F(OldBuildStays, IfItWasUsedByAnotherHost) {
  used(id(9), 2);
  EXPECT_TRUE(tend().empty());
}

TEST_F(OldBuilds, WhatIsNotNamedLikeABuildIsNotLookedAt) {
  make(id(1), 1);
  for (const char* name : {"checks", "0123abc", "my-build", ".removed-checks"}) make(name, 900);
  EXPECT_TRUE(tend().empty());
  for (const char* name : {"checks", "0123abc", "my-build", ".removed-checks"}) EXPECT_TRUE(there(name)) << name;
}

TEST_F(OldBuilds, ARemovalThatWasInterruptedIsFinished) {
  make(".removed-" + id(7), 1);
  EXPECT_EQ(tend(), std::vector<std::string>{id(7)});
  EXPECT_FALSE(there(".removed-" + id(7)));
}

}  // namespace
}  // namespace phalanx::machine
