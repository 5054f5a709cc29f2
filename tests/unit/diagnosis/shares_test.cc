// What a rank's time goes into, by where its first thread is found; and whom the others wait for.
#include "diagnosis/hang/shares.h"

#include <gtest/gtest.h>

#include "codes/code.h"
#include "diagnosis/hang/straggler.h"

using namespace phalanx;

namespace {

using diagnosis::RankShares;
using diagnosis::Spent;
using diagnosis::Straggler;
using machine::ThreadSample;

ThreadSample thread(const char* state, const char* wchan, std::vector<std::string> frames, std::vector<machine::PythonFrame> python = {}) {
  ThreadSample t;
  t.tid = 100;
  t.state = state;
  t.wchan = wchan;
  t.frames = std::move(frames);
  t.python = std::move(python);
  return t;
}

const ThreadSample kWaits = thread("S", "futex_wait_queue", {"libc.so.6!pthread_cond_wait", "libtorch_cpu.so!c10d::Work::wait"});
const ThreadSample kComputes = thread("R", "", {}, {{"/data/train.py", "augment", 42}});
const ThreadSample kLoads = thread("S", "poll_schedule_timeout", {"libc.so.6!poll"},
                                   {{"/usr/lib/python3.11/selectors.py", "select", 415},
                                    {"/x/site-packages/torch/utils/data/dataloader.py", "_try_get_data", 1132},
                                    {"/data/train.py", "epoch", 12}});

TEST(Shares, AThreadSaysWhatItsRankIsAbout) {
  EXPECT_EQ(diagnosis::spent_on(kWaits), Spent::kCommunicating);
  EXPECT_EQ(diagnosis::spent_on(kComputes), Spent::kComputing);
  EXPECT_EQ(diagnosis::spent_on(kLoads), Spent::kLoading);
  EXPECT_EQ(diagnosis::spent_on(thread("D", "folio_wait_bit", {}, {{"/x/torch/serialization.py", "save", 423}})), Spent::kSaving);
  EXPECT_EQ(diagnosis::spent_on(thread("S", "futex", {"libcuda.so.1!+0x1", "libcudart.so.12!cudaStreamSynchronize"})), Spent::kDevice);
  EXPECT_EQ(diagnosis::spent_on(thread("S", "hrtimer_nanosleep", {"libc.so.6!clock_nanosleep"})), Spent::kElse);
  // The reducer of DistributedDataParallel: waiting at the end of backward, and left on the stack of a rank that sleeps.
  EXPECT_EQ(diagnosis::spent_on(thread("S", "futex", {"libc.so.6!pthread_cond_wait", "libtorch_cpu.so!c10d::Reducer::finalize_backward"})),
            Spent::kCommunicating);
  EXPECT_EQ(diagnosis::spent_on(thread("R", "", {"libtorch_cpu.so!c10d::Reducer::mark_bucket_ready"})), Spent::kComputing);
  EXPECT_EQ(diagnosis::spent_on(thread("S", "hrtimer_nanosleep",
                                       {"libc.so.6!clock_nanosleep", "python3.11!+0x1", "libtorch_cpu.so!c10d::Reducer::autograd_hook"})),
            Spent::kElse);
  // A dataset that computes in the first process is loading too.
  EXPECT_EQ(
      diagnosis::spent_on(thread("R", "", {}, {{"/data/set.py", "__getitem__", 9}, {"/x/torch/utils/data/_utils/fetch.py", "fetch", 51}})),
      Spent::kLoading);
  EXPECT_EQ(diagnosis::spent_on(thread("S", "ep_poll", {}, {{"/x/torch/distributed/distributed_c10d.py", "barrier", 3}})),
            Spent::kCommunicating);
}

machine::RankProfile profile(int64_t rank, int64_t computes, int64_t waits, int64_t loads = 0) {
  return {rank, computes + waits + loads, {{computes, kComputes}, {waits, kWaits}, {loads, kLoads}}};
}

TEST(Shares, PartsOfTheLooks) {
  RankShares shares = diagnosis::shares_of(profile(3, 30, 60, 10), 1);
  EXPECT_EQ(shares.rank, 3);
  EXPECT_EQ(shares.looks, 100);
  EXPECT_DOUBLE_EQ(shares.of(Spent::kComputing), 0.3);
  EXPECT_DOUBLE_EQ(shares.of(Spent::kCommunicating), 0.6);
  EXPECT_DOUBLE_EQ(shares.of(Spent::kLoading), 0.1);
  EXPECT_EQ(shares.place, "train.py:42 (augment)");
  EXPECT_EQ(diagnosis::shares_of({0, 5, {{-7, kWaits}, {INT64_MAX, kWaits}}}, 0).looks, 0) << "counts that cannot be";
}

std::vector<RankShares> shares(std::vector<machine::RankProfile> profiles) {
  std::vector<RankShares> all;
  for (const auto& p : profiles) all.push_back(diagnosis::shares_of(p, static_cast<size_t>(p.rank / 2)));
  return all;
}

TEST(Shares, WhoHardlyWaitsWhileAllOthersDoIsWaitedFor) {
  std::optional<Straggler> found =
      diagnosis::straggler(shares({profile(0, 30, 42), profile(1, 28, 44), profile(2, 70, 2), profile(3, 30, 42)}), 60);
  ASSERT_TRUE(found);
  ASSERT_EQ(found->ranks.size(), 1u);
  EXPECT_EQ(found->ranks[0].rank, 2);
  EXPECT_NEAR(found->times_as_fast(), 1 / (1 - 40.0 / 72), 1e-9);
  diagnosis::Diagnosis verdict = diagnosis::straggler_verdict(*found);
  EXPECT_EQ(verdict.code, "SLOW-RANK");
  EXPECT_EQ(verdict.ranks, std::vector<int>{2});
  EXPECT_EQ(verdict.host, 1u);
  EXPECT_EQ(verdict.evidence.english,
            "it waits for other ranks 3 % of the time, every other rank at least 58 %: they wait for it. If it were as fast as they are, "
            "steps could be up to 2.2 times as fast");
  ASSERT_EQ(verdict.details.size(), 1u);
  EXPECT_EQ(verdict.details[0].english, "rank 2 is most often at train.py:42 (augment), computing");
}

TEST(Shares, ASlowHostIsNamedWithAllItsRanks) {
  std::optional<Straggler> found =
      diagnosis::straggler(shares({profile(0, 30, 42), profile(1, 28, 44), profile(2, 68, 4), profile(3, 69, 3)}), 60);
  ASSERT_TRUE(found);
  EXPECT_EQ(diagnosis::straggler_verdict(*found).ranks, (std::vector<int>{2, 3}));
}

TEST(Shares, ASlowLoaderHasACodeOfItsOwn) {
  std::optional<Straggler> found =
      diagnosis::straggler(shares({profile(0, 30, 42), profile(1, 28, 44), profile(2, 20, 2, 50), profile(3, 30, 42)}), 60);
  ASSERT_TRUE(found);
  diagnosis::Diagnosis verdict = diagnosis::straggler_verdict(*found);
  EXPECT_EQ(verdict.code, "SLOW-LOADER");
  EXPECT_TRUE(codes::find(verdict.code));
  EXPECT_EQ(verdict.details[0].english, "69 % of its time goes into loading data, more than on any other rank");
  EXPECT_EQ(verdict.details[1].english, "rank 2 is most often at train.py:12 (epoch), loading data");
}

TEST(Shares, EvenRanksOrTooFewLooksNameNobody) {
  EXPECT_FALSE(diagnosis::straggler(shares({profile(0, 30, 42), profile(1, 38, 34), profile(2, 40, 32)}), 60));
  EXPECT_FALSE(diagnosis::straggler(shares({profile(0, 72, 0), profile(1, 70, 2)}), 60)) << "all compute";
  EXPECT_FALSE(diagnosis::straggler(shares({profile(0, 2, 70), profile(1, 0, 72)}), 60)) << "all wait: the network is slow";
  EXPECT_FALSE(diagnosis::straggler(shares({profile(0, 10, 20), profile(1, 30, 0)}), 60));
  EXPECT_FALSE(diagnosis::straggler(shares({profile(0, 30, 0)}), 16));
  EXPECT_FALSE(diagnosis::straggler({}, 16));
}

TEST(Shares, TheCauseIsToldInsteadOfTheRankWhereItIsKnown) {
  diagnosis::Stragglers watch;
  for (int i = 0; i < 3; ++i) watch.take(1, wire::Pulse{0, 2500, {{2, 600, 700, 0, 'R', 1, 0}}, {}, 0});
  std::optional<Straggler> found =
      diagnosis::straggler(shares({profile(0, 30, 42), profile(1, 28, 44), profile(2, 70, 2), profile(3, 30, 42)}), 60);
  ASSERT_TRUE(found);
  std::vector<diagnosis::Diagnosis> told = watch.name(*found);
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].code, "SLOW-CPU-LIMIT");
  EXPECT_EQ(told[0].evidence.english, "the CPU limit of its cgroup throttles it for 28 % of the time");
  ASSERT_EQ(told[0].details.size(), 2u);
  EXPECT_TRUE(watch.name(*found).empty()) << "once";
}

}  // namespace
