// Advice on single messages (codes/advice/): it follows from the lines that the verdict rests on, and from nothing else.
#include "diagnosis/logs/advice.h"

#include <gtest/gtest.h>

#include "codes/advice.h"

namespace phalanx::diagnosis {
namespace {

LogCause cause_with(std::vector<std::string> lines) {
  LogCause cause;
  for (std::string& line : lines) cause.evidence.push_back({0, 1, std::move(line)});
  add_advice(cause, cause.evidence);
  return cause;
}

LogCause cause_at(std::string line, std::string place) {
  LogCause cause;
  cause.evidence = {{0, 1, std::move(line), std::move(place)}};
  add_advice(cause, cause.evidence);
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

// "cannot import name … from torch" has a row; of one of the names more is known.
TEST(Advice, AnExactRowStandsForTheGeneralOne) {
  const LogCause cause = cause_with({"ImportError: cannot import name 'GradScaler' from 'torch.amp' (/opt/torch/amp/__init__.py)"});
  ASSERT_EQ(cause.advice.size(), 1u);
  EXPECT_NE(cause.advice[0].english.find("GradScaler"), std::string::npos) << cause.advice[0].english;
  EXPECT_EQ(cause_with({"ImportError: cannot import name 'Tensor2' from 'torch.distributed.tensor'"}).advice.size(), 1u);
}

TEST(Advice, SomeMessagesMeanSomethingOnlyWhereTheyAreRaised) {
  const std::string line = "AttributeError: 'Tensor' object has no attribute 'device_mesh'";
  EXPECT_EQ(cause_at(line, "accelerate/utils/fsdp_utils.py fsdp_utils.py:537 (fsdp2_load_full_state_dict)").advice.size(), 1u);
  EXPECT_TRUE(cause_at(line, "train.py:12 (main)").advice.empty());
}

TEST(Advice, ABareExceptionIsKnownByItsLineOfCode) {
  EXPECT_EQ(cause_at("AssertionError", "megatron/arguments.py arguments.py:282 (validate_args): assert not args.bf16").advice.size(), 1u);
  EXPECT_TRUE(cause_at("AssertionError: no GPU", "train.py:282 (main): assert not args.bf16").advice.empty());
}

TEST(Advice, SlotsAreWhatTheMessageHasBetweenTheWords) {
  const codes::Advice advice = codes::advice_on("size mismatch for |: copying|from|@torch/nn/modules/module.py");
  EXPECT_EQ(advice.place, "torch/nn/modules/module.py");
  ASSERT_EQ(advice.words.size(), 3u);
  const auto between = codes::between_words("size mismatch for head.weight: copying a param from x", advice.words);
  ASSERT_TRUE(between);
  EXPECT_EQ(codes::filled("{1} and {2}, {1}; {3} and {} stay.", *between), "head.weight and a param, head.weight; {3} and {} stay.");
  EXPECT_FALSE(codes::between_words("size mismatch for head.weight", advice.words));
}

TEST(Advice, APlaceMayBeThatOfAnyFrame) {
  const codes::Advice advice = codes::advice_on("No space left on device|@@arrow_writer");
  EXPECT_EQ(advice.place, "arrow_writer");
  EXPECT_TRUE(advice.on_the_way);
  LogCause cause;
  const std::string line = "OSError: [Errno 28] No space left on device";
  add_advice(cause, {{0, 1, line, "fsspec/implementations/local.py local.py:382 (write)", "datasets/arrow_writer.py(write_table) "}});
  EXPECT_EQ(cause.advice.size(), 1u);
  LogCause other;
  add_advice(other, {{0, 1, line, "fsspec/implementations/local.py local.py:382 (write)", "torch/serialization.py(save) "}});
  EXPECT_TRUE(other.advice.empty());
}

TEST(Advice, RowsForSeveralPlacesAreOneAdvice) {
  const std::string line = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 676.00 MiB.";
  EXPECT_EQ(cause_at(line, "apex/optimizers/fused_adam.py optimizer.py:759 (step_with_ready_grads)").advice.size(), 1u);
  EXPECT_TRUE(cause_at(line, "train.py:12 (main)").advice.empty());
}

// Where the verdict says no more than that a program failed, the message of another candidate may be known.
TEST(Advice, OfAnotherCandidateOnlyWhereTheVerdictSaysLittle) {
  for (const char* code : {"RUN-EXIT-CODE", "RUN-EXCEPTION", "FS-FILE-MISSING"}) {
    LogVerdict verdict;
    verdict.cause.emplace();
    verdict.cause->code = code;
    verdict.others.emplace_back().evidence = {{0, 1, "ModuleNotFoundError: No module named 'amp_C'"}};
    add_advice(verdict);
    EXPECT_EQ(verdict.cause->advice.size(), says_little(code) ? 1u : 0u) << code;
  }
}

TEST(Advice, TheTableIsWhole) {
  EXPECT_GE(codes::all_advice().size(), 470u);
  for (const codes::Advice& one : codes::all_advice()) {
    EXPECT_TRUE(one.english.ends_with('.')) << one.english;
    EXPECT_TRUE(one.chinese.ends_with("。")) << one.chinese;
  }
}

}  // namespace
}  // namespace phalanx::diagnosis
