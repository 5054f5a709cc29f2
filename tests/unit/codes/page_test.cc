#include "codes/page.h"

#include <gtest/gtest.h>

namespace phalanx::codes {
namespace {

using base::Language;

constexpr const char* kWhole =
    "# a port is taken\n\n## Question\n\nIs it free?\n\n## Why\n\nRank 0 cannot\nbind.\n\nThe others wait for \\<host>.\n\n"
    "## What to do\n\nEnd what holds it:\n\n```sh\nss -ltnp\n# a comment\n```\n\nOr take another port.\n\n## Source\n\nsocket(7)\n";

TEST(CodePage, IsReadSectionBySection) {
  base::Result<Page> page = parse_page(kWhole, Language::kEnglish);
  ASSERT_TRUE(page.ok()) << page.error().message;
  EXPECT_EQ(page->title, "a port is taken");
  EXPECT_EQ(page->question, "Is it free?");
  EXPECT_EQ(page->why, "Rank 0 cannot bind.\nThe others wait for <host>.");
  EXPECT_EQ(page->fix, "End what holds it:\n$ ss -ltnp\n$ # a comment\nOr take another port.");
  EXPECT_EQ(page->source, "socket(7)");
}

TEST(CodePage, NeedsNeitherQuestionNorSource) {
  base::Result<Page> page = parse_page("# 坏了\n\n## 原因\n\n摔了。\n\n## 怎么办\n\n扶起。\n", Language::kChinese);
  ASSERT_TRUE(page.ok()) << page.error().message;
  EXPECT_EQ(page->why, "摔了。");
  EXPECT_EQ(page->question, "");
}

TEST(CodePage, SaysWhereItIsWrong) {
  struct Case {
    const char *text, *error;
  };
  for (Case c : {
           Case{"", "the page needs a title"},
           {"## Why\n\na\n\n## What to do\n\nb\n", "the page needs a title"},
           {"# t\n\n## Why\n\na\n", "say why, and what to do"},
           {"# t\n\na\n", "line 3: text before the first heading"},
           {"# t\n# u\n", "line 2: the title is the first line"},
           {"# t\n\n## Because\n", "line 3: \"## Because\" is no heading"},
           {"# t\n\n## What to do\n\na\n\n## Why\n\nb\n", "line 7: \"## Why\" is no heading of a page, or not in its order"},
           {"# t\n\n## Why\n\na\n\n## Why\n\nb\n", "line 7: \"## Why\" is no heading"},
           {"# t\n\n## Why\n\n## What to do\n\nb\n", "line 5: the section before this line is empty"},
           {"# t\n\n## Why\n\na\n\n## What to do\n\n```sh\nls\n", "a block of commands has no end"},
           {"# t\n\n## Why\n\na\n\n## What to do\n\n```\nls\n```\n", "line 9: a block of commands begins with ```sh"},
           {"# t\n\n## Why\n\n```sh\nls\n```\n", "line 5: commands outside the section that says what to do"},
           {"# t\n\n## Why\n\na\n\n## What to do\n\nb\n $ ls\n", "line 10: a command outside a block of commands"},
           {"# t\n\n## Why\n\na\n\n## What to do\n\n```sh\n\nls\n```\n", "line 10: an empty line among commands"},
           {"# t\n\n## Why\n\na\n\n## What to do\n\n```sh\nkill <number>\n```\n", "line 10: <number> is no slot"},
       }) {
    base::Result<Page> page = parse_page(c.text, Language::kEnglish);
    ASSERT_FALSE(page.ok()) << c.text;
    EXPECT_NE(page.error().message.find(c.error), std::string::npos) << page.error().message;
  }
}

}  // namespace
}  // namespace phalanx::codes
