#include "diagnosis/logs/evidence.h"

#include <gtest/gtest.h>
#include <filesystem>

#include <cstdlib>

#include "os/files.h"

namespace phalanx::diagnosis {
namespace {

LogVerdict read(std::string_view text) {
  LogScan scan;
  scan.begin_file({.name = "/logs/all.log", .host = {}});
  scan.feed(text);
  scan.end_file();
  LogFacts facts = scan.finish();
  logs::NcclTopology nccl = std::move(facts.nccl);
  LogVerdict verdict = judge_logs(std::move(facts));
  add_nccl(verdict, nccl);
  return verdict;
}

constexpr std::string_view kTwoOfThree =
    "step 1\n"
    "[rank0]: gpu01:10:60 [0] NCCL INFO ncclCommInitRank comm 0x5a rank 0 nranks 3 cudaDev 0 nvmlDev 0 busId 1 commId 0xabc - Init START\n"
    "\x1b[32mgpu01:11:60 [1] NCCL INFO ncclCommInitRank comm 0x5b rank 1 nranks 3 cudaDev 1 nvmlDev 1 busId 2 commId 0xabc - Init START\n";

TEST(LogEvidence, NcclsLinesNameTheCauseWhereNothingElseDoes) {
  LogVerdict v = read(kTwoOfThree);
  ASSERT_TRUE(v.cause);
  EXPECT_EQ(v.cause->code, "NCCL-INIT-MISSING");
  EXPECT_EQ(v.cause->ranks, (std::vector<int>{2}));
  ASSERT_EQ(v.cause->evidence.size(), 2u);
  EXPECT_EQ(v.cause->evidence[1].line, 3u);
  ASSERT_EQ(v.sections.size(), 1u);
  EXPECT_NE(v.sections[0].lines[2].english.find("all.log:2:"), std::string::npos) << v.sections[0].lines[2].english;
}

TEST(LogEvidence, AnExceptionIsTheCauseAndNcclsStateBesideIt) {
  LogVerdict v = read(std::string(kTwoOfThree) +
                      "[rank2]: Traceback (most recent call last):\n[rank2]:   File \"train.py\", line 3, in <module>\n"
                      "[rank2]: ValueError: batch is empty\n");
  ASSERT_TRUE(v.cause);
  EXPECT_EQ(v.cause->code, "RUN-EXCEPTION");
  ASSERT_FALSE(v.others.empty());
  EXPECT_EQ(v.others.back().code, "NCCL-INIT-MISSING");
}

TEST(LogEvidence, LogsWithoutNcclHaveNoSection) { EXPECT_TRUE(read("hello\nloss 0.3\n").sections.empty()); }

TEST(LogEvidence, DumpsAndReportsAreKnownByTheirBeginnings) {
  char folder[] = "/tmp/log_evidence_XXXXXX";
  ASSERT_NE(mkdtemp(folder), nullptr);
  std::string at = folder;
  auto kind = [&](const std::string& text) {
    EXPECT_TRUE(os::write_file_atomic(at + "/x", text).ok());
    return kind_of_file(at + "/x");
  };
  EXPECT_EQ(kind(std::string("\x80\x02}(X\x09\0\0\0pg_configq\0", 19)), EvidenceKind::kFlightRecorder);
  EXPECT_EQ(kind(R"({"version": "2.4", "pg_config": {}, "entries": []})"), EvidenceKind::kFlightRecorder);
  EXPECT_EQ(kind(R"({"nccl_version": "2.29.1", "communicators": []})"), EvidenceKind::kRas);
  EXPECT_EQ(kind("NCCL version 2.26.2 compiled with CUDA 12.8\n\nJob summary\n===========\n"), EvidenceKind::kRas);
  EXPECT_EQ(kind("$ ncclras\nJob summary\n===========\n"), EvidenceKind::kLog) << "a log that quotes one";
  EXPECT_EQ(kind("NCCL version 2.18.1+cuda12.1\nstep 1\n"), EvidenceKind::kLog);
  EXPECT_EQ(kind(""), EvidenceKind::kLog);
  EXPECT_EQ(kind_of_file(at + "/none"), EvidenceKind::kLog);
  EXPECT_GT(std::filesystem::remove_all(at), 0u);
}

TEST(LogEvidence, AFlightRecorderSaysMoreThanATimeout) {
  LogVerdict v;
  v.cause = LogCause{};
  v.cause->code = "HANG-TIMEOUT";
  RankRecord in, out;
  out.rank = 1;
  in.groups["0"] = out.groups["0"] = {"default_pg", {0, 1}};
  Operation waits;
  waits.group = "0";
  waits.sequence = 7;
  waits.name = "all_reduce";
  waits.state = "started";
  in.entries = {waits};
  add_flight_records(v, {{in, out}, {"x_9: not a pickle"}});
  EXPECT_EQ(v.cause->code, "HANG-NEVER-ENTERED");
  EXPECT_EQ(v.cause->ranks, (std::vector<int>{1}));
  ASSERT_EQ(v.others.size(), 1u);
  EXPECT_EQ(v.others[0].code, "HANG-TIMEOUT");
  EXPECT_EQ(v.sections[0].lines.back().english, "not read: x_9: not a pickle");
}

TEST(LogEvidence, TwoReportsOfRasAreCompared) {
  auto report = [](int low) {
    RasReport r;
    r.processes = 4;
    r.nodes = 2;
    RasCommunicator& c = r.communicators.emplace_back();
    c.id = c.hash = "1f";
    c.camps.push_back({"AllReduce", std::to_string(low), low, 1, {{3, "10.0.0.2", "1", 77}}});
    c.camps.push_back({"AllReduce", "10", 10, 3, {}});
    return r;
  };
  LogVerdict v;
  add_ras(v, {report(9), report(9)});
  ASSERT_TRUE(v.cause);
  EXPECT_EQ(v.cause->code, "HANG-NEVER-ENTERED");
  EXPECT_EQ(v.cause->host, "10.0.0.2");
  EXPECT_EQ(v.sections[0].lines[0].english, "4 processes on 2 hosts, 1 communicator");
  LogVerdict moving;
  add_ras(moving, {report(8), report(9)});
  EXPECT_FALSE(moving.cause);
  EXPECT_EQ(moving.sections[0].lines[1].english, "no problem was found in it");
}

}  // namespace
}  // namespace phalanx::diagnosis
