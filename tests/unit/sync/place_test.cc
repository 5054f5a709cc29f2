// A folder through scan, list and placer into a target, all on this machine.
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>

#include "copying.h"
#include "sync/place.h"

using namespace phalanx;
using namespace phalanx::copying;

namespace {

class Place : public Copy {
 protected:
  void SetUp() override {
    Copy::SetUp();
    target_ = base_ + "/target";
  }
  sync::Scan everything() {
    base::Result<sync::Scan> found = sync::scan(root_, sync::kPushLimits, base_ + "/index", sync::Take::kEverything);
    EXPECT_TRUE(found.ok()) << (found.ok() ? "" : found.error().render());
    return found.ok() ? std::move(*found) : sync::Scan{};
  }
  base::Result<std::unique_ptr<sync::Placer>> begin(const sync::Scan& scan, bool remove = false, bool among_others = false) {
    base::Result<sync::Target> target = sync::open_target(target_, among_others);
    if (!target.ok()) return std::move(target).error();
    base::Result<std::optional<sync::Store>> store = sync::Store::open(target_ + "/" + sync::kIncoming);
    if (!store.ok()) return std::move(store).error();
    if (!*store) return base::fail(base::ErrorKind::kTimeout, "another session");
    base::Result<sync::Listing> list = sync::Listing::read(sync::encode(scan.manifest));
    if (!list.ok()) return std::move(list).error();
    (*store)->at_work = [this] { ++told_; };
    return sync::Placer::begin(std::move(**store), std::move(*target), std::move(*list), scan.mode, remove);
  }
  base::Status give(sync::Placer& placer, const sync::Manifest& manifest, uint64_t most = ~0ULL) {
    sync::ContentReader reader(root_);
    std::vector<char> room(64 << 10);
    sent_ = 0;
    if (base::Status begun = placer.receive(""); !begun.ok()) return begun;
    for (uint32_t entry : placer.wanted()) {
      reader.begin(manifest.entries[entry], placer.partial().bytes > 0 && placer.partial().entry == entry ? placer.partial().bytes : 0);
      while (reader.more()) {
        const std::string_view piece = reader.next(room).substr(0, most - sent_);
        if (base::Status taken = placer.receive(piece); !taken.ok()) return taken;
        sent_ += piece.size();
        if (sent_ == most) return base::ok();
      }
    }
    return base::ok();
  }
  // The whole of it. "": it worked; else the error.
  std::string push(bool remove = false, bool among_others = false) {
    const sync::Scan scan = everything();
    base::Result<std::unique_ptr<sync::Placer>> placer = begin(scan, remove, among_others);
    if (!placer.ok()) return placer.error().render();
    wanted_ = (*placer)->wanted().size();
    base::Status given = give(**placer, scan.manifest);
    if (!given.ok()) return given.error().render();
    base::Result<bool> built = false;
    while (built.ok() && !*built) built = (*placer)->build(3);
    removed_ = (*placer)->removed();
    stayed_ = (*placer)->stayed();
    return built.ok() ? "" : built.error().render();
  }
  // Whether the target has the tree of the source and nothing else.
  void expect_same() {
    const std::string differ = "cd " + base_ + " && diff -r --no-dereference project target | grep -v ': .phalanx-push$' > differ";
    EXPECT_NE(::system(differ.c_str()), 0) << get(base_ + "/differ");
    const std::string list = "find . -path ./.phalanx-push -o -mindepth 1 ! -type l -printf '%p %m %T@\\n' | sort > " + base_ + "/";
    ASSERT_EQ(::system(("cd " + root_ + " && " + list + "here").c_str()), 0);
    ASSERT_EQ(::system(("cd " + target_ + " && " + list + "there").c_str()), 0);
    EXPECT_EQ(get(base_ + "/here"), get(base_ + "/there"));
  }
  void tree() {
    put(root_ + "/a/deep/f", "deep");
    put(root_ + "/a/same", "twice");
    put(root_ + "/same", "twice");
    put(root_ + "/.gitignore", "*\n");
    put(root_ + "/.git/HEAD", "ref");
    put(root_ + "/empty", "");
    put(root_ + "/run", "#!/bin/sh\n");
    fs::permissions(root_ + "/run", fs::perms(0750));
    fs::create_directories(root_ + "/no/thing");
    fs::create_symlink("/usr/bin/python3", root_ + "/python");
    fs::create_symlink("../../outside", root_ + "/a/out");
    age(root_ + "/a/deep/f", 1000);
    age(root_ + "/a/deep", 2000);
    fs::permissions(root_ + "/no", fs::perms(0555));
  }
  std::string target_;
  size_t removed_ = 0, stayed_ = 0, told_ = 0;
};

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
