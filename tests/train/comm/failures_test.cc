// What happens when a rank dies, calls something else, or has no memory to share. Ranks are processes here.
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <functional>
#include <random>
#include <thread>

#include "comm/processes.h"
#include "diagnosis/hang/flight_recorder.h"

using namespace phalanx;

namespace {

using engine::comm::fail_within;
using engine::comm::Group;
using engine::comm::GroupOptions;
using engine::comm::PeerExited;
using engine::comm::Reduction;
using processes::kThrew;
using processes::Processes;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

void work_forever(Group& group) {
  at::Tensor window = group.window(100000, at::kFloat), plain = at::zeros({300000});
  for (int64_t i = 0;; ++i) {
    group.all_reduce(window, Reduction::kMax, "grads");
    group.all_reduce(plain, Reduction::kMax, "more grads");
    if (i % 3 == 0) group.barrier("round", milliseconds{60000});
  }
}

TEST(Failures, AKilledRankIsNoticedByAll) {
  std::mt19937 random(1);
  for (int round = 0; round < 6; ++round) {
    constexpr int kWorld = 3;
    const int victim = static_cast<int>(random() % kWorld);
    Processes ranks(kWorld, {}, work_forever);
    ranks.wait_for_start(kWorld);
    std::this_thread::sleep_for(milliseconds{random() % 60});
    ranks.kill_rank(victim);
    const auto killed = steady_clock::now();
    for (int rank = 0; rank < kWorld; ++rank) {
      const int status = ranks.end_of(rank, milliseconds{5000});
      if (rank == victim) continue;
      ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == kThrew) << "rank " << rank << " status " << status;
      EXPECT_NE(ranks.said(rank).find(fmt::format("rank {} has exited", victim)), std::string::npos) << ranks.said(rank);
    }
    EXPECT_LT(steady_clock::now() - killed, milliseconds{2500});
  }
}

// The kind of a failure is kept, whatever its words are.
TEST(Failures, AnOperationThatFailsWithAPeerKeepsThatKind) {
  EXPECT_THROW(fail_within("all_reduce", PeerExited("rank 1 is no more")), PeerExited);
  EXPECT_THROW(fail_within("all_reduce", std::runtime_error("Connection closed by peer [10.0.0.1]:4711")), PeerExited) << "Gloo's";
  try {
    fail_within("all_reduce", std::runtime_error("a message that says rank 1 has exited"));
  } catch (const PeerExited&) { FAIL(); } catch (const std::runtime_error& failure) {
    EXPECT_STREQ(failure.what(), "all_reduce: a message that says rank 1 has exited");
  }
}

// A child that was forked without exec, as a data loader's worker is, shares the rank's descriptors and so its lock.
TEST(Failures, AKilledRankIsNoticedAlsoWhenAChildOfItLives) {
  constexpr int kWorld = 2, kVictim = 1;
  ranks::TempFolder folder;
  const std::string note = folder / "child";
  Processes ranks(kWorld, {}, [&](Group& group) {
    if (group.rank() == kVictim) {
      const pid_t child = fork();
      if (child == 0) {
        sleep(30);
        _exit(0);
      }
      std::ofstream(note) << child;
    }
    work_forever(group);
  });
  ranks.wait_for_start(kWorld);
  std::this_thread::sleep_for(milliseconds{200});
  pid_t child = 0;
  std::ifstream(note) >> child;
  ASSERT_GT(child, 0);
  ranks.kill_rank(kVictim);
  const auto killed = steady_clock::now();
  const int status = ranks.end_of(0, milliseconds{5000});
  EXPECT_EQ(kill(child, SIGKILL), 0) << "the child was to outlive the rank";
  ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == kThrew) << "status " << status;
  EXPECT_NE(ranks.said(0).find("rank 1 has exited"), std::string::npos) << ranks.said(0);
  EXPECT_LT(steady_clock::now() - killed, milliseconds{2500});
}

TEST(Failures, AKilledRankIsNoticedOverGloo) {
  GroupOptions options;
  options.shared_memory = false;
  Processes ranks(3, options, work_forever);
  ranks.wait_for_start(3);
  std::this_thread::sleep_for(milliseconds{30});
  ranks.kill_rank(1);
  for (int rank : {0, 2}) {
    const int status = ranks.end_of(rank, milliseconds{5000});
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == kThrew) << "rank " << rank << " status " << status;
    const std::string said = ranks.said(rank);  // "all_reduce 5 (more grads): rank 1: Connection reset by peer …"
    EXPECT_TRUE(said.find("grads)") != std::string::npos || said.find("(round)") != std::string::npos) << said;
    EXPECT_EQ(said.find("did not arrive"), std::string::npos) << said;  // it came, and died
  }
}

TEST(Failures, WhatARankHasPrintedIsNotLostWithIt) {
  for (bool joins : {true, false}) {
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    const pid_t pid = fork();
    if (pid == 0) {
      std::setvbuf(stdout, nullptr, _IOFBF, 4096);  // as stdio does for a pipe
      dup2(ends[1], STDOUT_FILENO);
      if (joins && !engine::comm::join(engine::comm::RankEnv{}, at::kCPU).ok()) _exit(1);
      std::printf("step 50\n");
      raise(SIGKILL);
    }
    close(ends[1]);
    char said[32] = {};
    const ssize_t count = read(ends[0], said, sizeof said - 1);
    EXPECT_STREQ(said, joins ? "step 50\n" : "") << count;
    close(ends[0]);
    EXPECT_EQ(waitpid(pid, nullptr, 0), pid);
  }
}

TEST(Failures, ARankThatDoesNotComeIsNamedWithWhatItDidLast) {
  GroupOptions options;
  options.timeout = milliseconds{600};
  Processes ranks(3, options, [](Group& group) {
    at::Tensor one = at::zeros({1});
    group.all_reduce(one, Reduction::kSum, "loss");
    if (group.rank() == 1) pause();
    group.all_reduce(one, Reduction::kSum, "grads unit 3");
  });
  for (int rank : {0, 2}) {
    const int status = ranks.end_of(rank, milliseconds{8000});
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == kThrew);
    EXPECT_EQ(ranks.said(rank),
              "all_reduce 2 (grads unit 3): rank 1 did not arrive within 0.6 s (its last call was all_reduce 1 (loss) of 1 Float)");
  }
}

// A rank that does not come, as the launcher finds it: each rank is asked for its ring through its pipe, and the dumps are compared.
TEST(Failures, TheRingsOfAStalledRunNameTheRankAndTheOperation) {
  for (bool shared_memory : {true, false}) {
    GroupOptions options;
    options.shared_memory = shared_memory;
    Processes ranks(3, options, [](Group& group) {
      at::Tensor one = at::zeros({6});
      group.all_reduce(one, Reduction::kSum, "loss");
      auto all = group.split(0, -group.rank());
      all->barrier("split", milliseconds{60000});
      if (group.rank() == 1) pause();
      auto sum = group.start_all_reduce(one, Reduction::kSum, "grads unit 3");
      group.start_all_gather(at::zeros({18}), one, "params unit 3");
      sum->wait();
    });
    ranks.wait_for_start(3);
    diagnosis::Standstill verdict;
    // A rank that is slow is waited for in the first reduction and in the barrier as well.
    auto stalled = [&] { return verdict.waiting == std::vector<int>{0, 2} && verdict.collective == "all_reduce (grads unit 3)"; };
    const auto end = steady_clock::now() + milliseconds{60000};  // under a sanitizer, beside other tests
    do {
      std::this_thread::sleep_for(milliseconds{10});  // the ranks want the processor too
      std::vector<diagnosis::RankRecord> traces;
      for (int rank = 0; rank < 3; ++rank) {
        auto trace = diagnosis::read_flight_recorder(rank, ranks.flight(rank));
        ASSERT_TRUE(trace.ok()) << trace.error().render();
        traces.push_back(std::move(trace.value()));
      }
      verdict = diagnosis::compare_records(traces);
    } while (!stalled() && steady_clock::now() < end);
    EXPECT_EQ(verdict.code, "HANG-NEVER-ENTERED");
    EXPECT_EQ(verdict.culprits, std::vector<int>{1});
    EXPECT_EQ(verdict.waiting, (std::vector<int>{0, 2}));
    EXPECT_EQ(verdict.collective, "all_reduce (grads unit 3)");
    EXPECT_EQ(verdict.group, "world");
  }
}

void expect_mismatch(bool shared_memory, const std::function<void(Group&)>& body, const std::string& text) {
  GroupOptions options;
  options.shared_memory = shared_memory;
  options.check = true;
  Processes ranks(3, options, body);
  for (int rank = 0; rank < 3; ++rank) {
    const int status = ranks.end_of(rank, milliseconds{8000});
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == kThrew) << status;
    EXPECT_NE(ranks.said(rank).find("the ranks called different operations: " + text), std::string::npos) << ranks.said(rank);
  }
}

TEST(Failures, DifferentCallsAreNamedOnEveryRank) {
  for (bool shared_memory : {true, false}) {
    expect_mismatch(
        shared_memory, [](Group& group) { group.all_reduce(at::zeros({group.rank() == 2 ? 5 : 4}), Reduction::kSum, "grads"); },
        "rank 0 all_reduce 1 (grads) of 4 Float, rank 2 all_reduce 1 (grads) of 5 Float");
    expect_mismatch(
        shared_memory,
        [](Group& group) {
          if (group.rank() == 1) group.barrier("save", milliseconds{5000});
          else group.broadcast(at::zeros({4}), 0, "params");
        },
        "rank 0 broadcast 1 (params) of 4 Float, root 0, rank 1 barrier 1 (save)");
    expect_mismatch(
        shared_memory, [](Group& group) { group.all_reduce(at::zeros({4}), Reduction::kSum, group.rank() == 1 ? "a" : "b"); },
        "rank 0 all_reduce 1 (b) of 4 Float, rank 1 all_reduce 1 (a) of 4 Float");
  }
}

void limit_files(rlim_t bytes) {
  signal(SIGXFSZ, SIG_IGN);
  const rlimit limit{bytes, bytes};
  setrlimit(RLIMIT_FSIZE, &limit);
}

void sum_in_window(Group& group) {
  at::Tensor window = group.window(4 << 20, at::kFloat);
  window.fill_(1);
  group.all_reduce(window, Reduction::kSum, "sum");
  if (window[12345].item<float>() != 2) throw std::runtime_error("the sum is wrong");
  group.barrier("end", milliseconds{10000});
}

// A limit on the size of files is the nearest to memory that is not there.
TEST(Failures, WithoutMemoryToShareGlooIsUsedAndSaysSo) {
  Processes ranks(2, {}, sum_in_window, [] { limit_files(64 << 10); });
  for (int rank : {0, 1}) {
    EXPECT_EQ(ranks.end_of(rank, milliseconds{20000}), 0) << ranks.said(rank);
    EXPECT_EQ(ranks.began(rank).find("gloo on 127.0.0.1 between 2 ranks (no shared memory: rank 0: "), 0u) << ranks.began(rank);
  }
}

TEST(Failures, AWindowThatDoesNotFitIsOrdinaryMemory) {
  Processes ranks(2, {}, sum_in_window, [] { limit_files(8 << 20); });
  for (int rank : {0, 1}) {
    EXPECT_EQ(ranks.end_of(rank, milliseconds{20000}), 0) << ranks.said(rank);
    EXPECT_EQ(ranks.began(rank), "shared memory of 2 ranks");
  }
}

}  // namespace
