// What is said of names and values, held against what strtoll and NCCL's own table say.
#include "doctor/views/nccl_variables.h"

#include <gtest/gtest.h>

namespace phalanx::doctor {
namespace {

TEST(NcclVariables, TheTableIsSortedAndFound) {
  auto all = nccl_variables();
  EXPECT_GE(all.size(), 250u);
  for (size_t i = 1; i < all.size(); ++i) EXPECT_LT(all[i - 1].name, all[i].name);
  for (const NcclVariable& v : all) EXPECT_EQ(find_nccl_variable(v.name), &v);
  EXPECT_EQ(find_nccl_variable("NCCL_IB_RETRY_CNT")->max, 7);
  EXPECT_EQ(find_nccl_variable("NCCL_RAS_ENABLE")->since, 24);
  EXPECT_EQ(find_nccl_variable("NCCL_TREE_THRESHOLD")->removed, 5);
  EXPECT_EQ(find_nccl_variable("NCCL_TIMEOUT"), nullptr);
}

TEST(NcclVariables, NumbersAreReadAsStrtollReadsThem) {
  struct {
    const char* text;
    int64_t value;
    bool whole, octal;
  } cases[] = {{"1", 1, true, false},      {"true", 0, false, false}, {"010", 8, true, true},  {"0x10", 16, true, false},
               {"20ms", 20, false, false}, {" 7", 7, true, false},    {"-1", -1, true, false}, {"0", 0, true, false},
               {"00", 0, true, false},     {"08", 0, false, false},   {"on", 0, false, false}};
  for (const auto& c : cases) {
    std::optional<ReadNumber> read = read_as_nccl(c.text);
    ASSERT_TRUE(read.has_value()) << c.text;
    EXPECT_EQ(read->value, c.value) << c.text;
    EXPECT_EQ(read->whole, c.whole) << c.text;
    EXPECT_EQ(read->octal, c.octal) << c.text;
  }
  EXPECT_FALSE(read_as_nccl("").has_value());
  EXPECT_FALSE(read_as_nccl("99999999999999999999").has_value());
}

TEST(NcclVariables, TheNameThatWasMeant) {
  EXPECT_EQ(meant_name("NCCL_SOCKET_IFNAM"), "NCCL_SOCKET_IFNAME");
  EXPECT_EQ(meant_name("NCCL_SOKCET_IFNAME"), "NCCL_SOCKET_IFNAME");
  EXPECT_EQ(meant_name("NCLL_DEBUG"), "NCCL_DEBUG");
  EXPECT_EQ(meant_name("nccl_debug"), "NCCL_DEBUG");
  EXPECT_EQ(meant_name("CUDA_VISIBLE_DEVICE"), "CUDA_VISIBLE_DEVICES");
  EXPECT_EQ(meant_name("TORCH_NCCL_BLOKING_WAIT"), "TORCH_NCCL_BLOCKING_WAIT");
  for (const char* fine : {"NCCL_DEBUG", "NCCL_VERSION", "NCCL_BLOCKING_WAIT", "CUDA_VISIBLE_DEVICES", "CUDA_VERSION", "WANDB_NAME",
                           "NCCL_FASTER_PLEASE", "HOME", ""})
    EXPECT_EQ(meant_name(fine), "") << fine;
  EXPECT_EQ(meant_name(std::string(100'000, 'N')), "");
}

TEST(NcclVariables, WordsOfLists) {
  EXPECT_EQ(unknown_word("NCCL_DEBUG", "DEBUG"), "debug");
  EXPECT_EQ(unknown_word("NCCL_DEBUG", "warn"), "");
  EXPECT_EQ(unknown_word("NCCL_ALGO", "ring,collnetdirect;allreduce:tree,collnetdirect;broadcast:ring"), "");
  EXPECT_EQ(unknown_word("NCCL_ALGO", "^Tree"), "");
  EXPECT_EQ(unknown_word("NCCL_PROTO", "Simple,LL64"), "ll64");
  EXPECT_EQ(unknown_word("NCCL_P2P_LEVEL", "NVL"), "");
  EXPECT_EQ(unknown_word("NCCL_SOCKET_IFNAME", "anything"), "");
}

TEST(NcclVariables, Minor) {
  EXPECT_EQ(nccl_minor("2.20.5+cuda12.4"), 20);
  EXPECT_EQ(nccl_minor("1.3.4"), -1);
  EXPECT_EQ(nccl_minor(""), -1);
}

}  // namespace
}  // namespace phalanx::doctor
