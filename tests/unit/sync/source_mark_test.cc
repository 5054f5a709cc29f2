// How a host recognises that what it is to fill is the directory that is pushed.
#include "sync/source_mark.h"

#include "copying.h"

using namespace phalanx;
using namespace phalanx::copying;

namespace {

class SourceMark : public Copy {
 protected:
  size_t names() const { return static_cast<size_t>(std::distance(fs::directory_iterator(root_), fs::directory_iterator())); }
};

TEST_F(SourceMark, IsFoundUnderEveryNameOfTheDirectoryAndNowhereElse) {
  put(root_ + "/f", "f");
  fs::create_directories(base_ + "/other");
  fs::create_symlink(root_, base_ + "/link");
  sync::SourceMark mark;
  mark.make(root_);
  ASSERT_NE(mark.name(), "");
  EXPECT_TRUE(sync::holds_mark(root_, mark.name()));
  EXPECT_TRUE(sync::holds_mark(base_ + "/link", mark.name()));
  EXPECT_FALSE(sync::holds_mark(base_ + "/other", mark.name()));
  EXPECT_FALSE(sync::holds_mark(base_ + "/missing", mark.name()));
  for (sync::Take take : {sync::Take::kEverything, sync::Take::kCode}) {
    const base::Result<sync::Scan> found = sync::scan(root_, sync::kPushLimits, "", take);
    ASSERT_TRUE(found.ok());
    EXPECT_EQ(found->manifest.entries.size(), 1U) << "another push of it does not take the mark along";
  }
  mark.remove();
  EXPECT_EQ(mark.name(), "");
  EXPECT_EQ(names(), 1U);
}

TEST_F(SourceMark, NameOfAnotherFormIsFoundNowhere) {
  put(root_ + "/f", "");
  put(root_ + "/.phalanx-push.source.x", "");
  for (const char* name : {"", "f", "../project/f", ".phalanx-push.source.x", ".phalanx-push.source."})
    EXPECT_FALSE(sync::holds_mark(root_, name)) << name;
}

TEST_F(SourceMark, OneThatAKilledLauncherLeftGoesAfterADay) {
  put(root_ + "/.phalanx-push.source.old", "");
  put(root_ + "/.phalanx-push.source.new", "");
  put(root_ + "/.phalanx-push.source.full", "somebody's");
  age(root_ + "/.phalanx-push.source.old", 100'000);
  age(root_ + "/.phalanx-push.source.full", 100'000);
  sync::SourceMark mark;
  mark.make(root_);
  EXPECT_EQ(names(), 3U);
  EXPECT_FALSE(fs::exists(root_ + "/.phalanx-push.source.old"));
}

TEST_F(SourceMark, WithoutADirectoryToWriteToThereIsNone) {
  sync::SourceMark mark;
  mark.make(base_ + "/missing");
  EXPECT_EQ(mark.name(), "");
}

}  // namespace
