#include "base/unicode.h"

#include <gtest/gtest.h>

#include <random>

#include "base/result.h"

namespace phalanx::base {
namespace {

TEST(Unicode, WellFormed) {
  for (std::string_view good : {"", "abc", "é", "漢字", "🚀", "\xf4\x8f\xbf\xbf", "\xef\xbf\xbf"}) EXPECT_TRUE(is_utf8(good)) << good;
  for (std::string_view bad : {"\x80", "\xc0\x80", "\xc1\xbf", "\xe0\x9f\xbf", "\xed\xa0\x80", "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80",
                               "\xf5\x80\x80\x80", "\xff", "\xe6\xbc", "a\xc3"})
    EXPECT_FALSE(is_utf8(bad)) << quote(bad);
}

TEST(Unicode, Width) {
  EXPECT_EQ(display_width("abc"), 3u);
  EXPECT_EQ(display_width("漢字"), 4u);
  EXPECT_EQ(display_width("e\xcc\x81"), 1u);
  EXPECT_EQ(display_width("–×…│█"), 5u);
  EXPECT_EQ(display_width("。（）"), 6u);
  EXPECT_EQ(display_width("\x1b\n"), 0u);
  EXPECT_EQ(display_width("\xff\xff"), 2u);
}

TEST(Unicode, FitNeverCutsACharacter) {
  EXPECT_EQ(fit_columns("漢字", 3), "漢");
  EXPECT_EQ(fit_columns("漢字", 1), "");
  EXPECT_EQ(fit_columns("e\xcc\x81x", 1), "e\xcc\x81");
  EXPECT_EQ(pad_right("漢", 4), "漢  ");
  EXPECT_EQ(pad_right("abcdef", 4), "abcdef");
}

TEST(Unicode, PrintableTamesControlsBadBytesAndHiddenMarks) {
  EXPECT_EQ(printable("a\x1b[2Jb\n\xff\t\x7f"), "a\\x1b[2Jb\\n\\xff\\t\\x7f");
  EXPECT_EQ(printable("gpu\xe2\x80\x8b"
                      "01"),
            "gpu\\u200b01");
  EXPECT_EQ(printable("\xc2\x9b"), "\\u009b");  // CSI as one character
  EXPECT_EQ(printable("漢字漢字", 7), "漢字…");
  EXPECT_EQ(quote("a\"b\\"), "\"a\\\"b\\\\\"");
  EXPECT_EQ(quote("abcdef", 3), "\"abc…\"");
}

TEST(Unicode, WholeTextsKeepTheirLinesAndNoControl) {
  EXPECT_EQ(printable_lines("a\r\nb\tc\n漢\x1b]0;t\a\xc2\x9b\r\n"), "a\nb\tc\n漢\\x1b]0;t\\x07\\u009b\n");
  EXPECT_EQ(printable_lines("50%\rdone\xff"), "50%\\rdone\\xff");
  std::string long_text(100'000, 'x');
  EXPECT_EQ(printable_lines(long_text), long_text);
  Error error = fail(ErrorKind::kUnfit, "h1: \x1b[2Jm").because("one\n    \x1b]52;c;eA==\a").with_hint("\x1b]0;t\a").within("\x1b[c");
  EXPECT_EQ(error.render(), "error: h1: \\x1b[2Jm\n  while \\x1b[c\n  because one\n    \\x1b]52;c;eA==\\x07\n\nhint: \\x1b]0;t\\x07\n");
}

TEST(Unicode, AnyBytesGiveWellFormedOutput) {
  std::mt19937 random(3);
  for (int round = 0; round < 2000; ++round) {
    std::string bytes(random() % 40, '\0');
    for (char& c : bytes) c = static_cast<char>(random());
    ASSERT_TRUE(is_utf8(printable(bytes, 20)));
    ASSERT_TRUE(is_utf8(quote(bytes)));
    std::string lines = printable_lines(bytes);
    ASSERT_TRUE(is_utf8(lines));
    ASSERT_EQ(printable_lines(lines), lines);
    ASSERT_LE(display_width(fit_columns(bytes, 10)), 10u);
  }
}

}  // namespace
}  // namespace phalanx::base
