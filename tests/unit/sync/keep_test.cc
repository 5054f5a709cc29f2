// What of a store stays, and for how long.
#include "copying.h"

using namespace phalanx;
using namespace phalanx::copying;

namespace {

TEST_F(Copy, TheCopyOfAHostThatWaitsIsNotOldAfterTwoDays) {
  constexpr int64_t kDayNs = 86'400'000'000'000;
  const sync::CopyKeeping keeping{.whatever_age = 0, .unused_s = 2 * 86'400};
  ASSERT_EQ(::setenv("XDG_CACHE_HOME", (base_ + "/cache").c_str(), 1), 0);
  put(root_ + "/a", "text");
  for (const char* name : {"copy-that-runs", "copy-that-waits"}) {
    base::Result<std::optional<sync::Store>> store = sync::Store::open(sync::store_root());
    ASSERT_TRUE(store.ok() && *store);
    ASSERT_NE(copy_into(std::move(**store), name), "");
  }
  sync::stamp_copy(sync::store_root() + "/copies/copy-that-runs/tree/src");
  sync::stamp_copy_ahead(sync::store_root() + "/copies/copy-that-waits/tree");
  auto left = [&](int64_t days) {
    sync::Store::open_existing(sync::store_root())->tidy(keeping, os::wall_now_ns() + days * kDayNs, [](const auto&, const auto&) {});
    return fs::exists(sync::store_root() + "/copies/copy-that-runs") + 10 * fs::exists(sync::store_root() + "/copies/copy-that-waits");
  };
  EXPECT_EQ(left(1), 11);
  EXPECT_EQ(left(3), 10);
  EXPECT_EQ(left(31), 10);
  EXPECT_EQ(left(33), 0);
  ::unsetenv("XDG_CACHE_HOME");
}

TEST_F(Copy, WhatIsBuiltOfACopyThatIsReleasedGoes) {
  (void)store();
  put(base_ + "/store/copies/new.copy-number-1/tree/file", "half");
  EXPECT_FALSE(store().release("copy-number-1").value());
  EXPECT_FALSE(fs::exists(base_ + "/store/copies/new.copy-number-1"));
}

TEST_F(Copy, RemovesOnlyOldCopiesAndContentsOfNone) {
  put(root_ + "/a", "old");
  copy("copy-number-1");
  put(root_ + "/a", "new");
  copy("copy-number-2");
  put(base_ + "/store/copies/copy-number-1/tree/deep/er/file", "written by a rank");
  fs::permissions(base_ + "/store/copies/copy-number-1/tree/deep", fs::perms::none);
  put(base_ + "/store/copies/Not Ours/file", "x");
  for (const auto& entry : fs::recursive_directory_iterator(base_ + "/store/blobs"))
    if (entry.is_regular_file()) age(entry.path(), 100'000);
  age(base_ + "/store/copies/copy-number-1", 100'000);
  std::string removed;
  auto hear = [&](const std::string& path, const std::string& problem) { removed += path.substr(base_.size()) + problem + "\n"; };
  sync::CopyKeeping keeping{.whatever_age = 0, .unused_s = 50'000, .list_only = true};
  store().tidy(keeping, os::wall_now_ns(), hear);
  EXPECT_EQ(removed, "/store/copies/copy-number-1\n/store/blobs (1 file, 3 B)\n");
  EXPECT_TRUE(fs::exists(base_ + "/store/copies/copy-number-1"));
  removed.clear();
  keeping.list_only = false;
  store().tidy(keeping, os::wall_now_ns(), hear);
  EXPECT_EQ(removed, "/store/copies/copy-number-1\n/store/blobs (1 file, 3 B)\n");
  EXPECT_FALSE(fs::exists(base_ + "/store/copies/copy-number-1"));
  EXPECT_FALSE(fs::exists(base_ + "/store/copies/new.copy-number-1"));
  EXPECT_TRUE(fs::exists(base_ + "/store/copies/copy-number-2/tree/a"));
  EXPECT_TRUE(fs::exists(base_ + "/store/copies/Not Ours/file"));
}

}  // namespace
