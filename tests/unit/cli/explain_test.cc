// `phalanx explain` of logs: which words are logs, exit codes, JSON, and what is refused.
#include <gtest/gtest.h>
#include <unistd.h>
#include <filesystem>

#include <fstream>

#include "base/json.h"
#include "cli/explain_logs.h"
#include "cli/flags/verbs.h"
#include "os/files.h"

namespace phalanx::cli {
namespace {

const std::string kLogs = std::string(PHALANX_TEST_DATA) + "/logs/";

struct Outcome {
  int code = -1;
  std::string text;
  base::Error error;
};

Outcome explain(std::vector<std::string> words) {
  words.insert(words.begin(), "explain");
  auto invocation = parse_command_line(words);
  EXPECT_TRUE(invocation.ok());
  Outcome out;
  if (!invocation.ok()) return out;
  testing::internal::CaptureStdout();
  auto result = explain_verb(*invocation);
  std::fflush(stdout);
  out.text = testing::internal::GetCapturedStdout();
  if (result.ok()) out.code = *result;
  else out.error = result.error();
  return out;
}

class ExplainLogs : public testing::Test {
 protected:
  void SetUp() override {
    ::setenv("PHALANX_LANG", "en", 1);
    state_ = testing::TempDir() + "explain_test." + std::to_string(::getpid());
    ::setenv("XDG_STATE_HOME", state_.c_str(), 1);
    std::string ranks = state_ + "/phalanx/runs/20261121-073102-a3f9/ranks";
    ASSERT_TRUE(os::make_folders(ranks).ok());
    std::ofstream(ranks + "/3.log") << "Traceback (most recent call last):\n  File \"a.py\", line 1, in f\nValueError: x\n";
    std::ignore = ::symlink("20261121-073102-a3f9", (state_ + "/phalanx/runs/latest").c_str());
  }
  void TearDown() override {
    ::unsetenv("PHALANX_LANG");
    ::unsetenv("XDG_STATE_HOME");
    std::filesystem::remove_all(state_);
  }
  std::string state_;
};

TEST_F(ExplainLogs, ExitCodesSayWhetherACauseWasFound) {
  Outcome found = explain({kLogs + "oom-forward.log"});
  EXPECT_EQ(found.code, 0);
  EXPECT_TRUE(found.text.starts_with("RUN-OOM-GPU: a GPU ran out of memory\n  rank 0")) << found.text;
  Outcome none = explain({kLogs + "healthy"});
  EXPECT_EQ(none.code, 1);
  EXPECT_TRUE(none.text.starts_with("no cause of failure was found\n")) << none.text;
}

TEST_F(ExplainLogs, RunsByNameAndLatest) {
  for (const char* word : {"latest", "20261121-073102-a3f9"}) {
    Outcome run = explain({word});
    EXPECT_EQ(run.code, 0);
    EXPECT_TRUE(run.text.starts_with("RUN-EXCEPTION: a rank exited with an uncaught exception\n  rank 3; at a.py:1 (f)\n")) << run.text;
  }
}

TEST_F(ExplainLogs, Json) {
  auto json = base::parse_json(explain({"--json", kLogs + "oom-forward.log"}).text);
  ASSERT_TRUE(json.ok());
  EXPECT_EQ((*json)["schema"], 1);
  EXPECT_EQ((*json)["cause"]["code"], "RUN-OOM-GPU");
}

TEST_F(ExplainLogs, WhatIsRefused) {
  EXPECT_EQ(explain({kLogs + "nothing.log"}).error.kind, base::ErrorKind::kConfig);
  EXPECT_NE(explain({"NET-MTU-HOLE", kLogs + "oom-forward.log"}).error.message.find("is a code and"), std::string::npos);
  EXPECT_NE(explain({"--json", "NET-MTU-HOLE"}).error.message.find("--json is for logs"), std::string::npos);
  EXPECT_NE(explain({"--all", "--json"}).error.message.find("--json is for logs"), std::string::npos);
  EXPECT_NE(explain({"-", "-"}).error.message.find("only once"), std::string::npos);
  EXPECT_NE(explain({"no-such-word"}).error.message.find("unknown code"), std::string::npos);
  EXPECT_EQ(explain({"nofile.log"}).error.message, "file not found: \"nofile.log\"");
}

TEST_F(ExplainLogs, CodesOfBothCatalogues) {
  EXPECT_TRUE(explain({"run-oom-gpu"}).text.starts_with("RUN-OOM-GPU: a GPU ran out of memory\n\nWhy\n"));
  EXPECT_NE(explain({"log"}).text.find("LOG-ROOT-ELSEWHERE"), std::string::npos);
  EXPECT_NE(explain({"RUN-OOM-GPX"}).error.hint.find("RUN-OOM-GPU"), std::string::npos);
}

}  // namespace
}  // namespace phalanx::cli
