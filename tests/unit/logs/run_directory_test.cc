#include "logs/runs/run_directory.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <regex>
#include <set>

#include "base/text.h"
#include "logs/runs/disk_files.h"
#include "os/clock.h"
#include "os/files.h"

namespace phalanx::logs {
namespace {

namespace fs = std::filesystem;

class RunDirectoryTest : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/phalanx-run-XXXXXX";
    ASSERT_NE(::mkdtemp(name), nullptr);
    base_ = name;
  }
  void TearDown() override { fs::remove_all(base_); }
  base::Result<RunDirectory> create(const std::string& base) {
    base::Result<RunDirectory> run = RunDirectory::create(base, os::wall_now_ns());
    if (run.ok()) run->write_to(files_);
    return run;
  }
  static unsigned mode(const std::string& path) {
    struct stat s{};
    return ::stat(path.c_str(), &s) == 0 ? s.st_mode & 0777 : 0;
  }
  std::string base_;
  std::vector<std::string> warnings_;
  DiskFiles files_{[this](const std::string& text) { warnings_.push_back(text); }};
};

TEST_F(RunDirectoryTest, APrivateFolderWithALinkToTheLatest) {
  auto run = create(base_ + "/a/b");
  ASSERT_TRUE(run.ok());
  EXPECT_TRUE(std::regex_match(run->id(), std::regex("[0-9]{8}-[0-9]{6}-[0-9a-f]{4}"))) << run->id();
  EXPECT_EQ(run->path(), base_ + "/a/b/" + run->id());
  EXPECT_EQ(mode(run->path()), 0700u);
  EXPECT_EQ(mode(run->path() + "/ranks"), 0700u);
  EXPECT_EQ(mode(run->path() + "/events.jsonl"), 0600u);
  EXPECT_EQ(fs::read_symlink(base_ + "/a/b/latest"), run->id());
  EXPECT_EQ(run->rank_log_path(5), run->path() + "/ranks/5.log");
  auto next = create(base_ + "/a/b");
  ASSERT_TRUE(next.ok());
  EXPECT_EQ(fs::read_symlink(base_ + "/a/b/latest"), next->id());
}

TEST_F(RunDirectoryTest, RunsOfOneSecondSortAsTheyBegan) {
  constexpr int64_t kSecond = 1'000'000'000;
  std::string before;
  for (int64_t part : {0, 4, 8, 500, 996}) {
    auto run = RunDirectory::create(base_, 1'790'000'000 * kSecond + part * 1'000'000);
    ASSERT_TRUE(run.ok());
    EXPECT_LT(before, run->id());
    before = run->id();
  }
}

TEST_F(RunDirectoryTest, ManyInTheSameSecondDiffer) {
  std::set<std::string> ids;
  int64_t now = os::wall_now_ns();
  for (int i = 0; i < 100; ++i) {
    auto run = RunDirectory::create(base_, now);
    ASSERT_TRUE(run.ok());
    ids.insert(run->id());
  }
  EXPECT_EQ(ids.size(), 100u);
}

TEST_F(RunDirectoryTest, TheRecordIsReplacedAsAWhole) {
  auto run = create(base_);
  ASSERT_TRUE(run.ok());
  run->write_record({{"v", 1}, {"state", "running"}});
  run->write_record({{"v", 1}, {"state", "done"}});
  auto json = base::parse_json(os::read_file(run->path() + "/run.json", 1000).value());
  ASSERT_TRUE(json.ok());
  EXPECT_EQ(base::get_string(*json, "state"), "done");
  EXPECT_EQ(mode(run->path() + "/run.json"), 0600u);
  EXPECT_EQ(std::distance(fs::directory_iterator(run->path()), fs::directory_iterator()), 4) << "no temporary file is left";
}

// What a full disk takes from the end of a run is its room, which was reserved when it began.
TEST_F(RunDirectoryTest, OnAFullDiskTheRecordTakesTheReserve) {
  auto run = create(base_);
  ASSERT_TRUE(run.ok());
  struct stat s{};
  ASSERT_EQ(::stat(run->reserve_path().c_str(), &s), 0);
  EXPECT_GE(s.st_blocks * 512, RunDirectory::kReserveBytes);
  // A folder in the place of the file cannot be replaced by it: the first try fails as on a full disk, and so does the second.
  fs::create_directories(run->path() + "/run.json/x");
  DiskFiles files([this](const std::string& text) { warnings_.push_back(text); }, run->reserve_path());
  files.replace(run->path() + "/run.json", "{}");
  EXPECT_FALSE(os::exists(run->reserve_path()));
  EXPECT_EQ(warnings_.size(), 1u);
}

TEST_F(RunDirectoryTest, EventsAreOneObjectPerLine) {
  auto run = create(base_);
  ASSERT_TRUE(run.ok());
  run->event(0, "rank_started", {{"rank", 3}, {"t", "forged"}});
  run->event(1'500'000'000, "note", {{"text", "two\nlines \xff"}});
  std::string text = os::read_file(run->path() + "/events.jsonl", 1000).value();
  auto lines = base::split_lines(text);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0], R"({"v":1,"t":"1970-01-01T00:00:00.000Z","event":"rank_started","rank":3})");
  EXPECT_EQ(lines[1], "{\"v\":1,\"t\":\"1970-01-01T00:00:01.500Z\",\"event\":\"note\",\"text\":\"two\\nlines \xef\xbf\xbd\"}");
}

TEST_F(RunDirectoryTest, AFolderThatCannotBeMadeSaysSo) {
  auto run = create("/proc/phalanx");
  ASSERT_FALSE(run.ok());
  EXPECT_EQ(run.error().kind, base::ErrorKind::kConfig);
  EXPECT_EQ(run.error().hint, "choose another folder with --log-dir");
}

TEST_F(RunDirectoryTest, WhereRunsLie) {
  auto set = [](const char* name, const char* value) { value ? ::setenv(name, value, 1) : ::unsetenv(name); };
  std::string home = os::environment_value("HOME"), state = os::environment_value("XDG_STATE_HOME");
  set("HOME", "/home/a");
  set("XDG_STATE_HOME", nullptr);
  EXPECT_EQ(RunDirectory::base_folder("").value(), "/home/a/.local/state/phalanx/runs");
  set("XDG_STATE_HOME", "/state");
  EXPECT_EQ(RunDirectory::base_folder("").value(), "/state/phalanx/runs");
  EXPECT_EQ(RunDirectory::base_folder("/logs").value(), "/logs");
  EXPECT_EQ(RunDirectory::base_folder("logs").value(), os::current_folder() + "/logs");
  set("XDG_STATE_HOME", nullptr);
  set("HOME", nullptr);
  EXPECT_FALSE(RunDirectory::base_folder("").ok());
  set("HOME", home.c_str());
  if (!state.empty()) set("XDG_STATE_HOME", state.c_str());
}

}  // namespace
}  // namespace phalanx::logs
