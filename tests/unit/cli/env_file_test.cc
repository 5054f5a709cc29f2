#include "cli/flags/env_file.h"

#include <gtest/gtest.h>

#include <fstream>
#include <random>
#include <sstream>

namespace phalanx::cli {
namespace {

using Variables = std::vector<std::pair<std::string, std::string>>;

Variables read(std::string_view text) {
  auto variables = parse_env_file(text, "job.env");
  EXPECT_TRUE(variables.ok()) << (variables.ok() ? "" : variables.error().message);
  return variables.ok() ? *variables : Variables{};
}

std::string refusal(std::string_view text) {
  auto variables = parse_env_file(text, "job.env");
  EXPECT_FALSE(variables.ok()) << text;
  if (variables.ok()) return "";
  EXPECT_EQ(variables.error().kind, base::ErrorKind::kConfig);
  return variables.error().message;
}

TEST(EnvFile, PlainLines) {
  EXPECT_EQ(read("A=1\n\n# comment\n  # another\nB=two words \nexport C=3\nEMPTY=\n"),
            (Variables{{"A", "1"}, {"B", "two words"}, {"C", "3"}, {"EMPTY", ""}}));
  EXPECT_TRUE(read("").empty());
  EXPECT_TRUE(read("\n#only\n").empty());
  EXPECT_EQ(read("\xef\xbb\xbf"
                 "A=1\r\nB=2\r\n"),
            (Variables{{"A", "1"}, {"B", "2"}}));
  EXPECT_EQ(read("A=b=c"), (Variables{{"A", "b=c"}}));
  EXPECT_EQ(read("exported=1"), (Variables{{"exported", "1"}}));
}

TEST(EnvFile, NothingIsExpanded) {
  EXPECT_EQ(read("A=$HOME/x\nB=\"$HOME `id`\"\nC='$(id)'\nD=\"\\$X\\\"\\\\\""),
            (Variables{{"A", "$HOME/x"}, {"B", "$HOME `id`"}, {"C", "$(id)"}, {"D", "$X\"\\"}}));
}

TEST(EnvFile, QuotesAndEscapes) {
  EXPECT_EQ(read("A=' x '\nB=\"a\\nb\\tc\"\nC='it\"s'\nD=\"it's\"\nE='' # note\nF=a'b'"),
            (Variables{{"A", " x "}, {"B", "a\nb\tc"}, {"C", "it\"s"}, {"D", "it's"}, {"E", ""}, {"F", "a'b'"}}));
}

TEST(EnvFile, HashIsACommentOnlyAfterABlank) {
  EXPECT_EQ(read("A=x#y\nB=x #y\nC=#y\nD='x #y'\nE= #y"), (Variables{{"A", "x#y"}, {"B", "x"}, {"C", "#y"}, {"D", "x #y"}, {"E", ""}}));
}

TEST(EnvFile, TheLaterOfAPairStaysBehindTheEarlier) { EXPECT_EQ(read("A=1\nA=2"), (Variables{{"A", "1"}, {"A", "2"}})); }

TEST(EnvFile, RefusalsNameFileAndLine) {
  EXPECT_EQ(refusal("A=1\nB\n"), "job.env:2: \"B\" has no '='");
  EXPECT_EQ(refusal("A =1"), "job.env:1: \"A \" is not the name of a variable");
  EXPECT_EQ(refusal("1A=1"), "job.env:1: \"1A\" is not the name of a variable");
  EXPECT_EQ(refusal("=1"), "job.env:1: \"\" is not the name of a variable");
  EXPECT_EQ(refusal("A='x"), "job.env:1: a single quote is not closed on its line");
  EXPECT_EQ(refusal("A=\"x\\\""), "job.env:1: a double quote is not closed on its line");
  EXPECT_EQ(refusal("A=\"x\\"), "job.env:1: a double quote is not closed on its line");
  EXPECT_EQ(refusal("A='x'y"), "job.env:1: \"y\" follows the closing quote");
  EXPECT_EQ(refusal("A='x'#y"), "job.env:1: \"#y\" follows the closing quote");
  EXPECT_EQ(refusal("\n\nA=\"\\p\""), "job.env:3: \"\\p\" is not an escape");
  EXPECT_EQ(refusal("BASH_FUNC_which%%=() {"), "job.env:1: \"BASH_FUNC_which%%\" is not the name of a variable");
  EXPECT_EQ(refusal(std::string_view("A=\0", 3)), "job.env:1: the line contains a zero byte");
}

TEST(EnvFile, RefusalsSayWhatToWrite) {
  EXPECT_EQ(parse_env_file("TOKEN", "f").error().hint, "write TOKEN=value, or pass this machine's value on with --export TOKEN");
  EXPECT_EQ(parse_env_file("A =1", "f").error().hint, "write NAME=value without spaces around '='");
}

TEST(EnvFile, Limits) {
  EXPECT_EQ(read("A=" + std::string(kLongestEnvValue, 'x')).size(), 1u);
  refusal("A=" + std::string(kLongestEnvValue + 1, 'x'));
  refusal(std::string(kLargestEnvFile + 1, '\n'));
  refusal(std::string(256, 'A') + "=1");
  std::string many;
  for (size_t i = 0; i < kMostEnvVariables; ++i) many += "A=1\n";
  EXPECT_EQ(read(many).size(), kMostEnvVariables);
  refusal(many + "A=1\n");
}

TEST(EnvFile, AnyValueSurvivesDoubleQuotes) {
  std::mt19937 random(5);
  for (int i = 0; i < 3000; ++i) {
    std::string value;
    for (size_t n = random() % 12; n > 0; --n) value += static_cast<char>(1 + random() % 255);
    std::string text = "V=\"";
    for (char c : value) {
      if (c == '\n') text += "\\n";
      else if (c == '\r') text += "\\r";
      else if (c == '"' || c == '\\') text += {'\\', c};
      else text += c;
    }
    ASSERT_EQ(read(text + "\""), (Variables{{"V", value}}));
  }
}

TEST(EnvFile, TheExampleOfItsPageReadsAsItSays) {
  std::string data = PHALANX_TEST_DATA;
  std::ifstream file(data.substr(0, data.rfind("/tests/data")) + "/docs/formats/env-file.md");
  std::ostringstream page;
  page << file.rdbuf();
  std::string text = page.str();
  size_t begin = text.find("```\n") + 4;
  EXPECT_EQ(read(text.substr(begin, text.find("```\n", begin) - begin)),
            (Variables{{"HF_HUB_OFFLINE", "1"},
                       {"NCCL_DEBUG", "INFO"},
                       {"GREETING", "two words"},
                       {"COLOUR", "#ff0000"},
                       {"QUOTED", "as it is: \\n $HOME #"},
                       {"ESCAPED", "a line\nanother, a \"quote\", a \\ backslash"},
                       {"EMPTY", ""}}));
}

TEST(VariableName, Rules) {
  for (std::string_view good : {"A", "_", "a1", "HF_HUB"}) EXPECT_TRUE(is_variable_name(good)) << good;
  for (std::string_view bad : {"", "1", "a-b", "a b", "ä", "a."}) EXPECT_FALSE(is_variable_name(bad)) << bad;
}

}  // namespace
}  // namespace phalanx::cli
