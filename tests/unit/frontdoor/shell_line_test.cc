// Lines as they are pasted, and what a hostile text can do: nothing but be refused.
#include "frontdoor/shell_line.h"

#include <gtest/gtest.h>

#include "base/text.h"

namespace phalanx::frontdoor {
namespace {

std::vector<ShellCommand> parsed(std::string_view text) {
  base::Result<std::vector<ShellCommand>> commands = parse_shell(text);
  EXPECT_TRUE(commands.ok()) << commands.error().message;
  return commands.ok() ? std::move(commands).value() : std::vector<ShellCommand>();
}

std::string refusal(std::string_view text) {
  base::Result<std::vector<ShellCommand>> commands = parse_shell(text);
  EXPECT_FALSE(commands.ok()) << text;
  return commands.ok() ? "" : commands.error().message;
}

TEST(ShellLine, WordsQuotesAndContinuedLines) {
  const auto all = parsed("a 'b c' \"d \\\"e\\\"\" f\\ g \\\n  h ''");
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].words, (std::vector<std::string>{"a", "b c", "d \"e\"", "f g", "h", ""}));
}

TEST(ShellLine, AssignmentsInFrontAndExportsBefore) {
  const auto all = parsed("X=1\nexport Y=2; Z=3\nexport Z\nA=$X B=\"$Y\" run $Z ${X}0 '$X'\nother");
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].line, 4);
  EXPECT_EQ(all[0].words, (std::vector<std::string>{"run", "3", "10", "$X"}));
  EXPECT_EQ(all[0].assignments, (std::vector<std::pair<std::string, std::string>>{{"Y", "2"}, {"Z", "3"}, {"A", "1"}, {"B", "2"}}));
  EXPECT_EQ(all[1].assignments, (std::vector<std::pair<std::string, std::string>>{{"Y", "2"}, {"Z", "3"}}));
}

TEST(ShellLine, UnknownVariablesKeepTheirName) {
  const auto all = parsed("G=$1\nrun $G ${H} ${I:-7} $");
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].words, (std::vector<std::string>{"run", "${1}", "${H}", "7", "$"}));
  EXPECT_EQ(all[0].unknown, (std::vector<std::string>{"1", "H"}));
}

TEST(ShellLine, RedirectionsAreTakenOff) {
  const auto all = parsed("run a >log.txt 2>&1 </dev/null &");
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].words, (std::vector<std::string>{"run", "a"}));
  EXPECT_EQ(all[0].dropped, (std::vector<std::string>{">log.txt", "2>&1", "</dev/null", "&"}));
}

TEST(ShellLine, CommentsAndSeparators) {
  const auto all = parsed("# none\na #b\nc#d && e; f | g");
  ASSERT_EQ(all.size(), 5u);
  EXPECT_EQ(all[1].words, std::vector<std::string>{"c#d"});
}

TEST(ShellLine, WhatIsRefused) {
  EXPECT_EQ(refusal("a\nb 'c"), "line 2: a single quote is left open");
  EXPECT_EQ(refusal("a \"c"), "line 1: a double quote is left open");
  EXPECT_EQ(refusal("a $(date)"), "line 1: $(…) is not run here: write its result");
  EXPECT_EQ(refusal("a `date`"), "line 1: commands between backquotes are not run here");
  EXPECT_EQ(refusal("a ${x%y}"), "line 1: only a name, with or without :-value, may stand between braces");
  EXPECT_EQ(refusal(std::string_view("a\0b", 3)), "line 1: a zero byte");
  EXPECT_EQ(refusal(std::string(kLargestShellText + 1, 'a')), "line 1: the text is larger than 1 MiB");
}

// Each line doubles the variable: the limit on a word's size ends it.
TEST(ShellLine, ABombOfVariablesIsRefused) {
  std::string text = "A=0123456789\n";
  for (int i = 0; i < 40; ++i) text += "A=$A$A\n";
  EXPECT_NE(refusal(text + "run $A").find("a word is larger than 1 MiB"), std::string::npos);
}

}  // namespace
}  // namespace phalanx::frontdoor
