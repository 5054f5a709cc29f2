#include "diagnosis/logs/line.h"

#include <gtest/gtest.h>

namespace phalanx::diagnosis {
namespace {

constexpr int64_t kSecond = 1000, kMinute = 60 * kSecond, kHour = 60 * kMinute, kDay = 24 * kHour;

TEST(LogLine, TagsOfLaunchers) {
  LogLine line = read_log_line("[rank3]: Traceback (most recent call last):");
  EXPECT_EQ(line.rank, 3);
  EXPECT_EQ(line.text, "Traceback (most recent call last):");
  EXPECT_EQ(read_log_line("[rank3]:   File \"x.py\"").text, "  File \"x.py\"");
  EXPECT_EQ(read_log_line("[default5]:hello").local_rank, 5);
  EXPECT_EQ(read_log_line("[default5]:hello").text, "hello");
  EXPECT_EQ(read_log_line("[default1]:[rank9]: x").rank, 9);
  EXPECT_EQ(read_log_line("[1,12]<stderr>:boom").rank, 12);
  EXPECT_EQ(read_log_line("11: boom").rank, 11);
  EXPECT_EQ(read_log_line("gpu02: ValueError: x").host, "gpu02");
  EXPECT_EQ(read_log_line("gpu02: ValueError: x").text, "ValueError: x");
  EXPECT_EQ(read_log_line("10.0.0.2: x").host, "10.0.0.2");
  EXPECT_EQ(read_log_line("worker-1  | x").host, "worker-1");
  EXPECT_EQ(read_log_line("gpu02: [rank9]: x").source(), "r9@gpu02");
  EXPECT_EQ(read_log_line("[2024-02-27T21:35:28.419846Z] fa88a9df [rank=5] || boom").rank, 5);
  EXPECT_EQ(read_log_line("stderr: [rank2]: boom").text, "boom");
  EXPECT_EQ(read_log_line("x").source(), "");
}

TEST(LogLine, WhatIsNoTag) {
  for (const char* text :
       {"ValueError: x", "RuntimeError: 3", "libcudart.so.12: cannot open shared object file", "train.py: error: x", "python3: x",
        "torch.cuda.OutOfMemoryError: CUDA", "[2024] x", "[rank]: x", "step10: loss", "usage: x", "[12/500] loss"}) {
    EXPECT_EQ(read_log_line(text).text, text);
    EXPECT_EQ(read_log_line(text).source(), "") << text;
  }
}

TEST(LogLine, Times) {
  int64_t at = 10 * 31 * kDay + 19 * kDay + 8 * kHour + 47 * kMinute + 12 * kSecond;
  EXPECT_EQ(read_log_line("2024-11-20 08:47:12,345 - INFO - x").time, at + 345);
  EXPECT_EQ(read_log_line("[2024-11-20 08:47:12] x").time, at);
  EXPECT_EQ(read_log_line("[2024-11-20 08:47:12] x").text, "x");
  EXPECT_EQ(read_log_line("2024-11-20T08:47:12.5Z stdout F x").time, at + 500);
  EXPECT_EQ(read_log_line("2024-11-20T08:47:12.5Z stdout F x").text, "x");
  EXPECT_EQ(read_log_line("[rank1]:[E1120 08:47:12.345678901 ProcessGroupNCCL.cpp:616] x").time, at + 345);
  EXPECT_EQ(read_log_line("[E321 02:07:08.4 x.cpp:1] x").time, 2 * 31 * kDay + 20 * kDay + 2 * kHour + 7 * kMinute + 8 * kSecond + 400);
  LogLine syslog = read_log_line("Nov 20 08:47:12 gpu01 kernel: NVRM: Xid");
  EXPECT_EQ(syslog.time, at);
  EXPECT_EQ(syslog.host, "gpu01");
  EXPECT_EQ(syslog.text, "NVRM: Xid");
  EXPECT_EQ(read_log_line("[Wed Nov 20 08:47:12 2024] NVRM: Xid").time, at);
  EXPECT_EQ(read_log_line("[12345.678901] NVRM: Xid").text, "NVRM: Xid");
  EXPECT_FALSE(read_log_line("[12345.678901] NVRM: Xid").time);
  EXPECT_FALSE(read_log_line("version 2024-13-45 08:47:12").time);
}

TEST(LogLine, TimesInsideTexts) {
  const int64_t at = 10 * 31 * kDay + 19 * kDay + 8 * kHour + 47 * kMinute + 12 * kSecond;
  EXPECT_EQ(find_time("saved at 2024-11-20 08:47:12"), at);
  EXPECT_EQ(find_time("12, 0000-1 2023, (2024/11/20 08:47:12)"), at);
  EXPECT_EQ(find_time("[E1120 08:47:12 x.cpp:1] 2023-01-01 00:00:00"), at);
  EXPECT_EQ(find_time("E1120 08:47:12"), at);
  EXPECT_EQ(find_time("XE1120 08:47:12"), std::nullopt) << "inside a word";
  EXPECT_EQ(find_time("v2024-11-20 08:47:12"), std::nullopt);
  EXPECT_EQ(find_time("92024-11-20 08:47:12"), std::nullopt);
  EXPECT_EQ(find_time("X1120 08:47:12"), std::nullopt);
  EXPECT_EQ(find_time(std::string(62, ' ') + "2024-11-20 08:47:12"), at / kMinute * kMinute + kSecond) << "80 bytes";
  EXPECT_EQ(find_time(std::string(80, ' ') + "2024-11-20 08:47:12"), std::nullopt);
  EXPECT_EQ(find_time(""), std::nullopt);
}

// A line has tags if and only if reading it tells something besides its text.
TEST(LogLine, HasTags) {
  const std::string_view parts[] = {"[rank3]:",
                                    "[default5]:",
                                    "2024-11-20 08:47:12",
                                    "gpu01:",
                                    "1:2 [0]",
                                    "NCCL",
                                    "E1120 08:47:12",
                                    "11:",
                                    "[task 5]",
                                    "\r",
                                    "x",
                                    "-",
                                    "",
                                    " "};
  uint32_t seed = 7;
  int tagged = 0;
  for (int round = 0; round < 3000; ++round) {
    std::string text;
    for (int part = 0; part < 4; ++part) {
      seed = seed * 1664525 + 1013904223;
      text += parts[(seed >> 16) % std::size(parts)];
      if ((seed >> 12) % 2 == 0) text += ' ';
    }
    const LogLine line = read_log_line(text);
    const bool tells = line.text.size() != text.size() || !line.host.empty() || line.time;
    EXPECT_EQ(has_tags(text), tells) << text;
    tagged += tells;
  }
  EXPECT_GT(tagged, 300);
  EXPECT_LT(tagged, 2700);
}

TEST(LogLine, NcclTellsTheHost) {
  EXPECT_EQ(read_log_line("gpu01:2950111:2950934 [0] NCCL INFO x").host, "gpu01");
  EXPECT_EQ(read_log_line("gpu01:2950111:2950934 [-1] NCCL INFO x").host, "gpu01");
  EXPECT_EQ(read_log_line("http://x:80:90 [0]").host, "");
}

TEST(LogLine, FilesNameRanks) {
  EXPECT_EQ(rank_of_file("/runs/x/ranks/12.log").rank, 12);
  EXPECT_EQ(rank_of_file("out/rank_3.log").rank, 3);
  EXPECT_EQ(rank_of_file("log-rank7.txt").rank, 7);
  EXPECT_EQ(rank_of_file("logs/local_rank_2.log").local_rank, 2);
  EXPECT_EQ(rank_of_file("logs/none_x/attempt_0/3/stderr.log").local_rank, 3);
  EXPECT_EQ(rank_of_file("ranks/x.log").rank, -1);
  EXPECT_EQ(rank_of_file("rank_12345678.log").rank, 123456);
  EXPECT_EQ(rank_of_file("train.log").rank, -1);
  EXPECT_EQ(rank_of_file("").rank, -1);
}

// In a message of a process group the number in brackets counts within the group.
TEST(LogLine, TheRankOfTorchsTagGoesBeforeTheRankInAGroup) {
  LogLine line = read_log_line("[rank19]:[E521 13:22:10.290 ProcessGroupNCCL.cpp:694] [PG ID 5 PG GUID 94(TP) Rank 1] Watchdog caught");
  EXPECT_EQ(rank_of_event(line, "1", -1), 19);
  line = read_log_line("[rank3]: RuntimeError: Detected mismatch between collectives on ranks. Rank 1 is running");
  EXPECT_EQ(rank_of_event(line, "1", -1), 1);
  EXPECT_EQ(rank_of_event(read_log_line("[Rank 1] Watchdog caught"), "1", 7), 1);
  EXPECT_EQ(rank_of_event(read_log_line("x"), "", 7), 7);
}

// The words that a line was known by are kept, wherever they stand in it.
TEST(LogLine, OfALongLineTheWordsThatMatterAreKept) {
  EXPECT_EQ(excerpt("  short died  ", "died", 600), "short died");
  const std::string command = "Command '['python3', '" + std::string(2000, 'x') + "']'";
  const std::string kept = excerpt(command + " died with <Signals.SIGKILL: 9>.", "died with", 600);
  EXPECT_LE(kept.size(), 600u);
  EXPECT_EQ(kept.find("Command '['python3', 'xxx"), 0u);
  EXPECT_TRUE(kept.ends_with("xx']' died with <Signals.SIGKILL: 9>.")) << kept;
  const std::string middle = excerpt(command + " died with <Signals.SIGKILL: 9>." + command, "died with", 600);
  EXPECT_LE(middle.size(), 600u);
  EXPECT_NE(middle.find("died with <Signals.SIGKILL: 9>.Command"), std::string::npos) << middle;
  EXPECT_EQ(excerpt(command, "not there", 600), command.substr(0, 600));
  EXPECT_EQ(excerpt("at the front " + command, "front", 600).size(), 600u);
}

}  // namespace
}  // namespace phalanx::diagnosis
