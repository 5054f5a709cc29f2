// The judge of a run that stands still, on samples as agents send them.
#include "doctor/catalogue.h"
#include "seen_ranks.h"

using namespace phalanx;

namespace {

TEST(Hang, ARankThatSleepsNeverEntered) {
  Diagnosis v = diagnosis::judge_hang(three(rank_of(1, {thread(101, "hrtimer_nanosleep"), thread(201, "futex_do_wait", kIdle)})));
  names(v, "HANG-NEVER-ENTERED", {1});
  EXPECT_NE(v.evidence.english.find("sleeps"), std::string::npos);
  EXPECT_NE(v.evidence.english.find("ranks 0, 2"), std::string::npos);
  EXPECT_EQ(v.host, 1u);
}

TEST(Hang, WhatTheOddRankWaitsForGivesTheCode) {
  names(diagnosis::judge_hang(three(rank_of(1, {thread(101, "futex_do_wait", {"python3.11!PyThread_acquire_lock_timed"})}))),
        "HANG-DEADLOCK-LOCAL", {1});
  names(diagnosis::judge_hang(three(rank_of(1, {thread(101, "unix_stream_read_generic")}))), "HANG-LOADER", {1});
  RankView polls = rank_of(1, {thread(101, "poll_schedule_timeout")});
  polls.then->processes[0].threads[0].waits_on = "10.0.0.2:443";
  names(diagnosis::judge_hang(three(polls)), "HANG-NEVER-ENTERED", {1});
  polls.then->processes[0].threads[0].waits_on = "pipe to 555 (pt_data_worker)";
  names(diagnosis::judge_hang(three(polls)), "HANG-LOADER", {1});
  names(diagnosis::judge_hang(three(rank_of(1, {thread(101, "do_wait")}))), "HANG-LOADER", {1});
  names(diagnosis::judge_hang(three(rank_of(1, {thread(101, "inet_stream_connect")}))), "HANG-CONNECT", {1});
  RankView computing = rank_of(1, {thread(101, "")});
  computing.then->processes[0].cpu_ms = 990;
  Diagnosis v = diagnosis::judge_hang(three(computing));
  names(v, "HANG-NEVER-ENTERED", {1});
  EXPECT_NE(v.evidence.english.find("99 % of a CPU"), std::string::npos) << v.evidence.english;
}

// The page's command is for the worker, not for the rank that waits for it; without its stack nobody else's tool showed it either.
TEST(Hang, TheProcessThatIsWaitedForIsTheOneToLookAt) {
  RankView polls = rank_of(1, {thread(101, "poll_schedule_timeout")});
  polls.then->processes[0].threads[0].waits_on = "pipe to 555 (pt_data_worker)";
  const int64_t rank_pid = polls.then->processes[0].pid;
  for (int64_t pid : {556, 555}) {
    machine::ProcessSample worker;
    worker.pid = pid;
    worker.parent = rank_pid;
    worker.name = "pt_data_worker";
    polls.then->processes.push_back(worker);
  }
  Diagnosis v = diagnosis::judge_hang(three(polls));
  EXPECT_EQ(v.fix, "py-spy dump --pid 555");
  EXPECT_FALSE(v.stack_seen);
  polls.stack = "Thread 101 (idle): \"MainThread\"\n    validate (train.py:42)\n";
  EXPECT_TRUE(diagnosis::judge_hang(three(polls)).stack_seen);
  // Its sibling is in the user's program, not in a copy of its parent's frames: that one holds the loader up.
  for (size_t i : {1, 2}) {
    polls.then->processes[i].threads = {thread(polls.then->processes[i].pid, "poll_schedule_timeout")};
    polls.then->processes[i].threads[0].python = {{i == 1 ? "/data/data.py" : "/usr/lib/python3.11/queues.py", "__getitem__", 12},
                                                  {"/usr/lib/python3.11/multiprocessing/process.py", "_bootstrap", 314},
                                                  {"/data/train.py", "<module>", 30}};
  }
  v = diagnosis::judge_hang(three(polls));
  EXPECT_NE(v.evidence.english.find("; process 556 is at data.py:12 (__getitem__)"), std::string::npos) << v.evidence.english;
  EXPECT_EQ(v.fix, "py-spy dump --pid 556");
  RankView waits = rank_of(1, {thread(101, "do_wait")});
  EXPECT_EQ(diagnosis::judge_hang(three(waits)).fix, "py-spy dump --pid " + std::to_string(waits.then->processes[0].pid));
}

TEST(Hang, TheLineOfPythonIsReadFromMemoryWhereNoHookTellsIt) {
  RankView polls = rank_of(1, {thread(101, "poll_schedule_timeout")});
  ThreadSample& main = polls.then->processes[0].threads[0];
  main.python = {
      {"/usr/lib/python3.11/socket.py", "recv_into", 706}, {"/data/train.py", "validate", 42}, {"/data/train.py", "<module>", 90}};
  Diagnosis v = diagnosis::judge_hang(three(polls));
  EXPECT_TRUE(v.line_seen);
  EXPECT_FALSE(v.stack_seen);
  auto told = [](const Diagnosis& d, std::string_view text) {
    return std::any_of(d.details.begin(), d.details.end(),
                       [&](const auto& words) { return words.english.find(text) != std::string::npos; });
  };
  EXPECT_TRUE(told(v, "rank 1: train.py:42 (validate), waits"));
  main.python.resize(1);  // nothing of the user's: the library's
  EXPECT_TRUE(told(diagnosis::judge_hang(three(polls)), "socket.py:706 (recv_into)"));
  polls.stack = "Thread 0x1 (most recent call first):\n  File \"x.py\", line 7 in save\n";  // what the program says itself goes first
  EXPECT_TRUE(told(diagnosis::judge_hang(three(polls)), "x.py:7 (save)"));
}

TEST(Hang, WhatForbidsTheReadingIsSaid) {
  RankView waits = rank_of(1, {thread(101, "")});
  waits.then->processes[0].python_problem =
      "its memory cannot be read: kernel.yama.ptrace_scope is 2; allow it with: sudo sysctl "
      "kernel.yama.ptrace_scope=1";
  waits.then->processes[0].state = "S";
  diagnosis::HangInput input = three(waits);
  for (RankView& r : input.ranks) r = waits, r.then->processes[0].threads[0].frames.clear();
  Diagnosis v = diagnosis::judge_hang(input);
  std::string missing;
  for (const auto& words : v.missing) missing += words.english + "|" + words.chinese + "\n";
  EXPECT_NE(missing.find("sudo sysctl kernel.yama.ptrace_scope=1 (process 101)"), std::string::npos) << missing;
  EXPECT_NE(missing.find("无法读取它的内存：kernel.yama.ptrace_scope 为 2"), std::string::npos) << missing;
}

TEST(Hang, PollingIsNoStorage) {
  names(diagnosis::judge_hang(three(rank_of(1, {thread(101, "poll_schedule_timeout")}))), "HANG-NEVER-ENTERED", {1});
}

TEST(Hang, AnotherCollectiveIsAMismatch) {
  RankView odd = rank_of(1, {thread(101, "futex_do_wait", kWorkWait), thread(201, "futex_do_wait", kBarrier)});
  Diagnosis v = diagnosis::judge_hang(three(odd));
  names(v, "HANG-MISMATCH", {1});
  EXPECT_NE(v.evidence.english.find("gloo::barrier"), std::string::npos);
}

TEST(Hang, OfTwoTheOneWithTheNamedCollectiveIsTold) {
  HangInput input;
  input.hosts = {"h0", "h1"};
  input.ranks = {in_all_reduce(0), rank_of(1, {thread(101, "futex_do_wait", kWorkWait), thread(201, "futex_do_wait", kBarrier)})};
  names(diagnosis::judge_hang(input), "HANG-MISMATCH", {1});
}

TEST(Hang, WhatHoldsARankFromOutsideComesFirst) {
  RankView odd = in_all_reduce(1);
  process(odd).state = "T";
  Diagnosis v = diagnosis::judge_hang(three(odd));
  names(v, "HANG-STOPPED", {1});
  EXPECT_EQ(v.fix, "kill -CONT 101");
  odd = in_all_reduce(1);
  odd.then->group.frozen = true;
  odd.then->group.frozen_by = "/sys/fs/cgroup/freezer/x";
  v = diagnosis::judge_hang(three(odd));
  names(v, "HANG-STOPPED", {1});
  EXPECT_NE(v.evidence.english.find("/sys/fs/cgroup/freezer/x"), std::string::npos);
  odd = in_all_reduce(1);
  process(odd).state = "t";
  process(odd).tracer = 77;
  process(odd).tracer_name = "gdb";
  v = diagnosis::judge_hang(three(odd));
  names(v, "HANG-TRACED", {1});
  EXPECT_NE(v.evidence.english.find("77 (gdb)"), std::string::npos);
}

TEST(Hang, StorageIsToldWithWhereAndOnlyIfItLasts) {
  RankView odd = rank_of(1, {thread(101, "request_wait_answer")});
  process(odd).threads[0].waits_on = "file /data/x";
  odd.first = odd.then;
  Diagnosis v = diagnosis::judge_hang(three(odd));
  names(v, "HANG-DISK", {1});
  EXPECT_NE(v.evidence.english.find("file /data/x"), std::string::npos);
  odd.first->processes[0].threads[0].wchan = "folio_wait_bit";  // it read something else a second ago: it moves
  EXPECT_NE(diagnosis::judge_hang(three(odd)).code, "HANG-DISK");
}

TEST(Hang, AWorkerThatHangsOnStorageIsItsRanks) {
  RankView odd = rank_of(1, {thread(101, "unix_stream_read_generic")});
  ProcessSample worker;
  worker.pid = 555;
  worker.parent = 101;
  worker.name = "pt_data_worker";
  worker.state = "D";
  worker.threads = {thread(555, "nfs_wait_bit_killable")};
  worker.threads[0].state = "D";
  odd.then->processes.push_back(worker);
  odd.first = odd.then;
  Diagnosis v = diagnosis::judge_hang(three(odd));
  names(v, "HANG-DISK", {1});
  EXPECT_NE(v.evidence.english.find("555 (pt_data_worker)"), std::string::npos);
}

TEST(Hang, SwappingIsManyFaultsAndSwap) {
  RankView odd = rank_of(1, {thread(101, "")});
  process(odd).swap_kb = 4 << 20;
  odd.first = odd.then;
  process(odd).major_faults = 900;
  names(diagnosis::judge_hang(three(odd)), "HANG-SWAPPING", {1});
}

TEST(Hang, ARankThatLeftWithZeroIsNamed) {
  RankView odd;
  odd.rank = 1;
  odd.host = 1;
  odd.exited = true;
  odd.exited_ago_s = 8;
  names(diagnosis::judge_hang(three(odd)), "RUN-LEFT-EARLY", {1});
}

SocketSample link(const std::string& local, const std::string& remote) {
  SocketSample s;
  s.local = local;
  s.local_address = local.substr(0, local.find(':'));
  s.remote = remote;
  s.remote_address = remote.substr(0, remote.find(':'));
  s.state = "ESTABLISHED";
  s.bytes_acked = 1000;
  return s;
}

HangInput broken(const std::string& timer, int64_t unacked, int64_t tries) {
  HangInput input = three(in_all_reduce(1));
  SocketSample near = link("10.0.0.1:4000", "10.0.0.2:5000"), far = link("10.0.0.2:5000", "10.0.0.1:4000");
  near.timer = timer;
  near.unacked = unacked;
  near.retransmits = near.backoff = tries;
  near.send_queue = 100'000;
  input.ranks[0].then->sockets = {near};
  input.ranks[1].then->sockets = {far};
  return input;
}

TEST(Hang, ALinkThatDoesNotGetThroughNamesBothEnds) {
  HangInput input = broken("on", 10, 5);
  Diagnosis v = diagnosis::judge_hang(input);
  names(v, "HANG-LINK", {0, 1});
  EXPECT_EQ(v.fix, "phalanx check h0,h1");
  EXPECT_NE(v.evidence.english.find("10.0.0.1:4000 to 10.0.0.2:5000"), std::string::npos);
  input.ranks[1].then->sockets[0].bytes_received = 5000;
  EXPECT_NE(diagnosis::judge_hang(input).evidence.english.find("acknowledgements are lost"), std::string::npos);
  EXPECT_NE(diagnosis::judge_hang(broken("on", 10, 2)).code, "HANG-LINK") << "two retransmissions are weather";
  EXPECT_NE(diagnosis::judge_hang(broken("", 0, 0)).code, "HANG-LINK");
}

TEST(Hang, BeforeTheThresholdAConnectionMustHaveFailedForLonger) {
  HangInput input = broken("on", 10, 3);
  EXPECT_EQ(diagnosis::judge_hang(input).code, "HANG-LINK");
  input.early = true;
  EXPECT_NE(diagnosis::judge_hang(input).code, "HANG-LINK");
}

TEST(Hang, AConnectionThatHasLostMuchBeforeLosesPacketsOfAnySize) {
  HangInput input = broken("on", 10, 5);
  input.ranks[0].then->sockets[0].answers = "yes";
  for (const auto& [sent_again, code] : {std::pair(12, "NET-MTU-HOLE"), std::pair(240, "NET-LOSS")}) {
    input.ranks[0].then->sockets[0].total_retransmits = sent_again;
    names(diagnosis::judge_hang(input), code, {0, 1});
  }
}

TEST(Hang, WhereSmallPacketsPassItIsAHoleForLargeOnes) {
  HangInput input = broken("on", 10, 5);
  input.ranks[0].then->sockets[0].answers = "yes";
  names(diagnosis::judge_hang(input), "NET-MTU-HOLE", {0, 1});
  input.ranks[0].then->sockets[0].send_queue = 400;  // 40 bytes a segment: they would pass
  names(diagnosis::judge_hang(input), "HANG-LINK", {0, 1});
}

TEST(Hang, APeerThatDoesNotRead) { names(diagnosis::judge_hang(broken("persist", 0, 5)), "HANG-PEER-STOPPED", {0, 1}); }

TEST(Hang, NobodyAnswersASyn) {
  HangInput input = three(in_all_reduce(1));
  SocketSample syn = link("10.0.0.1:4000", "10.0.0.2:5000");
  syn.state = "SYN_SENT";
  syn.retransmits = 3;
  input.ranks[0].then->sockets = {syn};
  Diagnosis v = diagnosis::judge_hang(input);
  names(v, "HANG-CONNECT", {0});
  EXPECT_EQ(v.fix, "nc -vz -w 3 10.0.0.2 5000");
}

TEST(Hang, WithoutStacksTheMinorityIsNamed) {
  HangInput input;
  input.hosts = {"h0", "h1", "h2", "h3"};
  for (int r = 0; r < 4; ++r) input.ranks.push_back(rank_of(r, {thread(100 + r, r == 2 ? "hrtimer_nanosleep" : "")}));
  for (int r : {0, 1, 3}) input.ranks[static_cast<size_t>(r)].then->processes[0].cpu_ms = 1000;
  names(diagnosis::judge_hang(input), "HANG-NEVER-ENTERED", {2});
}

TEST(Hang, NothingToTellSaysWhatIsMissing) {
  HangInput gpus = three(in_all_reduce(1));
  gpus.devices = true;
  Diagnosis v = diagnosis::judge_hang(gpus);
  names(v, "HANG-UNKNOWN", {});
  EXPECT_FALSE(v.certain());
  EXPECT_EQ(v.missing.size(), 2u);  // Python's stacks and the flight recorder
  EXPECT_EQ(diagnosis::ranks_to_ask(three(in_all_reduce(1)), v), (std::vector<int>{0, 1, 2}));
  HangInput silent = gpus;
  silent.ranks[1].first.reset();
  silent.ranks[1].then.reset();
  silent.unanswered[1] = "no answer in time";
  v = diagnosis::judge_hang(silent);
  EXPECT_EQ(v.missing.front().english, "h1 did not answer: no answer in time");
}

TEST(Hang, PlacesOfTheCodeAreFolded) {
  HangInput input = three(rank_of(1, {thread(101, "hrtimer_nanosleep")}));
  const char* kStack =
      "Thread 0x01 (most recent call first):\n  File \"/usr/lib/python3.11/threading.py\", line 320 in wait\n\n"
      "Current thread 0x02 (most recent call first):\n  File \"/usr/lib/python3/dist-packages/torch/x.py\", line 9 in all_reduce\n"
      "  File \"/home/u/train.py\", line 30 in step\n  File \"/home/u/train.py\", line 90 in <module>\n";
  input.ranks[0].stack = input.ranks[2].stack = kStack;
  input.ranks[1].stack = "Thread 46 (idle): \"MainThread\"\n    sleep (time.py:1)\n    validate (train.py:42)\n";
  Diagnosis v = diagnosis::judge_hang(input);
  ASSERT_GE(v.details.size(), 2u);
  EXPECT_EQ(v.details[0].english.find("rank 1: "), 0u) << v.details[0].english;
  EXPECT_EQ(v.details[1].english, "ranks 0, 2: train.py:30 (step), waits in a collective");
  EXPECT_EQ(diagnosis::place_in(kStack), "train.py:30 (step)");
  EXPECT_EQ(diagnosis::place_in("\n(x:)\n File \"a\", line"), "");
}

}  // namespace
