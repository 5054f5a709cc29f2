#include "view/terminal/run_bar.h"

#include <gtest/gtest.h>

#include "base/unicode.h"

namespace phalanx::view {
namespace {

const Speech kEnglish{Language::kEnglish};
const Speech kChinese{Language::kChinese};

os::Mono at(double seconds) { return {static_cast<int64_t>(seconds * 1e9)}; }

wire::RankProgress event(int64_t step, int64_t total) {
  wire::RankProgress progress;
  progress.step = step;
  progress.total = total;
  progress.loss = 2.3123;
  progress.tokens_per_s = 15300.5;
  progress.phase = "train";
  return progress;
}

RunBar example() {
  RunBar bar(4);
  for (int rank = 0; rank < 4; ++rank) {
    bar.progress(rank, event(116, 1000), at(0));
    bar.progress(rank, event(118 + rank, 1000), at(1));
  }
  return bar;
}

TEST(RunBar, OfProgressEvents) {
  RunBar bar = example();
  EXPECT_EQ(bar.text(200, true, false, kEnglish), "step 118/1000 11% loss 2.312 15.3k tok/s ranks 118–121 ETA 7:21");
  EXPECT_EQ(bar.text(200, false, false, kEnglish), "step 118/1000 11% loss 2.312 15.3k tok/s ranks 118-121 ETA 7:21");
  EXPECT_EQ(bar.text(200, true, false, kChinese), "步 118/1000 11% loss 2.312 15.3k tok/s 各 rank 118–121 剩余 7:21");
  EXPECT_EQ(bar.text(90, true, true, kEnglish),
            "step 118/1000 ▕██▊                     ▏ 11% loss 2.312 15.3k tok/s ranks 118–121 ETA 7:21");
  EXPECT_TRUE(bar.from_events());
}

TEST(RunBar, FitsEveryWidth) {
  RunBar bar = example();
  for (size_t columns = 1; columns < 160; ++columns)
    for (const Speech& speech : {kEnglish, kChinese})
      for (bool utf8 : {true, false}) EXPECT_LE(base::display_width(bar.text(columns, utf8, true, speech)), columns);
}

TEST(RunBar, OfTheBarOfTheFirstRank) {
  RunBar bar(3);
  EXPECT_FALSE(bar.known());
  EXPECT_EQ(bar.text(80, true, true, kEnglish), "");
  for (int rank = 0; rank < 3; ++rank) {
    std::string state = "训练:  45%|██| " + std::to_string(450 + rank) + "/1000 [00:12<00:15, 35.9it/s, loss=2.3]";
    bar.bar(rank, *logs::parse_bar(state));
  }
  EXPECT_EQ(bar.text(200, true, false, kEnglish), "训练 450/1000 45% 35.9it/s loss=2.3 ranks 450–452 ETA 0:15");
  EXPECT_FALSE(bar.from_events());
  EXPECT_EQ(bar.ends_bar(0, "eval: 100%|██| 5/5 [00:01<00:00, 5it/s]\n"), RunBar::End::kNone);
  EXPECT_EQ(bar.ends_bar(0, "text\n"), RunBar::End::kNone);
  EXPECT_EQ(bar.ends_bar(0, "训练: 100%|██| 1000/1000 [00:28<00:00, 35.9it/s]\n"), RunBar::End::kOwn);
  EXPECT_EQ(bar.text(200, true, false, kEnglish), "训练 451/1000 45% 35.9it/s loss=2.3 ranks 451–452 ETA 0:15");
  EXPECT_EQ(bar.ends_bar(2, "训练: 100%|██| 1000/1000 [00:29<00:00, 35.9it/s]\n"), RunBar::End::kSpokenFor) << "rank 0 spoke for it";
}

TEST(RunBar, ACompleteBarGoesWhenTextFollows) {
  RunBar bar(1);
  bar.bar(0, *logs::parse_bar("eval: 100%|██| 5/5 [00:01<00:00, 5it/s]"));
  EXPECT_TRUE(bar.known());
  bar.ends_bar(0, "next\n");
  EXPECT_FALSE(bar.known());
}

TEST(RunBar, EventsWinOverABarUnlessTheySayLess) {
  RunBar bar(1);
  bar.bar(0, *logs::parse_bar("tokenising:  45%|██| 450/1000 [00:12<00:15, 35.9it/s]"));
  wire::RankProgress load;
  load.phase = "load";
  bar.progress(0, load, at(0));
  EXPECT_EQ(bar.text(80, true, false, kEnglish), "tokenising 450/1000 45% 35.9it/s ETA 0:15");
  bar.progress(0, event(1, 2), at(1));
  EXPECT_EQ(bar.text(80, true, false, kEnglish), "step 1/2 50% loss 2.312 15.3k tok/s");
}

TEST(RunBar, PhasesAreNamedAndMissingFiguresStay) {
  RunBar bar(1);
  wire::RankProgress load;
  load.phase = "load";
  bar.progress(0, load, at(0));
  EXPECT_EQ(bar.text(80, true, true, kEnglish), "load");
  bar.progress(0, event(5, 10), at(1));
  wire::RankProgress next;
  next.phase = "train";
  next.step = 6;
  bar.progress(0, next, at(3));
  EXPECT_EQ(bar.text(80, true, false, kEnglish), "step 6/10 60% loss 2.312 15.3k tok/s ETA 0:08");
  wire::RankProgress eval;
  eval.phase = "eval";
  eval.step = 1;
  eval.total = 4;
  bar.progress(0, eval, at(4));
  EXPECT_EQ(bar.text(80, true, false, kEnglish), "eval step 1/4 25%");
}

TEST(RunBar, HostileFiguresDoNoHarm) {
  RunBar bar(1);
  wire::RankProgress p;
  p.step = INT64_MAX;
  p.total = -5;
  p.loss = 1e308;
  p.tokens_per_s = -1e300;
  p.phase = "\x1b[2J\n";
  bar.progress(0, p, at(0));
  std::string text = bar.text(200, true, true, kEnglish);
  for (char c : text) EXPECT_GE(static_cast<unsigned char>(c), 0x20);
  logs::Bar b;
  b.desc = "a\x1b[2J\nb";
  b.done = 1e300;
  b.total = 0;
  b.fraction = 1e300;
  b.eta_s = 1e300;
  RunBar other(1);
  other.bar(0, b);
  for (char c : other.text(200, true, true, kEnglish)) EXPECT_GE(static_cast<unsigned char>(c), 0x20);
}

TEST(RunBar, ClockAndCounts) {
  EXPECT_EQ(format_clock(0), "0:00");
  EXPECT_EQ(format_clock(200), "3:20");
  EXPECT_EQ(format_clock(3723), "1:02:03");
  EXPECT_EQ(format_clock(86400 * 2 + 3723), "2d 1:02:03");
  EXPECT_EQ(format_count(999), "999");
  EXPECT_EQ(format_count(999.6), "1.0k");
  EXPECT_EQ(format_count(15300), "15.3k");
  EXPECT_EQ(format_count(153000), "153k");
  EXPECT_EQ(format_count(1.25e6), "1.2M");
  EXPECT_EQ(format_count(0.5), "0.5");
}

TEST(RunBar, GaugeIsAlwaysAsWideAsAsked) {
  for (size_t columns = 4; columns < 50; ++columns)
    for (double fraction = -0.1; fraction < 1.2; fraction += 0.013)
      for (bool utf8 : {true, false}) ASSERT_EQ(base::display_width(draw_gauge(fraction, columns, utf8)), columns) << fraction;
  EXPECT_EQ(draw_gauge(0.5, 12, false), "[#####     ]");
  EXPECT_EQ(draw_gauge(1, 5, true), "▕███▏");
}

}  // namespace
}  // namespace phalanx::view
