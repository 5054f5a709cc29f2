// Semantics as gitignore(5) says; where git is installed, the same trees are held against `git ls-files`.
#include "sync/ignore.h"

#include <gtest/gtest.h>

using namespace phalanx;

namespace {

bool out(std::string_view patterns, std::string_view path, bool folder = false) {
  sync::IgnoreRules rules;
  rules.add("", patterns);
  return rules.leaves_out(path, folder);
}

TEST(Ignore, ANameWithoutASlashIsLeftOutAtEveryDepth) {
  EXPECT_TRUE(out("*.o", "a.o"));
  EXPECT_TRUE(out("*.o", "src/deep/a.o"));
  EXPECT_FALSE(out("*.o", "a.c"));
  EXPECT_TRUE(out("core", "x/core"));
  EXPECT_FALSE(out("core", "x/score"));
}

TEST(Ignore, ASlashAtTheBeginningOrInTheMiddleAnchors) {
  EXPECT_TRUE(out("/build", "build", true));
  EXPECT_FALSE(out("/build", "src/build", true));
  EXPECT_TRUE(out("doc/*.txt", "doc/a.txt"));
  EXPECT_FALSE(out("doc/*.txt", "doc/sub/a.txt"));
  EXPECT_FALSE(out("doc/*.txt", "x/doc/a.txt"));
}

TEST(Ignore, ASlashAtTheEndMeansFolders) {
  EXPECT_TRUE(out("data/", "data", true));
  EXPECT_TRUE(out("data/", "x/data", true));
  EXPECT_FALSE(out("data/", "data", false));
}

TEST(Ignore, TwoStarsStandForAnyFolders) {
  EXPECT_TRUE(out("**/logs", "logs", true));
  EXPECT_TRUE(out("**/logs", "a/b/logs", true));
  EXPECT_TRUE(out("a/**/b", "a/b"));
  EXPECT_TRUE(out("a/**/b", "a/x/y/b"));
  EXPECT_FALSE(out("a/**/b", "c/a/x/b"));
  EXPECT_TRUE(out("a/**", "a/x"));
  EXPECT_TRUE(out("a/**", "a/x/y"));
  EXPECT_FALSE(out("a/**", "a", true));
}

TEST(Ignore, TheLastPatternThatMatchesDecides) {
  EXPECT_FALSE(out("*.log\n!keep.log\n", "keep.log"));
  EXPECT_TRUE(out("!keep.log\n*.log\n", "keep.log"));
  EXPECT_TRUE(out("*.log\n!keep.log\n", "x.log"));
}

TEST(Ignore, AFileDeeperDownWinsOverOneAbove) {
  sync::IgnoreRules rules;
  rules.add("", "*.bin\n/top");
  rules.add("models", "!*.bin\n/top");
  EXPECT_TRUE(rules.leaves_out("a.bin", false));
  EXPECT_FALSE(rules.leaves_out("models/a.bin", false));
  EXPECT_TRUE(rules.leaves_out("models/top", true));
  EXPECT_FALSE(rules.leaves_out("models/x/top", true));
}

TEST(Ignore, AFileAboveTheRootSeesTheWholePath) {
  sync::IgnoreRules rules;
  rules.add("", "/project/out\n/out", "project");
  EXPECT_TRUE(rules.leaves_out("out", true));
  EXPECT_FALSE(rules.leaves_out("x/out", true));
}

TEST(Ignore, CommentsBlanksAndEscapes) {
  EXPECT_FALSE(out("# a\n\n   \n", "# a"));
  EXPECT_TRUE(out("\\# a", "# a"));
  EXPECT_TRUE(out("\\!a", "!a"));
  EXPECT_TRUE(out("a   ", "a"));
  EXPECT_TRUE(out("a\\ ", "a "));
  EXPECT_TRUE(out("a\r\n", "a"));
  EXPECT_TRUE(out("a\\*b", "a*b"));
  EXPECT_FALSE(out("a\\*b", "axb"));
}

TEST(Ignore, SetsOfBytes) {
  EXPECT_TRUE(sync::name_matches("[a-c]x", "bx"));
  EXPECT_FALSE(sync::name_matches("[!a-c]x", "bx"));
  EXPECT_TRUE(sync::name_matches("[]x]", "]"));
  EXPECT_TRUE(sync::name_matches("[[:digit:]]*", "7z"));
  EXPECT_FALSE(sync::name_matches("[[:digit:]]*", "z7"));
  EXPECT_TRUE(sync::name_matches("[", "["));
  EXPECT_TRUE(sync::name_matches("?", "x"));
  EXPECT_FALSE(sync::name_matches("?", ""));
}

TEST(Ignore, ManyStarsTakeNoTime) {
  const std::string name(4000, 'a');
  std::string pattern;
  for (int i = 0; i < 200; ++i) pattern += "a*";
  EXPECT_FALSE(sync::name_matches(pattern + "b", name));
  EXPECT_TRUE(sync::name_matches(pattern, name));
}

}  // namespace
