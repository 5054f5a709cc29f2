#include "logs/passed_values.h"

#include <gtest/gtest.h>

namespace phalanx::logs {
namespace {

TEST(PassedValues, AreFoundWhereTheyStandAsWords) {
  const PassedValues values(std::string(16, 'k'), {"topsecret", "short", "top", "two words", "topsecret-and-more"});
  size_t found = 0;
  EXPECT_EQ(values.mask("topsecret", &found), "[redacted]");
  EXPECT_EQ(values.mask("a='topsecret' b=topsecret\n", &found), "a='[redacted]' b=[redacted]\n");
  EXPECT_EQ(values.mask("topsecret-and-more", &found), "[redacted]") << "the longer one first";
  EXPECT_EQ(values.mask("two words", &found), "[redacted]");
  EXPECT_EQ(found, 5u);
  EXPECT_EQ(values.mask("nontopsecret topsecrets short top", &found), "nontopsecret topsecrets short top");
  EXPECT_EQ(found, 5u);
}

TEST(PassedValues, TravelAsText) {
  const PassedValues values(std::string("\x00\xff key", 6), {"topsecret"});
  const PassedValues again = PassedValues::read(values.text());
  EXPECT_EQ(again.text(), values.text());
  EXPECT_EQ(again.mask("topsecret", nullptr), "[redacted]");
  EXPECT_EQ(values.text().find("topsecret"), std::string::npos);
  for (const char* bad :
       {"", "[]", "{", R"({"key":[1],"values":[[1,2]]})", R"({"key":"x","values":[[9,2]]})", R"({"key":[],"values":[7,[9]]})"})
    EXPECT_TRUE(PassedValues::read(bad).empty()) << bad;
}

}  // namespace
}  // namespace phalanx::logs
