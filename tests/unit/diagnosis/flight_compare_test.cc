// Sends and receives, several groups, batches, rings, folders of files; and dumps that Python's own pickle wrote.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <filesystem>

#include <cstdio>
#include <cstdlib>

#include "codes/code.h"
#include "diagnosis/hang/flight_files.h"
#include "os/files.h"

namespace phalanx::diagnosis {
namespace {

struct Op {
  std::string group, name, state = "completed", in = "[[8]]", out = "[[8]]";
  int64_t sequence = 1;
  bool p2p = false;
};

struct Dump {
  int rank = 0;
  std::vector<std::pair<std::string, std::string>> groups;  // name, ranks
  std::vector<Op> ops;
  int64_t first_record = 0;
};

RankRecord read(const Dump& d) {
  std::string groups, entries;
  for (const auto& [name, ranks] : d.groups)
    groups += fmt::format(R"({}"{}": {{"name": "{}", "desc": "{}", "ranks": "[{}]"}})", groups.empty() ? "" : ",", name, name, name, ranks);
  int64_t record = d.first_record;
  for (const Op& op : d.ops) {
    entries += fmt::format(
        R"({}{{"record_id": {}, "process_group": ["{}", "{}"], "collective_seq_id": {}, "p2p_seq_id": {}, "is_p2p": {},
          "profiling_name": "nccl:{}", "state": "{}", "input_sizes": {}, "input_dtypes": ["Float"], "output_sizes": {},
          "output_dtypes": ["Float"], "frames": [{{"name": "step", "filename": "pipe.py", "line": {}}}]}})",
        entries.empty() ? "" : ",", record, op.group, op.group, op.p2p ? 0 : op.sequence, op.p2p ? op.sequence : 0, op.p2p, op.name,
        op.state, op.in, op.out, 10 * (record + 1));
    ++record;
  }
  base::Result<RankRecord> trace =
      read_flight_recorder(d.rank, fmt::format(R"({{"version": "2.10", "pg_config": {{{}}}, "entries": [{}]}})", groups, entries));
  EXPECT_TRUE(trace.ok()) << (trace.ok() ? "" : trace.error().message);
  return trace.ok() ? *trace : RankRecord{};
}

Standstill compare(const std::vector<Dump>& dumps) {
  std::vector<RankRecord> records;
  for (const Dump& d : dumps) records.push_back(read(d));
  Standstill v = compare_records(records);
  EXPECT_TRUE(v.code.empty() || codes::find(v.code)) << v.code;
  EXPECT_EQ(v.evidence.english.empty(), v.evidence.chinese.empty());
  return v;
}

Op send(int to, int from, std::string state, int64_t sequence = 1) {
  return {"pp", fmt::format("send {}->{}", from, to), std::move(state), "[[8]]", "[[8]]", sequence, true};
}
Op receive(int from, int at, std::string state, int64_t sequence = 1) {
  return {"pp", fmt::format("recv {}<-{}", at, from), std::move(state), "[[8]]", "[[8]]", sequence, true};
}
const std::vector<std::pair<std::string, std::string>> kPipe = {{"pp", "4, 6"}};

TEST(FlightCompare, ASendWithoutItsReceiveNamesTheRankThatNeverCame) {
  Standstill v = compare({{4, kPipe, {send(1, 0, "completed"), send(1, 0, "started", 2)}}, {6, kPipe, {receive(0, 1, "completed")}}});
  EXPECT_EQ(v.code, "HANG-NEVER-ENTERED");
  EXPECT_EQ(v.culprits, (std::vector<int>{6})) << "ranks of the job, not of the group";
  EXPECT_EQ(v.waiting, (std::vector<int>{4}));
  EXPECT_EQ(v.where, "pipe.py:10 (step)");
  EXPECT_EQ(
      v.evidence.english,
      "rank 6 never entered send → rank 6 of pp, in which rank 4 waits; the last operation of rank 6 was recv ← rank 4, pipe.py:10 (step)");
}

TEST(FlightCompare, BothSendFirst) {
  Standstill v = compare({{4, kPipe, {send(1, 0, "started"), receive(1, 0, "scheduled", 2)}},
                          {6, kPipe, {send(0, 1, "started"), receive(0, 1, "scheduled", 2)}}});
  EXPECT_EQ(v.code, "HANG-CIRCULAR");
  EXPECT_EQ(v.culprits, (std::vector<int>{4, 6}));
  EXPECT_EQ(v.evidence.english, "rank 4 waits in send → rank 6 of pp for rank 6, rank 6 waits in send → rank 4 of pp for rank 4");
  v = compare({{4, kPipe, {send(1, 0, "started")}}, {6, kPipe, {send(0, 1, "started")}}});
  EXPECT_EQ(v.code, "HANG-CIRCULAR") << "blocking calls: the receives were never recorded";
}

TEST(FlightCompare, ASendAndAReceiveOfOtherSizes) {
  Op small = receive(0, 1, "started");
  small.out = "[[4]]";
  Standstill v = compare({{4, kPipe, {send(1, 0, "started")}}, {6, kPipe, {small}}});
  EXPECT_EQ(v.code, "HANG-MISMATCH");
  EXPECT_NE(v.evidence.english.find("rank 4: send 0->1 [8] Float; rank 6: recv 1<-0 [4] Float"), std::string::npos) << v.evidence.english;
  v = compare({{4, kPipe, {send(1, 0, "started")}}, {6, kPipe, {receive(0, 1, "started")}}});
  EXPECT_EQ(v.code, "HANG-TRANSPORT");
}

// The parts of a batch stay "scheduled" for ever; its end tells.
TEST(FlightCompare, ABatchIsOneOperation) {
  auto batch = [](const std::string& state, int self, int64_t sequence) {
    return std::vector<Op>{send(1 - self, self, "scheduled", sequence),
                           receive(1 - self, self, "scheduled", sequence),
                           {"pp", "coalesced", state, "[]", "[]", sequence, true}};
  };
  EXPECT_EQ(compare({{4, kPipe, batch("completed", 0, 1)}, {6, kPipe, batch("completed", 1, 1)}}).kind, Standstill::Kind::kNothing);
  std::vector<Op> two = batch("completed", 0, 1), more = batch("started", 0, 2);
  two.insert(two.end(), more.begin(), more.end());
  Standstill v = compare({{4, kPipe, two}, {6, kPipe, batch("completed", 1, 1)}});
  EXPECT_EQ(v.code, "HANG-NEVER-ENTERED");
  EXPECT_EQ(v.culprits, (std::vector<int>{6}));
  EXPECT_NE(v.evidence.english.find("send → rank 6 + recv ← rank 6"), std::string::npos) << v.evidence.english;
}

TEST(FlightCompare, ABatchOfCollectivesIsComparedByItsParts) {
  auto batch = [](const std::string& size) {
    return std::vector<Op>{{"dp", "_all_gather_base", "scheduled", size, "[[16]]", 3, false},
                           {"dp", "allgather_into_tensor_coalesced", "started", "[]", "[]", 3, false}};
  };
  EXPECT_EQ(compare({{0, {{"dp", "0, 1"}}, batch("[[8]]")}, {1, {{"dp", "0, 1"}}, batch("[[8]]")}}).code, "HANG-TRANSPORT");
  EXPECT_EQ(compare({{0, {{"dp", "0, 1"}}, batch("[[8]]")}, {1, {{"dp", "0, 1"}}, batch("[[9]]")}}).code, "HANG-MISMATCH");
}

TEST(FlightCompare, TwoGroupsInOppositeOrders) {
  std::vector<std::pair<std::string, std::string>> groups = {{"a", "0, 1"}, {"b", "0, 1"}};
  Op a{"a", "all_reduce", "started"}, b{"b", "all_reduce", "started"}, a_later = a, b_later = b;
  a_later.state = b_later.state = "scheduled";
  Standstill v = compare({{0, groups, {a, b_later}}, {1, groups, {b, a_later}}});
  EXPECT_EQ(v.code, "HANG-CIRCULAR");
  EXPECT_EQ(v.culprits, (std::vector<int>{0, 1}));
  v = compare({{0, groups, {a}}, {1, groups, {b}}});
  EXPECT_EQ(v.code, "HANG-CIRCULAR") << "blocking calls";
  v = compare({{0, groups, {a, b_later}}, {1, groups, {a, b_later}}});
  EXPECT_EQ(v.code, "HANG-TRANSPORT");
  EXPECT_EQ(v.group, "a");
}

TEST(FlightCompare, GroupsOfOneNameAreToldApartByTheirRanks) {
  Op waits{"tp", "all_reduce", "started", "[[8]]", "[[8]]", 7}, before = waits;
  before.state = "completed";
  before.sequence = 6;
  std::vector<Dump> dumps;
  for (int rank : {0, 1}) dumps.push_back({rank, {{"tp", "0, 1"}}, {before}});
  dumps.push_back({2, {{"tp", "2, 3"}}, {before, waits}});
  dumps.push_back({3, {{"tp", "2, 3"}}, {before}});
  Standstill v = compare(dumps);
  EXPECT_EQ(v.culprits, (std::vector<int>{3})) << "ranks 0 and 1 are another group";
}

TEST(FlightCompare, AllToAllIsComparedBySums) {
  auto at = [](int rank, const std::string& in, const std::string& out) {
    return Dump{rank, {{"ep", "0, 1"}}, {{"ep", "all_to_allv", "started", in, out}}};
  };
  EXPECT_EQ(compare({at(0, "[[6]]", "[[4]]"), at(1, "[[2]]", "[[4]]")}).code, "HANG-TRANSPORT");
  Standstill v = compare({at(0, "[[6]]", "[[4]]"), at(1, "[[3]]", "[[4]]")});
  EXPECT_EQ(v.code, "HANG-MISMATCH");
  EXPECT_TRUE(v.culprits.empty());
  EXPECT_NE(v.evidence.english.find("sends 9 elements and receives 8"), std::string::npos);
}

TEST(FlightCompare, AMismatchIsTheCauseThoughAThirdWaitsElsewhere) {
  std::vector<std::pair<std::string, std::string>> groups = {{"a", "0, 1, 2"}, {"b", "1, 2"}};
  Standstill v = compare({{0, groups, {{"a", "all_reduce", "started"}}},
                          {1, groups, {{"a", "broadcast", "started"}}},
                          {2, groups, {{"b", "all_reduce", "started"}}}});
  EXPECT_EQ(v.code, "HANG-MISMATCH");
  EXPECT_EQ(v.group, "a");
}

TEST(FlightCompare, AnOverwrittenRingIsSaid) {
  Op waits{"g", "all_reduce", "started", "[[8]]", "[[8]]", 902};
  Standstill v = compare({{0, {{"g", "0, 1"}}, {waits}, 4100}, {1, {{"g", "0, 1"}}, {waits}, 0}});
  ASSERT_EQ(v.notes.size(), 1u);
  EXPECT_NE(v.notes[0].english.find("the ring buffer of rank 0 has overwritten"), std::string::npos);
  // Counted from the first that is not completed: rank 6's ring has lost the receives that rank 4's sends met.
  v = compare({{4, kPipe, {send(1, 0, "completed"), send(1, 0, "started", 2)}, 0}, {6, kPipe, {receive(0, 1, "started", 2)}, 77}});
  EXPECT_EQ(v.code, "HANG-TRANSPORT");
}

TEST(FlightCompare, ABatchOfVeryManyTakesNoTime) {
  std::vector<Op> many;
  for (int i = 0; i < 5000; ++i) many.push_back(send(1, 0, "scheduled", 9));
  many.push_back({"pp", "coalesced", "started", "[]", "[]", 9, true});
  Standstill v = compare({{4, kPipe, many}, {6, kPipe, {}}});
  EXPECT_EQ(v.culprits, (std::vector<int>{6}));
  v = compare({{4, kPipe, many, 5}, {6, kPipe, {receive(0, 1, "started", 2)}, 77}});
  EXPECT_EQ(v.code, "HANG-TRANSPORT") << "the first send has its receive, and neither is done";
}

TEST(FlightCompare, AThousandRanksTakeNoTime) {
  std::string all;
  for (int r = 0; r < 1024; ++r) all += fmt::format("{}{}", r ? ", " : "", r);
  std::vector<Dump> dumps;
  for (int r = 0; r < 1024; ++r)
    dumps.push_back({r, {{"g", all}}, r == 700 ? std::vector<Op>{} : std::vector<Op>{{"g", "all_reduce", "started"}}});
  Standstill v = compare(dumps);
  EXPECT_EQ(v.culprits, (std::vector<int>{700}));
  EXPECT_EQ(v.waiting.size(), 1023u);
}

TEST(FlightFiles, TheRankIsTheNumberAtTheEnd) {
  EXPECT_EQ(rank_of_file_name("nccl_trace_rank_12"), 12);
  EXPECT_EQ(rank_of_file_name("fr_2_3.json"), 3);
  EXPECT_EQ(rank_of_file_name("7"), 7);
  EXPECT_EQ(rank_of_file_name("dump"), std::nullopt);
  EXPECT_EQ(rank_of_file_name("x99999999999999999999"), std::nullopt);
}

// Python writes the dumps as torch does: protocol 2, shared frames out of the memo, more than 256 memo entries, 64-bit times.
TEST(FlightFiles, ReadsWhatPythonWrites) {
  char folder[] = "/tmp/flight_files_XXXXXX";
  ASSERT_NE(mkdtemp(folder), nullptr);
  std::string script = fmt::format(R"(
import pickle, json
frames = [{{'name': 'all_reduce', 'filename': '/x/torch/distributed/distributed_c10d.py', 'line': 2501}}] + \
         [{{'name': 'f%d' % i, 'filename': '/home/u/train%d.py' % i, 'line': i + 70000}} for i in range(300)]
def dump(rank, count, lost):
    entries = []
    for n in range(lost, count):
        entries.append(dict(frames=[frames[0], frames[1 + n % 300], frames[2]], record_id=n, pg_id=0, process_group=('0', 'default_pg'),
            collective_seq_id=n + 1, p2p_seq_id=0, op_id=n + 1, profiling_name='nccl:all_reduce', time_created_ns=1724779239936775119 + n,
            duration_ms=0.25, input_sizes=[[1024, 3]], input_dtypes=['Float'], output_sizes=[[1024, 3]], output_dtypes=['Float'],
            state='completed' if n < 900 else 'scheduled', time_discovered_started_ns=None, time_discovered_completed_ns=None,
            retired=n < 900, timeout_ms=600000, is_p2p=False, thread_id='140', thread_name='pt_main'))
    return dict(version='2.10', pg_config={{'0': dict(name='0', desc='default_pg', ranks='[0, 1, 2]')}}, comm_lib_version='2.27.3',
        pg_status={{'0': dict(last_enqueued_collective=count, last_started_collective=-1, last_completed_collective=900)}}, entries=entries)
for rank, count in ((0, 901), (1, 901)):
    open('{0}/nccl_trace_rank_%d' % rank, 'wb').write(pickle.dumps(dump(rank, count, 100), protocol=2))
json.dump(dump(2, 900, 0), open('{0}/nccl_trace_rank_2', 'w'))
open('{0}/nccl_trace_rank_9', 'wb').write(b'\x80\x02(X\x09\0\0\0pg_configcos\nsystem\n(S"true"\ntR.')
open('{0}/notes_4', 'w').write('no dump')
)",
                                   folder);
  ASSERT_TRUE(os::write_file_atomic(std::string(folder) + "/make.py", script).ok());
  if (std::system(fmt::format("python3 '{}/make.py'", folder).c_str()) != 0) GTEST_SKIP() << "needs python3";
  base::Result<FlightDumps> dumps = read_flight_dumps({folder});
  ASSERT_TRUE(dumps.ok()) << dumps.error().render();
  ASSERT_EQ(dumps->records.size(), 3u);
  ASSERT_EQ(dumps->refused.size(), 1u);
  EXPECT_NE(dumps->refused[0].find("nccl_trace_rank_9: not a pickle of plain data: a class or function"), std::string::npos)
      << dumps->refused[0];
  EXPECT_EQ(dumps->records[0].entries.size(), 801u);
  EXPECT_EQ(dumps->records[0].entries.back().where, "train0.py:70000 (f0)");
  Standstill v = compare_records(dumps->records);
  EXPECT_EQ(v.code, "HANG-NEVER-ENTERED");
  EXPECT_EQ(v.culprits, (std::vector<int>{2}));
  EXPECT_EQ(v.sequence, 901);
  EXPECT_EQ(v.where, "train299.py:70299 (f299)");
  EXPECT_FALSE(read_flight_dumps({std::string(folder) + "/notes_4"}).ok());
  EXPECT_FALSE(read_flight_dumps({std::string(folder) + "/none"}).ok());
  EXPECT_GT(std::filesystem::remove_all(folder), 0u);
}

}  // namespace
}  // namespace phalanx::diagnosis
