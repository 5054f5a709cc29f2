#include "diagnosis/hang/flight_recorder.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace phalanx::diagnosis {
namespace {

struct Op {
  std::string name = "all_reduce", state = "completed", shape = "[[1024, 3]]", type = "Float";
  int line = 42;
};

// A dump of `rank` in one group of `world` ranks, whose collectives are numbered from `first`.
std::string dump(int rank, int world, const std::vector<Op>& ops, int64_t first = 1, const std::string& key = "0",
                 const std::string& ranks = "") {
  std::string members = ranks;
  if (members.empty())
    for (int r = 0; r < world; ++r) members += fmt::format("{}{}", r ? ", " : "", r);
  std::string entries;
  for (size_t i = 0; i < ops.size(); ++i)
    entries += fmt::format(
        R"({}{{"record_id": {}, "process_group": ["{}", "group {}"], "collective_seq_id": {}, "p2p_seq_id": 0, "is_p2p": false,
          "profiling_name": "nccl:{}", "state": "{}", "input_sizes": {}, "input_dtypes": ["{}"], "output_sizes": {},
          "output_dtypes": ["{}"],
          "frames": [{{"name": "all_reduce", "filename": "/opt/torch/distributed/distributed_c10d.py", "line": 2501}},
                     {{"name": "step", "filename": "/data/train.py", "line": {}}}]}})",
        i ? "," : "", i, key, key, first + static_cast<int64_t>(i), ops[i].name, ops[i].state, ops[i].shape, ops[i].type, ops[i].shape,
        ops[i].type, ops[i].line);
  return fmt::format(
      R"({{"version": "2.4", "rank": {}, "pg_config": {{"{}": {{"name": "{}", "desc": "group {}", "ranks": "[{}]"}}}}, "entries": [{}]}})",
      rank, key, key, key, members, entries);
}

RankRecord read(int rank, const std::string& text) {
  base::Result<RankRecord> trace = read_flight_recorder(rank, text);
  EXPECT_TRUE(trace.ok()) << (trace.ok() ? "" : trace.error().message);
  return trace.ok() ? *trace : RankRecord{};
}

Standstill compare(const std::vector<RankRecord>& records) { return compare_records(records); }

const Op kDone, kWaits{.state = "started"};

TEST(FlightRecorder, ReadsADump) {
  RankRecord trace = read(3, dump(3, 4, {kDone, {.name = "broadcast", .state = "scheduled", .shape = "[[7]]", .type = "Long"}}));
  EXPECT_EQ(trace.version, "2.4");
  EXPECT_EQ(trace.groups.at("0").ranks, (std::vector<int>{0, 1, 2, 3}));
  ASSERT_EQ(trace.entries.size(), 2u);
  EXPECT_EQ(trace.entries[0].input, "[1024, 3] Float");
  EXPECT_EQ(trace.entries[0].input_elements, 3072);
  EXPECT_EQ(trace.entries[1].name, "broadcast");
  EXPECT_EQ(trace.entries[1].where, "train.py:42 (step)") << "torch's own frames say nothing";
}

TEST(FlightRecorder, ARankThatNeverCameIsNamed) {
  Standstill v = compare({read(0, dump(0, 3, {kDone, kDone, kWaits})), read(1, dump(1, 3, {kDone, kDone, kWaits})),
                          read(2, dump(2, 3, {kDone, {.line = 88}}))});
  EXPECT_EQ(v.kind, Standstill::Kind::kNotJoined);
  EXPECT_EQ(v.culprits, (std::vector<int>{2}));
  EXPECT_EQ(v.waiting, (std::vector<int>{0, 1}));
  EXPECT_EQ(v.sequence, 3);
  EXPECT_EQ(v.evidence.english,
            "rank 2 never entered all_reduce 3 of group 0, in which ranks 0–1 wait; the last operation of rank 2 was "
            "all_reduce 2, train.py:88 (step)");
}

TEST(FlightRecorder, TheOneWithAnotherSizeOrOperationIsNamed) {
  Op other = kWaits, size = kWaits;
  other.name = "broadcast";
  size.shape = "[[1024, 4]]";
  for (const Op& odd : {other, size}) {
    Standstill v = compare({read(0, dump(0, 3, {kDone, kWaits})), read(1, dump(1, 3, {kDone, odd})), read(2, dump(2, 3, {kDone, kWaits}))});
    EXPECT_EQ(v.kind, Standstill::Kind::kMismatch);
    EXPECT_EQ(v.culprits, (std::vector<int>{1})) << v.evidence.english;
  }
  Op many{.name = "all_to_all", .state = "started"}, more = many;
  more.shape = "[[9]]";
  EXPECT_EQ(compare({read(0, dump(0, 2, {many})), read(1, dump(1, 2, {more}))}).kind, Standstill::Kind::kTogether)
      << "parts of an all_to_all may differ";
}

TEST(FlightRecorder, AllInItMeansTheNetworkOrAGpu) {
  Standstill v = compare({read(0, dump(0, 2, {kDone, kWaits})), read(1, dump(1, 2, {kDone, kWaits}))});
  EXPECT_EQ(v.kind, Standstill::Kind::kTogether);
  EXPECT_TRUE(v.culprits.empty());
  v = compare({read(0, dump(0, 2, {kDone, kWaits})), read(1, dump(1, 2, {kDone, {.state = "scheduled"}}))});
  EXPECT_NE(v.evidence.english.find("earlier work blocks the stream of rank 1"), std::string::npos) << v.evidence.english;
}

TEST(FlightRecorder, AMissingDumpIsSaid) {
  Standstill v = compare({read(0, dump(0, 3, {kWaits})), read(2, dump(2, 3, {kWaits}))});
  EXPECT_EQ(v.kind, Standstill::Kind::kUndecided);
  EXPECT_EQ(v.code, "");
  EXPECT_EQ(v.unknown, (std::vector<int>{1}));
  EXPECT_NE(v.evidence.english.find("rank 1 has no dump"), std::string::npos);
}

TEST(FlightRecorder, WhatARingHasLostIsDone) {
  Standstill v = compare({read(0, dump(0, 2, {kDone, kWaits}, 900)), read(1, dump(1, 2, {kDone, kDone}, 899))});
  EXPECT_EQ(v.kind, Standstill::Kind::kNotJoined);
  EXPECT_EQ(v.culprits, (std::vector<int>{1}));
  EXPECT_EQ(compare({read(0, dump(0, 2, {kDone}, 5000)), read(1, dump(1, 2, {kDone, kDone}, 1))}).kind, Standstill::Kind::kNothing);
}

// Rank 1 misses in group B only because it waits in group A for rank 2, who is the cause.
TEST(FlightRecorder, AVictimOfAnotherGroupIsNoCause) {
  auto both = [](int rank, const std::string& a, const std::string& b) {
    RankRecord t = read(rank, a), u = read(rank, b);
    t.groups.merge(u.groups);
    t.entries.insert(t.entries.end(), u.entries.begin(), u.entries.end());
    return t;
  };
  Standstill v = compare({both(0, dump(0, 0, {}, 1, "a", "1, 2"), dump(0, 0, {kWaits}, 1, "b", "0, 1")),
                          both(1, dump(1, 0, {kWaits}, 1, "a", "1, 2"), dump(1, 0, {}, 1, "b", "0, 1")),
                          both(2, dump(2, 0, {}, 1, "a", "1, 2"), dump(2, 0, {}, 1, "b", "0, 1"))});
  EXPECT_EQ(v.group, "group a");
  EXPECT_EQ(v.culprits, (std::vector<int>{2}));
}

// Version 1.5 had one counter, and did not say what is a send.
TEST(FlightRecorder, ReadsOldVersions) {
  RankRecord t = read(0, R"({"version": "1.5", "pg_config": {"0": {"desc": "", "ranks": "[0, 1]"}}, "entries": [
      {"record_id": 0, "process_group": ["0", ""], "seq_id": 7, "profiling_name": "nccl:all_reduce", "state": "started",
       "input_sizes": [[2]]},
      {"record_id": 1, "process_group": ["0", ""], "seq_id": 7, "profiling_name": "nccl:send 0->1", "state": "scheduled"}]})");
  ASSERT_EQ(t.entries.size(), 2u);
  EXPECT_EQ(t.entries[0].sequence, 7);
  ASSERT_EQ(t.entries[1].parts.size(), 1u);
  EXPECT_EQ(t.entries[1].parts[0].peer, 1);
  Standstill v = compare({t, read(1, R"({"pg_config": {"0": {"ranks": "[0, 1]"}}, "entries": []})")});
  EXPECT_EQ(v.collective, "all_reduce");
  EXPECT_EQ(v.culprits, (std::vector<int>{1}));
}

// There a send takes a number of the group: that others have not had it says nothing.
TEST(FlightRecorder, OneCounterHasGaps) {
  auto one = [](int rank, int64_t sequence, bool collective) {
    return read(rank, fmt::format(R"({{"pg_config": {{"0": {{"desc": "", "ranks": "[0, 1]"}}}}, "entries": [{{"record_id": 0,
        "process_group": ["0", ""], "{}": {}, "profiling_name": "nccl:all_reduce", "state": "started", "input_sizes": [[2]]}}]}})",
                                  collective ? "collective_seq_id" : "seq_id", sequence));
  };
  EXPECT_EQ(compare({one(0, 7, true), one(1, 8, true)}).code, "HANG-MISMATCH");
  EXPECT_NE(compare({one(0, 7, false), one(1, 8, false)}).code, "HANG-MISMATCH");
}

TEST(FlightRecorder, OtherFilesAreRefused) {
  EXPECT_FALSE(read_flight_recorder(0, "").ok());
  EXPECT_FALSE(read_flight_recorder(0, "{}").ok());
  EXPECT_FALSE(read_flight_recorder(0, "cos\nsystem\n(S'true'\ntR.").ok());
  EXPECT_TRUE(
      read_flight_recorder(0, R"({"pg_config": {"0": 7}, "entries": [1, null, {"process_group": 3, "input_sizes": [[9e99], 1]}]})").ok());
}

}  // namespace
}  // namespace phalanx::diagnosis
