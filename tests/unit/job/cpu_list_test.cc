#include "job/choose/cpu_list.h"

#include <gtest/gtest.h>

namespace phalanx::job {
namespace {

std::vector<std::string> shares(const char* list, size_t parts) {
  std::vector<std::string> out;
  for (const CpuList& part : split(parse_cpu_list(list), parts)) out.push_back(text_of(part));
  return out;
}
using Texts = std::vector<std::string>;

TEST(CpuList, ReadsAndWrites) {
  EXPECT_EQ(text_of(parse_cpu_list("0-3,8,9,64-95\n")), "0-3,8-9,64-95");
  EXPECT_EQ(text_of(parse_cpu_list("9,8,3-5,4")), "3-5,8-9");
  EXPECT_EQ(count(parse_cpu_list("0-31,64-95")), 64);
  for (const char* bad : {"", "x", "3-", "-3", "5-3", "0-9999", "1,,2", "0-8191,0-8191"}) EXPECT_TRUE(parse_cpu_list(bad).empty()) << bad;
}

TEST(CpuList, SetsOfCpus) {
  EXPECT_EQ(text_of(intersect(parse_cpu_list("0-31,64-95"), parse_cpu_list("16-70"))), "16-31,64-70");
  EXPECT_EQ(text_of(join(parse_cpu_list("0-3"), parse_cpu_list("2-7,9"))), "0-7,9");
  EXPECT_TRUE(intersect(parse_cpu_list("0-3"), parse_cpu_list("4-7")).empty());
}

TEST(CpuList, BothThreadsOfACoreStayTogether) {
  EXPECT_EQ(shares("0-31,64-95", 4), (Texts{"0-7,64-71", "8-15,72-79", "16-23,80-87", "24-31,88-95"}));
  EXPECT_EQ(shares("0-4", 2), (Texts{"0-2", "3-4"}));
  EXPECT_EQ(shares("0,2,4,6", 2), (Texts{"0,2", "4,6"}));  // one by one: no range is long enough to be cut
  EXPECT_EQ(shares("0-7", 1), Texts{"0-7"});
}

}  // namespace
}  // namespace phalanx::job
