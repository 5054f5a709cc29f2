// Scan, list, receiver and store together.
#include "copying.h"

#include "base/sha256.h"

using namespace phalanx;
using namespace phalanx::copying;

namespace {

TEST_F(Copy, HoldsTheSameFilesBitsAndLinks) {
  put(root_ + "/train.py", "print(1)\n");
  put(root_ + "/a/b/run.sh", "#!/bin/sh\n");
  put(root_ + "/a/empty", "");
  put(root_ + "/a/same", "print(1)\n");
  fs::permissions(root_ + "/a/b/run.sh", fs::perms::owner_all);
  fs::create_symlink("../train.py", root_ + "/a/link");
  const std::string tree = copy("copy-number-1");
  EXPECT_EQ(get(tree + "/train.py"), "print(1)\n");
  EXPECT_EQ(get(tree + "/a/link"), "print(1)\n");
  EXPECT_EQ(get(tree + "/a/same"), "print(1)\n");
  EXPECT_TRUE(fs::is_regular_file(tree + "/a/empty"));
  EXPECT_EQ(::access((tree + "/a/b/run.sh").c_str(), X_OK), 0);
  EXPECT_EQ(fs::last_write_time(tree + "/train.py"), fs::last_write_time(root_ + "/train.py"));
  EXPECT_EQ(wanted_, 3U) << "equal contents are sent once";
  struct stat s{};
  ASSERT_EQ(::stat(tree.c_str(), &s), 0);
  EXPECT_EQ(s.st_mode & 07777, 0700U);
  ASSERT_EQ(::stat((tree + "/train.py").c_str(), &s), 0);
  EXPECT_EQ(s.st_nlink, 1U) << "a rank that writes must not reach the store";
}

TEST_F(Copy, LeavesOutWhatGitignoreSaysAndLinksToTheOutside) {
  put(root_ + "/.gitignore", "*.bin\n/out/\n!keep.bin\n");
  put(root_ + "/.git/config", "x");
  put(root_ + "/a.bin", "x");
  put(root_ + "/keep.bin", "x");
  put(root_ + "/out/x", "x");
  put(root_ + "/sub/.gitignore", "local\n");
  put(root_ + "/sub/local", "x");
  put(root_ + "/sub/out/x", "x");
  fs::create_symlink("/etc/passwd", root_ + "/absolute");
  fs::create_symlink("../../x", root_ + "/sub/outside");
  ASSERT_EQ(::mkfifo((root_ + "/fifo").c_str(), 0600), 0);
  const sync::Scan found = scan();
  std::string paths;
  for (const sync::Entry& entry : found.manifest.entries) paths += entry.path + " ";
  EXPECT_EQ(paths, ".gitignore keep.bin sub sub/.gitignore sub/out sub/out/x ");
  EXPECT_EQ(found.links_outside, 2U);
  EXPECT_EQ(found.special, 1U);
}

// Several threads walk; each folder's own .gitignore goes with it, whoever takes it.
TEST_F(Copy, ManyFoldersAreFoundOnceAndInOrder) {
  std::string expected;
  for (int i = 10; i < 60; ++i) {
    const std::string folder = "part" + std::to_string(i);
    put(root_ + "/" + folder + "/.gitignore", "left" + std::to_string(i) + "\n");
    put(root_ + "/" + folder + "/deep/er/left" + std::to_string(i), "x");
    put(root_ + "/" + folder + "/deep/er/left" + std::to_string(i + 1), "x");
    for (const char* below : {"", "/.gitignore", "/deep", "/deep/er"}) expected += folder + below + " ";
    expected += folder + "/deep/er/left" + std::to_string(i + 1) + " ";
  }
  for (int round = 0; round < 5; ++round) {
    std::string paths;
    const sync::Scan found = scan();
    for (const sync::Entry& entry : found.manifest.entries) paths += entry.path + " ";
    EXPECT_EQ(paths, expected);
  }
}

// What it would leave out cannot be told: secrets, perhaps.
TEST_F(Copy, AGitignoreThatCannotBeReadIsNoMissingOne) {
  put(root_ + "/train.py", "x");
  put(root_ + "/.gitignore", std::string(2 << 20, '#'));
  auto here = sync::scan(root_, {}, base_ + "/index");
  ASSERT_FALSE(here.ok());
  EXPECT_NE(here.error().render().find(".gitignore"), std::string::npos) << here.error().render();
  fs::remove(root_ + "/.gitignore");
  fs::create_directories(base_ + "/.git");
  put(base_ + "/.gitignore", std::string(2 << 20, '#'));
  auto above = sync::scan(root_, {}, base_ + "/index");
  ASSERT_FALSE(above.ok());
  EXPECT_NE(above.error().render().find(base_ + "/.gitignore"), std::string::npos) << above.error().render();
}

TEST_F(Copy, TheLimitNamesTheLargestFolders) {
  put(root_ + "/data/a", std::string(5000, 'x'));
  put(root_ + "/src/b", std::string(100, 'x'));
  base::Result<sync::Scan> found = sync::scan(root_, {.bytes = 4000, .files = 100}, "");
  ASSERT_FALSE(found.ok());
  EXPECT_EQ(found.error().kind, base::ErrorKind::kUsage);
  EXPECT_NE(found.error().cause.find("data: 4.88 KiB in 1 file, src: 100 B in 1 file"), std::string::npos) << found.error().cause;
  EXPECT_NE(found.error().hint.find("--sync-max"), std::string::npos);
  EXPECT_FALSE(sync::scan(root_, {.bytes = 1 << 20, .files = 1}, "").ok());
}

TEST_F(Copy, UnchangedFilesAreNeitherHashedNorSentAgain) {
  for (int i = 0; i < 50; ++i) {
    put(root_ + "/f" + std::to_string(i), "content " + std::to_string(i));
    age(root_ + "/f" + std::to_string(i), 100);
  }
  EXPECT_EQ(scan().hashed, 50U);
  // The change time cannot be set: such files are trusted only some time after they were made.
  ::sleep(2);
  EXPECT_EQ(scan().hashed, 50U);
  EXPECT_EQ(scan({.unsettled_s = 2}).hashed, 50U) << "after a minute, and not sooner";
  EXPECT_EQ(scan().hashed, 0U);
  copy("copy-number-1");
  EXPECT_EQ(wanted_, 50U);
  put(root_ + "/f7", "another one");
  EXPECT_EQ(scan().hashed, 1U);
  const std::string tree = copy("copy-number-2");
  EXPECT_EQ(wanted_, 1U);
  EXPECT_EQ(get(tree + "/f7"), "another one");
  EXPECT_EQ(get(base_ + "/store/copies/copy-number-1/tree/f7"), "content 7");
}

TEST_F(Copy, AnUntouchedCopyBecomesTheNextOne) {
  put(root_ + "/a/x", "1");
  put(root_ + "/a/y", "2");
  put(root_ + "/b", "3");
  const std::string first = copy("copy-number-1");
  put(first + "/__pycache__/m.pyc", "x");
  struct stat before{};
  ASSERT_EQ(::stat((first + "/b").c_str(), &before), 0);
  base::Result<bool> kept = store().release("copy-number-1");
  ASSERT_TRUE(kept.ok());
  EXPECT_FALSE(*kept);
  EXPECT_FALSE(fs::exists(first));
  fs::remove_all(root_ + "/a");
  put(root_ + "/a", "a file now");
  const std::string second = copy("copy-number-2");
  EXPECT_EQ(get(second + "/a"), "a file now");
  struct stat after{};
  ASSERT_EQ(::stat((second + "/b").c_str(), &after), 0);
  EXPECT_EQ(before.st_ino, after.st_ino) << "the same file, not copied again";
  EXPECT_FALSE(fs::exists(second + "/__pycache__"));
  EXPECT_FALSE(fs::exists(base_ + "/store/free"));
  EXPECT_TRUE(store().untouched("copy-number-2"));
}

TEST_F(Copy, ACopyThatWasWrittenIntoStays) {
  put(root_ + "/a/x", "1");
  const std::vector<std::pair<const char*, std::function<void(const std::string&)>>> writes = {
      {"a new file", [](const std::string& tree) { put(tree + "/checkpoint", "x"); }},
      {"a changed file", [](const std::string& tree) { put(tree + "/a/x", "2"); }},
      {"a file that is gone", [](const std::string& tree) { fs::remove(tree + "/a/x"); }},
      {"a mode", [](const std::string& tree) { ::chmod((tree + "/a/x").c_str(), 0777); }},
      {"a hard link", [&](const std::string& tree) { fs::create_hard_link(tree + "/a/x", base_ + "/elsewhere"); }},
      {"a folder", [](const std::string& tree) { fs::create_directory(tree + "/a/out"); }},
  };
  int number = 10;
  for (const auto& [what, write] : writes) {
    const std::string name = "copy-number-" + std::to_string(number++);
    const std::string tree = copy(name);
    write(tree);
    base::Result<bool> kept = store().release(name);
    ASSERT_TRUE(kept.ok()) << what;
    EXPECT_TRUE(*kept) << what;
    EXPECT_TRUE(fs::exists(tree)) << what;
  }
  EXPECT_EQ(get(copy("copy-number-2") + "/a/x"), "1") << "nothing of it reached the store";
}

TEST_F(Copy, AFreeCopyThatSomebodyWroteIntoIsNotTheNextRunsCode) {
  put(root_ + "/train.py", "original");
  copy("copy-number-1");
  ASSERT_FALSE(*store().release("copy-number-1"));
  put(base_ + "/store/free/tree/train.py", "edited");
  put(base_ + "/store/free/tree/late", "weights");
  const std::string second = copy("copy-number-2");
  EXPECT_EQ(get(second + "/train.py"), "original");
  EXPECT_FALSE(fs::exists(second + "/late"));
  EXPECT_EQ(get(base_ + "/store/copies/late-copy-number-2/tree/late"), "weights") << "it stays";
}

TEST_F(Copy, TheNextReleaseKeepsWhatWasWrittenIntoTheFreeCopy) {
  put(root_ + "/a", "1");
  copy("copy-number-1");
  copy("copy-number-2");
  ASSERT_FALSE(*store().release("copy-number-1"));
  put(base_ + "/store/free/tree/late", "weights");
  ASSERT_FALSE(*store().release("copy-number-2"));
  EXPECT_EQ(get(base_ + "/store/copies/late-copy-number-2/tree/late"), "weights");
  EXPECT_FALSE(fs::exists(base_ + "/store/free/tree/late"));
}

TEST_F(Copy, AContentThatWasCutOffIsRemovedThoughItsFileChanged) {
  put(root_ + "/big", std::string(1'000'000, 'x'));
  {
    const sync::Scan found = scan();
    base::Result<sync::Receiver> receiver = sync::Receiver::begin(store(), "copy-number-1", listing(found.manifest));
    ASSERT_TRUE(receiver.ok());
    ASSERT_TRUE(send(*receiver, found.manifest, 500'000).ok());
  }
  put(root_ + "/big", "changed");
  copy("copy-number-2");
  const auto cut_off = [&] {
    size_t count = 0;
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(base_ + "/store/blobs"))
      count += entry.path().filename().string().starts_with("new.");
    return count;
  };
  ASSERT_EQ(cut_off(), 1U);
  sync::CopyKeeping keeping;
  keeping.whatever_age = 0;
  store().tidy(keeping, os::wall_now_ns(), [](const std::string&, const std::string&) {});
  EXPECT_EQ(cut_off(), 0U);
}

TEST_F(Copy, WhatArrivedBeforeACutIsNotAskedForAgain) {
  for (int i = 0; i < 10; ++i) put(root_ + "/f" + std::to_string(i), std::string(1000, static_cast<char>('a' + i)));
  const sync::Scan found = scan();
  {
    base::Result<sync::Receiver> receiver = sync::Receiver::begin(store(), "copy-number-1", listing(found.manifest));
    ASSERT_TRUE(receiver.ok());
    ASSERT_TRUE(send(*receiver, found.manifest, 4500).ok());
    EXPECT_FALSE(receiver->complete());
    EXPECT_FALSE(fs::exists(base_ + "/store/copies/copy-number-1"));
  }
  copy("copy-number-2");
  EXPECT_EQ(wanted_, 6U);
}

// A small content has its name before its last byte: a kill in between leaves one that is too short.
TEST_F(Copy, AContentThatAKillLeftTooShortIsSentAgain) {
  put(root_ + "/a", "whole");
  const std::string hex = base::sha256_hex("whole");
  (void)store();
  put(base_ + "/store/blobs/" + hex.substr(0, 2) + "/" + hex, "who");
  fs::permissions(base_ + "/store/blobs/" + hex.substr(0, 2), fs::perms(0700));
  EXPECT_EQ(get(copy("copy-number-1") + "/a"), "whole");
  EXPECT_EQ(wanted_, 1U);
  EXPECT_EQ(get(base_ + "/store/blobs/" + hex.substr(0, 2) + "/" + hex), "whole");
}

TEST_F(Copy, ASmallContentWithAnotherHashIsNeverInTheStore) {
  put(root_ + "/a", "first");
  const sync::Scan found = scan();
  base::Result<sync::Receiver> receiver = sync::Receiver::begin(store(), "copy-number-1", listing(found.manifest));
  ASSERT_TRUE(receiver.ok());
  const base::Status taken = receiver->receive("other");
  ASSERT_FALSE(taken.ok());
  EXPECT_NE(taken.error().message.find("a was changed while it was copied"), std::string::npos) << taken.error().render();
  EXPECT_FALSE(receiver->complete());
  for (const auto& entry : fs::recursive_directory_iterator(base_ + "/store/blobs")) EXPECT_TRUE(entry.is_directory()) << entry.path();
}

// As another host passes contents on: the small one is damaged, then the large one, at its end.
TEST_F(Copy, ADamagedContentCanBeReceivedAgain) {
  const std::string small(100, 's'), large(300'000, 'l');
  put(root_ + "/a", "first");
  put(root_ + "/b", small);
  put(root_ + "/c", large);
  const sync::Scan found = scan();
  base::Result<sync::Receiver> receiver = sync::Receiver::begin(store(), "copy-number-1", listing(found.manifest));
  ASSERT_TRUE(receiver.ok());
  ASSERT_EQ(receiver->wanted().size(), 3U);
  EXPECT_FALSE(receiver->receive("first" + std::string(100, 'x') + large).ok());
  EXPECT_EQ(receiver->begin_content_again(), 5U);
  ASSERT_TRUE(receiver->receive(small + large.substr(0, 200'000)).ok());
  EXPECT_FALSE(receiver->receive(std::string(100'000, 'x')).ok());
  EXPECT_EQ(receiver->begin_content_again(), 105U);
  ASSERT_TRUE(receiver->receive(large.substr(0, 10)).ok());
  EXPECT_EQ(receiver->begin_content_again(), std::nullopt) << "nothing is wrong with it";
  ASSERT_TRUE(receiver->receive(large.substr(10)).ok());
  EXPECT_TRUE(receiver->complete());
  EXPECT_EQ(receiver->begin_content_again(), std::nullopt);
  base::Result<bool> built = receiver->build(kAll);
  ASSERT_TRUE(built.ok() && *built);
  EXPECT_EQ(get(receiver->path() + "/c"), large);
}

TEST_F(Copy, AFileThatChangesWhileItIsSentIsRefused) {
  put(root_ + "/a", "before");
  put(root_ + "/b", "longer before");
  const sync::Scan found = scan();
  put(root_ + "/a", "after!");
  base::Result<sync::Receiver> receiver = sync::Receiver::begin(store(), "copy-number-1", listing(found.manifest));
  ASSERT_TRUE(receiver.ok());
  base::Status sent = send(*receiver, found.manifest);
  ASSERT_FALSE(sent.ok());
  EXPECT_EQ(sent.error().message, "a was changed while it was copied");
}

TEST_F(Copy, MoreThanWasAskedForIsRefused) {
  put(root_ + "/a", "x");
  const sync::Scan found = scan();
  base::Result<sync::Receiver> receiver = sync::Receiver::begin(store(), "copy-number-1", listing(found.manifest));
  ASSERT_TRUE(receiver.ok());
  EXPECT_FALSE(receiver->receive("xy").ok());
}

TEST_F(Copy, ADamagedContentIsRemovedAndSentAgain) {
  put(root_ + "/a", "content");
  copy("copy-number-1");
  for (const auto& entry : fs::recursive_directory_iterator(base_ + "/store/blobs"))
    if (entry.is_regular_file()) put(entry.path(), "CONTENT");
  const sync::Scan found = scan();
  {
    base::Result<sync::Receiver> receiver = sync::Receiver::begin(store(), "copy-number-2", listing(found.manifest));
    ASSERT_TRUE(receiver.ok() && receiver->complete());
    EXPECT_FALSE(receiver->build(kAll).ok());
  }
  EXPECT_EQ(get(copy("copy-number-3") + "/a"), "content");
}

TEST_F(Copy, OneSessionAtATime) {
  const sync::Store first = store();
  base::Result<std::optional<sync::Store>> second = sync::Store::open(base_ + "/store");
  ASSERT_TRUE(second.ok());
  EXPECT_FALSE(second->has_value());
}

TEST_F(Copy, LinksInTheStoreAreNotFollowed) {
  put(root_ + "/a", "x");
  fs::create_directories(base_ + "/elsewhere");
  fs::create_directories(base_ + "/store");
  fs::permissions(base_ + "/store", fs::perms::owner_all);
  fs::create_directory_symlink(base_ + "/elsewhere", base_ + "/store/copies");
  base::Result<std::optional<sync::Store>> opened = sync::Store::open(base_ + "/store");
  EXPECT_FALSE(opened.ok());
  EXPECT_TRUE(fs::is_empty(base_ + "/elsewhere"));
}

TEST_F(Copy, AStoreThatOthersMayWriteToIsRefused) {
  fs::create_directories(base_ + "/store");
  fs::permissions(base_ + "/store", fs::perms::all);
  EXPECT_FALSE(sync::Store::open(base_ + "/store").ok());
}

TEST_F(Copy, AStoreBelowAFolderThatOthersMayWriteToIsRefused) {
  fs::create_directories(base_ + "/shared");
  ::chmod((base_ + "/shared").c_str(), 0777);
  auto refused = sync::Store::open(base_ + "/shared/store");
  ASSERT_FALSE(refused.ok()) << "others could put another folder in its place, and ranks start in it";
  EXPECT_NE(refused.error().render().find("namei -l"), std::string::npos) << refused.error().render();
  ::chmod((base_ + "/shared").c_str(), 01777);
  EXPECT_TRUE(sync::Store::open(base_ + "/shared/store").ok());
}

}  // namespace
