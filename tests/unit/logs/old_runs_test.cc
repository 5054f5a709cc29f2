// What is removed of earlier runs, and above all what is not.
#include "logs/runs/old_runs.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>

#include "logs/runs/old_runs_process.h"
#include "logs/runs/run_list.h"
#include "os/clock.h"
#include "os/files.h"
#include "scratch.h"

namespace phalanx::logs {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kDay = 86'400;
constexpr int64_t kNow = 1'798'761'600;  // 2027-01-01
constexpr Keeping kFew{.runs = 5, .whatever_age = 2, .age = std::chrono::days(10)};

class OldRuns : public testing::Test {
 protected:
  void SetUp() override {
    base_ = scratch::folder("old-runs");
    ASSERT_FALSE(base_.empty());
  }
  // An id of a run that began so many days before now.
  static std::string id_of(int64_t days_ago) {
    std::string text = os::iso_time((kNow - days_ago * kDay) * 1'000'000'000);  // 2026-11-21T07:31:02.123Z
    return text.substr(0, 4) + text.substr(5, 2) + text.substr(8, 2) + "-000000-" + fmt::format("{:04x}", days_ago);
  }
  std::string path(int64_t days_ago) const { return base_ + "/" + id_of(days_ago); }
  bool there(int64_t days_ago) const { return fs::exists(fs::symlink_status(path(days_ago))); }

  void write(int64_t days_ago, const std::string& name, const std::string& text) const {
    const std::string file = path(days_ago) + "/" + name;
    std::ofstream(file) << text;
    ASSERT_EQ(::chmod(file.c_str(), 0600), 0);
  }
  base::Json record(int64_t days_ago) const {
    return {{"schema", 1},
            {"id", id_of(days_ago)},
            {"state", "ended"},
            {"verdict", "done"},
            {"ended", os::iso_time((kNow - days_ago * kDay) * 1'000'000'000)}};
  }
  // A run that ended on the day it began, with all the files that a run can have.
  void make(int64_t days_ago) const {
    for (const char* folder : {"", "/ranks", "/facts", "/attempt_0", "/attempt_0/0", "/attempt_0/1"})
      ASSERT_EQ(::mkdir((path(days_ago) + folder).c_str(), 0700), 0);
    for (const char* name : {"events.jsonl", "progress.jsonl", "launcher.log", "reserve", "masks.json", "facts/0.json", "ranks/0.log",
                             "ranks/0.log.1", "attempt_0/0/stdout.log", "attempt_0/0/stdout.log.1", "attempt_0/0/stderr.log",
                             "attempt_0/0/error.json", "attempt_0/1/error.json.tmp.17.ab"})
      write(days_ago, name, "{}\n");
    write(days_ago, "run.json", base::to_text(record(days_ago)));
  }
  void change(int64_t days_ago, const char* key, const base::Json& value) const {
    base::Json changed = record(days_ago);
    changed[key] = value;
    write(days_ago, "run.json", base::to_text(changed));
  }
  std::vector<std::string> clean(const Keeping& keeping = kFew, int64_t now = kNow, const std::string& current = "") {
    std::vector<std::string> said;
    remove_old_runs(base_, current, keeping, now * 1'000'000'000,
                    [&](const std::string& id, const std::string& why, const std::string& problem) {
                      said.push_back(id + ": " + why + problem);
                      return true;
                    });
    return said;
  }

  std::string base_;
};

TEST_F(OldRuns, AreOnlyListedWhereTheListIsWanted) {
  for (int64_t day : {0, 1, 2, 3, 4, 5}) make(day);
  Keeping listed = kFew;
  listed.list_only = true;
  EXPECT_EQ(clean(listed).size(), 1U);
  EXPECT_EQ(clean(listed).size(), 1U);
  EXPECT_TRUE(there(5));
}

// Their ids end in random digits, and only `latest` says which of them is the last.
TEST_F(OldRuns, OfRunsOfOneSecondTheLatestIsTheNewest) {
  for (int64_t day : {0, 1}) make(day);
  const std::string other = id_of(0).substr(0, 15) + "-ffff";
  fs::copy(path(0), base_ + "/" + other, fs::copy_options::recursive);
  base::Json changed = record(0);
  changed["id"] = other;
  std::ofstream(base_ + "/" + other + "/run.json") << base::to_text(changed);
  fs::create_symlink(id_of(0), base_ + "/latest");
  Keeping one = kFew;
  one.runs = one.whatever_age = 1;
  EXPECT_EQ(clean(one).size(), 2U);
  EXPECT_TRUE(there(0));
  EXPECT_FALSE(there(1));
  EXPECT_FALSE(fs::exists(base_ + "/" + other));
}

TEST_F(OldRuns, AreRemovedByCountAndByAgeAndEachRemovalIsReported) {
  for (int64_t day : {0, 1, 2, 3, 4, 5, 6}) make(day);
  std::vector<std::string> said = clean();
  ASSERT_EQ(said.size(), 2U);
  EXPECT_EQ(said[0], id_of(5) + ": the limit of 5 newer runs was reached (--keep-runs)");
  for (int64_t day : {0, 1, 2, 3, 4}) EXPECT_TRUE(there(day)) << day;
  for (int64_t day : {5, 6}) EXPECT_FALSE(there(day)) << day;
  EXPECT_EQ(std::distance(fs::directory_iterator(base_), fs::directory_iterator()), 5);  // nothing else stays either
  make(30);
  fs::remove_all(path(3));
  EXPECT_EQ(clean(), std::vector<std::string>{id_of(30) + ": it ended more than 10 days before the latest runs"});
  EXPECT_FALSE(there(30));
}

TEST_F(OldRuns, TheNewestStayWhateverTheirAge) {
  make(200);
  make(300);
  EXPECT_TRUE(clean().empty());
  make(0);
  EXPECT_EQ(clean().size(), 1U);
  EXPECT_TRUE(there(200));
  EXPECT_FALSE(there(300));
}

// Its record need not be read: hundreds of them at each start would take longer than the start.
TEST_F(OldRuns, IsNoOlderThanItsNameSays) {
  for (int64_t day : {1, 2, 3, 4, 20}) make(day);
  change(3, "ended", os::iso_time((kNow - 50 * kDay) * 1'000'000'000));
  clean();
  EXPECT_TRUE(there(3));
  EXPECT_FALSE(there(20));
}

TEST_F(OldRuns, ZeroKeepsAll) {
  for (int64_t day : {0, 1, 2, 300, 400}) make(day);
  EXPECT_TRUE(clean({.runs = 0, .whatever_age = 0}).empty());
  EXPECT_TRUE(there(400));
}

// Age is counted from what earlier runs have recorded, so one wrong clock makes nothing old, in whichever direction it is wrong.
TEST_F(OldRuns, AWrongClockRemovesNothing) {
  for (int64_t day : {1, 2, 3, 4}) make(day);
  EXPECT_TRUE(clean(kFew, kNow + 10'000 * kDay).empty());
  EXPECT_TRUE(clean(kFew, 0).empty());
  // The run that begins now has the oldest name, and one that was made with such a clock has an impossible time.
  for (int64_t day : {5, 6}) make(day);
  make(20'000);
  fs::remove(path(20'000) + "/run.json");
  make(20'400);
  clean(kFew, 0, id_of(20'000));
  EXPECT_TRUE(there(20'000));
  EXPECT_TRUE(there(20'400));
  EXPECT_FALSE(there(6));
}

class OldRunStays : public OldRuns {
 protected:
  void SetUp() override {
    OldRuns::SetUp();
    for (int64_t day : {0, 1, 2, 3, 4, 9}) make(day);
  }
  void TearDown() override {
    if (IsSkipped()) return;
    EXPECT_TRUE(there(9));
    EXPECT_TRUE(clean().empty());
    EXPECT_TRUE(there(9));
    if (restored_) restored_();
    // It was only that which kept it.
    if (HasFailure() || !restored_) return;
    EXPECT_EQ(clean().size(), 1U);
    EXPECT_FALSE(there(9));
  }
  std::function<void()> restored_;
};

TEST_F(OldRunStays, IfItIsLocked) {
  os::Fd events(::open((path(9) + "/events.jsonl").c_str(), O_WRONLY | O_CLOEXEC));
  ASSERT_EQ(::flock(events.get(), LOCK_EX), 0);
  restored_ = [held = std::make_shared<os::Fd>(std::move(events))] { held->reset(); };
}
TEST_F(OldRunStays, IfItsLauncherLives) {
  change(9, "launcher", describe_mark(os::own_mark()));
  restored_ = [this] { change(9, "verdict", "done"); };
}
TEST_F(OldRunStays, IfItHasNotEnded) {
  change(9, "state", "running");
  restored_ = [this] { change(9, "state", "ended"); };
}
TEST_F(OldRunStays, IfItsRecordIsOfAnotherRun) {
  change(9, "id", id_of(8));
  restored_ = [this] { change(9, "state", "ended"); };
}
TEST_F(OldRunStays, IfItsRecordCannotBeRead) {
  write(9, "run.json", "{\"state\":\"ended\"");
  restored_ = [this] { change(9, "state", "ended"); };
}
TEST_F(OldRunStays, IfItsRecordIsMissing) {
  fs::remove(path(9) + "/run.json");
  restored_ = [this] { change(9, "state", "ended"); };
}
TEST_F(OldRunStays, IfItsRecordIsALink) {
  fs::rename(path(9) + "/run.json", base_ + "/elsewhere.json");
  fs::create_symlink(base_ + "/elsewhere.json", path(9) + "/run.json");
  restored_ = [this] { fs::rename(base_ + "/elsewhere.json", path(9) + "/run.json"); };
}
TEST_F(OldRunStays, IfItNeverSaidWhenItEnded) {
  change(9, "ended", "1970-01-01T00:00:07.000Z");
  restored_ = [this] { change(9, "state", "ended"); };
}
TEST_F(OldRunStays, IfOthersMayWriteToIt) {
  ASSERT_EQ(::chmod(path(9).c_str(), 0770), 0);
  restored_ = [this] { ASSERT_EQ(::chmod(path(9).c_str(), 0700), 0); };
}
TEST_F(OldRunStays, IfItIsSomebodyElses) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root";
  ASSERT_EQ(::chown(path(9).c_str(), 65534, 65534), 0);
  restored_ = [this] { ASSERT_EQ(::chown(path(9).c_str(), 0, 0), 0); };
}
TEST_F(OldRunStays, IfAFileInItIsSomebodyElses) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root";
  ASSERT_EQ(::chown((path(9) + "/ranks/0.log").c_str(), 65534, 65534), 0);
  restored_ = [this] { ASSERT_EQ(::chown((path(9) + "/ranks/0.log").c_str(), 0, 0), 0); };
}
TEST_F(OldRunStays, IfItHoldsAnythingThatPhalanxDoesNotWrite) {
  write(9, "ranks/model.pt", "weeks of training");
  restored_ = [this] { fs::remove(path(9) + "/ranks/model.pt"); };
}
TEST_F(OldRunStays, IfTheStreamsOfARankHaveAnotherFileBesideThem) {
  write(9, "attempt_0/1/model.pt", "weeks of training");
  restored_ = [this] { fs::remove(path(9) + "/attempt_0/1/model.pt"); };
}
TEST_F(OldRunStays, IfAnAttemptHoldsAFileOfItsOwn) {
  write(9, "attempt_0/stdout.log", "");
  restored_ = [this] { fs::remove(path(9) + "/attempt_0/stdout.log"); };
}
TEST_F(OldRunStays, IfItHoldsAFolderOfAnotherName) {
  ASSERT_EQ(::mkdir((path(9) + "/checkpoints").c_str(), 0700), 0);
  restored_ = [this] { fs::remove(path(9) + "/checkpoints"); };
}
TEST_F(OldRunStays, IfALinkInItLeadsElsewhere) {
  fs::create_symlink(base_, path(9) + "/ranks/1.log");
  restored_ = [this] { fs::remove(path(9) + "/ranks/1.log"); };
}
TEST_F(OldRunStays, IfItIsWhatLatestNames) {
  fs::create_symlink(id_of(9), base_ + "/latest");
  restored_ = [this] { fs::remove(base_ + "/latest"); };
}
TEST_F(OldRunStays, IfItIsALink) {
  fs::rename(path(9), base_ + "/elsewhere");
  fs::create_directory_symlink(base_ + "/elsewhere", path(9));
  restored_ = [this] {
    EXPECT_TRUE(fs::exists(base_ + "/elsewhere/ranks/0.log"));
    fs::remove(path(9));
    fs::rename(base_ + "/elsewhere", path(9));
  };
}

// A run whose launcher died without a word: no verdict in its record, and nothing was written since.
class LostRunStays : public OldRunStays {
 protected:
  void SetUp() override {
    OldRunStays::SetUp();
    dead_.started += 1;  // this process's number, and another process
    lose(dead_, 9);
    restored_ = [this] { lose(dead_, 9); };
  }
  void lose(const os::ProcessMark& launcher, int64_t days_ago, const std::string& host = this_machine()) const {
    base::Json lost = record(9), mark = describe_mark(launcher);
    mark["host"] = host;
    lost["state"] = "running";
    lost["launcher"] = mark;
    for (const char* key : {"ended", "verdict"}) lost.erase(key);
    write(9, "run.json", base::to_text(lost));
    const timespec then{kNow - days_ago * kDay, 0}, times[]{then, then};
    for (const auto& entry : fs::recursive_directory_iterator(path(9)))
      ASSERT_EQ(::utimensat(AT_FDCWD, entry.path().c_str(), times, AT_SYMLINK_NOFOLLOW), 0);
  }
  os::ProcessMark dead_ = os::own_mark();
};

TEST_F(LostRunStays, ForADay) {
  const timespec then{kNow - kDay + 60, 0}, times[]{then, then};
  ASSERT_EQ(::utimensat(AT_FDCWD, (path(9) + "/ranks/0.log").c_str(), times, 0), 0);
}
TEST_F(LostRunStays, IfItsLauncherLives) { lose(os::own_mark(), 9); }
TEST_F(LostRunStays, IfItsLauncherIsNotKnown) { lose({}, 9); }
TEST_F(LostRunStays, IfItsLauncherIsOfAnotherContainer) {
  dead_.pid_namespace = "pid:[1]";
  lose(dead_, 9);
  dead_ = os::own_mark();
  dead_.started += 1;
}
TEST_F(LostRunStays, IfItsLauncherIsOfACloneOfThisMachine) {
  os::ProcessMark other = os::own_mark();
  other.boot_id = "00000000-0000-4000-8000-000000000000";
  lose(other, 9, "clone");
}
TEST_F(LostRunStays, IfItIsLocked) {
  os::Fd events(::open((path(9) + "/events.jsonl").c_str(), O_WRONLY | O_CLOEXEC));
  ASSERT_EQ(::flock(events.get(), LOCK_EX), 0);
  restored_ = [held = std::make_shared<os::Fd>(std::move(events))] { held->reset(); };
}
TEST_F(LostRunStays, ButNotIfItIsOfAnEarlierBoot) {
  os::ProcessMark earlier = os::own_mark();
  if (earlier.machine_id.empty()) GTEST_SKIP() << "no /etc/machine-id";
  earlier.boot_id = "00000000-0000-4000-8000-000000000000";
  lose({}, 9);
  restored_ = [this, earlier] { lose(earlier, 9); };
}

TEST_F(OldRuns, FoldersOfOtherNamesAreNotLookedAt) {
  for (int64_t day : {0, 1, 2, 3, 4}) make(day);
  make(9);
  fs::rename(path(9), base_ + "/my-results");
  make(9);
  fs::rename(path(9), base_ + "/.removed-by-me");
  EXPECT_TRUE(clean().empty());
  EXPECT_TRUE(fs::exists(base_ + "/my-results/run.json"));
  EXPECT_TRUE(fs::exists(base_ + "/.removed-by-me/run.json"));
}

// Somebody who may write to the folder of runs lays a run there: it takes no place of ours.
TEST_F(OldRuns, OfOtherUsersDoNotCount) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root";
  for (int64_t day : {0, 1, 2, 3, 4, 5, 6}) make(day);
  for (int64_t day : {0, 2}) ASSERT_EQ(::chown(path(day).c_str(), 65534, 65534), 0);
  EXPECT_TRUE(clean().empty());
}

TEST_F(OldRuns, ARemovalThatWasInterruptedIsFinished) {
  make(9);
  fs::remove(path(9) + "/run.json");
  fs::rename(path(9), base_ + "/.removed-" + id_of(9));
  EXPECT_EQ(clean().size(), 1U);
  EXPECT_TRUE(fs::is_empty(base_));
}

TEST_F(OldRuns, AControlSocketThatWasLeftBehindGoesToo) {
  for (int64_t day : {0, 1, 2, 3, 4, 9}) make(day);
  os::Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  ASSERT_LT((path(9) + "/control").size(), sizeof(address.sun_path));
  std::strcpy(address.sun_path, (path(9) + "/control").c_str());
  ASSERT_EQ(::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  EXPECT_EQ(clean().size(), 1U);
  EXPECT_FALSE(there(9));
}

// A report that did not get through stops the removal.
TEST_F(OldRuns, NothingIsRemovedThatCouldNotBeReported) {
  for (int64_t day : {0, 1, 2, 3, 4, 9}) make(day);
  remove_old_runs(base_, "", kFew, kNow * 1'000'000'000, [](auto&&...) { return false; });
  EXPECT_TRUE(there(9));
}

TEST_F(OldRuns, AProcessRemovesThemAfterEachWasHeardOf) {
  auto loop = os::Loop::create().value();
  for (int64_t day : {100, 101, 102, 103, 104, 109, 110}) make(day);
  std::vector<std::string> heard;
  auto started = OldRunsProcess::start(*loop, base_, "", kFew, [&](const std::string& id, const std::string&, const std::string& problem) {
    EXPECT_EQ(problem, "");
    EXPECT_TRUE(fs::exists(base_ + "/" + id));
    heard.push_back(id);
  });
  ASSERT_TRUE(started.ok()) << started.error().render();
  for (os::Mono last = os::mono_now() + std::chrono::seconds(10); !(*started)->over() && os::mono_now() < last;)
    loop->poll(std::chrono::milliseconds(20));
  EXPECT_EQ(heard, (std::vector<std::string>{id_of(109), id_of(110)}));
  EXPECT_FALSE(there(109));
  EXPECT_FALSE(there(110));
}

}  // namespace
}  // namespace phalanx::logs
