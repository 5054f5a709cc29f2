// Reports in the forms that NCCL's src/ras/client_support.cc prints them.
#include "diagnosis/hang/ras.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "codes/code.h"

namespace phalanx::diagnosis {
namespace {

const std::string kHead =
    "NCCL version 2.26.2 compiled with CUDA 12.8\nCUDA runtime version 12080, driver version 12080\n\n"
    "Job summary\n===========\n\n"
    "  Nodes  Processes         GPUs  Processes     GPUs\n(total)   per node  per process    (total)  (total)\n"
    "      4          8            1         32       32\n\n"
    "Communicators... (0.00s)\n=============\n\n"
    "Group     Comms     Nodes     Ranks     Ranks     Ranks    Status  Errors\n"
    "    #  in group  per comm  per node  per comm  in group\n";
const std::string kErrors = "\nErrors\n======\n\n", kWarnings = "Warnings\n========\n\n";

std::string mismatch(int low, int high, std::string_view operation = "AllReduce") {
  return fmt::format(
      "#0-0 (27a079b828ff1a75) MISMATCH\n"
      "  Communicator ranks have different {} operation counts\n"
      "  30 ranks have launched up to operation {}\n"
      "  2 ranks have launched up to operation {}\n"
      "  Rank 5 -- GPU 5 managed by process 483077 on node 172.16.64.210\n"
      "  Rank 9 -- GPU 1 managed by process 990012 on node 172.16.64.212\n\n",
      operation, high, low);
}

RasReport read(const std::string& text) {
  base::Result<RasReport> report = read_ras(text);
  EXPECT_TRUE(report.ok()) << (report.ok() ? "" : report.error().render());
  return report.ok() ? *report : RasReport{};
}

Standstill judge(const std::string& now, const std::string& before = "") {
  RasReport a = read(now), b = before.empty() ? RasReport{} : read(before);
  Standstill v = judge_ras(a, before.empty() ? nullptr : &b, 5);
  EXPECT_TRUE(v.code.empty() || codes::find(v.code)) << v.code;
  EXPECT_EQ(v.evidence.english.empty(), v.evidence.chinese.empty());
  return v;
}

TEST(Ras, AHealthyJobInText) {
  std::string text = kHead + "    0         8         4         1         4        32   RUNNING      OK\n" + kErrors + kWarnings;
  EXPECT_TRUE(looks_like_ras(text));
  RasReport r = read(text);
  EXPECT_FALSE(r.json || r.cut);
  EXPECT_EQ(r.version, "2.26.2");
  EXPECT_EQ(r.nodes, 4);
  EXPECT_EQ(r.processes, 32);
  EXPECT_EQ(r.communicators_told, 8);
  EXPECT_TRUE(r.communicators.empty());
  EXPECT_EQ(judge_ras(r, &r, 5).kind, Standstill::Kind::kNothing);
}

TEST(Ras, FrozenCountsNameThoseWithTheFewest) {
  std::string text =
      kHead + "    0         1         4         8        32        32   RUNNING  MISMATCH\n" + kErrors + kWarnings + mismatch(6649, 6650);
  RasReport r = read(text);
  ASSERT_EQ(r.communicators.size(), 1u);
  ASSERT_EQ(r.communicators[0].camps.size(), 2u);
  EXPECT_EQ(r.communicators[0].camps[1].members[1].pid, 990012);
  Standstill v = judge(text, text);
  EXPECT_EQ(v.code, "HANG-NEVER-ENTERED");
  ASSERT_EQ(v.culprits.size(), 2u);
  EXPECT_EQ(v.culprits[0], 5);
  EXPECT_EQ(v.host, "") << "they are on two hosts";
  EXPECT_EQ(v.evidence.english,
            "rank 5 (process 483077 on 172.16.64.210, GPU 5), rank 9 (process 990012 on 172.16.64.212, GPU 1) never entered AllReduce 6650 "
            "of communicator #0-0, in which 30 ranks wait; rank 5 has launched 6649, others 6650");
  EXPECT_TRUE(v.notes.empty());
  EXPECT_EQ(judge(text).notes.size(), 1u) << "one reading may be the moment's";
  std::string later = kHead + "\n" + kErrors + kWarnings + mismatch(7001, 7002);
  EXPECT_EQ(judge(later, text).kind, Standstill::Kind::kNothing) << "they move";
}

// 2.24 counts all operations together, and names missing ranks by their numbers.
TEST(Ras, TheTextOf224) {
  Standstill v = judge(kHead + "    0         1         4       7-8        32        32   RUNNING  INCOMPLETE\n" + kErrors +
                       "INCOMPLETE\n  Missing communicator data from 1 job process\n"
                       "  Process 3487984 on node 172.16.64.213 managing GPU 5\n\n"
                       "#0-0 (cf264af53edbe986) INCOMPLETE\n  Missing communicator data from 1 rank\n  The missing rank: 21\n\n" +
                       kWarnings + "TIMEOUT\n  Encountered 2 communication timeouts while gathering communicator data\n\n");
  EXPECT_EQ(v.code, "NCCL-RANK-SILENT");
  ASSERT_EQ(v.culprits.size(), 1u);
  EXPECT_EQ(v.culprits[0], 21);
  EXPECT_EQ(v.host, "172.16.64.213");
  EXPECT_EQ(v.evidence.english,
            "rank 21 (process 3487984 on 172.16.64.213, GPU 5) does not answer NCCL's RAS: stopped, exited, or unreachable");
  RasReport r = read(kHead + "\n" + kErrors + kWarnings +
                     "#0-0 (1f) MISMATCH\n  Communicator ranks have different collective operation counts\n"
                     "  31 ranks have launched up to operation 12\n"
                     "  Rank 3 has not launched any operations -- GPU 3 managed by process 9 on node 10.0.0.1\n\n");
  EXPECT_EQ(r.communicators[0].camps[1].operations, 0);
  EXPECT_EQ(judge_ras(r, &r, 5).culprits[0], 3);
}

TEST(Ras, DeadProcessesComeFirst) {
  Standstill v = judge(kHead + "\n" + kErrors +
                       "DEAD\n  1 job process is considered dead (unreachable via the RAS network)\n"
                       "  Process 77 on node 10.0.0.4 managing GPUs 0,1\n\n" +
                       kWarnings + mismatch(1, 2));
  EXPECT_EQ(v.kind, Standstill::Kind::kSilent);
  EXPECT_EQ(v.host, "10.0.0.4");
  EXPECT_NE(v.evidence.english.find("process 77 on 10.0.0.4, GPU 0,1"), std::string::npos);
  EXPECT_NE(v.evidence.english.find("considered dead after 60 s"), std::string::npos);
}

TEST(Ras, ErrorsAndStatusInText) {
  std::string text =
      kHead + "\n" + kErrors +
      "#0-0 (1f) ERROR\n  Asynchronous error on 1 rank\n"
      "  Rank 7 reported Remote process exited or there was a network error -- GPU 7 managed by process 8 on node 10.0.0.2\n\n" +
      kWarnings +
      "#0-0 (1f) MISMATCH\n  Communicator ranks have different status\n  26 ranks have status RUNNING\n"
      "  6 ranks have status INIT\n  Rank 4 -- [process information not found]\n\n";
  RasReport r = read(text);
  ASSERT_EQ(r.communicators.size(), 1u) << "one communicator, told of twice";
  ASSERT_EQ(r.communicators[0].camps.size(), 3u);
  EXPECT_EQ(r.communicators[0].camps[2].value, "INIT");
  EXPECT_EQ(r.communicators[0].camps[2].members[0].rank, 4);
  Standstill v = judge(text);
  EXPECT_EQ(v.code, "NCCL-RANK-ERROR");
  EXPECT_EQ(v.evidence.english,
            "rank 7 (process 8 on 10.0.0.2, GPU 7) in communicator #0-0: Remote process exited or there was a network error");
}

std::string json(const std::vector<std::pair<int64_t, int64_t>>& counts, const std::string& missing = "", int async = 0) {
  std::string ranks;
  for (size_t i = 0; i < counts.size(); ++i)
    ranks += fmt::format(
        R"({}{{"rank": {}, "host": "10.0.0.{}", "pid": {}, "cuda_dev": {}, "nvml_dev": 0, "status": {{"init_state": 0, "async_error": {},
           "finalize_called": false, "destroy_flag": false, "abort_flag": false}},
           "collective_counts": {{"Broadcast": {}, "AllReduce": {}}}}})",
        i ? "," : "", i, 1 + i / 2, 100 + i, i % 2, i == 1 ? async : 0, counts[i].second, counts[i].first);
  return fmt::format(
      R"({{"nccl_version": "2.29.1", "communicators_count": 1, "communicators": [{{"hash": "0xae94423cfbb2ef4a", "size": 4,
         "ranks_count": 4, "missing_ranks_count": 0, "ranks": [{}], "missing_ranks": [{}]}}],
         "ras": {{"collection_time_sec": 0.0, "timeouts_count": 3}}}})",
      ranks, missing);
}

TEST(Ras, JsonSaysTheSame) {
  std::string text = json({{10, 1}, {10, 1}, {9, 1}, {10, 1}});
  EXPECT_TRUE(looks_like_ras(text));
  RasReport r = read(text);
  EXPECT_TRUE(r.json);
  EXPECT_EQ(r.timeouts, 3);
  EXPECT_EQ(r.communicators[0].counts.at(2).at("AllReduce"), 9);
  Standstill v = judge(text, text);
  EXPECT_EQ(v.code, "HANG-NEVER-ENTERED");
  ASSERT_EQ(v.culprits.size(), 1u);
  EXPECT_EQ(v.culprits[0], 2);
  EXPECT_EQ(v.host, "10.0.0.2");
  EXPECT_EQ(judge(json({{11, 1}, {11, 1}, {10, 1}, {11, 1}}), text).kind, Standstill::Kind::kNothing);
}

TEST(Ras, OneWhoCalledAnotherOperation) {
  std::string text = json({{10, 1}, {10, 1}, {9, 2}, {10, 1}});
  Standstill v = judge(text, text);
  EXPECT_EQ(v.code, "HANG-MISMATCH");
  ASSERT_EQ(v.culprits.size(), 1u);
  EXPECT_EQ(v.culprits[0], 2);
}

TEST(Ras, ACollectiveOfRankZeroAlone) {
  std::string text = json({{10, 2}, {10, 1}, {10, 1}, {10, 1}});
  Standstill v = judge(text, text);
  EXPECT_EQ(v.code, "HANG-NEVER-ENTERED");
  EXPECT_EQ(v.culprits.size(), 3u);
  ASSERT_EQ(v.notes.size(), 1u);
  EXPECT_NE(v.notes[0].english.find("only rank 0 (process 100 on 10.0.0.1, GPU 0) calls it"), std::string::npos);
}

TEST(Ras, AllEqualAndStill) {
  std::string text = json({{10, 1}, {10, 1}});
  Standstill v = judge(text, text);
  EXPECT_EQ(v.kind, Standstill::Kind::kStill);
  EXPECT_EQ(v.code, "") << "they may be computing";
  EXPECT_EQ(judge(text).kind, Standstill::Kind::kNothing);
}

TEST(Ras, MissingRanksAndErrorsInJson) {
  Standstill v = judge(json({{10, 1}}, R"({"rank": 3, "host": "10.0.0.2", "pid": 7, "cuda_dev": 1, "nvml_dev": 1,
                                          "status": {"unresponsive": true, "considered_dead": true}},
                                         {"rank": 2, "host": "10.0.0.2", "pid": 6, "status": {"unresponsive": false}})"));
  EXPECT_EQ(v.code, "NCCL-RANK-SILENT");
  ASSERT_EQ(v.culprits.size(), 1u) << "rank 2 answers";
  EXPECT_EQ(v.culprits[0], 3);
  v = judge(json({{10, 1}, {10, 1}}, "", 6));
  EXPECT_EQ(v.code, "NCCL-RANK-ERROR");
  EXPECT_EQ(v.culprits[0], 1);
}

// One rank with two counts of one operation waits for itself.
TEST(Ras, AReportThatContradictsItself) {
  RasReport r;
  RasCommunicator& c = r.communicators.emplace_back();
  const RasMember five{5, "h1", "0", 48};
  c.camps = {{"AllReduce", "6", 6, 30, {}},
             {"AllReduce", "3", 3, 1, {five}},
             {"AllReduce", "2", 2, 1, {five}},
             {"Broadcast", "6", 6, 1, {five}},
             {"Broadcast", "3", 3, 30, {}}};
  const Standstill v = judge_ras(r, &r, 5);
  EXPECT_EQ(v.kind == Standstill::Kind::kNothing, v.evidence.english.empty());
}

Standstill judge_camps(const std::vector<std::vector<RasCamp>>& communicators) {
  RasReport r;
  for (const std::vector<RasCamp>& camps : communicators) r.communicators.emplace_back().camps = camps;
  for (size_t i = 0; i < r.communicators.size(); ++i) r.communicators[i].hash = r.communicators[i].id = fmt::format("#0-{}", i);
  return judge_ras(r, &r, 5);
}

// Ranks that are only counted are not one: some of them have not come to what the others wait in.
TEST(Ras, CountsWithoutNames) {
  Standstill v = judge_camps({{{"AllReduce", "6", 6, 16, {}}, {"AllReduce", "5", 5, 15, {}}}});
  EXPECT_EQ(v.code, "HANG-NEVER-ENTERED");
  EXPECT_TRUE(v.culprits.empty());
  EXPECT_EQ(v.evidence.english,
            "15 ranks never entered AllReduce 6 of communicator #0-0, in which 16 ranks wait; each has launched 5, others 6");
  // One that is named says more, in whatever operation and communicator.
  const RasMember three{3, "h1", "0", 48};
  const std::vector<RasCamp> split = {{"Broadcast", "2", 2, 16, {}}, {"Broadcast", "1", 1, 16, {}}};
  std::vector<RasCamp> both = split;
  both.insert(both.end(), {{"AllReduce", "6", 6, 31, {}}, {"AllReduce", "5", 5, 1, {three}}});
  EXPECT_EQ(judge_camps({both}).culprits, (std::vector<int>{3}));
  EXPECT_EQ(judge_camps({both, split}).culprits, (std::vector<int>{3}));
  EXPECT_EQ(judge_camps({split, both}).culprits, (std::vector<int>{3}));
}

TEST(Ras, GarbageIsRefusedOrHarmless) {
  for (std::string_view bad : {"", "{}", "hello", "{\"nccl_version\": 1", "SERVER PROTOCOL 2"}) EXPECT_FALSE(read_ras(bad).ok()) << bad;
  for (std::string_view odd :
       {R"({"nccl_version": 7, "communicators": [1, {"ranks": [3, {"rank": "x"}, {"rank": -5}, {"rank": 1, "status": 7,
            "collective_counts": {"A": "b", "C": -3}}],
            "missing_ranks": [0, {}]}], "ras": 3})",
        "Job summary\n===\n      x\n#\n#0 ( )\n#0-0 (1) MISMATCH\n  Rank\n  Rank 1\n  5 ranks\n  Rank 99999999999 -- GPU\n  The missing "
        "ranks: 3-1,9-,x\n"})
    EXPECT_TRUE(read_ras(odd).ok()) << odd;
  EXPECT_TRUE(read("Job summary\n===========\n\n").cut);
}

}  // namespace
}  // namespace phalanx::diagnosis
