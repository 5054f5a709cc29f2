#include "diagnosis/rank_end.h"

#include <gtest/gtest.h>
#include <signal.h>

#include "codes/code.h"
#include "diagnosis/logs/verdict.h"

namespace phalanx::diagnosis {
namespace {

using Kind = wire::ExitSign::Kind;

int exited(int code) { return code << 8; }

constexpr const char* kValueError =
    "loading\nTraceback (most recent call last):\n  File \"/data/train.py\", line 61, in <module>\n    main()\n"
    "  File \"/data/train.py\", line 42, in step\n    loss.backward()\n"
    "  File \"/usr/lib/python3/dist-packages/torch/_tensor.py\", line 487, in backward\n    torch.autograd.backward(\n"
    "ValueError: bad batch\n";

TEST(RankEnd, AnExceptionWithTheUsersOwnFrame) {
  EndReading r = read_end({exited(1), kValueError, "", {}});
  EXPECT_EQ(r.code, "RUN-EXCEPTION");
  EXPECT_EQ(r.evidence, "ValueError: bad batch");
  EXPECT_EQ(r.where, "train.py:42 (step)");
  EXPECT_FALSE(r.victim);
}

std::string raised(const char* exception) {
  return std::string("Traceback (most recent call last):\n  File \"/data/train.py\", line 7, in load\n    f()\n") + exception + "\n";
}

const std::string kFromIt = "\nThe above exception was the direct cause of the following exception:\n\n";
const std::string kWhile = "\nDuring handling of the above exception, another exception occurred:\n\n";

TEST(RankEnd, OfExceptionsThatFollowFromEachOtherTheKnownOneExplains) {
  const char *empty = "_queue.Empty", *gone = "RuntimeError: DataLoader worker (pid(s) 50) exited unexpectedly";
  EndReading r = read_end({exited(1), raised(empty) + kFromIt + raised(gone), "", {}});
  EXPECT_EQ(r.evidence, gone);
  r = read_end({exited(1), "ERROR: Unexpected bus error encountered in worker. \n" + raised(empty) + kFromIt + raised(gone), "", {}});
  EXPECT_EQ(r.code, "FS-SHM-SMALL");
  r = read_end(
      {exited(1), raised("OSError: [Errno 28] No space left on device: 'a'") + kWhile + raised("AttributeError: no 'close'"), "", {}});
  EXPECT_EQ(r.code, "FS-DISK-FULL");
}

TEST(RankEnd, OfExceptionsNoneOfWhichIsKnownTheLastOneCounts) {
  EndReading r =
      read_end({exited(1), raised("KeyError: 'a'") + kWhile + raised("KeyError: 'b'") + kFromIt + raised("KeyError: 'c'"), "", {}});
  EXPECT_EQ(r.evidence, "KeyError: 'c'");
  // Two stories: the first was caught and printed.
  r = read_end({exited(1), raised("OSError: [Errno 28] No space left on device: 'a'") + raised("KeyError: 'b'"), "", {}});
  EXPECT_EQ(r.evidence, "KeyError: 'b'");
}

TEST(RankEnd, TheErrorFileWins) {
  EndReading r = read_end({exited(1), "something else\n", R"({"message":{"message":"KeyError: 'x'","extraInfo":{}}})", {}});
  EXPECT_EQ(r.code, "RUN-EXCEPTION");
  EXPECT_EQ(r.evidence, "KeyError: 'x'");
}

TEST(RankEnd, PeersOfADeadRankAreVictims) {
  for (const char* line :
       {"RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:598] Connection closed by peer [10.0.0.1]:4711",
        "RuntimeError: [../gloo/transport/tcp/pair.cc:589] Read error [10.0.0.1]:4711: Connection reset by peer",
        "torch.distributed.DistBackendError: NCCL error: remote process exited or there was a network error, NCCL 2.20.5"}) {
    EndReading r =
        read_end({exited(1),
                  std::string("Traceback (most recent call last):\n  File \"t.py\", line 3, in <module>\n    f()\n") + line + "\n",
                  "",
                  {}});
    EXPECT_TRUE(r.victim) << line;
    EXPECT_EQ(r.code, "RUN-EXCEPTION");
    EXPECT_EQ(r.where, "t.py:3 (<module>)");
  }
  EXPECT_TRUE(
      read_end({SIGABRT,
                "terminate called after throwing an instance of 'c10::DistBackendError'\n  what():  [Rank 1] Watchdog caught collective "
                "operation timeout: WorkNCCL(SeqNum=5)\n",
                "",
                {}})
          .victim);
}

TEST(RankEnd, SignalsAndWhatAShellMakesOfThem) {
  EXPECT_EQ(read_end({SIGSEGV, "", "", {}}).code, "RUN-SEGFAULT");
  EXPECT_EQ(read_end({exited(139), "", "", {}}).code, "RUN-SEGFAULT");
  EXPECT_EQ(read_end({SIGABRT, "", "", {}}).code, "RUN-ABORTED");
  EXPECT_EQ(read_end({SIGBUS, "", "", {}}).code, "RUN-BUS-ERROR");
  EXPECT_EQ(read_end({SIGKILL, "", "", {}}).code, "RUN-KILLED");
  EXPECT_EQ(read_end({SIGTERM, "", "", {}}).code, "RUN-TERMINATED");
  EXPECT_EQ(read_end({exited(3), "no such file\n", "", {}}).code, "RUN-EXIT-CODE");
  EXPECT_EQ(read_end({exited(3), "no such file\n", "", {}}).evidence, "no such file");
}

TEST(RankEnd, WhoKilledForMemory) {
  const std::vector<wire::ExitSign> kKilled = {{Kind::kCgroupKill, "cgroup: /sys/fs/cgroup/memory/job: oom_kill 1 more, limit 62914560"}};
  EndReading cgroup = read_end({SIGKILL, "", "", kKilled});
  EXPECT_EQ(cgroup.code, "RUN-OOM-CGROUP");
  EXPECT_NE(cgroup.evidence.find("62914560"), std::string::npos);
  // The kind decides, not the words.
  const std::vector<wire::ExitSign> kHost = {{Kind::kOther, "kernel: oom-kill: Killed process 77"},
                                             {Kind::kKernelKill, "kernel: no memory"}};
  EXPECT_EQ(read_end({exited(137), "", "", kHost}).code, "RUN-OOM-HOST");
  EXPECT_EQ(read_end({exited(137), "", "", kHost}).evidence, "kernel: no memory");
  EXPECT_EQ(read_end({exited(137), "", "", std::span(kHost).first(1)}).code, "RUN-KILLED");
  EndReading worker = read_end({exited(1),
                                "Traceback (most recent call last):\n  File \"t.py\", line 3, in <module>\n    f()\n"
                                "RuntimeError: DataLoader worker (pid 91) is killed by signal: Killed. \n",
                                "", kKilled});
  EXPECT_EQ(worker.code, "RUN-OOM-CGROUP") << "its loader was";
}

TEST(RankEnd, TheSignaturesOfLogsNameWhatTheyKnow) {
  auto code = [](const std::string& line) {
    return read_end(
               {exited(1), "Traceback (most recent call last):\n  File \"t.py\", line 3, in <module>\n    f()\n" + line + "\n", "", {}})
        .code;
  };
  EXPECT_NE(code("OSError: [Errno 28] No space left on device"), "RUN-EXCEPTION");
  EXPECT_NE(code("OSError: [Errno 24] Too many open files: 'x'"), "RUN-EXCEPTION");
  EXPECT_NE(code("torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB"), "RUN-EXCEPTION");
  EXPECT_EQ(code("MyOwnError: whatever"), "RUN-EXCEPTION");
}

TEST(RankEnd, AGpuThatFailedIsTheCause) {
  const std::vector<wire::ExitSign> kXid = {
      {Kind::kGpuFailure, "kernel: NVRM: Xid (PCI:0000:34:00): 79, pid=4711, name=python3, GPU has fallen off the bus."}};
  EndReading r =
      read_end({SIGABRT, "terminate called after throwing an instance of 'c10::Error'\n  what():  CUDA error: unspecified launch failure\n",
                "", kXid});
  EXPECT_EQ(r.code.substr(0, 4), "GPU-") << r.code;
  EXPECT_NE(r.evidence.find("fallen off the bus"), std::string::npos);
}

TEST(RankEnd, EveryCodeHasItsRow) {
  for (int status : {int{SIGSEGV}, int{SIGABRT}, int{SIGBUS}, int{SIGKILL}, int{SIGTERM}, exited(1)})
    EXPECT_TRUE(codes::find(read_end({status, "", "", {}}).code));
}

TEST(RankEnd, StrangeTextsDoNoHarm) {
  for (const char* text : {"", "\n\n\n", "Traceback (most recent call last):", "Traceback (most recent call last):\n  File \"",
                           "  File \"x\", line", "\xff\xfe\n"})
    read_end({exited(1), text, text, std::vector<wire::ExitSign>{{Kind::kGpuFailure, text}}});
}

}  // namespace
}  // namespace phalanx::diagnosis
