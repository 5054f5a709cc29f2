// What is removed from a folder of checkpoints, what never is, and what the log says about it.
#include "engine/checkpoint/folder.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "engine/checkpoint/saver.h"
#include "pieces.h"

using namespace phalanx;

namespace {

using namespace engine::checkpoint;
namespace fs = std::filesystem;

void put(const std::string& path, std::string_view text) {
  fs::create_directories(fs::path(path).parent_path());
  std::ofstream(path) << text;
}

SaveOutcome save(const std::string& folder, int64_t step, int64_t keep, Removals* at_start = nullptr) {
  auto saver = pieces::value(Saver::open({.folder = folder, .token = make_token(), .keep = keep}));
  if (at_start) *at_start = saver->removed_at_start();
  SaveRequest request;
  request.step = step;
  request.pieces = pieces::share(pieces::state(step), 0, 1, 1);
  EXPECT_TRUE(saver->save(std::move(request)).ok());
  return *saver->wait();
}

// Another tool's checkpoints have the same names: they are neither removed nor replaced, and push none of ours out.
TEST(Folder, WhatIsNotOursStays) {
  pieces::Folder folder;
  put(folder / "step-100/model.pt", "theirs");
  put(folder / "step-00000002/model.pt", "theirs");
  for (const char* name : {"step-900", "step-901", "step-902"}) put(folder / name + "/DONE", "theirs");
  put(folder / ".saving-mine/file", "theirs");
  put(folder / ".removing-mine/file", "theirs");
  EXPECT_TRUE(save(folder.path(), 1, 2).status.ok());
  const SaveOutcome blocked = save(folder.path(), 2, 2);
  ASSERT_FALSE(blocked.status.ok());
  const std::string said = blocked.status.error().render();
  EXPECT_NE(said.find("step-00000002\" already exists and is not a checkpoint"), std::string::npos) << said;
  EXPECT_TRUE(save(folder.path(), 3, 2).status.ok());
  EXPECT_TRUE(fs::exists(folder / "step-00000001/DONE"));
  ASSERT_TRUE(remove_all(folder.path()).ok());
  EXPECT_FALSE(fs::exists(folder / "step-00000001"));
  for (const char* path : {"step-100/model.pt", "step-00000002/model.pt", "step-900/DONE", ".saving-mine/file", ".removing-mine/file"})
    EXPECT_TRUE(fs::exists(folder / path)) << path;
}

// An unfinished folder of ours under a final name is no checkpoint, but nothing proves that nobody needs it.
TEST(Folder, AStepWithoutDoneStaysUntilItIsSavedAgain) {
  pieces::Folder folder;
  const std::string path = pieces::save(folder.path(), 2, 1);
  fs::remove(path + "/DONE");
  EXPECT_TRUE(save(folder.path(), 3, 1).status.ok());
  EXPECT_TRUE(fs::exists(path + "/manifest.json"));
  EXPECT_TRUE(pieces::value(is_ours(path)));
  EXPECT_TRUE(save(folder.path(), 2, 0).status.ok());
  EXPECT_EQ(pieces::value(list(folder.path())).size(), 2u);
}

TEST(Folder, AMarkThatCannotBeUnderstoodStopsPruning) {
  for (const char* text :
       {"", "{}", R"({"magic":"phalanx-best","version":9,"step":1})", R"({"magic":"phalanx-best","version":1,"step":-1})"}) {
    pieces::Folder folder;
    for (int64_t step : {1, 2}) EXPECT_TRUE(save(folder.path(), step, 0).status.ok());
    put(folder / "best.json", text);
    EXPECT_FALSE(best(folder.path()).ok());
    const SaveOutcome outcome = save(folder.path(), 3, 1);
    EXPECT_TRUE(outcome.status.ok());
    EXPECT_NE(outcome.trouble.find("best.json\" does not name the best checkpoint"), std::string::npos) << outcome.trouble;
    EXPECT_EQ(pieces::value(list(folder.path())).size(), 3u);
  }
}

// A run that passed over a damaged checkpoint of a later step must not remove the one it has just written in favour of that.
TEST(Folder, TheOneJustSavedStays) {
  pieces::Folder folder;
  for (int64_t step : {400, 600}) pieces::save(folder.path(), step, 1);
  fs::remove(folder / "step-00000600/shard-00000-of-00001.safetensors");
  EXPECT_TRUE(save(folder.path(), 500, 1).status.ok());
  Readable found = pieces::value(newest_readable(folder.path()));
  ASSERT_NE(found.reader, nullptr);
  EXPECT_EQ(found.reader->step(), 500);
}

TEST(Folder, EveryRemovalIsReported) {
  pieces::Folder folder;
  for (int64_t step : {1, 2}) EXPECT_TRUE(save(folder.path(), step, 0).status.ok());
  put(folder / ".saving-step-00000007.old.3/file", "half");
  Removals at_start;
  const SaveOutcome outcome = save(folder.path(), 3, 2, &at_start);
  ASSERT_EQ(at_start.size(), 1u);
  EXPECT_NE(at_start[0].find(".saving-step-00000007.old.3"), std::string::npos) << at_start[0];
  EXPECT_EQ(outcome.removals, (Removals{"removed " + folder / "step-00000001" + " (checkpoint.keep=2)"}));
  EXPECT_EQ(save(folder.path(), 3, 0).removals, (Removals{"removed the older checkpoint of step 3"}));
  Removals all;
  ASSERT_TRUE(remove_all(folder.path(), &all).ok());
  EXPECT_EQ(all.size(), 2u);
}

// A crash between the two renames where the file system cannot exchange names.
TEST(Folder, AReplacedCheckpointGetsItsNameBack) {
  pieces::Folder folder;
  const std::string path = pieces::save(folder.path(), 5, 1);
  fs::rename(path, folder / ".replaced-step-00000005");
  EXPECT_TRUE(Saver::open({.folder = folder.path(), .token = "next"}).ok());
  EXPECT_EQ(pieces::value(list(folder.path())), std::vector<std::string>{path});
  fs::copy(path, folder / ".replaced-step-00000005", fs::copy_options::recursive);
  EXPECT_TRUE(Saver::open({.folder = folder.path(), .token = "next"}).ok());
  EXPECT_FALSE(fs::exists(folder / ".replaced-step-00000005"));
  EXPECT_EQ(pieces::value(list(folder.path())), std::vector<std::string>{path});
}

}  // namespace
