#include "logs/runs/run_list.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "logs/runs/disk_files.h"
#include "logs/runs/run_directory.h"
#include "os/clock.h"
#include "os/files.h"

namespace phalanx::logs {
namespace {

namespace fs = std::filesystem;

class RunList : public testing::Test {
 protected:
  void SetUp() override { ASSERT_NE(::mkdtemp(base_.data()), nullptr); }
  void TearDown() override { fs::remove_all(base_); }
  void make(const std::string& id, const base::Json& record) {
    fs::create_directories(base_ + "/" + id);
    if (!record.is_null()) { ASSERT_TRUE(os::write_file_atomic(base_ + "/" + id + "/run.json", base::to_text(record)).ok()); }
  }
  std::string base_ = "/tmp/phalanx-runs-XXXXXX";
};

TEST_F(RunList, OnlyIdsAreRuns) {
  EXPECT_TRUE(is_run_id("20261121-073102-a3f9"));
  for (const char* no : {"", "latest", "20261121-073102-A3F9", "20261121-073102-a3f", "../20261121-07310-a3f", "20261121-073102-a3f9x"})
    EXPECT_FALSE(is_run_id(no)) << no;
  make("not-a-run", {{"state", "ended"}});
  EXPECT_TRUE(list_runs(base_)->empty());
  EXPECT_TRUE(list_runs(base_ + "/none")->empty());
  EXPECT_FALSE(find_run(base_, "latest").ok());
}

// Whoever may write to a shared folder can lay these there. None of them keeps ps waiting, and no link is followed.
TEST_F(RunList, WhatIsNoRegularFileIsNotWaitedForNorFollowed) {
  std::string id = "20261121-000001-aaaa", path = base_ + "/" + id;
  make(id, nullptr);
  ASSERT_EQ(::mkfifo((path + "/events.jsonl").c_str(), 0644), 0);
  ASSERT_EQ(::mkfifo((path + "/run.json").c_str(), 0644), 0);
  EXPECT_EQ(list_runs(base_)->at(0).life, Life::kLost);
  fs::remove(path + "/run.json");
  ASSERT_TRUE(os::write_file_atomic(base_ + "/elsewhere", R"({"state":"ended"})").ok());
  fs::create_symlink(base_ + "/elsewhere", path + "/run.json");
  EXPECT_TRUE(list_runs(base_)->at(0).record.empty());
  fs::create_directory_symlink(path, base_ + "/20261121-000002-bbbb");
  EXPECT_FALSE(look_at_run(base_ + "/20261121-000002-bbbb", "20261121-000002-bbbb").ours);
  ASSERT_EQ(::mkfifo((base_ + "/20261121-000003-cccc").c_str(), 0644), 0);
  fs::create_symlink("20261121-000004-dddd", base_ + "/20261121-000004-dddd");
  ASSERT_TRUE(os::write_file_atomic(base_ + "/20261121-000005-eeee", "").ok());
  EXPECT_EQ(list_runs(base_)->size(), 1u) << "only folders are runs";
}

// A colleague's run in a shared folder, as every run is made: nothing of it can be read, and that does not mean that it is lost.
TEST_F(RunList, AnotherUsersRunIsNotCalledLost) {
  if (::getuid() != 0) GTEST_SKIP() << "needs root, to give files to a second user";
  std::string id = "20261121-000001-aaaa", path = base_ + "/" + id;
  make(id, nullptr);
  ASSERT_EQ(::chown(path.c_str(), 61'202, 61'202), 0);
  const logs::Run run = look_at_run(path, id);
  EXPECT_EQ(run.life, Life::kElsewhere);
  EXPECT_EQ(run.owner, 61'202u);
  EXPECT_FALSE(run.ours);
}

TEST_F(RunList, ARunIsOursOnlyIfNobodyElseCanWriteToIt) {
  std::string id = "20261121-000001-aaaa", path = base_ + "/" + id;
  auto ours = [&] { return must_be_ours(look_at_run(path, id)).ok(); };
  make(id, {{"state", "running"}});
  ASSERT_EQ(::chmod(path.c_str(), 0700), 0);
  EXPECT_TRUE(ours());
  for (const std::string& part : {path, path + "/run.json"}) {
    for (mode_t wide : {0720, 0702, 0777}) {
      ASSERT_EQ(::chmod(part.c_str(), wide), 0);
      EXPECT_FALSE(ours()) << part;
    }
    ASSERT_EQ(::chmod(part.c_str(), 0700), 0);
    EXPECT_TRUE(ours());
  }
  if (::getuid() != 0) GTEST_SKIP() << "needs root, to give files to a second user";
  for (const std::string& part : {path, path + "/run.json"}) {
    ASSERT_EQ(::chown(part.c_str(), 61'202, 61'202), 0);
    EXPECT_FALSE(ours()) << part;
    ASSERT_EQ(::chown(part.c_str(), 0, 0), 0);
    EXPECT_TRUE(ours());
  }
  // The newest of all and `latest` are somebody else's: what we ask about without a name is still our own.
  make("20261122-000001-bbbb", {{"state", "running"}});
  ASSERT_EQ(::chown((base_ + "/20261122-000001-bbbb").c_str(), 61'202, 61'202), 0);
  fs::create_symlink("20261122-000001-bbbb", base_ + "/latest");
  EXPECT_EQ(find_run(base_, "")->id, id);
}

TEST_F(RunList, ALauncherThatLivesHoldsTheLock) {
  std::string path;
  {
    auto run = RunDirectory::create(base_, os::wall_now_ns());
    ASSERT_TRUE(run.ok());
    path = run->path();
    EXPECT_EQ(look_at_run(path, run->id()).life, Life::kAlive);
    DiskFiles files{{}};
    run->write_to(files);
    run->write_record({{"state", "running"}});
    EXPECT_EQ(list_runs(base_)->at(0).life, Life::kAlive);
  }
  EXPECT_EQ(list_runs(base_)->at(0).life, Life::kLost);
}

TEST_F(RunList, WhatRunJsonSays) {
  make("20261121-000001-aaaa", {{"state", "ended"}, {"verdict", "done"}});
  make("20261121-000002-bbbb", {{"state", "running"}, {"launcher", {{"host", this_machine()}}}});
  make("20261121-000003-cccc", {{"state", "running"}, {"launcher", {{"host", "elsewhere"}}}});
  make("20261121-000004-dddd", nullptr);
  make("20261121-000005-eeee", {{"state", 7}, {"launcher", "odd"}});
  auto runs = *list_runs(base_);
  ASSERT_EQ(runs.size(), 5u);
  EXPECT_EQ(runs[4].life, Life::kEnded);
  EXPECT_EQ(runs[3].life, Life::kLost);
  EXPECT_EQ(runs[2].life, Life::kElsewhere);
  EXPECT_EQ(runs[2].launcher_host, "elsewhere");
  EXPECT_EQ(runs[1].life, Life::kLost);
  EXPECT_EQ(runs[0].id, "20261121-000005-eeee") << "newest first";
  EXPECT_EQ(runs[0].life, Life::kLost);
}

// A file system without locks: nobody holds any. The launcher is this process.
TEST_F(RunList, OnItsOwnMachineTheProcessTellsWhetherARunLives) {
  const base::Json mark = describe_mark(os::own_mark());
  auto with = [&](const char* key, const base::Json& value) {
    base::Json changed = mark;
    changed[key] = value;
    return base::Json{{"state", "running"}, {"launcher", changed}};
  };
  make("20261121-000001-aaaa", {{"state", "running"}, {"launcher", mark}});
  make("20261121-000002-bbbb", with("started", os::own_mark().started + 1));  // its pid is another's now
  make("20261121-000003-cccc", with("boot_id", "of the day before yesterday"));
  make("20261121-000004-dddd", with("machine_id", "of another machine with this name"));
  make("20261121-000005-eeee", with("boot_id", "x"));
  base::Json elsewhere = with("boot_id", "x");
  elsewhere["launcher"]["machine_id"] = "y";
  make("20261121-000006-ffff", elsewhere);
  auto runs = *list_runs(base_);
  ASSERT_EQ(runs.size(), 6u);
  EXPECT_EQ(runs[5].life, Life::kAlive);
  EXPECT_EQ(runs[4].life, Life::kLost);
  EXPECT_EQ(runs[3].life, Life::kLost) << "this machine has booted since";
  EXPECT_EQ(runs[2].life, Life::kAlive) << "boot, container, pid and start are enough";
  EXPECT_EQ(runs[0].life, Life::kElsewhere);
}

// Between the look and the writing somebody may have put another folder, or another record, in its place.
TEST_F(RunList, ARecordIsRewrittenOnlyInTheRunThatWasLookedAt) {
  const std::string id = "20261121-000001-aaaa", path = base_ + "/" + id, record = path + "/run.json";
  make(id, {{"state", "running"}});
  auto end = [](base::Json& json) { json["state"] = "ended"; };
  const logs::Run run = look_at_run(path, id);
  ASSERT_TRUE(rewrite_record(run, end).ok());
  EXPECT_EQ(look_at_run(path, id).life, Life::kEnded);
  EXPECT_FALSE(rewrite_record(run, end).ok()) << "it has changed since";
  const logs::Run again = look_at_run(path, id);
  fs::rename(path, base_ + "/elsewhere");
  fs::create_directory_symlink(base_ + "/elsewhere", path);
  EXPECT_EQ(rewrite_record(again, [](base::Json& json) { json["state"] = "lost"; }).error().kind, base::ErrorKind::kConfig);
  EXPECT_EQ(os::read_file(base_ + "/elsewhere/run.json", 1 << 20)->find("lost"), std::string::npos);
  fs::remove(path);
  fs::rename(base_ + "/elsewhere", path);
  ASSERT_EQ(::chmod(path.c_str(), 0777), 0);
  EXPECT_FALSE(rewrite_record(again, end).ok()) << "others may write to it";
}

TEST_F(RunList, ByIdBeginningOrEnd) {
  for (const char* id : {"20261121-000001-aaaa", "20261121-000002-bbbb", "20261122-000001-aaab"}) make(id, {{"state", "ended"}});
  EXPECT_EQ(find_run(base_, "20261122")->id, "20261122-000001-aaab");
  EXPECT_EQ(find_run(base_, "bbbb")->id, "20261121-000002-bbbb");
  EXPECT_EQ(find_run(base_, "20261121-000001-aaaa")->id, "20261121-000001-aaaa");
  EXPECT_EQ(find_run(base_, "")->id, "20261122-000001-aaab");
  fs::create_symlink("20261121-000002-bbbb", base_ + "/latest");
  EXPECT_EQ(find_run(base_, "latest")->id, "20261121-000002-bbbb");
  fs::remove(base_ + "/latest");
  fs::create_symlink("/etc", base_ + "/latest");
  EXPECT_EQ(find_run(base_, "latest")->id, "20261122-000001-aaab");
  for (const char* no : {"2026", "cccc", "../..", "aaa", "20261121-000001-aaaa/.."}) {
    auto run = find_run(base_, no);
    ASSERT_FALSE(run.ok()) << no;
    EXPECT_EQ(run.error().kind, base::ErrorKind::kUsage);
  }
}

}  // namespace
}  // namespace phalanx::logs
