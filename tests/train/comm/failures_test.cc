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
#include <functional>
#include <random>
#include <thread>
#include <torch/csrc/distributed/c10d/FileStore.hpp>

#include "os/files.h"
#include "ranks.h"

namespace {

using engine::comm::Group;
using engine::comm::GroupOptions;
using engine::comm::Reduction;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr int kThrew = 7;

// `world` processes, each with its rank's group. They end with 0, or with kThrew when body throws; what() then lies in the folder.
class Processes {
 public:
  Processes(int world, const GroupOptions& options, const std::function<void(Group&)>& body, const std::function<void()>& before = [] {}) {
    for (int rank = 0; rank < world; ++rank) {
      const pid_t pid = fork();
      if (pid == 0) _exit(be(rank, world, options, body, before));
      pids_.push_back(pid);
    }
  }
  ~Processes() {
    for (pid_t pid : pids_)
      if (pid > 0) {
        kill(pid, SIGKILL);
        waitpid(pid, nullptr, 0);
      }
  }
  void kill_rank(int rank) { kill(pids_[static_cast<size_t>(rank)], SIGKILL); }
  // The wait status of a rank, within the limit; -1: it still runs.
  int end_of(int rank, milliseconds limit) {
    pid_t& pid = pids_[static_cast<size_t>(rank)];
    const auto end = steady_clock::now() + limit;
    int status = 0;
    while (waitpid(pid, &status, WNOHANG) == 0) {
      if (steady_clock::now() > end) return -1;
      std::this_thread::sleep_for(milliseconds{5});
    }
    pid = 0;
    return status;
  }
  std::string said(int rank) {
    auto text = os::read_file(folder_ / fmt::format("said-{}", rank), 1 << 16);
    return text.ok() ? *text : "";
  }
  void wait_for_start(int world) {
    for (int rank = 0; rank < world; ++rank)
      while (access((folder_ / fmt::format("began-{}", rank)).c_str(), F_OK) != 0) std::this_thread::sleep_for(milliseconds{2});
  }

 private:
  int be(int rank, int world, const GroupOptions& options, const std::function<void(Group&)>& body, const std::function<void()>& before) {
    try {
      before();
      auto store = c10::make_intrusive<c10d::FileStore>(folder_ / "store", world);
      auto group = engine::comm::make_group({store, rank == 0}, {rank, world, at::kCPU, "127.0.0.1", ""}, options);
      note("began", rank, group->describe());
      body(*group);
      return 0;
    } catch (const std::exception& failure) {
      note("said", rank, failure.what());
      return kThrew;
    }
  }
  void note(const char* name, int rank, const std::string& text) {
    const std::string path = folder_ / fmt::format("{}-{}", name, rank);
    if (FILE* file = std::fopen((path + ".new").c_str(), "w")) {
      std::fputs(text.c_str(), file);
      std::fclose(file);
      std::rename((path + ".new").c_str(), path.c_str());
    }
  }

 public:
  std::string began(int rank) { return os::read_file(folder_ / fmt::format("began-{}", rank), 1 << 16).value(); }

 private:
  ranks::TempFolder folder_;
  std::vector<pid_t> pids_;
};

void work_forever(Group& group) {
  at::Tensor window = group.window(100000, at::kFloat), plain = at::zeros({300000});
  for (int64_t i = 0;; ++i) {
    group.all_reduce(window, Reduction::kMax, "grads");
    group.all_reduce(plain, Reduction::kMax, "more grads");
    if (i % 3 == 0) group.barrier("round", milliseconds{60000});
  }
}

std::string unix_sockets() {
  auto text = os::read_file("/proc/net/unix", 16 << 20);
  return text.ok() ? *text : "";
}

TEST(Failures, AKilledRankIsNoticedByAllAndNothingStays) {
  std::mt19937 random(1);
  for (int round = 0; round < 6; ++round) {
    constexpr int kWorld = 3;
    const int victim = static_cast<int>(random() % kWorld);
    Processes processes(kWorld, {}, work_forever);
    processes.wait_for_start(kWorld);
    std::this_thread::sleep_for(milliseconds{random() % 60});
    processes.kill_rank(victim);
    const auto killed = steady_clock::now();
    for (int rank = 0; rank < kWorld; ++rank) {
      const int status = processes.end_of(rank, milliseconds{5000});
      if (rank == victim) continue;
      ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == kThrew) << "rank " << rank << " status " << status;
      EXPECT_NE(processes.said(rank).find(fmt::format("rank {} is gone", victim)), std::string::npos) << processes.said(rank);
    }
    EXPECT_LT(steady_clock::now() - killed, milliseconds{2500});
    EXPECT_EQ(unix_sockets().find("phalanx-comm-"), std::string::npos);
  }
}

TEST(Failures, AKilledRankIsNoticedOverGloo) {
  GroupOptions options;
  options.shared_memory = false;
  Processes processes(3, options, work_forever);
  processes.wait_for_start(3);
  std::this_thread::sleep_for(milliseconds{30});
  processes.kill_rank(1);
  for (int rank : {0, 2}) {
    const int status = processes.end_of(rank, milliseconds{5000});
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == kThrew) << "rank " << rank << " status " << status;
    EXPECT_NE(processes.said(rank).find("grads"), std::string::npos) << processes.said(rank);
  }
}

TEST(Failures, ARankThatDoesNotComeIsNamedWithWhatItDidLast) {
  GroupOptions options;
  options.timeout = milliseconds{600};
  Processes processes(3, options, [](Group& group) {
    at::Tensor one = at::zeros({1});
    group.all_reduce(one, Reduction::kSum, "loss");
    if (group.rank() == 1) pause();
    group.all_reduce(one, Reduction::kSum, "grads unit 3");
  });
  for (int rank : {0, 2}) {
    const int status = processes.end_of(rank, milliseconds{8000});
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == kThrew);
    EXPECT_EQ(processes.said(rank),
              "all_reduce 2 (grads unit 3): rank 1 never came within 0.6 s (its last call was all_reduce 1 (loss) of 1 Float)");
  }
}

void expect_mismatch(bool shared_memory, const std::function<void(Group&)>& body, const std::string& text) {
  GroupOptions options;
  options.shared_memory = shared_memory;
  options.check = true;
  Processes processes(3, options, body);
  for (int rank = 0; rank < 3; ++rank) {
    const int status = processes.end_of(rank, milliseconds{8000});
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == kThrew) << status;
    EXPECT_NE(processes.said(rank).find("the ranks call different operations: " + text), std::string::npos) << processes.said(rank);
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
  Processes processes(2, {}, sum_in_window, [] { limit_files(64 << 10); });
  for (int rank : {0, 1}) {
    EXPECT_EQ(processes.end_of(rank, milliseconds{20000}), 0) << processes.said(rank);
    EXPECT_EQ(processes.began(rank).find("gloo on 127.0.0.1 between 2 ranks (no shared memory: rank 0: "), 0u) << processes.began(rank);
  }
}

TEST(Failures, AWindowThatDoesNotFitIsOrdinaryMemory) {
  Processes processes(2, {}, sum_in_window, [] { limit_files(8 << 20); });
  for (int rank : {0, 1}) {
    EXPECT_EQ(processes.end_of(rank, milliseconds{20000}), 0) << processes.said(rank);
    EXPECT_EQ(processes.began(rank), "shared memory of 2 ranks");
  }
}

}  // namespace
