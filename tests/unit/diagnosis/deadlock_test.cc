// The proof that a run cannot go on: everything that may still be under way spoils it.
#include "diagnosis/hang/deadlock.h"

#include <gtest/gtest.h>

#include <functional>

#include "base/json_fields.h"

using namespace phalanx;

namespace {

using diagnosis::HangInput;
using diagnosis::proved_deadlock;
using diagnosis::RankView;
using machine::ThreadSample;

// Stacks as the scan gives them of PyTorch 1.13 ranks on gloo.
ThreadSample thread(int64_t tid, std::vector<std::string> frames) {
  ThreadSample t;
  t.tid = tid;
  t.state = "S";
  t.wchan = "futex_wait_queue";
  t.frames = std::move(frames);
  return t;
}

RankView waiting(int rank) {
  ThreadSample main =
      thread(100, {"libc.so.6!pthread_cond_wait", "libtorch_cpu.so.1.13.0!c10d::Work::wait", "libtorch_python.so!+0x9a9b4d"});
  main.python = {{"/usr/lib/python3/dist-packages/torch/distributed/distributed_c10d.py", "all_reduce", 1320},
                 {"/data/train.py", "step", 30}};
  machine::ProcessSample process;
  process.pid = 100;
  process.name = "python3";
  process.state = "S";
  process.threads = {main, thread(101, {"libc.so.6!pthread_cond_wait", "libgloo.so.0!gloo::transport::tcp::UnboundBuffer::waitRecv",
                                        "libtorch_cpu.so.1.13.0!c10d::ProcessGroupGloo::AsyncWork::execute"})};
  machine::RankSample sample;
  sample.rank = rank;
  sample.pid = 100;
  sample.processes = {process};
  machine::SocketSample socket;
  socket.state = "ESTABLISHED";
  socket.local = "10.0.0.1:4000";
  socket.remote = "10.0.0.2:5000";
  socket.bytes_acked = socket.bytes_received = 4096;
  sample.sockets = {socket};
  RankView view;
  view.rank = rank;
  view.host = static_cast<size_t>(rank);
  view.first = view.then = sample;
  return view;
}

HangInput all_wait() {
  HangInput input;
  input.hosts = {"h0", "h1"};
  input.ranks = {waiting(0), waiting(1)};
  return input;
}

TEST(Deadlock, AllWaitForEachOtherAndNothingMoves) {
  EXPECT_TRUE(proved_deadlock(all_wait()));
  diagnosis::Diagnosis verdict = diagnosis::judge_hang(all_wait());
  EXPECT_EQ(verdict.code, "HANG-CIRCULAR");
  EXPECT_TRUE(verdict.ranks.empty());
  EXPECT_FALSE(verdict.evidence.chinese.empty());
  ASSERT_EQ(verdict.details.size(), 1u);
  EXPECT_EQ(verdict.details[0].english, "ranks 0\u20131: train.py:30 (step), waits in a collective");
}

TEST(Deadlock, ALineOfTheProgramMayCallTorchDirectly) {
  HangInput input = all_wait();
  ThreadSample& main = input.ranks[1].then->processes[0].threads[0];
  main.frames = {"libc.so.6!recv", "libtorch_cpu.so.1.13.0!c10d::detail::recvBytes", "libtorch_cpu.so.1.13.0!c10d::TCPStore::wait"};
  main.python = {{"/data/train.py", "<lambda>", 147}};
  EXPECT_TRUE(proved_deadlock(input)) << "store.wait()";
  main.frames = {"libc.so.6!sem_wait", "python3.11!PyThread_acquire_lock_timed", "libtorch_cpu.so.1.13.0!c10d::Work::wait"};
  EXPECT_FALSE(proved_deadlock(input)) << "a lock of its own; what torch has left on the stack says nothing";
  main.frames = {"libc.so.6!pthread_cond_wait", "libtorch_cpu.so.1.13.0!c10d::Reducer::finalize_backward"};
  main.python = {{"/x/torch/autograd/__init__.py", "backward", 197}, {"/data/train.py", "step", 30}};
  EXPECT_TRUE(proved_deadlock(input)) << "the end of backward, in DistributedDataParallel";
}

TEST(Deadlock, ARankThatIsGoneMakesNoDifference) {
  HangInput input = all_wait();
  input.ranks[1].exited = true;
  EXPECT_TRUE(proved_deadlock(input));
  input.ranks[0].exited = true;
  EXPECT_FALSE(proved_deadlock(input)) << "nobody is left to wait";
}

TEST(Deadlock, WhateverMayStillBeUnderWaySpoilsTheProof) {
  struct Case {
    const char* what;
    std::function<void(RankView&)> change;
  };
  auto main = [](RankView& r) -> ThreadSample& { return r.then->processes[0].threads[0]; };
  const std::vector<Case> cases = {
      {"it sleeps for a time", [&](RankView& r) { main(r).wchan = "hrtimer_nanosleep"; }},
      {"it computes", [&](RankView& r) { main(r).state = "R"; }},
      {"it has used the CPU", [](RankView& r) { r.then->processes[0].cpu_ms += 50; }},
      {"its main thread is elsewhere, a collective goes on behind it", [&](RankView& r) { main(r).frames = {"libc.so.6!read"}; }},
      {"a frame that is stale: Python says otherwise",
       [&](RankView& r) { main(r).python = {{"/usr/lib/python3.11/threading.py", "wait", 3}}; }},
      {"a thread waits for storage", [](RankView& r) { r.then->processes[0].threads[1].state = "D"; }},
      {"a process has begun", [](RankView& r) { r.then->processes.push_back(r.then->processes[0]); }},
      {"bytes have come", [](RankView& r) { r.then->sockets[0].bytes_received += 8; }},
      {"bytes are under way", [](RankView& r) { r.then->sockets[0].send_queue = 8; }},
      {"bytes are not read yet", [](RankView& r) { r.then->sockets[0].receive_queue = 8; }},
      {"a connection is new", [](RankView& r) { r.first->sockets.clear(); }},
      {"it drives a device", [](RankView& r) { r.then->processes[0].threads[1].frames.push_back("libcuda.so.1!cuLaunchKernel"); }},
      {"its stacks are not known",
       [](RankView& r) {
         for (ThreadSample& t : r.then->processes[0].threads) t.frames.clear();
       }},
      {"it was not seen before", [](RankView& r) { r.first.reset(); }},
      {"it was not seen", [](RankView& r) { r.then.reset(); }},
  };
  for (const Case& one : cases) {
    HangInput input = all_wait();
    one.change(input.ranks[1]);
    EXPECT_FALSE(proved_deadlock(input)) << one.what;
  }
  HangInput input = all_wait();
  input.devices = true;
  EXPECT_FALSE(proved_deadlock(input)) << "a host has GPUs";
  input = all_wait();
  input.unanswered[1] = "no answer in time";
  EXPECT_FALSE(proved_deadlock(input)) << "a host is silent";
}

TEST(Deadlock, ASampleComesBackFromJsonAsItWas) {
  machine::SocketSample socket;
  socket.local = "10.0.0.1:1";
  socket.remote = "10.0.0.2:2";
  machine::RankSample rank;
  rank.processes.emplace_back().threads = {thread(7, {"libc.so.6!+0x85f16"})};
  rank.sockets = {socket};
  machine::HostSample sample;
  sample.ranks = {rank};
  auto back = base::from_json<machine::HostSample>(base::to_json(sample));
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(base::to_text(base::to_json(*back)), base::to_text(base::to_json(sample)));
}

}  // namespace
