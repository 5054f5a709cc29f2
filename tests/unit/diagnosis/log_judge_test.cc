// What the corpus (corpus_test.cc) does not show: order between files, exceptions that were caught, what is told besides the cause.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "diagnosis/logs/verdict.h"

namespace phalanx::diagnosis {
namespace {

constexpr std::string_view kOom = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has\n";
constexpr std::string_view kGone = "RuntimeError: [gloo/transport/tcp/pair.cc:534] Connection closed by peer [10.0.0.7]:51234\n";

std::string traceback(std::string_view exception) {
  return fmt::format("Traceback (most recent call last):\n  File \"/job/a.py\", line 3, in f\n    x()\n{}\n", exception);
}

LogVerdict judge(const std::vector<std::string>& texts) {
  LogScan scan;
  for (size_t i = 0; i < texts.size(); ++i) {
    scan.begin_file({.name = fmt::format("{}.log", i), .host = {}});
    scan.feed(texts[i]);
    scan.end_file();
  }
  return judge_logs(scan.finish());
}

TEST(LogJudge, OfTwoFilesTheEarlierTimeWins) {
  std::string late = "2024-11-20 09:50:00 x\n" + traceback("ValueError: late"),
              early = "2024-11-20 09:44:00 x\n" + traceback("KeyError: 'early'");
  LogVerdict verdict = judge({late, early});
  ASSERT_TRUE(verdict.cause.has_value());
  EXPECT_EQ(verdict.cause->evidence.back().text, "KeyError: 'early'");
  EXPECT_EQ(verdict.cause->evidence.back().file, 1u);
  EXPECT_EQ(verdict.cause->detail.english, "at a.py:3 (f)");
}

TEST(LogJudge, WithoutTimesAKnownFaultComesBeforeAPlainException) {
  LogVerdict verdict = judge({traceback("ValueError: x"), std::string(kOom)});
  EXPECT_EQ(verdict.cause->code, "RUN-OOM-GPU");
  ASSERT_EQ(verdict.others.size(), 1u);
  EXPECT_EQ(verdict.others[0].code, "RUN-EXCEPTION");
}

TEST(LogJudge, AnExceptionThatEndedNothingIsNotTheCause) {
  std::string caught = traceback("ValueError: caught and printed"), steps;
  for (int i = 0; i < 3000; ++i) steps += fmt::format("step {}\n", i);
  LogVerdict verdict = judge({caught + steps + traceback("KeyError: 'x'") + std::string(kGone)});
  EXPECT_EQ(verdict.cause->evidence.back().text, "KeyError: 'x'");
  // Where nothing else breaks, nothing failed: it is a note.
  LogVerdict alive = judge({caught + steps});
  EXPECT_FALSE(alive.cause.has_value());
  ASSERT_EQ(alive.sections.size(), 1u);
  EXPECT_NE(alive.sections[0].lines.at(0).english.find("ValueError: caught and printed"), std::string::npos);
}

TEST(LogJudge, TheKernelExplainsWhatProgramsSay) {
  std::string crash = traceback("RuntimeError: CUDA error: unspecified launch failure");
  LogVerdict verdict = judge({crash, "[1.2] NVRM: Xid (PCI:0000:34:00): 79, pid=1, name=python, GPU has fallen off the bus.\n"});
  EXPECT_EQ(verdict.cause->code, "GPU-XID-BUS");
  EXPECT_EQ(verdict.others.at(0).code, "GPU-ILLEGAL-ACCESS");
}

TEST(LogJudge, AnExceptionAfterWhichItIsTriedAgainIsNone) {
  const std::string failed = traceback("ray.exceptions.RayActorError: The actor died unexpectedly before finishing this task.");
  EXPECT_FALSE(judge({"Training failed, retrying 1/3\n\n" + failed}).cause.has_value());
  EXPECT_TRUE(judge({"Training failed, retrying 3/3\n\n" + failed}).cause.has_value());
  EXPECT_TRUE(judge({"retrying the download of http://host/1\n" + failed}).cause.has_value());
}

TEST(LogJudge, AnExceptionThatMentionsTheWorldSizeIsOne) {
  LogVerdict verdict = judge({traceback("AssertionError: expected world_size=8 but got 4")});
  ASSERT_TRUE(verdict.cause.has_value());
  EXPECT_EQ(verdict.cause->code, "RUN-EXCEPTION");
  EXPECT_EQ(verdict.world, 8);
}

constexpr std::string_view kBridges = "gpu02:77:501 [0] NCCL INFO NET/Socket : Using [0]eth0:10.0.0.2<0> [1]docker0:172.17.0.1<0>\n";

TEST(LogJudge, ASuspectExplainsAFailureThatDoesNotSayWhy) {
  const std::string failed =
      traceback("ncclSystemError: System call (e.g. socket, malloc) or external library call failed or device error.");
  LogVerdict verdict = judge({std::string(kBridges) + failed});
  ASSERT_TRUE(verdict.cause.has_value());
  EXPECT_EQ(verdict.cause->code, "NET-WRONG-IFACE");
  EXPECT_NE(verdict.cause->detail.english.find("nothing else explains NCCL-SYSTEM-ERROR"), std::string::npos);
  EXPECT_EQ(verdict.others.at(0).code, "NCCL-SYSTEM-ERROR");
}

TEST(LogJudge, ASuspectAloneIsNoneAndASpecificCauseGoesBeforeIt) {
  EXPECT_FALSE(judge({std::string(kBridges)}).cause.has_value());
  EXPECT_EQ(judge({std::string(kBridges) + std::string(kOom)}).cause->code, "RUN-OOM-GPU");
}

TEST(LogJudge, OnlyConsequencesNameThePeersAndTheMissing) {
  LogVerdict verdict = judge({"world size: 4\n[rank1]: " + std::string(kGone) + "[rank3]: " + std::string(kGone)});
  EXPECT_EQ(verdict.cause->code, "LOG-ROOT-ELSEWHERE");
  EXPECT_EQ(verdict.missing, (std::vector<int>{0, 2}));
  EXPECT_EQ(verdict.cause->detail.english, "the logs of rank 0, 2 are missing; the messages mention 10.0.0.7");
  ASSERT_EQ(verdict.cascades.size(), 1u);
  EXPECT_EQ(verdict.cascades[0].count, 2u);
  EXPECT_EQ(verdict.cascades[0].ranks, (std::vector<int>{1, 3}));
}

// Only what a line names: the host of a tag may be another.
TEST(LogJudge, WhatLinesNameFillsTheCommandsOfThePage) {
  LogVerdict verdict = judge({R"({"event":"rank_exited","rank":3,"host":"h2","signal":"SIGKILL"})"
                              "\n"});
  EXPECT_EQ(verdict.cause->code, "RUN-KILLED");
  EXPECT_EQ(verdict.cause->observed, (codes::Observed{{"host", "h2"}, {"rank", "3"}}));
  EXPECT_EQ(judge({traceback("KeyError: 'x'")}).cause->observed, codes::Observed{});
}

TEST(LogJudge, NothingIsNothing) {
  EXPECT_FALSE(judge({}).cause.has_value());
  EXPECT_FALSE(judge({"", "step 1\n"}).cause.has_value());
}

// Two faults in two files without times: both are told, and what would decide.
TEST(LogJudge, ASmallMarginIsTold) {
  LogScan scan;
  auto read = [&](const char* name, const std::string& text) {
    scan.begin_file({.name = name, .host = {}});
    scan.feed(text);
    scan.end_file();
  };
  read("a.log", "OSError: [Errno 28] No space left on device: '/data/a'\n");
  read("b.log", "ImportError: libnccl.so.2: cannot open shared object file: No such file or directory\n");
  LogVerdict verdict = judge_logs(scan.finish());
  ASSERT_TRUE(verdict.cause.has_value());
  ASSERT_FALSE(verdict.others.empty());
  EXPECT_NE(verdict.cause->detail.english.find("is as likely: whichever line was printed first"), std::string::npos)
      << verdict.cause->detail.english;
  EXPECT_NE(verdict.cause->detail.english.find(verdict.others[0].code), std::string::npos);
  // In one file the order is told.
  read("a.log", "OSError: [Errno 28] No space left on device: '/data/a'\nImportError: libnccl.so.2: cannot open shared object file: x\n");
  verdict = judge_logs(scan.finish());
  ASSERT_TRUE(verdict.cause.has_value());
  EXPECT_EQ(verdict.cause->detail.english.find("is as likely"), std::string::npos);
}

// What says only that something failed wins only alone.
TEST(LogJudge, AGenericCodeWinsOnlyAlone) {
  LogScan scan;
  scan.begin_file({.name = "a.log", .host = {}});
  scan.feed("RuntimeError: CUDA error: unknown error\nImportError: libnccl.so.2: cannot open shared object file: No such file\n");
  scan.end_file();
  LogVerdict verdict = judge_logs(scan.finish());
  ASSERT_TRUE(verdict.cause.has_value());
  EXPECT_EQ(verdict.cause->code, "NCCL-MISSING");
}

}  // namespace
}  // namespace phalanx::diagnosis
