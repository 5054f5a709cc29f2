// What the bench takes torchrun to have said.
#include "torchrun_words.h"

#include <gtest/gtest.h>

using namespace phalanx;

namespace {

using bench::Blame;
using bench::judge;
using bench::Named;
using bench::root_cause;

// As torch 1.13 prints it on the host of a rank that died of SIGSEGV.
constexpr std::string_view kSegfault = R"(torch.distributed.elastic.multiprocessing.errors.ChildFailedError:
============================================================
train.py FAILED
------------------------------------------------------------
Failures:
[1]:
  time      : 2025-03-01_19:30:55
  host      : h2
  rank      : 3 (local_rank: 1)
  exitcode  : -15 (pid: 7)
  error_file: <N/A>
  traceback : Signal 15 (SIGTERM) received by PID 7
------------------------------------------------------------
Root Cause (first observed failure):
[0]:
  time      : 2025-03-01_19:30:53
  host      : h2
  rank      : 1 (local_rank: 0)
  exitcode  : -11 (pid: 6)
  error_file: <N/A>
  traceback : Signal 11 (SIGSEGV) received by PID 6
============================================================
rank      : 9 (said after the block)
)";

TEST(TorchrunWords, TheRootCauseOfABlock) {
  std::optional<Blame> blame = root_cause(kSegfault);
  ASSERT_TRUE(blame);
  EXPECT_EQ(blame->rank, 1);
  EXPECT_EQ(blame->how, "SIGSEGV");
}

TEST(TorchrunWords, TheLastBlockCounts) {
  std::string twice(kSegfault);
  twice += "Root Cause (first observed failure):\n[0]:\n  rank      : 0 (local_rank: 0)\n  exitcode  : 1 (pid: 5)\n";
  std::optional<Blame> blame = root_cause(twice);
  ASSERT_TRUE(blame);
  EXPECT_EQ(blame->rank, 0);
  EXPECT_EQ(blame->how, "exit code 1");
}

TEST(TorchrunWords, WhatIsNoBlockNamesNobody) {
  for (std::string_view text :
       {"", "\n\n", "rank      : 1 (local_rank: 0)\n",
        "Root Cause (first observed failure):", "Root Cause (first observed failure):\n  rank      : \n",
        "Root Cause (first observed failure):\n  rank : x\n", "Root Cause (first observed failure):\n  rank : 99999999999999999999\n",
        "Root Cause (first observed failure):\n  rank : -1 (local_rank: 0)\n",
        "Root Cause (first observed failure):\n=====\n  rank : 1 (local_rank: 0)\n"})
    EXPECT_FALSE(root_cause(text)) << text;
  for (size_t cut = 0; cut <= kSegfault.size(); ++cut) root_cause(kSegfault.substr(0, cut));
}

TEST(TorchrunWords, NamedIsWhatAllTerminalsAgreeOn) {
  Blame right{1, "SIGSEGV"}, wrong{0, "exit code 1"};
  EXPECT_EQ(judge({right, std::nullopt}, 1), Named::kRight);
  EXPECT_EQ(judge({right, right}, 1), Named::kRight);
  EXPECT_EQ(judge({wrong, right}, 1), Named::kDisagreed);
  EXPECT_EQ(judge({wrong, std::nullopt}, 1), Named::kWrong);
  EXPECT_EQ(judge({std::nullopt, std::nullopt}, 1), Named::kNone);
  EXPECT_EQ(judge({right, std::nullopt}, -1), Named::kWrong);  // the host was lost, and a rank is blamed
  EXPECT_EQ(bench::describe({wrong, right}), "h1: rank 0, exit code 1; h2: rank 1, SIGSEGV");
  EXPECT_EQ(bench::describe({std::nullopt, right}), "h2: rank 1, SIGSEGV");
}

}  // namespace
