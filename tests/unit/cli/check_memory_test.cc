#include "cli/records/check_memory.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "base/text.h"

namespace phalanx::cli {
namespace {

using std::chrono::milliseconds;
constexpr milliseconds kMinutes{300'000};

class CheckMemoryFile : public testing::Test {
 protected:
  CheckMemoryFile() {
    std::string made = testing::TempDir() + "check-memory-XXXXXX";
    folder_ = ::mkdtemp(made.data());
    ::setenv("XDG_CACHE_HOME", folder_.c_str(), 1);
  }
  ~CheckMemoryFile() override {
    ::unsetenv("XDG_CACHE_HOME");
    std::filesystem::remove_all(folder_);
  }
  static job::Job job() {
    job::Job job;
    job.preflight = job::Preflight::kStrict;
    job.argv = {"python", "train.py"};
    job.directory = "/home/me";
    job.hosts.resize(1);
    job.hosts[0].target.name = "h1";
    return job;
  }
  // A run on one host whose checks have just ended well.
  static job::State checked() {
    job::State state = job::initial_state(job(), os::mono_now());
    state.hosts[0].hello.fingerprint = "f1";
    state.survey.examined = true;
    state.survey.examined_at = os::mono_now();
    state.survey.situation.hosts.resize(1);
    state.survey.situation.hosts[0].probed = true;
    state.survey.situation.hosts[0].facts.machine.hostname = "h1";
    return state;
  }
  static job::Verdict verdict(job::Verdict::Kind kind) {
    job::Verdict verdict;
    verdict.kind = kind;
    return verdict;
  }
  std::vector<std::filesystem::path> files() const {
    std::vector<std::filesystem::path> found;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_))
      if (entry.is_regular_file()) found.push_back(entry.path());
    return found;
  }
  std::string folder_;
};

TEST_F(CheckMemoryFile, WhatIsKeptComesBackForTheSameJobOnly) {
  CheckMemory memory(job(), kMinutes);
  EXPECT_EQ(memory.load(), nullptr);
  memory.keep(checked(), verdict(job::Verdict::Kind::kDone));
  auto loaded = memory.load();
  ASSERT_NE(loaded, nullptr);
  ASSERT_EQ(loaded->hosts.size(), 1u);
  EXPECT_EQ(loaded->hosts[0].fingerprint, "f1");
  EXPECT_EQ(loaded->hosts[0].facts.machine.hostname, "h1");
  for (auto change : std::vector<std::function<void(job::Job&)>>{
           [](job::Job& j) { j.argv.push_back("--lr"); },
           [](job::Job& j) { j.directory = "/home"; },
           [](job::Job& j) { j.set = {{"NCCL_DEBUG", "INFO"}}; },
           [](job::Job& j) { j.hosts[0].target.name = "h2"; },
           [](job::Job& j) { j.hosts[0].target.destination = "me@h1"; },
           [](job::Job& j) { j.hosts.push_back(j.hosts[0]); },
           [](job::Job& j) { j.wish.interface = "eth1"; },
           [](job::Job& j) { j.rule = job::RanksRule::kCpu; },
           [](job::Job& j) { j.accepted = {{"FS-SHM-SMALL", {}}}; },
       }) {
    job::Job other = job();
    change(other);
    EXPECT_EQ(CheckMemory(other, kMinutes).load(), nullptr);
  }
}

TEST_F(CheckMemoryFile, EveryHostIsALineOfItsOwn) {
  constexpr size_t kHosts = 40;
  job::Job many = job();
  many.hosts.assign(kHosts, many.hosts[0]);
  job::State state = checked();
  state.job.hosts = many.hosts;
  state.hosts.assign(kHosts, state.hosts[0]);
  state.survey.situation.hosts.assign(kHosts, state.survey.situation.hosts[0]);
  state.survey.situation.hosts.back().facts.machine.hostname = "the last";
  state.survey.networks.resize(1);
  state.survey.networks[0].addresses.assign(kHosts, "10.0.0.1");
  CheckMemory memory(many, kMinutes);
  memory.keep(state, verdict(job::Verdict::Kind::kDone));
  std::ifstream file(files().at(0));
  size_t lines = 0, longest = 0;
  for (std::string line; std::getline(file, line); ++lines) longest = std::max(longest, line.size());
  EXPECT_EQ(lines, kHosts + 1);
  EXPECT_LT(longest, 20'000u) << "no line grows with the number of hosts but the first, by an address each";
  auto loaded = memory.load();
  ASSERT_NE(loaded, nullptr);
  ASSERT_EQ(loaded->hosts.size(), kHosts);
  EXPECT_EQ(loaded->hosts.back().facts.machine.hostname, "the last");
  EXPECT_EQ(loaded->addresses.size(), kHosts);
}

TEST_F(CheckMemoryFile, OnlyTheUserCanReadIt) {
  CheckMemory(job(), kMinutes).keep(checked(), verdict(job::Verdict::Kind::kDone));
  ASSERT_EQ(files().size(), 1u);
  struct stat info{};
  ASSERT_EQ(::stat(files()[0].c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777U, 0600U);
  ASSERT_EQ(::stat(files()[0].parent_path().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777U, 0700U);
}

TEST_F(CheckMemoryFile, AFolderThatOthersCanWriteToIsNotUsed) {
  std::filesystem::create_directories(folder_ + "/phalanx");
  ASSERT_EQ(::chmod((folder_ + "/phalanx").c_str(), 0777), 0);
  CheckMemory memory(job(), kMinutes);
  memory.keep(checked(), verdict(job::Verdict::Kind::kDone));
  EXPECT_TRUE(files().empty());
  EXPECT_EQ(memory.load(), nullptr);
}

TEST_F(CheckMemoryFile, OldOrForeignOrBrokenContentIsNoMemory) {
  CheckMemory memory(job(), kMinutes);
  job::State state = checked();
  state.survey.examined_at = os::Mono{os::mono_now().ns - 301'000'000'000};
  memory.keep(state, verdict(job::Verdict::Kind::kDone));
  EXPECT_EQ(memory.load(), nullptr) << "older than five minutes";
  memory.keep(checked(), verdict(job::Verdict::Kind::kDone));
  ASSERT_NE(memory.load(), nullptr);
  EXPECT_EQ(CheckMemory(job(), milliseconds(0)).load(), nullptr) << "--reuse-checks 0";
  std::ifstream in(files()[0]);
  std::string text((std::istreambuf_iterator<char>(in)), {});
  size_t boot = text.find("\"boot\":\"") + 8;
  for (const std::string& bad : {std::string(), text.substr(0, text.size() / 2), std::string("[]"), std::string("{\"boot\":7}"),
                                 text.substr(0, boot) + "0" + text.substr(boot + 1)}) {
    std::ofstream(files()[0]) << bad;
    if (bad != text) { EXPECT_EQ(memory.load(), nullptr) << bad.substr(0, 100); }
  }
}

TEST_F(CheckMemoryFile, WhatSpeaksAgainstTheHostsIsForgotten) {
  using Kind = job::Verdict::Kind;
  CheckMemory memory(job(), kMinutes);
  for (Kind kind : {Kind::kRefused, Kind::kHostLost, Kind::kHung}) {
    memory.keep(checked(), verdict(Kind::kDone));
    ASSERT_NE(memory.load(), nullptr);
    memory.keep(checked(), verdict(kind));
    EXPECT_EQ(memory.load(), nullptr);
  }
  memory.keep(checked(), verdict(Kind::kRankFailed));
  EXPECT_NE(memory.load(), nullptr) << "a program that fails is edited and run again";
  job::State blind = checked();
  blind.survey.situation.hosts[0].facts.gaps.push_back({"storage", "no answer"});
  memory.keep(blind, verdict(Kind::kDone));
  EXPECT_EQ(memory.load(), nullptr);
}

}  // namespace
}  // namespace phalanx::cli
