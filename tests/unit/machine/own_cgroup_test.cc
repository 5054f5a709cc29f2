// The control group of a run: with the kernel's own where this machine has version 2 and lets us, and with folders that look like it.
#include "machine/own_cgroup.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "os/clock.h"
#include "os/process.h"
#include "scratch.h"

namespace phalanx::machine {
namespace {

namespace fs = std::filesystem;
using Content = OwnCgroup::Content;

// What stands in for /: a control group file system in which we are in /user/us.
class StandIn : public testing::Test {
 protected:
  void SetUp() override {
    root_ = scratch::folder("own-cgroup");
    fs::create_directories(root_ + "/proc/self");
    write("/proc/self/cgroup", "4:memory:/else\n0::/user/us\n");
    write("/proc/self/mountinfo", "30 20 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
    fs::create_directories(root_ + kParent);
    write(std::string(kParent) + "/cgroup.procs", "");
  }
  void write(const std::string& path, const std::string& text) const { std::ofstream(root_ + path) << text; }
  std::string read(const std::string& path) const {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  std::string group(const std::string& events, const std::string& name = "phalanx-run-1") const {
    std::string path = root_ + kParent + "/" + name;
    fs::create_directory(path);
    std::ofstream(path + "/cgroup.events") << events;
    std::ofstream(path + "/cgroup.kill") << "";
    std::ofstream(path + "/cgroup.procs") << "12\n34\n";
    return path;
  }
  static constexpr const char* kParent = "/sys/fs/cgroup/user/us";
  std::string root_;
};

TEST_F(StandIn, EmptinessIsWhatTheKernelSays) {
  EXPECT_EQ(OwnCgroup::look(group("populated 1\nfrozen 0\n")), Content::kPopulated);
  EXPECT_EQ(OwnCgroup::look(group("populated 0\nfrozen 0\n")), Content::kEmpty);
  EXPECT_EQ(OwnCgroup::look(group("frozen 0\n")), Content::kUnknown);
  EXPECT_EQ(OwnCgroup::look(group("populated 2\n")), Content::kUnknown);
}

TEST_F(StandIn, AGroupThatIsNotThereIsGoneOnlyIfItsParentIs) {
  EXPECT_EQ(OwnCgroup::look(root_ + kParent + "/phalanx-run-2"), Content::kGone);
  EXPECT_EQ(OwnCgroup::look(root_ + "/not/mounted/phalanx-run-2"), Content::kUnknown);
}

TEST_F(StandIn, NothingIsDoneToWhatIsNotOurs) {
  std::string other = group("populated 1\n", "user.slice");
  std::string shared = group("populated 1\n", "phalanx-run-shared"), foreign = group("populated 1\n", "phalanx-run-foreign");
  ASSERT_EQ(::chmod(shared.c_str(), 0777), 0);
  fs::create_directory_symlink(other, root_ + kParent + "/phalanx-run-link");
  std::vector<std::string> paths = {other, shared, root_ + kParent + "/phalanx-run-link", "phalanx-run-1", ""};
  if (::geteuid() == 0) {
    ASSERT_EQ(::chown(foreign.c_str(), 65534, 65534), 0);
    paths.push_back(foreign);
  }
  for (const std::string& path : paths) {
    EXPECT_EQ(OwnCgroup::look(path), Content::kUnknown) << path;
    EXPECT_FALSE(OwnCgroup::kill(path)) << path;
    EXPECT_FALSE(OwnCgroup::remove(path)) << path;
    EXPECT_TRUE(OwnCgroup::processes(path).empty()) << path;
  }
  for (const std::string& path : {other, shared, foreign}) EXPECT_EQ(read(path + "/cgroup.kill"), "") << path;
}

TEST_F(StandIn, AllOfAGroupIsKilledByOneWord) {
  std::string path = group("populated 1\n");
  EXPECT_EQ(OwnCgroup::processes(path), (std::set<int64_t>{12, 34}));
  EXPECT_TRUE(OwnCgroup::kill(path));
  EXPECT_EQ(read(path + "/cgroup.kill"), "1");
}

// Version 1 alone; a group that is the system's; a kernel without cgroup.kill, which leaves no group behind.
TEST_F(StandIn, ThereIsNoneWhereItCannotBe) {
  EXPECT_FALSE(OwnCgroup::create("1", root_));
  EXPECT_FALSE(fs::exists(root_ + kParent + "/phalanx-run-1"));
  write("/proc/self/mountinfo", "30 20 0:26 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n");
  EXPECT_FALSE(OwnCgroup::create("1", root_));
}

class Kernel : public testing::Test {
 protected:
  void SetUp() override {
    group_ = OwnCgroup::create("unit-" + std::to_string(::getpid()));
    if (!group_) GTEST_SKIP() << "no control group of version 2 is delegated to this user here";
  }
  void TearDown() override {
    if (!group_) return;
    OwnCgroup::kill(group_->path());
    OwnCgroup::remove(group_->path());
  }
  pid_t start(const std::string& script) {
    os::SpawnSpec spec;
    spec.program = "/bin/sh";
    spec.arguments = {"sh", "-c", script};
    spec.environment = {"PATH=/usr/bin:/bin"};
    spec.join_cgroup = group_->join();
    return os::spawn(spec).value();
  }
  std::optional<OwnCgroup> group_;
};

// Its parent is dead, its session is its own, and its environment is empty: nothing in /proc ties it to us.
TEST_F(Kernel, WhatRanAwayIsSeenAndKilled) {
  EXPECT_EQ(OwnCgroup::look(group_->path()), Content::kEmpty);
  pid_t child = start("env -i setsid sh -c 'sleep 600 & sleep 600' & exit 0");
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(OwnCgroup::look(group_->path()), Content::kPopulated);
  EXPECT_FALSE(OwnCgroup::remove(group_->path()));
  EXPECT_TRUE(OwnCgroup::kill(group_->path()));
  OwnCgroup::await_empty(group_->path(), std::chrono::seconds(5));
  EXPECT_EQ(OwnCgroup::look(group_->path()), Content::kEmpty);
  EXPECT_TRUE(OwnCgroup::remove(group_->path()));
  EXPECT_EQ(OwnCgroup::look(group_->path()), Content::kGone);
}

TEST_F(Kernel, ItHoldsWhatWasStartedInItAndNothingElse) {
  pid_t child = start("sleep 600");
  EXPECT_TRUE(group_->holds(child));
  EXPECT_FALSE(group_->holds(::getpid()));
  EXPECT_FALSE(OwnCgroup::create("unit-" + std::to_string(::getpid()))) << "the name is taken";
  OwnCgroup::kill(group_->path());
  ::waitpid(child, nullptr, 0);
}

}  // namespace
}  // namespace phalanx::machine
