// Known bugs: a bug fits a log only if the log has its trigger and an affected version, and the trouble was not survived.
#include "diagnosis/logs/bug_watch.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "diagnosis/logs/verdict.h"

namespace phalanx::diagnosis {
namespace {

LogVerdict judge(const std::string& text) {
  static LogScan scan;
  scan.begin_file({.name = "a.log", .host = {}});
  scan.feed(text);
  scan.end_file();
  return judge_logs(scan.finish());
}

// The lines of the section on known bugs.
std::string bugs(const std::string& text) {
  std::string out;
  for (const LogSection& section : judge(text).sections)
    if (section.title.english.starts_with("Known bugs"))
      for (const doctor::Words& line : section.lines) out += line.english + "\n";
  return out;
}

const std::string kFailed =
    "Traceback (most recent call last):\n  File \"/job/train.py\", line 3, in f\n    x()\n"
    "AttributeError: 'BF16_Optimizer' object has no attribute 'state'\n";

TEST(KnownBugs, EveryRowIsWhole) {
  std::set<std::string> rows;
  for (const codes::KnownBug& bug : codes::known_bugs()) {
    EXPECT_FALSE(bug.trigger.empty()) << bug.what;
    EXPECT_TRUE(bug.source.starts_with("https://github.com/")) << bug.source;
    EXPECT_TRUE(rows.insert(std::string(bug.component) + std::string(bug.fixed) + std::string(bug.what)).second) << bug.what;
  }
  std::printf("%zu known bugs\n", codes::known_bugs().size());
  EXPECT_GE(codes::known_bugs().size(), 130u);
}

TEST(KnownBugs, VersionAndTriggerAreBothNeeded) {
  const std::string told = bugs("[INFO] [logging.py:96:log_dist] [Rank 0] DeepSpeed info: version=0.14.4, git-hash=unknown\n" + kFailed);
  EXPECT_NE(told.find("DeepSpeed 0.14.4, fixed in 0.14.5: "), std::string::npos) << told;
  EXPECT_NE(told.find("/pull/5767"), std::string::npos) << told;
  EXPECT_EQ(bugs("DeepSpeed info: version=0.14.5, git-hash=unknown\n" + kFailed), "");  // fixed
  EXPECT_EQ(bugs(kFailed), "");                                                         // no version
  EXPECT_EQ(bugs("DeepSpeed info: version=0.14.4\nValueError: x\n"), "");               // no trigger
  // Two versions in one log: which of them ran is not told.
  EXPECT_EQ(bugs("deepspeed==0.14.4\ndeepspeed==0.15.0\n" + kFailed), "");
}

TEST(KnownBugs, VersionsAreComparedAsNumbers) {
  const std::string hang =
      "[rank0]:[E1120 08:47:12.345 ProcessGroupNCCL.cpp:616] [Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=5, "
      "OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600029 milliseconds before timing out.\n";
  EXPECT_NE(bugs("NCCL version 2.29.2+cuda12.9\n" + hang), "");
  EXPECT_EQ(bugs("NCCL version 2.29.3+cuda12.9\n" + hang), "");
  EXPECT_EQ(bugs("NCCL version 2.3.7+cuda12.9\nNCCL version x\n" + hang), "");
}

TEST(KnownBugs, WhatWasSurvivedIsNone) {
  std::string steps;
  for (int i = 0; i < 10; ++i) steps += "step " + std::to_string(i) + " loss 0.1\n";
  EXPECT_EQ(bugs("DeepSpeed info: version=0.14.4\n" + kFailed + steps), "");
  EXPECT_EQ(bugs("DeepSpeed info: version=0.14.4\n" + kFailed + steps + "ValueError: late\n"), "");
}

TEST(KnownBugs, MalformedVersionsAreIgnored) {
  BugSigns signs;
  const auto literals = bug_literals();
  const auto word = static_cast<size_t>(std::find(literals.begin(), literals.end(), "NCCL version ") - literals.begin());
  ASSERT_LT(word, literals.size());
  for (std::string_view rest : {"", "x", "9", "....", "99999999999999999999999999.1", "2.", "               2.21.5"})
    see_bug_literal(signs, word, rest, 0, 1);
  for (const std::string& version : signs.versions["nccl"]) EXPECT_LE(version.size(), 20u) << version;
  EXPECT_TRUE(fitting_bugs(signs, {}).empty());
}

}  // namespace
}  // namespace phalanx::diagnosis
