// Advice on single messages (codes/advice/): it follows from the lines that the verdict rests on, and from nothing else.
#include "diagnosis/logs/advice.h"

#include <gtest/gtest.h>

#include "codes/advice.h"

namespace phalanx::diagnosis {
namespace {

LogCause cause_with(std::vector<std::string> lines) {
  LogCause cause;
  for (std::string& line : lines) cause.evidence.push_back({0, 1, std::move(line)});
  add_advice(cause);
  return cause;
}

TEST(Advice, FollowsFromTheMessageInBothLanguages) {
  const LogCause cause = cause_with({"Traceback (most recent call last):", "ModuleNotFoundError: No module named 'amp_C'"});
  ASSERT_EQ(cause.advice.size(), 1u);
  EXPECT_NE(cause.advice[0].english.find("NVIDIA apex"), std::string::npos);
  EXPECT_NE(cause.advice[0].chinese.find("NVIDIA apex 的编译部分"), std::string::npos);
}

TEST(Advice, AnotherMessageHasNone) {
  EXPECT_TRUE(cause_with({"ModuleNotFoundError: No module named 'amp_C_tools'"}).advice.empty());
  EXPECT_TRUE(cause_with({"only supports head dimension at most 256, says FlashAttention"}).advice.empty());  // in another order
  EXPECT_TRUE(cause_with({}).advice.empty());
}

TEST(Advice, TheLastLineComesFirstAndTwoAreEnough) {
  const LogCause cause =
      cause_with({"No module named 'cv2'", "No module named 'sklearn'", "RuntimeError: operator torchvision::nms does not exist"});
  ASSERT_EQ(cause.advice.size(), 2u);
  EXPECT_NE(cause.advice[0].english.find("torchvision"), std::string::npos);
  EXPECT_NE(cause.advice[1].english.find("scikit-learn"), std::string::npos);
}

TEST(Advice, TheTableIsWhole) {
  EXPECT_GE(codes::all_advice().size(), 120u);
  for (const codes::Advice& one : codes::all_advice()) {
    EXPECT_TRUE(one.english.ends_with('.')) << one.english;
    EXPECT_TRUE(one.chinese.ends_with("。")) << one.chinese;
  }
}

}  // namespace
}  // namespace phalanx::diagnosis
