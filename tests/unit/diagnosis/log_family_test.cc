// Messages that no signature knows: where they come from is told, and a verdict that says no more than "NCCL failed" shows them.
#include "diagnosis/logs/family.h"

#include <gtest/gtest.h>

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

const std::string kWarning = "gpu01:90:401 [0] transport/net_ib.cc:77 NCCL WARN something that nobody has read before 17\n";

TEST(LogFamily, OfALine) {
  EXPECT_EQ(family_of_line(kWarning).english, "NCCL's InfiniBand transport");
  EXPECT_EQ(family_of_line("gpu01:90:401 [0] src/misc/socket.cc:530 NCCL WARN x").english, "NCCL's TCP connections");
  EXPECT_EQ(family_of_line("gpu01:90:401 [0] nccl_net_ofi_init:1444 NCCL WARN NET/OFI x").english, "the plugin aws-ofi-nccl");
  EXPECT_EQ(family_of_line("[E socket.cpp:435] [c10d] x").english, "PyTorch's rendezvous connections");
  EXPECT_EQ(family_of_line("[rank3]:[E1120 08:47:12.345 ProcessGroupNCCL.cpp:616] x").english, "PyTorch's NCCL process group");
  EXPECT_TRUE(family_of_line("NCCL WARN ").empty());
  EXPECT_TRUE(family_of_line("my_socket.cpp:3 x").empty());
}

TEST(LogFamily, OfAnException) {
  LogVerdict verdict = judge(
      "Traceback (most recent call last):\n  File \"/job/train.py\", line 3, in f\n    x()\n"
      "  File \"/opt/env/lib/python3.11/site-packages/deepspeed/runtime/zero/stage3.py\", line 7, in step\n    y()\nZooError: odd\n");
  ASSERT_TRUE(verdict.cause.has_value());
  EXPECT_EQ(verdict.cause->code, "RUN-EXCEPTION");
  EXPECT_EQ(verdict.cause->detail.english, "at train.py:3 (f); raised in DeepSpeed's ZeRO (deepspeed/runtime/zero/stage3.py)");
}

TEST(LogFamily, AWarningThatNobodyKnows) {
  // By itself it is no verdict: NCCL warns of much that ends nothing.
  LogVerdict alone = judge(kWarning);
  EXPECT_FALSE(alone.cause.has_value());
  ASSERT_EQ(alone.sections.size(), 1u);
  EXPECT_NE(alone.sections[0].lines.at(0).english.find("NCCL's InfiniBand transport: gpu01"), std::string::npos);
  // With torch's exception it is what tells more.
  LogVerdict verdict = judge(kWarning +
                             "torch.distributed.DistBackendError: NCCL error in: ../torch/csrc/distributed/c10d/NCCLUtils.hpp:275, "
                             "unhandled system error (run with NCCL_DEBUG=INFO for details), NCCL version 2.21.5\n");
  ASSERT_TRUE(verdict.cause.has_value());
  EXPECT_EQ(verdict.cause->code, "NCCL-SYSTEM-ERROR");
  EXPECT_EQ(verdict.cause->evidence.at(0).line, 1u);
  EXPECT_NE(verdict.cause->detail.english.find("a warning comes from NCCL's InfiniBand transport"), std::string::npos);
  // Survived, it is nothing.
  std::string steps;
  for (int i = 0; i < 10; ++i) steps += "step " + std::to_string(i) + " loss 0.1\n";
  EXPECT_TRUE(judge(kWarning + steps).sections.empty());
}

}  // namespace
}  // namespace phalanx::diagnosis
