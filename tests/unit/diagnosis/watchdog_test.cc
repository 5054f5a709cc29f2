#include "diagnosis/hang/watchdog.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace phalanx::diagnosis {
namespace {

std::string timeout(int rank, int seq, std::string_view op = "ALLREDUCE", int in = 10) {
  return fmt::format(
      "[rank{0}]:[E1120 09:44:12.1 ProcessGroupNCCL.cpp:616] [Rank {0}] Watchdog caught collective operation timeout: WorkNCCL(SeqNum={1}, "
      "OpType={2}, NumelIn={3}, NumelOut={3}, Timeout(ms)=600000) ran for 600020 milliseconds before timing out.\n",
      rank, seq, op, in);
}

std::string state(int rank, int enqueued, int completed, std::string_view group = "PG ID 0 PG GUID 0(default_pg)") {
  return fmt::format(
      "[rank{0}]:[E1120 09:44:12.2 x.cpp:1] [{3} Rank {0}] Exception (either an error or timeout) detected by watchdog at work: 1, "
      "last enqueued NCCL work: {1}, last completed NCCL work: {2}.\n",
      rank, enqueued, completed, group);
}

LogFacts scan(const std::string& text) {
  LogScan scan;
  scan.begin_file({.name = "x", .host = {}});
  scan.feed(text);
  scan.end_file();
  return scan.finish();
}

using Ranks = std::vector<int>;

TEST(Watchdog, NothingWithoutAWord) { EXPECT_FALSE(compare_watchdogs(scan("step 1\n"), {}).has_value()); }

TEST(Watchdog, TheIdleRankNeverEntered) {
  auto verdict = compare_watchdogs(scan(timeout(0, 8) + timeout(1, 8) + state(0, 9, 7) + state(1, 8, 7) + state(2, 7, 7)), {});
  ASSERT_TRUE(verdict.has_value());
  EXPECT_EQ(verdict->standstill.code, "HANG-NEVER-ENTERED");
  EXPECT_EQ(verdict->standstill.culprits, (Ranks{2}));
  EXPECT_EQ(verdict->standstill.waiting, (Ranks{0, 1}));
  EXPECT_EQ(verdict->standstill.evidence.english,
            "rank 2 never entered ALLREDUCE 8, in which ranks 0–1 wait; it had completed all of its operations; the wait began at about "
            "09:34:12");
  EXPECT_NE(verdict->standstill.evidence.chinese.find("rank 2"), std::string::npos);
}

// Who is not in the logs may be the one: nobody who is there is blamed for silence.
TEST(Watchdog, SilenceCountsOnlyWhereAllAreHeard) {
  LogFacts facts = scan("[rank3]: x\n" + timeout(0, 8) + timeout(1, 8));
  EXPECT_EQ(compare_watchdogs(facts, {})->standstill.culprits, (Ranks{3}));
  auto verdict = compare_watchdogs(facts, {2});
  EXPECT_EQ(verdict->standstill.code, "HANG-TIMEOUT");
  EXPECT_NE(verdict->standstill.evidence.english.find("the logs of rank 2 are missing"), std::string::npos);
}

TEST(Watchdog, TheOddOneOfAMismatch) {
  auto verdict = compare_watchdogs(scan(timeout(0, 8) + timeout(1, 8, "BROADCAST", 1) + timeout(2, 8)), {});
  EXPECT_EQ(verdict->standstill.code, "HANG-MISMATCH");
  EXPECT_EQ(verdict->standstill.culprits, (Ranks{1}));
  verdict = compare_watchdogs(scan(timeout(0, 8) + timeout(1, 8) + timeout(2, 8, "ALLREDUCE", 7)), {});
  EXPECT_EQ(verdict->standstill.culprits, (Ranks{2}));
  verdict = compare_watchdogs(scan(timeout(0, 9) + timeout(1, 8) + timeout(2, 9)), {});
  EXPECT_EQ(verdict->standstill.culprits, (Ranks{1}));
  EXPECT_NE(verdict->standstill.evidence.english.find("called different numbers"), std::string::npos);
  // An all-to-all may have other sizes on each rank.
  EXPECT_EQ(compare_watchdogs(scan(timeout(0, 8, "ALLTOALL", 3) + timeout(1, 8, "ALLTOALL", 5)), {})->standstill.code, "HANG-TIMEOUT");
}

// Those that wait differ: who is silent, because it was killed first, is not needed to explain it.
TEST(Watchdog, ADifferenceIsMoreThanASilence) {
  auto verdict = compare_watchdogs(scan("[rank3]: x\n" + timeout(0, 8) + timeout(1, 8) + timeout(2, 8, "BROADCAST")), {});
  EXPECT_EQ(verdict->standstill.code, "HANG-MISMATCH");
  EXPECT_EQ(verdict->standstill.culprits, (Ranks{2}));
  EXPECT_EQ(verdict->standstill.evidence.english.find("collective 8 differs between the ranks: "), 0u)
      << verdict->standstill.evidence.english;
  verdict = compare_watchdogs(scan("[rank3]: x\n" + timeout(0, 8) + timeout(1, 8) + timeout(2, 7)), {});
  EXPECT_EQ(verdict->standstill.culprits, (Ranks{2}));
}

TEST(Watchdog, NumbersOfOtherGroupsAreNotCompared) {
  auto verdict = compare_watchdogs(scan(timeout(0, 900) + timeout(7, 100)), {});
  EXPECT_EQ(verdict->standstill.code, "HANG-TIMEOUT");
  verdict = compare_watchdogs(scan(timeout(0, 8) + timeout(1, 8) + timeout(2, 9) + state(0, 8, 7, "PG 3") + state(1, 8, 7, "PG 3") +
                                   state(2, 9, 8, "PG 4") + "[rank5]: x\n"),
                              {});
  EXPECT_EQ(verdict->standstill.code, "HANG-TIMEOUT");
  EXPECT_EQ(verdict->standstill.waiting, (Ranks{0, 1}));
}

TEST(Watchdog, AllWaitTogether) {
  auto verdict = compare_watchdogs(scan("world size: 2\n" + timeout(0, 8) + timeout(1, 8)), {});
  EXPECT_EQ(verdict->standstill.code, "HANG-TRANSPORT");
}

}  // namespace
}  // namespace phalanx::diagnosis
