#include "diagnosis/logs/scan.h"

#include <gtest/gtest.h>

#include "diagnosis/logs/verdict.h"

namespace phalanx::diagnosis {
namespace {

LogFacts scan(std::string_view text, size_t piece = SIZE_MAX, LogFile file = {.name = "x.log", .host = {}}) {
  LogScan scan;
  scan.begin_file(std::move(file));
  for (size_t at = 0; at < text.size(); at += std::min(piece, text.size() - at)) scan.feed(text.substr(at, piece));
  scan.end_file();
  return scan.finish();
}

constexpr std::string_view kOom = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity";

TEST(LogScan, LineNumbersHoweverTheBytesCome) {
  std::string text = "a\r\nb\n\n10%|\r20%|\rdone\n" + std::string(kOom) + "\nlast";
  for (size_t piece : {size_t{1}, size_t{2}, size_t{7}, size_t{1000}}) {
    LogFacts facts = scan(text, piece);
    ASSERT_EQ(facts.events.size(), 1u) << piece;
    EXPECT_EQ(facts.events[0].line, 5u) << piece;
    EXPECT_EQ(facts.events[0].text, kOom);
    EXPECT_EQ(facts.files[0].lines, 6u) << piece;
    EXPECT_EQ(facts.files[0].bytes, text.size());
  }
}

TEST(LogScan, ALastLineWithoutAnEndIsALine) {
  EXPECT_EQ(scan("").files[0].lines, 0u);
  EXPECT_EQ(scan("a").files[0].lines, 1u);
  EXPECT_EQ(scan("a\n10%|\r").files[0].lines, 2u);
  EXPECT_EQ(scan(std::string(100'000, 'x'), 4096).files[0].lines, 1u);
}

TEST(LogScan, EscapesInsideWordsAndBarsBeforeThem) {
  LogFacts facts = scan(
      "\x1b[31mRuntimeError\x1b[0m: CUDA \x1b[1merror: out of memory\x1b[0m\n 12%|██  | 3/25\rRuntimeError: CUDA error: out of memory\n");
  ASSERT_EQ(facts.events.size(), 2u);
  EXPECT_EQ(facts.events[0].text, "RuntimeError: CUDA error: out of memory");
  EXPECT_EQ(facts.events[1].line, 2u);
  // An escape that never ends takes no more than its line.
  facts = scan("\x1b]0;title without an end\nRuntimeError: CUDA error: out of memory\n");
  ASSERT_EQ(facts.events.size(), 1u);
  EXPECT_EQ(facts.events[0].line, 2u);
}

// Often the widest line of a log is a source line of a traceback; what follows is not its rest.
TEST(LogScan, TheExceptionBelowTheWidestLineIsALineOfItsOwn) {
  LogFacts facts = scan(
      "Traceback (most recent call last):\n  File \"/data/train.py\", line 7, in load\n"
      "    raise RuntimeError('DataLoader worker (pid(s) {}) exited unexpectedly'.format(pids_str)) from e\n"
      "RuntimeError: DataLoader worker (pid(s) 33) exited unexpectedly\n");
  ASSERT_EQ(facts.events.size(), 1u);
  EXPECT_EQ(facts.events[0].text, "RuntimeError: DataLoader worker (pid(s) 33) exited unexpectedly");
  EXPECT_EQ(facts.events[0].line, 4u);
}

// A log that was cut begins inside a traceback; the frames are enough.
TEST(LogScan, ATracebackWithoutItsFirstLineIsRead) {
  LogFacts facts = scan(
      "[rank3]:   File \"/src/pretrain.py\", line 52, in provider\n[rank3]:     model = Pipe(\n"
      "[rank3]:   File \"/src/utils.py\", line 18, in ensure\n[rank3]:     assert n % d == 0, \"{} {}\".format(\n"
      "[rank3]: AssertionError: 28 is not divisible by 8\n");
  ASSERT_EQ(facts.events.size(), 1u);
  EXPECT_EQ(facts.events[0].text, "AssertionError: 28 is not divisible by 8");
  EXPECT_EQ(facts.events[0].where, "utils.py:18 (ensure)");
  EXPECT_EQ(facts.events[0].rank, 3);
  EXPECT_EQ(facts.events[0].traceback_line, 0u);
}

TEST(LogScan, FramesThatEndInNoExceptionAreNone) {
  // A warning that shows where it was given, and a line of progress below it.
  EXPECT_TRUE(scan("  File \"/src/train.py\", line 52, in step\n    loss.backward()\nLoss: 0.3\nRuntimeError: of nobody\n").events.empty());
  // faulthandler's frames have no comma before "in".
  EXPECT_TRUE(scan("  File \"/src/train.py\", line 52 in step\nRuntimeError: of nobody\n").events.empty());
}

// As another program prints the failure of its worker.
TEST(LogScan, ATracebackThatIsIndentedAsAWholeIsRead) {
  LogFacts facts = scan(
      "actor failed:\n  Traceback (most recent call last):\n    File \"/src/actor.py\", line 9, in handle\n      run()\n"
      "  KeyError: 'GPU_IDS'\n\nother words\n");
  ASSERT_EQ(facts.events.size(), 1u);
  EXPECT_EQ(facts.events[0].text, "KeyError: 'GPU_IDS'");
  EXPECT_EQ(facts.events[0].where, "actor.py:9 (handle)");
}

TEST(LogScan, AnExceptionWithoutAMessageIsToldWithItsLine) {
  LogFacts facts = scan(
      "Traceback (most recent call last):\n  File \"/src/arguments.py\", line 282, in validate\n    assert not args.bf16\n"
      "           ^^^^^^^^^^^^^\nAssertionError\n");
  ASSERT_EQ(facts.events.size(), 1u);
  EXPECT_EQ(facts.events[0].where, "arguments.py:282 (validate): assert not args.bf16");
}

TEST(LogScan, LongLinesAreCutAndSaidSo) {
  std::string text = std::string(300'000, 'x') + " " + std::string(kOom) + "\n" + std::string(kOom) + "\n";
  for (size_t piece : {size_t{4096}, size_t{1 << 20}}) {
    LogFacts facts = scan(text, piece);
    EXPECT_EQ(facts.files[0].cut, 1u);
    EXPECT_EQ(facts.files[0].lines, 2u);
    ASSERT_EQ(facts.events.size(), 1u);
    EXPECT_EQ(facts.events[0].line, 2u);
  }
}

TEST(LogScan, TracebacksOfInterleavedRanksAreKeptApart) {
  LogFacts facts = scan(
      "[rank0]: Traceback (most recent call last):\n"
      "[rank1]: Traceback (most recent call last):\n"
      "[rank0]:   File \"/job/train.py\", line 12, in main\n"
      "[rank1]:   File \"/job/data.py\", line 7, in load\n"
      "[rank1]:     return x[0]\n"
      "[rank0]:     step()\n"
      "[rank1]: IndexError: list index out of range\n"
      "[rank0]: MyError\n");
  ASSERT_EQ(facts.events.size(), 2u);
  EXPECT_EQ(facts.events[0].rank, 1);
  EXPECT_EQ(facts.events[0].where, "data.py:7 (load)");
  EXPECT_EQ(facts.events[0].traceback_line, 2u);
  EXPECT_EQ(facts.events[1].rank, 0);
  EXPECT_EQ(facts.events[1].text, "MyError");
  EXPECT_EQ(facts.ranks, (std::set<int>{0, 1}));
}

TEST(LogScan, ATracebackEndsInTheRowThatKnowsItsLastLine) {
  LogFacts facts = scan("Traceback (most recent call last):\n  File \"a.py\", line 3, in f\n" + std::string(kOom) + "\n");
  ASSERT_EQ(facts.events.size(), 1u);
  EXPECT_EQ(facts.events[0].signature->code, "RUN-OOM-GPU");
  EXPECT_EQ(facts.events[0].where, "a.py:3 (f)");
}

TEST(LogScan, RepeatedLinesAreCounted) {
  std::string text;
  for (int i = 0; i < 1000; ++i) text += "gpu01:7:9 [0] NCCL WARN socketProgress: Connection closed by remote peer gpu02<4821>\n";
  LogFacts facts = scan(text);
  EXPECT_EQ(facts.events.size(), kKeptEach);
  ASSERT_EQ(facts.counts.size(), 1u);
  EXPECT_EQ(facts.counts[0].count, 1000u);
}

TEST(LogScan, AChainOfUnknownExceptionsIsOneEvent) {
  std::string one = "Traceback (most recent call last):\n  File \"a.py\", line 1, in f\n    g()\nKeyError: 1\n", text = one;
  for (int i = 0; i < 20; ++i) text += "\nDuring handling of the above exception, another exception occurred:\n\n" + one;
  LogFacts facts = scan(text);
  ASSERT_EQ(facts.events.size(), 1u);
  EXPECT_EQ(facts.events[0].line, 4u + 20 * 7);
  ASSERT_EQ(facts.counts.size(), 1u);
  EXPECT_EQ(facts.counts[0].count, 1u);
}

TEST(LogScan, TheFileTellsTheRankWhereTheLineDoesNot) {
  LogFacts facts = scan(kOom, SIZE_MAX, {.name = "ranks/7.log", .rank = 7, .host = "gpu02"});
  ASSERT_EQ(facts.events.size(), 1u);
  EXPECT_EQ(facts.events[0].rank, 7);
  EXPECT_EQ(facts.events[0].host, "gpu02");
}

TEST(LogScan, TorchrunsSummaryTellsRankAndHost) {
  LogFacts facts = scan(
      "Root Cause (first observed failure):\n[0]:\n  time      : 2024-11-20_08:47:12\n  host      : gpu02\n"
      "  rank      : 9 (local_rank: 1)\n  exitcode  : -9 (pid: 18231)\n  error_file: <N/A>\n");
  ASSERT_EQ(facts.events.size(), 1u);
  EXPECT_EQ(facts.events[0].signature->code, "RUN-KILLED");
  EXPECT_EQ(facts.events[0].rank, 9);
  EXPECT_EQ(facts.events[0].host, "gpu02");
}

}  // namespace
}  // namespace phalanx::diagnosis
