#include "os/guarded.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include "os/clock.h"

namespace os {
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

}  // namespace
}  // namespace os
