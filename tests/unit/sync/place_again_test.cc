// Pushes that were cut or killed, that follow each other, and that take turns.
#include <sys/wait.h>

#include "placing.h"

using namespace phalanx;
using namespace phalanx::copying;

namespace {

// Contents have their modes as soon as they arrive, also after a cut: what cannot be written to is no obstacle for the rest.
TEST_F(Place, ACutPushOfFilesThatMayNotBeWrittenGoesOn) {
  put(root_ + "/a/first", "first");
  put(root_ + "/b/second", "second");
  fs::permissions(root_ + "/a/first", fs::perms(0444));
  fs::permissions(root_ + "/b/second", fs::perms(0555));
  fs::permissions(root_ + "/b", fs::perms(0555));
  {
    const sync::Scan scan = everything();
    base::Result<std::unique_ptr<sync::Placer>> placer = begin(scan);
    ASSERT_TRUE(placer.ok());
    ASSERT_TRUE(give(**placer, scan.manifest, 5).ok());
  }
  EXPECT_EQ(push(), "");
  EXPECT_EQ(wanted_, 1U) << "the first has arrived";
  expect_same();
  fs::permissions(root_ + "/b", fs::perms(0755));
  EXPECT_EQ(push(), "");
  EXPECT_EQ(sent_, 0U);
}

TEST_F(Place, ACutPushGoesOnInTheMiddleOfALargeFile) {
  put(root_ + "/first", "first");
  put(root_ + "/large", std::string(5 << 20, 'x'));
  {
    const sync::Scan scan = everything();
    base::Result<std::unique_ptr<sync::Placer>> placer = begin(scan);
    ASSERT_TRUE(placer.ok());
    ASSERT_TRUE(give(**placer, scan.manifest, 3 << 20).ok());
  }
  EXPECT_FALSE(fs::exists(target_ + "/first")) << "not before everything has arrived";
  EXPECT_EQ(push(), "");
  EXPECT_EQ(sent_, (2ULL << 20) + 5);
  expect_same();
}

TEST_F(Place, ATargetThatACutPushHasMadeGetsItsModeLater) {
  put(root_ + "/first", "first");
  put(root_ + "/second", "second");
  fs::permissions(root_, fs::perms(0755));
  for (int cuts = 0; cuts < 2; ++cuts) {
    const sync::Scan scan = everything();
    base::Result<std::unique_ptr<sync::Placer>> placer = begin(scan);
    ASSERT_TRUE(placer.ok() && give(**placer, scan.manifest, 3).ok());
    EXPECT_EQ(fs::status(target_).permissions(), fs::perms(0700));
  }
  EXPECT_EQ(push(), "");
  EXPECT_EQ(fs::status(target_).permissions(), fs::perms(0755));
  fs::permissions(target_, fs::perms(0700));
  EXPECT_EQ(push(), "");
  EXPECT_EQ(fs::status(target_).permissions(), fs::perms(0700)) << "what somebody has chosen stays";
}

TEST_F(Place, WhatWasDamagedMeanwhileIsFoundAndSentAgain) {
  put(root_ + "/first", "first");
  put(root_ + "/second", "second");
  {
    const sync::Scan scan = everything();
    base::Result<std::unique_ptr<sync::Placer>> placer = begin(scan);
    ASSERT_TRUE(placer.ok() && give(**placer, scan.manifest, 5).ok());
  }
  for (const auto& entry : fs::recursive_directory_iterator(target_ + "/" + sync::kIncoming + "/blobs"))
    if (entry.is_regular_file() && entry.file_size() == 5) put(entry.path(), "FIRST");
  EXPECT_NE(push().find("first was damaged"), std::string::npos);
  EXPECT_EQ(push(), "");
  expect_same();
}

TEST_F(Place, WhatHasBegunToBePlacedIsFinishedOrRecognised) {
  tree();
  ASSERT_EQ(push(), "");
  for (int i = 0; i < 20; ++i) put(root_ + "/new" + std::to_string(i), std::to_string(i));
  {
    const sync::Scan scan = everything();
    base::Result<std::unique_ptr<sync::Placer>> placer = begin(scan);
    ASSERT_TRUE(placer.ok() && give(**placer, scan.manifest).ok());
    ASSERT_TRUE((*placer)->build(scan.manifest.entries.size() * 3 / 2).ok());
  }
  expect_same();
  EXPECT_EQ(push(), "");
  EXPECT_EQ(wanted_, 0U);
}

TEST_F(Place, AKilledPushHasPutNothingThatIsSentAgain) {
  tree();
  for (int i = 0; i < 20; ++i) put(root_ + "/new" + std::to_string(i), std::to_string(i));
  const pid_t child = ::fork();
  if (child == 0) {
    const sync::Scan scan = everything();
    base::Result<std::unique_ptr<sync::Placer>> placer = begin(scan);
    const bool good = placer.ok() && give(**placer, scan.manifest).ok() && (*placer)->build(scan.manifest.entries.size() * 3 / 2).ok();
    ::_exit(good ? 0 : 1);
  }
  int status = 1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_EQ(status, 0);
  EXPECT_TRUE(fs::exists(target_ + "/" + sync::kIncoming));
  EXPECT_EQ(push(), "");
  EXPECT_EQ(wanted_, 0U) << "what was placed is recognised, and the rest had arrived";
  expect_same();
}

// Whatever a session has done when it is killed, the next one still knows what earlier ones have put there.
TEST_F(Place, TheRecordIsReadableAtEveryMomentOfAPushThatChangesKinds) {
  auto before = [&] {
    for (const char* path : {"/was-folder/1", "/was-folder/deep/2", "/was-file", "/was-file-too", "/was-file.x/3"}) put(root_ + path, path);
    fs::create_directories(root_ + "/no-more");
  };
  before();
  constexpr size_t kListed = 8, kGone = 9;
  for (size_t killed_after = kListed + 1; killed_after <= 2 * kListed + kGone + 2; killed_after += 3) {
    fs::remove_all(root_);
    fs::remove_all(target_);
    before();
    ASSERT_EQ(push(), "");
    for (const char* path : {"/was-folder", "/was-file", "/was-file-too", "/was-file.x", "/no-more"}) fs::remove_all(root_ + path);
    for (const char* path : {"/was-folder", "/was-file/a", "/was-file/b/c", "/was-file-too/d", "/was-file.x"}) put(root_ + path, path);
    const sync::Scan scan = everything();
    ASSERT_EQ(scan.manifest.entries.size(), kListed);
    const pid_t child = ::fork();
    if (child == 0) {
      base::Result<std::unique_ptr<sync::Placer>> placer = begin(scan, true);
      const bool good = placer.ok() && give(**placer, scan.manifest).ok() && (*placer)->build(killed_after).ok();
      ::_exit(good ? 0 : 1);
    }
    int status = 1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_EQ(status, 0);
    const std::optional<sync::Record> record = sync::read_record(os::Fd(::open(target_.c_str(), O_RDONLY | O_DIRECTORY)).get());
    ASSERT_TRUE(record) << killed_after;
    EXPECT_EQ(push(true), "") << killed_after;
    expect_same();
    if (HasFailure()) break;
  }
}

TEST_F(Place, AListCannotTouchTheRecord) {
  sync::Scan scan;
  scan.manifest.with_modes = true;
  const std::string below = std::string("a/") + sync::kIncoming;
  for (const std::string& path : {std::string(sync::kRecord), below}) {
    scan.manifest.entries = {{"a", sync::Kind::kFolder}, {path, sync::Kind::kLink, 0, 0, "/etc/passwd"}};
    if (path < "a") std::swap(scan.manifest.entries[0], scan.manifest.entries[1]);
    EXPECT_FALSE(begin(scan).ok());
    EXPECT_FALSE(fs::exists(target_)) << "what it has made is gone";
  }
}

// One that was filled by a push of its own, here and on the host: each keeps its record.
TEST_F(Place, WhatAPushLeftIsLeftOutAtEveryDepth) {
  put(root_ + "/a/f", "f");
  put(root_ + "/a/" + sync::kRecord, "of a push to a");
  put(root_ + "/a/" + sync::kIncoming + "/blobs/x", "arrived");
  put(root_ + "/a/" + sync::kLeaving + "1f/lock", "");
  put(target_ + "/a/" + sync::kRecord, "of another");
  EXPECT_EQ(push(false, true), "");
  EXPECT_EQ(get(target_ + "/a/f"), "f");
  EXPECT_EQ(get(target_ + "/a/" + sync::kRecord), "of another");
  EXPECT_FALSE(fs::exists(target_ + "/a/" + sync::kIncoming));
  EXPECT_EQ(everything().manifest.entries.size(), 2U);
}

// Also one push to two names of one machine. Each comes while another is at its end, sooner or later.
TEST_F(Place, PushesThatFollowEachOtherAtOnceAllSucceed) {
  for (int i = 0; i < 40; ++i) put(root_ + "/f" + std::to_string(i), std::to_string(i));
  const sync::Scan scan = everything();
  std::vector<pid_t> children;
  for (int c = 0; c < 4; ++c) {
    children.push_back(::fork());
    if (children.back() != 0) continue;
    for (int i = 0; i < 25; ++i) {
      put(target_ + "/f" + std::to_string(i), "changed there " + std::to_string(c));
      std::string outcome = "another session";
      while (outcome.find("another session") != std::string::npos) outcome = push(false, true);
      if (outcome.empty()) continue;
      std::fputs(outcome.c_str(), stderr);
      ::_exit(1);
    }
    ::_exit(0);
  }
  for (const pid_t child : children) {
    int status = 1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(push(), "");
  expect_same();
}

TEST_F(Place, AFolderThatAKilledPushWasRemovingGoes) {
  put(root_ + "/f", "f");
  ASSERT_EQ(push(), "");
  put(target_ + "/" + sync::kLeaving + "1f/blobs/ab/new.x", "left");
  put(root_ + "/f", "g");
  EXPECT_EQ(push(), "");
  EXPECT_FALSE(fs::exists(target_ + "/" + sync::kLeaving + "1f"));
  expect_same();
}

TEST_F(Place, TwoPushesTakeTurns) {
  tree();
  const sync::Scan scan = everything();
  base::Result<std::unique_ptr<sync::Placer>> one = begin(scan);
  ASSERT_TRUE(one.ok());
  EXPECT_NE(push().find("another session"), std::string::npos);
}

}  // namespace
