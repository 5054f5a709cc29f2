#include "base/text.h"

#include <gtest/gtest.h>

#include <climits>
#include <random>

namespace phalanx::base {
namespace {

using std::chrono::milliseconds;
using Views = std::vector<std::string_view>;

TEST(Text, TrimTakesAsciiBlanksOnly) {
  EXPECT_EQ(trim(" \t\r\n\v\f a b \n"), "a b");
  EXPECT_EQ(trim("   "), "");
  EXPECT_EQ(trim(""), "");
  EXPECT_EQ(trim("\xc2\xa0x"), "\xc2\xa0x");  // a no-break space is not ours to drop
}

TEST(Text, SplitKeepsEmptyFields) {
  EXPECT_EQ(split("a,,b", ','), (Views{"a", "", "b"}));
  EXPECT_EQ(split("", ','), (Views{""}));
  EXPECT_EQ(split(",", ','), (Views{"", ""}));
}

TEST(Text, AWordIsListedWhereItIsOneOfTheWords) {
  for (const char* word : {"a", "bc", "d"}) EXPECT_TRUE(is_listed(word, "a bc d")) << word;
  for (const char* word : {"", "b", "c", "a bc", " ", "e"}) EXPECT_FALSE(is_listed(word, "a bc d")) << word;
  EXPECT_TRUE(is_listed("bus id", "address,bus id", ','));
  EXPECT_FALSE(is_listed("", ""));
}

TEST(Text, LettersAndDigitsAreThoseOfAscii) {
  EXPECT_EQ(to_upper("aZ_9é"), "AZ_9é");
  EXPECT_EQ(to_lower("aZ_9É"), "az_9É");
  EXPECT_TRUE(is_number("0123456789"));
  for (const char* text : {"", "1a", "-1", " 1", "1.0"}) EXPECT_FALSE(is_number(text)) << text;
}

TEST(Text, SplitLinesTakesBothEndsAndNoPhantomLine) {
  EXPECT_EQ(split_lines("a\r\nb\n\nc"), (Views{"a", "b", "", "c"}));
  EXPECT_EQ(split_lines("a\n"), (Views{"a"}));
  EXPECT_EQ(split_lines("\n"), (Views{""}));
  EXPECT_TRUE(split_lines("").empty());
  EXPECT_EQ(split_lines("a\rb"), (Views{"a\rb"}));
}

TEST(Text, SplitWordsNeverYieldsEmpty) {
  EXPECT_EQ(split_words("  a\t b\n"), (Views{"a", "b"}));
  EXPECT_TRUE(split_words(" \t").empty());
  EXPECT_TRUE(split_words("").empty());
}

TEST(Text, JoinAndReplace) {
  EXPECT_EQ(join(std::vector<std::string>{"a", "b"}, ", "), "a, b");
  EXPECT_EQ(join(std::vector<std::string>{}, ", "), "");
  EXPECT_EQ(replace_all("a.b.c", ".", "::"), "a::b::c");
  EXPECT_EQ(replace_all("", ".", "::"), "");
  EXPECT_EQ(replace_all("aaa", "aa", "b"), "ba");
}

TEST(ParseInt, EdgesOfTheRange) {
  EXPECT_EQ(parse_int("0", 0, 10).value(), 0);
  EXPECT_EQ(parse_int("-0", 0, 10).value(), 0);
  EXPECT_EQ(parse_int("007", 0, 10).value(), 7);
  EXPECT_EQ(parse_int("9223372036854775807", INT64_MIN, INT64_MAX).value(), INT64_MAX);
  EXPECT_EQ(parse_int("-9223372036854775808", INT64_MIN, INT64_MAX).value(), INT64_MIN);
  EXPECT_FALSE(parse_int("9223372036854775808", INT64_MIN, INT64_MAX).ok());
  EXPECT_FALSE(parse_int("-9223372036854775809", INT64_MIN, INT64_MAX).ok());
}

TEST(ParseInt, RefusesEverythingElseWithTheValueAndTheRange) {
  for (std::string_view bad : {"", "-", "+1", " 1", "1 ", "1.0", "0x10", "1e3", "--1", "11", "-1", "١", "99999999999999999999999"})
    EXPECT_FALSE(parse_int(bad, 0, 10).ok()) << bad;
  EXPECT_EQ(parse_int("70000", 1, 65535).error().message, "\"70000\" is not a whole number from 1 to 65535");
  EXPECT_EQ(parse_int("x", 1, 2, ErrorKind::kConfig).error().kind, ErrorKind::kConfig);
}

TEST(Text, BytesAsPeopleWriteThem) {
  EXPECT_EQ(parse_bytes("24GiB").value(), int64_t{24} << 30);
  EXPECT_EQ(parse_bytes("24G").value(), int64_t{24} << 30);
  EXPECT_EQ(parse_bytes("80GB").value(), 80'000'000'000);
  EXPECT_EQ(parse_bytes("1.5KiB").value(), 1536);
  EXPECT_EQ(parse_bytes("1024").value(), 1024);
  for (const char* bad : {"", "G", "0", "-1G", "24 GiB", "24gib", "1e3", "2000000TiB", "GiB24"}) EXPECT_FALSE(parse_bytes(bad).ok()) << bad;
}

TEST(Duration, Reads) {
  EXPECT_EQ(parse_duration("250ms").value(), milliseconds(250));
  EXPECT_EQ(parse_duration("10s").value(), milliseconds(10'000));
  EXPECT_EQ(parse_duration("1.5s").value(), milliseconds(1'500));
  EXPECT_EQ(parse_duration("2m").value(), milliseconds(120'000));
  EXPECT_EQ(parse_duration("1h30m").value(), milliseconds(5'400'000));
  EXPECT_EQ(parse_duration("1m1s1ms").value(), milliseconds(61'001));
  EXPECT_EQ(parse_duration("0").value(), milliseconds(0));
  EXPECT_EQ(parse_duration("0s").value(), milliseconds(0));
  EXPECT_EQ(parse_duration("365d").value(), milliseconds(365LL * 86'400'000));
}

TEST(Duration, Refuses) {
  for (std::string_view bad : {"", "s", "10", "-1s", "1s2m", "1s1s", "1 s", "1S", "1.s", ".5s", "1x", "1m 1s", "10s ", "366d", "1e3s",
                               "9999999999999999999999999999999999999999d", "inf", "nan"})
    EXPECT_FALSE(parse_duration(bad).ok()) << bad;
  EXPECT_EQ(parse_duration("10").error().hint, "for seconds write 10s");
}

TEST(Duration, AbsurdlyLongDigitsAreRefusedNotMisread) {
  EXPECT_FALSE(parse_duration(std::string(5000, '9') + "s").ok());
  EXPECT_EQ(parse_duration("1." + std::string(5000, '0') + "s").value(), milliseconds(1000));
}

TEST(Duration, Writes) {
  using namespace std::chrono_literals;
  EXPECT_EQ(format_duration(0s), "0 s");
  EXPECT_EQ(format_duration(7ns), "7 ns");
  EXPECT_EQ(format_duration(350us), "350 µs");
  EXPECT_EQ(format_duration(250ms), "250 ms");
  EXPECT_EQ(format_duration(1500ms), "1.5 s");
  EXPECT_EQ(format_duration(12345ms), "12.3 s");
  EXPECT_EQ(format_duration(59'940ms), "59.9 s");
  EXPECT_EQ(format_duration(59'960ms), "1 min");
  EXPECT_EQ(format_duration(125s), "2 min 5 s");
  EXPECT_EQ(format_duration(90min), "1 h 30 min");
  EXPECT_EQ(format_duration(76h), "3 d 4 h");
  EXPECT_EQ(format_duration(-2s), "-2 s");
  EXPECT_EQ(format_duration(std::chrono::nanoseconds::min()).front(), '-');
}

TEST(Bytes, Writes) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(1023), "1023 B");
  EXPECT_EQ(format_bytes(1536), "1.5 KiB");
  EXPECT_EQ(format_bytes(64 << 20), "64 MiB");
  EXPECT_EQ(format_bytes((1 << 20) - 1), "1 MiB");
  EXPECT_EQ(format_bytes(UINT64_MAX), "16 EiB");
}

TEST(Ranges, FoldNeighbours) {
  EXPECT_EQ(format_ranges(std::vector<int>{9, 3, 1, 2, 0, 2}), "0–3, 9");
  EXPECT_EQ(format_ranges(std::vector<int>{5}), "5");
  EXPECT_EQ(format_ranges(std::vector<int>{}), "");
  EXPECT_EQ(format_ranges(std::vector<int>{INT_MAX, INT_MAX - 1, INT_MIN}), "-2147483648, 2147483646–2147483647");
}

TEST(EditDistance, Known) {
  EXPECT_EQ(edit_distance("", ""), 0);
  EXPECT_EQ(edit_distance("abc", ""), 3);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3);
  EXPECT_EQ(edit_distance("hsotfile", "hostfile"), 1);  // a swap of neighbours is one slip
}

TEST(EditDistance, IsSymmetricAndBounded) {
  std::mt19937 random(7);
  auto word = [&] {
    std::string w(random() % 9, 'a');
    for (char& c : w) c = static_cast<char>('a' + random() % 3);
    return w;
  };
  for (int i = 0; i < 3000; ++i) {
    std::string a = word(), b = word();
    int d = edit_distance(a, b);
    ASSERT_EQ(d, edit_distance(b, a)) << a << " " << b;
    ASSERT_EQ(d == 0, a == b);
    ASSERT_LE(d, static_cast<int>(std::max(a.size(), b.size())));
    ASSERT_GE(d, std::abs(static_cast<int>(a.size()) - static_cast<int>(b.size())));
  }
}

TEST(Closest, OffersOnlyWhatIsNear) {
  std::vector<std::string> words{"--hostfile", "--host", "--json", "--env"};
  EXPECT_EQ(closest("--hotfile", words), "--hostfile");
  EXPECT_EQ(closest("--jsno", words), "--json");
  EXPECT_EQ(closest("--learning-rate", words), std::nullopt);
  EXPECT_EQ(closest("", words), std::nullopt);
  EXPECT_EQ(closest(std::string(100'000, 'x'), words), std::nullopt);
  EXPECT_EQ(closest("x", std::vector<std::string>{}), std::nullopt);
}

TEST(ShellQuote, OnlyWhereNeeded) {
  EXPECT_EQ(shell_quote("train.py"), "train.py");
  EXPECT_EQ(shell_quote(""), "''");
  EXPECT_EQ(shell_quote("a b"), "'a b'");
  EXPECT_EQ(shell_quote("it's"), "'it'\\''s'");
  EXPECT_EQ(shell_quote("$HOME"), "'$HOME'");
  EXPECT_EQ(shell_quote("a\nb'c"), "$'a\\nb\\'c'");
  EXPECT_EQ(shell_quote("\x1b[31m"), "$'\\033[31m'");
  EXPECT_EQ(shell_quote("\xff"), "$'\\377'");
  EXPECT_EQ(shell_quote("数据.py"), "数据.py");
  EXPECT_EQ(shell_quote(std::vector<std::string>{"python", "a b"}), "python 'a b'");
}

}  // namespace
}  // namespace phalanx::base
