#include "os/guarded.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <set>

#include "os/clock.h"

namespace phalanx::os {
namespace {

TEST(Guarded, AnswersComeBackWhateverTheOthersDo) {
  std::string big(3 << 20, 'x');
  std::vector<Guarded> calls = {
      {"quick", [] { return std::string("here"); }},
      {"hangs",
       []() -> std::string {
         for (;;) ::pause();
       }},
      {"dies",
       []() -> std::string {
         ::raise(SIGKILL);  // not SIGSEGV: a sanitizer would answer that one itself
         return "";
       }},
      {"big", [&big] { return big; }},
  };
  Mono begin = mono_now();
  auto results = run_guarded(calls, milliseconds(300));
  EXPECT_LT((mono_now() - begin).count(), 2'000'000'000);
  ASSERT_EQ(results.size(), 4u);
  ASSERT_TRUE(results[0].ok());
  EXPECT_EQ(*results[0], "here");
  ASSERT_FALSE(results[1].ok());
  EXPECT_EQ(results[1].error().kind, base::ErrorKind::kTimeout);
  EXPECT_NE(results[1].error().message.find("state S"), std::string::npos) << results[1].error().message;
  ASSERT_FALSE(results[2].ok());
  EXPECT_NE(results[2].error().message.find("SIGKILL"), std::string::npos) << results[2].error().message;
  ASSERT_TRUE(results[3].ok());
  EXPECT_EQ(results[3]->size(), big.size());
}

// Processes that the calls ran in.
TEST(Guarded, CallsThatAnswerShareAChild) {
  std::vector<Guarded> calls;
  for (int i = 0; i < 50; ++i) calls.push_back({"pid", [] { return std::to_string(::getpid()); }});
  std::set<std::string> children;
  for (const auto& result : run_guarded(calls, milliseconds(5000))) children.insert(result.ok() ? *result : "none");
  EXPECT_LT(children.size(), 5u) << "more only where the machine is so busy that a child was given up waiting for";
  EXPECT_EQ(children.count("none"), 0u);
}

TEST(Guarded, EachCallThatBlocksHoldsUpTheOthersOnlyForTheHandOver) {
  std::vector<Guarded> calls;
  for (int i = 0; i < 6; ++i)
    calls.push_back({"hangs", []() -> std::string {
                       for (;;) ::pause();
                     }});
  calls.push_back({"quick", [] { return std::string("here"); }});
  auto results = run_guarded(calls, milliseconds(1500));
  ASSERT_EQ(results.size(), 7u);
  for (int i = 0; i < 6; ++i) {
    ASSERT_FALSE(results[static_cast<size_t>(i)].ok());
    EXPECT_EQ(results[static_cast<size_t>(i)].error().kind, base::ErrorKind::kTimeout);
  }
  ASSERT_TRUE(results[6].ok()) << results[6].error().message;
}

TEST(Guarded, ACallThatComputesIsBusyNotHung) {
  auto results = run_guarded({{"computes",
                               []() -> std::string {
                                 for (volatile sig_atomic_t forever = 1; forever;) {}
                                 return "";
                               }}},
                             milliseconds(100));
  ASSERT_FALSE(results[0].ok());
  EXPECT_NE(results[0].error().kind, base::ErrorKind::kTimeout) << results[0].error().message;
  EXPECT_NE(results[0].error().message.find("busy"), std::string::npos) << results[0].error().message;
}

// As on a disk that is slow, and answers each of many questions in the end.
std::string waits_often(int times) {
  for (int i = 0; i < times; ++i) ::usleep(50'000);
  return "here";
}

TEST(Guarded, ACallThatIsSlowGetsMoreTimeAndOneThatStandsStillDoesNot) {
  Mono begin = mono_now();
  auto results = run_guarded({{"slow", [] { return waits_often(10); }}}, {milliseconds(200), milliseconds(150), milliseconds(20'000)});
  ASSERT_TRUE(results[0].ok()) << results[0].error().message;
  EXPECT_GE((mono_now() - begin).count(), 500'000'000);

  begin = mono_now();
  results = run_guarded({{"hangs",
                          []() -> std::string {
                            for (;;) ::pause();
                          }}},
                        {milliseconds(200), milliseconds(600), milliseconds(20'000)});
  EXPECT_GE((mono_now() - begin).count(), 600'000'000) << "it may yet answer";
  EXPECT_LT((mono_now() - begin).count(), 10'000'000'000);
  ASSERT_FALSE(results[0].ok());
  EXPECT_EQ(results[0].error().kind, base::ErrorKind::kTimeout);
}

TEST(Guarded, ACallThatIsSlowToTheEndIsNotHung) {
  auto results = run_guarded({{"slow", [] { return waits_often(1000); }}}, {milliseconds(200), milliseconds(5'000), milliseconds(600)});
  ASSERT_FALSE(results[0].ok());
  EXPECT_NE(results[0].error().kind, base::ErrorKind::kTimeout) << results[0].error().message;
}

TEST(Guarded, AnAnswerThatIsTooLargeIsAnError) {
  auto results =
      run_guarded({{"huge", [] { return std::string(17 << 20, 'x'); }}, {"quick", [] { return std::string("here"); }}}, milliseconds(5000));
  EXPECT_FALSE(results[0].ok());
  ASSERT_TRUE(results[1].ok());
  EXPECT_EQ(*results[1], "here");
}

// As one that ends, and must write back to a file system that hangs before it is gone.
TEST(Guarded, AChildThatClosesItsPipeAndStaysIsNotWaitedFor) {
  Mono begin = mono_now();
  auto results = run_guarded({{"stays",
                               []() -> std::string {
                                 ::close(3);
                                 for (;;) ::pause();
                               }}},
                             milliseconds(1000));
  EXPECT_LT((mono_now() - begin).count(), 5'000'000'000);
  EXPECT_FALSE(results[0].ok());
}

TEST(Guarded, WithoutCallsThereIsNoChildAndNoWait) {
  Mono begin = mono_now();
  EXPECT_TRUE(run_guarded({}, milliseconds(5000)).empty());
  EXPECT_LT((mono_now() - begin).count(), 1'000'000'000);
}

}  // namespace
}  // namespace phalanx::os
