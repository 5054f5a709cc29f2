// Ranks as agents see them: samples of the processes of three ranks on three hosts.
#pragma once

#include <gtest/gtest.h>

#include "codes/code.h"
#include "diagnosis/hang/hang.h"

namespace phalanx {

using diagnosis::Diagnosis;
using diagnosis::HangInput;
using diagnosis::RankView;
using machine::ProcessSample;
using machine::RankSample;
using machine::SocketSample;
using machine::ThreadSample;

// Stacks as the scan gives them of PyTorch 1.13 ranks on gloo.
inline const std::vector<std::string> kWorkWait = {"libc.so.6!+0x85f16", "libc.so.6!pthread_cond_wait",
                                                   "libtorch_cpu.so.1.13.0!c10d::Work::wait", "libtorch_python.so.1.13.0!+0x9a9b4d",
                                                   "python3.11!_PyEval_EvalFrameDefault"};
inline const std::vector<std::string> kAllReduce = {"libc.so.6!+0x85f16",
                                                    "libc.so.6!pthread_cond_clockwait",
                                                    "libgloo.so.0.5.0!gloo::transport::tcp::UnboundBuffer::waitRecv",
                                                    "libgloo.so.0.5.0!+0x338f6",
                                                    "libtorch_cpu.so.1.13.0!+0x446ceb4",
                                                    "libtorch_cpu.so.1.13.0!c10d::ProcessGroupGloo::AsyncWork::execute",
                                                    "libtorch_cpu.so.1.13.0!c10d::ProcessGroupGloo::runLoop"};
inline const std::vector<std::string> kBarrier = {"libc.so.6!+0x85f16",
                                                  "libc.so.6!pthread_cond_clockwait",
                                                  "libgloo.so.0.5.0!gloo::transport::tcp::UnboundBuffer::waitRecv",
                                                  "libgloo.so.0.5.0!gloo::barrier",
                                                  "libtorch_cpu.so.1.13.0!+0x445fd14",
                                                  "libtorch_cpu.so.1.13.0!c10d::ProcessGroupGloo::AsyncWork::execute",
                                                  "libtorch_cpu.so.1.13.0!c10d::ProcessGroupGloo::runLoop"};
inline const std::vector<std::string> kIdle = {"libc.so.6!+0x85f16", "libc.so.6!pthread_cond_wait",
                                               "libtorch_cpu.so.1.13.0!c10d::ProcessGroupGloo::runLoop"};

inline ThreadSample thread(int64_t tid, const std::string& wchan, const std::vector<std::string>& frames = {}) {
  ThreadSample t;
  t.tid = tid;
  t.name = "python3";
  t.state = wchan.empty() ? "R" : "S";
  t.wchan = wchan;
  t.frames = frames;
  return t;
}

inline RankView rank_of(int rank, std::vector<ThreadSample> threads) {
  RankView view;
  view.rank = rank;
  view.host = static_cast<size_t>(rank);
  ProcessSample process;
  process.pid = threads.empty() ? 0 : threads[0].tid;
  process.name = "python3";
  process.state = threads.empty() ? "S" : threads[0].state;
  process.threads = std::move(threads);
  RankSample sample;
  sample.rank = rank;
  sample.pid = process.pid;
  sample.processes = {process};
  view.first = view.then = sample;
  return view;
}
inline RankView in_all_reduce(int rank) {
  return rank_of(rank, {thread(100 + rank, "futex_do_wait", kWorkWait), thread(200 + rank, "futex_do_wait", kAllReduce),
                        thread(300 + rank, "futex_do_wait", kIdle)});
}
inline ProcessSample& process(RankView& view) { return view.then->processes[0]; }

inline HangInput three(RankView odd) {
  HangInput input;
  input.hosts = {"h0", "h1", "h2"};
  input.ranks = {in_all_reduce(0), std::move(odd), in_all_reduce(2)};
  return input;
}

inline void names(const Diagnosis& verdict, const std::string& code, const std::vector<int>& ranks) {
  EXPECT_EQ(verdict.code, code) << verdict.evidence.english;
  EXPECT_EQ(verdict.ranks, ranks) << verdict.evidence.english;
  EXPECT_TRUE(codes::find(verdict.code)) << verdict.code;
  EXPECT_FALSE(verdict.evidence.english.empty());
  EXPECT_FALSE(verdict.evidence.chinese.empty());
}

}  // namespace phalanx
