// What the ranks have asked of each other, beside what is seen of them.
#include "seen_ranks.h"

namespace phalanx::diagnosis {
namespace {

RankRecord record_of(int rank, const std::string& size) {
  RankRecord record;
  record.rank = rank;
  record.groups["0"] = {"default_pg", {0, 1, 2}};
  Operation& waits = record.entries.emplace_back();
  waits.group = "0";
  waits.sequence = 7;
  waits.name = "all_reduce";
  waits.input = size;
  waits.state = "started";
  return record;
}

TEST(HangRecords, TheFlightRecorderIsBelievedOverWhatIsSeen) {
  HangInput input = three(in_all_reduce(1));
  std::vector<RankRecord> records = {record_of(0, "[10] Float"), record_of(1, "[10] Float"), record_of(2, "[12] Float")};
  input.records = records;
  Diagnosis v = judge_hang(input);
  names(v, "HANG-MISMATCH", {2});
  EXPECT_EQ(v.evidence.english,
            "collective 7 of default_pg differs between the ranks: ranks 0–1: all_reduce [10] Float; rank 2: all_reduce [12] Float");
  records[2] = record_of(2, "[10] Float");
  input.devices = true;
  v = judge_hang(input);
  names(v, "HANG-TRANSPORT", {});
}

// Two dumps of three say that somebody is missing; the sample of the third says who, and what it does.
TEST(HangRecords, ARankWithoutADumpIsSeen) {
  const std::vector<RankRecord> records = {record_of(0, "[10] Float"), record_of(2, "[10] Float")};
  HangInput input = three(rank_of(1, {thread(101, "hrtimer_nanosleep")}));
  input.records = records;
  Diagnosis v = judge_hang(input);
  names(v, "HANG-NEVER-ENTERED", {1});
  EXPECT_EQ(v.evidence.english.find("rank 1 never entered all_reduce 7 of default_pg, in which ranks 0, 2 wait; it sleeps"), 0u)
      << v.evidence.english;
  input = three(in_all_reduce(1));  // in some collective: nobody knows whether it is this one
  input.records = records;
  names(judge_hang(input), "HANG-CIRCULAR", {});
  input.devices = true;
  names(judge_hang(input), "HANG-UNKNOWN", {});
  for (RankView& rank : input.ranks) {  // nothing says that rank 1 is not polling in this very operation
    rank = rank_of(rank.rank, {thread(101, "")});
    rank.then->processes[0].cpu_ms = 990;
  }
  names(judge_hang(input), "HANG-UNKNOWN", {});
}

TEST(HangRecords, NcclsOwnServiceIsBelievedToo) {
  HangInput input = three(in_all_reduce(1));
  input.devices = true;
  RasReport ras;
  RasCommunicator& c = ras.communicators.emplace_back();
  c.id = "#0-0";
  c.camps = {{"AllReduce", "41", 41, 1, {{7, "10.0.0.2", "0", 101}}}, {"AllReduce", "42", 42, 2, {}}};  // its rank 7 is this run's 1
  input.ras = &ras;
  Diagnosis v = judge_hang(input);
  names(v, "HANG-NEVER-ENTERED", {1});
  EXPECT_EQ(
      v.evidence.english,
      "rank 1 (process 101 on 10.0.0.2, GPU 0) never entered AllReduce 42 of communicator #0-0, in which 2 ranks wait; it has launched "
      "41, others 42");
  RasMember& member = c.camps[0].members[0];
  member.pid = 9;  // no rank of this run
  names(judge_hang(input), "HANG-UNKNOWN", {});
  member.pid = 100;
  input.ranks[1].then->processes[0].pid = 100;  // in two containers
  names(judge_hang(input), "HANG-UNKNOWN", {});
  input.ranks[1].then->sockets.emplace_back().local_address = "10.0.0.2";
  names(judge_hang(input), "HANG-NEVER-ENTERED", {1});
}

}  // namespace
}  // namespace phalanx::diagnosis
