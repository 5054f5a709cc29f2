// What a push puts into its target, replaces, removes and refuses.
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>

#include "placing.h"

using namespace phalanx;
using namespace phalanx::copying;

namespace {

// Else the launcher hears nothing of a host that looks at a million files, or reads again what an earlier session has left, and gives up.
TEST_F(Place, LongWorkIsToldWhileItLasts) {
  tree();
  put(root_ + "/large", std::string(3 << 20, 'x'));
  const sync::Scan scan = everything();
  base::Result<std::unique_ptr<sync::Placer>> placer = begin(scan, false, false);
  ASSERT_TRUE(placer.ok()) << placer.error().render();
  EXPECT_GE(told_, scan.manifest.entries.size()) << "files that are there are looked at";
  ASSERT_TRUE(give(**placer, scan.manifest).ok());
  placer->reset();
  placer = begin(scan, false, false);
  ASSERT_TRUE(placer.ok()) << placer.error().render();
  EXPECT_TRUE((*placer)->wanted().empty());
  told_ = 0;
  const size_t steps = 1 + scan.manifest.entries.size();
  EXPECT_TRUE((*placer)->build(steps).ok());
  EXPECT_GE(told_, steps + (3 << 20) / (128 << 10)) << "contents that are there are read again";
}

TEST_F(Place, EverythingIsThereWithModesTimesAndLinks) {
  tree();
  EXPECT_EQ(push(), "");
  EXPECT_EQ(wanted_, 6U) << "the same content once";
  expect_same();
  EXPECT_FALSE(fs::exists(target_ + "/" + sync::kIncoming));
  EXPECT_EQ(push(), "");
  EXPECT_EQ(wanted_, 0U);
  expect_same();
}

TEST_F(Place, OnlyWhatChangedIsSent) {
  tree();
  ASSERT_EQ(push(), "");
  put(root_ + "/a/deep/f", "other");
  age(root_ + "/run", 500);                           // only its time
  fs::permissions(root_ + "/same", fs::perms(0600));  // only its mode
  fs::remove(root_ + "/python");
  fs::create_symlink("/usr/bin/python3.11", root_ + "/python");
  EXPECT_EQ(push(), "");
  EXPECT_EQ(wanted_, 1U);
  expect_same();
}

TEST_F(Place, AFileThatWasChangedOnTheHostIsReplaced) {
  tree();
  ASSERT_EQ(push(), "");
  put(target_ + "/a/deep/f", "DEEP");
  EXPECT_EQ(push(), "");
  EXPECT_EQ(wanted_, 1U);
  expect_same();
}

TEST_F(Place, WhatIsGoneHereGoesOnlyWithDeleteAndOnlyIfAPushPutItThere) {
  tree();
  ASSERT_EQ(push(), "");
  put(target_ + "/a/mine", "made on the host");
  fs::remove_all(root_ + "/a");
  fs::remove(root_ + "/same");
  EXPECT_EQ(push(), "");
  EXPECT_EQ(stayed_, 4U);
  put(target_ + "/same", "changed on the host");
  EXPECT_EQ(push(true), "");
  EXPECT_EQ(removed_, 3U);
  EXPECT_EQ(stayed_, 1U);
  EXPECT_FALSE(fs::exists(target_ + "/a/deep"));
  EXPECT_EQ(get(target_ + "/a/mine"), "made on the host");
  EXPECT_EQ(get(target_ + "/same"), "changed on the host");
}

TEST_F(Place, AFolderInTheWayOfAFileGoesOnlyIfAllOfItIsOurs) {
  put(root_ + "/module/part", "x");
  put(root_ + "/plain", "x");
  ASSERT_EQ(push(), "");
  fs::remove_all(root_ + "/module");
  put(root_ + "/module", "a file now");
  fs::remove(root_ + "/plain");
  put(root_ + "/plain/part", "a folder now");
  EXPECT_NE(push().find("is a directory, and not so in the directory that is pushed"), std::string::npos);
  put(target_ + "/module/mine", "made on the host");
  EXPECT_NE(push(true).find("is a directory, and not so"), std::string::npos);
  EXPECT_EQ(get(target_ + "/module/part"), "x") << "nothing has changed";
  fs::remove(target_ + "/module/mine");
  EXPECT_EQ(push(true), "");
  expect_same();
}

// Root may remove what lies in such a folder: the push is that of another user.
TEST_F(Place, AFolderInOneThatMayNotBeWrittenGivesWay) {
  constexpr uid_t kNobody = 65534;
  put(root_ + "/d/sub/part", "x");
  put(root_ + "/d/gone/part", "x");
  put(root_ + "/d/plain", "x");
  fs::permissions(root_ + "/d", fs::perms(0555));
  if (::geteuid() == 0) ASSERT_EQ(::system(("chown -R 65534:65534 " + base_).c_str()), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    if (::geteuid() == 0 && (::setgid(kNobody) != 0 || ::setuid(kNobody) != 0)) ::_exit(2);
    bool good = push().empty();
    fs::permissions(root_ + "/d", fs::perms(0755));
    for (const char* path : {"/d/sub", "/d/gone", "/d/plain"}) fs::remove_all(root_ + path);
    put(root_ + "/d/sub", "a file now");
    put(root_ + "/d/plain/part", "a folder now");
    fs::permissions(root_ + "/d", fs::perms(0555));
    const std::string outcome = push(true);
    std::fputs(outcome.c_str(), stderr);
    expect_same();
    good = good && outcome.empty() && !fs::exists(target_ + "/d/gone") && !HasFailure();
    fs::permissions(root_ + "/d", fs::perms(0755));
    fs::permissions(target_ + "/d", fs::perms(0755));
    ::_exit(good ? 0 : 1);
  }
  int status = 1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

// A program on the host is faster than the push: nothing is renamed over what it has made, and the next push still knows what is there.
TEST_F(Place, AFolderThatHasToGiveWayAndGotAFileMeanwhileIsNamed) {
  put(root_ + "/x/1", "x");
  ASSERT_EQ(push(), "");
  fs::remove_all(root_ + "/x");
  put(root_ + "/x", "a file now");
  {
    const sync::Scan scan = everything();
    base::Result<std::unique_ptr<sync::Placer>> placer = begin(scan, true);
    ASSERT_TRUE(placer.ok() && give(**placer, scan.manifest).ok());
    put(target_ + "/x/mine", "made on the host");
    const base::Result<bool> built = (*placer)->build(kAll);
    ASSERT_FALSE(built.ok());
    EXPECT_NE(built.error().render().find("remove " + target_ + "/x: Directory not empty"), std::string::npos) << built.error().render();
  }
  fs::remove(target_ + "/x/mine");
  EXPECT_EQ(push(true), "");
  expect_same();
}

TEST_F(Place, ATargetWithOtherFilesIsRefused) {
  put(root_ + "/f", "f");
  put(target_ + "/other", "other");
  put(target_ + "/f", "old");
  EXPECT_NE(push().find("holds what no push has put there"), std::string::npos);
  EXPECT_FALSE(fs::exists(target_ + "/" + sync::kIncoming));
  EXPECT_EQ(get(target_ + "/f"), "old");
  EXPECT_EQ(push(false, true), "");
  EXPECT_EQ(get(target_ + "/f") + get(target_ + "/other"), "fother");
  EXPECT_EQ(push(true), "") << "now it is known";
  EXPECT_EQ(get(target_ + "/other"), "other");
}

TEST_F(Place, ATargetThatOthersCouldReplaceIsRefused) {
  put(root_ + "/f", "f");
  fs::create_directories(base_ + "/open/target");
  fs::permissions(base_ + "/open", fs::perms(0777));
  target_ = base_ + "/open/target";
  EXPECT_NE(push().find("belongs to another user, or others may write to it"), std::string::npos);
  target_ = base_ + "/link/target";
  fs::create_symlink(base_ + "/open", base_ + "/link");
  EXPECT_NE(push().find("others may write to it"), std::string::npos);
  target_ = base_ + "/wide";
  fs::create_directories(target_);
  fs::permissions(target_, fs::perms(0775));
  EXPECT_NE(push().find("others may write to it"), std::string::npos);
  target_ = base_ + "/file";
  put(target_, "x");
  EXPECT_NE(push().find("cannot be pushed to"), std::string::npos);
  for (const char* path : {"/", "relative", "/a/../b", "/a/./b"}) {
    target_ = path;
    EXPECT_NE(push().find("a malformed target"), std::string::npos) << path;
  }
}

// In a folder like /tmp, where everybody may leave a link that has the target's name.
TEST_F(Place, ALinkOfAnotherUserIsNotFollowed) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to give a link to another user";
  put(root_ + "/f", "f");
  ASSERT_EQ(push(), "");
  const std::string pushed = target_;
  fs::create_directories(base_ + "/open");
  fs::permissions(base_ + "/open", fs::perms(01777));
  target_ = base_ + "/open/target";
  fs::create_symlink(pushed, target_);
  ASSERT_EQ(::lchown(target_.c_str(), 65534, 65534), 0);
  put(root_ + "/f", "other");
  EXPECT_NE(push(true).find("it is a link of another user"), std::string::npos);
  EXPECT_EQ(get(pushed + "/f"), "f");
  ASSERT_EQ(::lchown(target_.c_str(), 0, 0), 0);
  EXPECT_EQ(push(), "") << "a link of ours is";
  EXPECT_EQ(get(pushed + "/f"), "other");
}

// Root that pushes a user's directory would send what only root may read.
TEST_F(Place, ALinkThatTookThePlaceOfAFolderIsNotReadThrough) {
  put(root_ + "/a", "first");
  put(root_ + "/b/f", "inside");
  put(base_ + "/outside/f", "secret");
  const std::string secret = base::sha256_hex("secret");
  auto exchange = [&](uint64_t) {
    if (fs::is_symlink(root_ + "/b")) return;
    fs::rename(root_ + "/b", root_ + "/away");
    fs::create_symlink(base_ + "/outside", root_ + "/b");
  };
  const base::Result<sync::Scan> found = sync::scan(root_, sync::kPushLimits, "", sync::Take::kEverything, exchange);
  ASSERT_FALSE(found.ok());
  EXPECT_NE(found.error().message.find("b/f was changed while it was copied"), std::string::npos) << found.error().render();
  sync::ContentReader reader(root_);
  reader.begin({"b/f", sync::Kind::kFile, 6, 0, "", 0});
  char room[64];
  EXPECT_EQ(reader.next(room), std::string(6, '\0'));
  fs::remove(root_ + "/b");
  fs::rename(root_ + "/away", root_ + "/b");
  fs::create_symlink(root_, base_ + "/name");
  EXPECT_TRUE(sync::scan(base_ + "/name", sync::kPushLimits, "", sync::Take::kEverything).ok()) << "the directory itself may be a link";
}

TEST_F(Place, NothingIsWrittenThroughALinkInTheTarget) {
  put(root_ + "/a/f", "new");
  put(base_ + "/outside/f", "untouched");
  fs::create_directories(target_);
  fs::create_symlink(base_ + "/outside", target_ + "/a");
  EXPECT_NE(push(true, true).find("is no directory, and not so"), std::string::npos);
  fs::remove(target_ + "/a");
  fs::create_directories(target_ + "/a");
  fs::create_symlink(base_ + "/outside/f", target_ + "/a/f");
  EXPECT_EQ(push(false, true), "");
  EXPECT_EQ(get(base_ + "/outside/f"), "untouched");
  expect_same();
}

// A rename leads into no other mount, so such a target is refused before anything changes.
TEST_F(Place, AMountInTheTargetIsRefusedIfSomethingComesIntoIt) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to mount";
  put(root_ + "/a/deep/f", "f");
  put(root_ + "/empty/f", "f");
  ASSERT_EQ(push(), "");
  fs::remove(root_ + "/empty/f");
  const pid_t child = ::fork();
  if (child == 0) {
    const bool separate = ::unshare(CLONE_NEWNS) == 0 && ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0;
    for (const char* at : {"/empty", "/a"}) {
      const std::string path = target_ + at;
      // The second is of the same device.
      if (!separate || ::mount(at[1] == 'e' ? "none" : path.c_str(), path.c_str(), "tmpfs", at[1] == 'e' ? 0 : MS_BIND, nullptr) != 0)
        ::_exit(2);
    }
    bool good = push().empty();
    put(root_ + "/a/deep/f", "g");
    put(root_ + "/b", "b");
    const std::string outcome = push();
    good = good && outcome.find(target_ + "/a/deep is on another file system than " + target_) != std::string::npos &&
           outcome.find("push that directory by itself") != std::string::npos && !fs::exists(target_ + "/b");
    put(root_ + "/a/deep/f", "f");
    fs::remove(root_ + "/b");
    put(root_ + "/empty/new/f", "f");
    good = good && push().find("/empty/new is on another file system") != std::string::npos;
    if (!good) std::fputs(outcome.c_str(), stderr);
    ::_exit(good ? 0 : 1);
  }
  int status = 1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  if (WEXITSTATUS(status) == 2) GTEST_SKIP() << "this machine lets nobody mount";
  EXPECT_EQ(status, 0);
}

}  // namespace
