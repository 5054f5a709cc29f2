#include "view/story/story.h"

#include <gtest/gtest.h>

#include "base/unicode.h"
#include "view/story/run_table.h"

namespace phalanx::view {
namespace {

using base::Language;

Story example() {
  Story story;
  story.id = "20261121-073102-a3f9";
  story.state = "failed";
  story.bad = true;
  story.command = "python train.py '<b>'";
  story.hosts = {"gpu01", "gpu02"};
  story.ranks = 2;
  story.verdict = {base::fail(base::ErrorKind::kJobFailed, "rank 1 (gpu02, local 0) exited with code 1")
                       .because("its last output:\n    </pre><script>")};
  story.now = {"h1: \x1b]0;title\a"};
  story.timeline = {{"2026-11-21T07:31:02.123Z", "ranks started: 2", false}, {"2026-11-21T07:31:03.000Z", "rank 1 \x1b[31m<i>", true}};
  story.table = {{0, "gpu01", "killed by SIGTERM, stopped by phalanx", "3/10", "2.5", "", 0.5, false},
                 {1, "gpu02", "exited with code 1", "", "", "", {}, true}};
  story.losses = {{"rank 0", {{1, 3.0}, {2, 2.75}, {3, 2.5}}}};
  story.step_times = {{"rank 0", {{2, 0.5}}}};
  return story;
}

TEST(Story, InWords) {
  std::string text = story_text(example(), Language::kEnglish, 1);
  EXPECT_NE(text.find("error: rank 1 (gpu02, local 0) exited with code 1\n"), std::string::npos);
  EXPECT_NE(text.find("ranks     2 on gpu[01-02]"), std::string::npos) << text;
  EXPECT_NE(text.find("07:31:03.000  rank 1 \\x1b[31m<i>"), std::string::npos) << "no escape reaches the terminal: " << text;
  EXPECT_EQ(text.find('\x1b'), std::string::npos) << text;
  Story lines;
  lines.timeline = {{"2026-11-21T07:31:02.123Z", "rank 1 said:\n  one\n", false}};
  EXPECT_NE(story_text(lines, Language::kEnglish, 1).find("  07:31:02.123  rank 1 said:\n                  one\n"), std::string::npos);
  EXPECT_NE(text.find("h1: \\x1b]0;title\\x07\n"), std::string::npos) << text;
  EXPECT_EQ(text.find("ranks started"), std::string::npos) << "only the last one was asked for";
  EXPECT_NE(story_text(example(), Language::kChinese, 1).find("命令"), std::string::npos);
}

TEST(Story, ThePageEscapesEverythingAndLoadsNothing) {
  for (Language language : {Language::kEnglish, Language::kChinese}) {
    std::string page = story_page(example(), language, 3);
    EXPECT_TRUE(base::is_utf8(page));
    for (const char* no : {"<script", "<b>", "<i>", "http://", "https://", "src=", "url(", "\x1b"})
      EXPECT_EQ(page.find(no), std::string::npos) << no;
    for (const char* yes : {"&lt;/pre&gt;&lt;script&gt;", "default-src 'none'", "<svg", "gpu[01-02]"})
      EXPECT_NE(page.find(yes), std::string::npos) << yes;
    EXPECT_EQ(page.find("nan"), std::string::npos) << "one point is a curve too";
  }
}

TEST(Story, TheTimelineKeepsLinesAndShowsTheDayOnce) {
  Story story;
  story.began = "2026-11-21T23:59:58.250Z";
  story.timeline = {{"2026-11-21T23:59:58.300Z", "rank 1 said:\n  one\n  two\x1b", true},
                    {"2026-11-21T23:59:59.000Z", "still there", false},
                    {"2026-11-22T00:00:01.000Z", std::string(5000, 'x'), false},
                    {"odd", "no time", false}};
  const std::string page = story_page(story, Language::kEnglish, 0);
  EXPECT_EQ(page.find("\\n"), std::string::npos) << "a line's end is no backslash";
  EXPECT_NE(page.find("<td class=\"text\">rank 1 said:\n  one\n  two\\x1b</td>"), std::string::npos) << page;
  EXPECT_NE(page.find(".text{white-space:pre-wrap}"), std::string::npos) << "and the browser shows it";
  EXPECT_NE(page.find("th,.time{white-space:nowrap}"), std::string::npos) << "times stay on one line";
  EXPECT_NE(page.find("<td class=\"time dim\">23:59:59.000</td>"), std::string::npos);
  for (const char* day : {">2026-11-21</th>", ">2026-11-22</th>"}) {
    EXPECT_NE(page.find(day), std::string::npos) << day;
    EXPECT_EQ(page.find(day), page.rfind(day)) << "once";
  }
  EXPECT_NE(page.find(">odd</td>"), std::string::npos);
  EXPECT_NE(page.find("2026-11-21 23:59:58 UTC"), std::string::npos);
  EXPECT_NE(page.find("xxx…</td>"), std::string::npos);
}

TEST(Story, ColumnsWithoutAnythingAndALineSaidTwiceAreLeftOut) {
  Story story = example();
  EXPECT_NE(story_page(story, Language::kEnglish, 0).find("<th>loss</th>"), std::string::npos);
  for (StoryRank& rank : story.table) rank.loss.clear();
  EXPECT_EQ(story_page(story, Language::kEnglish, 0).find("<th>loss</th>"), std::string::npos);
  story.code = "RUN-OOM-GPU";
  EXPECT_NE(story_page(story, Language::kEnglish, 0).find("RUN-OOM-GPU: phalanx explain RUN-OOM-GPU"), std::string::npos);
  EXPECT_NE(story_text(story, Language::kEnglish, 0).find("RUN-OOM-GPU: phalanx explain RUN-OOM-GPU"), std::string::npos);
  story.verdict[0].hint = "phalanx explain RUN-OOM-GPU";
  EXPECT_EQ(story_page(story, Language::kEnglish, 0).find("RUN-OOM-GPU: phalanx"), std::string::npos);
  EXPECT_EQ(story_text(story, Language::kEnglish, 0).find("RUN-OOM-GPU: phalanx"), std::string::npos);
}

TEST(Story, AnEmptyRunHasAPage) {
  std::string page = story_page({}, Language::kEnglish, 0);
  EXPECT_NE(page.find("</html>"), std::string::npos);
  EXPECT_EQ(page.find("<svg"), std::string::npos);
}

TEST(Story, CurvesOfOddNumbers) {
  Story story;
  double nan = std::numeric_limits<double>::quiet_NaN(), inf = std::numeric_limits<double>::infinity();
  story.losses = {{"rank 0", {{1, nan}, {2, inf}, {3, 1e300}, {4, -1e300}}}, {"rank 1", {{1, 2}, {1, 2}}}};
  std::string page = story_page(story, Language::kEnglish, 0);
  EXPECT_NE(page.find("<path d=\"M"), std::string::npos);
  for (const char* no : {"nan", "inf"}) EXPECT_EQ(page.find(no), std::string::npos) << no;
}

// A run that failed early: one point of a curve is a dot, no axis has half a step, and nothing takes less than no time.
TEST(Story, ACurveOfOnePointIsADot) {
  Story story;
  story.losses = {{"rank 0", {{1, 10}, {2, 5}}}};
  story.step_times = {{"rank 0", {{2, 0.1}}}};
  const std::string page = story_page(story, Language::kEnglish, 0);
  EXPECT_NE(page.find("h0\" fill=\"none\" stroke=\"#0072b2\" stroke-width=\"6\""), std::string::npos) << page;
  EXPECT_EQ(page.find(">1.2</text>"), std::string::npos) << "a fifth of a step";
  EXPECT_EQ(page.find(">-0.2</text>"), std::string::npos) << "less than no time";
}

TEST(Story, AxesHaveRoundNumbers) {
  Story story;
  story.losses = {{"rank 0", {{1, 5.441}, {60, 2.778}}}};
  const std::string page = story_page(story, Language::kEnglish, 0);
  for (const char* label : {">3</text>", ">3.5</text>", ">5</text>", ">20</text>", ">60</text>"})
    EXPECT_NE(page.find(label), std::string::npos) << label;
  EXPECT_EQ(page.find(">5.441<"), std::string::npos);
}

TEST(Html, Text) { EXPECT_EQ(html("a<b>&\"'\n\x01\xff训"), "a&lt;b&gt;&amp;&quot;&#39;\n\xef\xbf\xbd\xef\xbf\xbd训"); }

TEST(RunTable, LinesUp) {
  RunRow row;
  row.id = "20261121-073102-a3f9";
  row.state = words::Text{"running"};
  row.hosts = {"gpu01", "gpu02"};
  row.ranks = 16;
  row.age_s = 125;
  row.step = "120/1000";
  row.command = "python train.py --name $'\\e'";
  std::string table = run_table({row}, Language::kEnglish, 0);
  EXPECT_EQ(table,
            "RUN                   STATE    HOSTS       RANKS  SINCE      STEP      LOSS  COMMAND\n"
            "20261121-073102-a3f9  running  gpu[01-02]  16     2 min 5 s  120/1000  -     python train.py --name $'\\e'\n")
      << table;
  RunRow other = row;
  other.owner = "ann";
  EXPECT_EQ(run_table({other, row}, Language::kEnglish, 30),
            "RUN                   OWNER  S\n"
            "20261121-073102-a3f9  ann    r\n"
            "20261121-073102-a3f9  -      r\n");
  EXPECT_LE(base::display_width(run_table({}, Language::kChinese, 40)), 41u);
}

}  // namespace
}  // namespace phalanx::view
