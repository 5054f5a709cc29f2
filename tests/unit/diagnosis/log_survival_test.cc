// Trouble and what became of it: what was survived is no verdict, what comes after it is.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>

#include "diagnosis/logs/evidence.h"
#include "diagnosis/logs/survived.h"
#include "diagnosis/logs/verdict.h"

namespace phalanx::diagnosis {
namespace {

LogVerdict judge(const std::string& text) {
  static LogScan scan;
  scan.begin_file({.name = "a.log", .host = {}});
  scan.feed(text);
  scan.end_file();
  LogFacts facts = scan.finish();
  logs::NcclTopology nccl = std::move(facts.nccl);
  LogVerdict verdict = judge_logs(std::move(facts));
  add_nccl(verdict, nccl);
  return verdict;
}

std::string traceback(std::string_view exception) {
  return fmt::format("Traceback (most recent call last):\n  File \"/job/a.py\", line 3, in f\n    x()\n{}\n", exception);
}

// As loops of several frameworks count.
std::string steps(size_t form, int from, int to) {
  std::string out;
  for (int i = from; i < to; ++i) {
    switch (form) {
      case 0: out += fmt::format("step {} loss {:.3f}\n", i, 2.0 / (i + 1)); break;
      case 1:
        out += fmt::format("{{'loss': {:.4f}, 'grad_norm': 0.91, 'learning_rate': 1e-05, 'epoch': {:.2f}}}\n", 2.0 / (i + 1), i / 100.0);
        break;
      case 2: out += fmt::format("\r {}%|###       | {}/1000 [00:{:02}<10:00,  1.20it/s]", i / 10, i, i % 60); break;
      case 3:
        out += fmt::format(" iteration {:8}/ 5000 | consumed samples: {} | elapsed time per iteration (ms): 812.1\n", i, i * 64);
        break;
      case 4: out += fmt::format("Epoch: [0][{}/5004]\tTime 0.31 ( 0.33)\tLoss 6.9{}\n", i, i % 10); break;
      case 5:
        out += fmt::format("[2024-11-20 08:47:{:02},345] [INFO] [logging.py:96:log_dist] [Rank 0] step={}, skipped=0, lr=[1e-05]\n", i % 60,
                           i);
        break;
    }
  }
  return out + "\n";
}
constexpr size_t kForms = 6;

// What is met, retried, caught or restarted in runs that end well.
const std::array<std::string, 12> kSurvived = {
    "[W socket.cpp:663] [c10d] The client socket has failed to connect to [gpu01]:29500 (errno: 111 - Connection refused).\n",
    "gpu02:77:501 [0] NCCL INFO socketPollConnect: connect to 10.0.0.1<48213> returned Connection refused, retrying (12/34) after sleep\n",
    traceback("ModuleNotFoundError: No module named 'flash_attn'"),
    "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has\nDecreasing batch size to 16.\n",
    "E1120 09:44:12.345000 140212 api.py:833] failed (exitcode: 1) local_rank: 2 (pid: 140233) of binary: /opt/env/bin/python\n"
    "I1120 09:44:13.345000 140212 api.py:910] [default] Worker group FAILED. 3/3 attempts left; will restart worker group\n",
    "NVRM: Xid (PCI:0000:3b:00): 31, pid=2231, name=jupyter, Ch 00000008, intr 00000000. MMU Fault: ENGINE GRAPHICS\n",
    "gpu01:77:501 [0] NCCL WARN NET/IB : mlx5_0:1 Got async event : port error\n",
    "requests.exceptions.ConnectionError: HTTPSConnectionPool(host='huggingface.co', port=443): Max retries exceeded with url: /x\n",
    "RuntimeError: [gloo/transport/tcp/pair.cc:534] Connection closed by peer [10.0.0.7]:51234\n",
    traceback("ValueError: Can't find a valid checkpoint at /runs/a"),
    "OSError: [Errno 28] No space left on device: '/scratch/wandb'\n",
    traceback("wandb.errors.CommError: Run initialization has timed out after 90.0 sec."),
};

const std::string kStart = "Loading checkpoint shards: 100%|##########| 4/4 [00:12<00:00,  3.02s/it]\n***** Running training *****\n";

TEST(LogSurvival, WhatWasSurvivedIsNoVerdict) {
  for (size_t form = 0; form < kForms; ++form)
    for (const std::string& trouble : kSurvived) {
      SCOPED_TRACE(fmt::format("{}: {}", form, trouble));
      for (const std::string& end : {std::string("Training completed.\n"), std::string()}) {
        LogVerdict verdict = judge(kStart + trouble + steps(form, 1, 200) + end);
        EXPECT_FALSE(verdict.cause.has_value()) << verdict.cause->code;
        EXPECT_TRUE(verdict.others.empty());
      }
      EXPECT_FALSE(judge(kStart + steps(form, 1, 50) + trouble + steps(form, 50, 300)).cause.has_value());
    }
}

TEST(LogSurvival, ARealFailureAfterwardsIsTheVerdict) {
  struct Failure {
    std::string text, code;
  };
  const std::array<Failure, 6> failures = {{
      {"torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 8.00 GiB. GPU 0 has\n", "RUN-OOM-GPU"},
      {traceback("KeyError: 'labels'"), "RUN-EXCEPTION"},
      {"NVRM: Xid (PCI:0000:34:00): 79, pid=4021, name=python, GPU has fallen off the bus.\n", "GPU-XID-BUS"},
      {"gpu01:77:501 [0] transport/net_ib.cc:1295 NCCL WARN NET/IB : Got completion from peer 10.0.0.2<1> with status=12 opcode=0\n",
       "IB-RETRY"},
      {"RuntimeError: DataLoader worker (pid 4021) is killed by signal: Bus error. It is possible that\n", "FS-SHM-SMALL"},
      {"OSError: [Errno 122] Disk quota exceeded\n", "FS-QUOTA"},
  }};
  int right = 0, all = 0;
  for (size_t form = 0; form < kForms; ++form)
    for (const std::string& trouble : kSurvived)
      for (const Failure& failure : failures) {
        LogVerdict verdict = judge(kStart + trouble + steps(form, 1, 300) + failure.text);
        bool named = verdict.cause && verdict.cause->code == failure.code;
        if (!named)
          std::printf("  %s after %s: %s\n", failure.code.c_str(), trouble.c_str(), verdict.cause ? verdict.cause->code.c_str() : "-");
        right += named;
        ++all;
      }
  std::printf("after survived trouble: %d of %d\n", right, all);
  EXPECT_EQ(right, all);
}

// The same trouble that was survived at the start ends the run: it is told where it ended it.
TEST(LogSurvival, TheSameTroubleAgain) {
  std::string oom = "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has\n";
  std::string many;
  for (int i = 0; i < 6; ++i) many += oom + "Decreasing batch size.\n";
  LogVerdict verdict = judge(many + steps(0, 1, 300) + oom);
  ASSERT_TRUE(verdict.cause.has_value());
  EXPECT_EQ(verdict.cause->code, "RUN-OOM-GPU");
  EXPECT_GT(verdict.cause->evidence.front().line, 300u);
}

// Another rank may be a step or two ahead of the one that failed; a loop that loads goes on beside it.
TEST(LogSurvival, AFewStepsOfOthersProveNothing) {
  std::string failure =
      "[rank3]: " + std::string("torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has\n");
  std::string two = "[rank0]: step 101 loss 0.1\n[rank0]: step 102 loss 0.1\n", loading;
  for (int i = 0; i < 20; ++i)
    loading += fmt::format("[rank0]: Loading checkpoint shards:  {}%|#   | {}/20 [00:12<00:00,  3.02s/it]\n", i * 5, i);
  EXPECT_EQ(judge(failure + two).cause->code, "RUN-OOM-GPU");
  EXPECT_EQ(judge(failure + loading).cause->code, "RUN-OOM-GPU");
  EXPECT_FALSE(judge(failure + two + "[rank0]: step 103 loss 0.1\n[rank0]: step 104 loss 0.1\n").cause.has_value());
  // A bar is printed once more when it is closed.
  std::string bar = "  10%|#         | 100/1000 [00:10<01:30,  9.91it/s]\n";
  EXPECT_EQ(judge("step 99\n" + bar + failure.substr(9) + bar + bar + bar).cause->code, "RUN-OOM-GPU");
}

TEST(LogSurvival, NotANumberStays) { EXPECT_EQ(judge("Loss is nan, stopping training\n" + steps(0, 1, 30)).cause->code, "RUN-NAN"); }

}  // namespace
}  // namespace phalanx::diagnosis
