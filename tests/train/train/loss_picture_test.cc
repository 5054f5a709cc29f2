// The picture of the losses: one as it should be, and everything that could be in a log.
#include "engine/train/report/loss_picture.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <limits>

#include "engine/train/report/run_log.h"
#include "os/files.h"
#include "ranks.h"

using namespace phalanx;

namespace {

using namespace engine::train;

LossCurves some_curves() {
  LossCurves curves;
  curves.title = "loss of <runs> & \"more\"";
  for (int step = 1; step <= 400; ++step)
    curves.training.push_back({static_cast<double>(step), 1 + 4 * std::exp(-step / 80.0) + 0.15 * std::sin(step * 1.7)});
  curves.validation = {{100, 2.3}, {200, 1.5}, {300, 1.3}, {400, 1.2}};
  return curves;
}

// Whether an XML parser takes it, of which no coordinate is not a number.
void expect_sound(const std::string& svg) {
  EXPECT_EQ(svg.find("nan"), std::string::npos);
  EXPECT_EQ(svg.find("inf,"), std::string::npos);
  ranks::TempFolder folder;
  ASSERT_TRUE(os::write_file_atomic(folder / "p.svg", svg).ok());
  const std::string command =
      fmt::format("/usr/bin/python3 -c 'import sys, xml.dom.minidom; xml.dom.minidom.parse(\"{}\")'", folder / "p.svg");
  EXPECT_EQ(std::system(command.c_str()), 0);
}

// To renew it, after a look at the new one: PHALANX_WRITE_GOLDEN=1.
TEST(LossPicture, IsTheOneWeLookedAt) {
  const std::string path = std::string(PHALANX_TRAIN_TESTS) + "/train/loss.svg", svg = loss_picture(some_curves());
  if (getenv("PHALANX_WRITE_GOLDEN")) { ASSERT_TRUE(os::write_file_atomic(path, svg, 0644).ok()); }
  auto golden = os::read_file(path, 1 << 20);
  ASSERT_TRUE(golden.ok());
  EXPECT_EQ(svg, *golden);
  EXPECT_NE(svg.find("loss of &lt;runs&gt; &amp; &quot;more&quot;"), std::string::npos);
  expect_sound(svg);
}

TEST(LossPicture, TakesWhateverALogHolds) {
  const double nan = std::nan(""), inf = std::numeric_limits<double>::infinity();
  const std::vector<std::vector<LossPoint>> training = {
      {},
      {{1, 2}},
      {{1, 0}, {2, 0}},
      {{5, 1}, {5, 2}, {5, 3}},
      {{1, nan}, {2, inf}, {3, -inf}},
      {{1, 2}, {2, nan}, {nan, 3}, {4, inf}, {5, 1}},
      {{1, 1e300}, {2, -1e300}, {3, 1}},
      {{1, 9e29}, {2, -9e29}},
      {{0, 1e-300}, {1, 3e-300}},
      {{1, 5}, {2, std::nextafter(5.0, 6.0)}},
      {{1e18, 1}, {1e18 + 256, 2}},
      {{3, 1}, {1, 2}, {2, 3}},
  };
  for (const auto& points : training)
    for (const auto& validation : {std::vector<LossPoint>{}, std::vector<LossPoint>{{2, 1.5}}, points}) {
      SCOPED_TRACE(points.size());
      expect_sound(loss_picture({"t", points, validation}));
    }
  EXPECT_NE(loss_picture({"t", {}, {}}).find("no loss was logged"), std::string::npos);
  EXPECT_NE(loss_picture({"t", {{1, 2}, {2, nan}}, {}}).find("1 not finite"), std::string::npos);
  expect_sound(loss_picture({std::string("\x1b[31m\0\xff]]>", 10) + std::string(5000, 'y'), {{1, 2}}, {}}));
}

TEST(LossPicture, OfTenMillionPointsIsSmallAndKeepsTheSpike) {
  LossCurves curves;
  curves.training.reserve(10'000'000);
  for (int i = 0; i < 10'000'000; ++i) curves.training.push_back({static_cast<double>(i), i == 7'654'321 ? 100 : 1 + 1e-7 * i});
  const std::string svg = loss_picture(curves);
  EXPECT_LT(svg.size(), 200'000u);
  const size_t raw = svg.find("class=\"raw\"");
  // 100 is the largest value: it lies at 4 % of the height, and with 1 to 2 below, at 64 + 364 · 0.04 / 1.08.
  EXPECT_NE(svg.find(",77.5 ", raw), std::string::npos);
}

TEST(NiceTicks, AreRoundAndCover) {
  EXPECT_EQ(nice_ticks(0, 10, 5), (std::vector<double>{0, 2, 4, 6, 8, 10}));
  EXPECT_EQ(nice_ticks(-1, 1, 4), (std::vector<double>{-1, -0.5, 0, 0.5, 1}));
  EXPECT_EQ(nice_ticks(3, 97, 5), (std::vector<double>{0, 20, 40, 60, 80, 100}));
  for (double low : {-1e29, -3.0, 0.0, 1e-12, 7e15})
    for (double width : {1e-13, 1e-3, 1.0, 12345.0, 1e29}) {
      if (!(low < low + width)) continue;
      auto ticks = nice_ticks(low, low + width, 6);
      EXPECT_GE(ticks.size(), 1u);
      EXPECT_LE(ticks.size(), 16u) << low << " " << width;
    }
}

TEST(RunLog, KeepsWholeLinesUpToTheStep) {
  ranks::TempFolder folder;
  const std::string path = folder / "out/log.jsonl";
  ASSERT_TRUE(os::make_folders(folder / "out").ok());
  ASSERT_TRUE(os::write_file_atomic(path,
                                    "{\"step\":1,\"loss\":3}\nrubbish\n{\"step\":2,\"loss\":null}\n{\"step\":2,\"validation_loss\":2.5}\n"
                                    "{\"step\":99999999999999999999}\n{\"step\":}\n\n{\"step\":3,\"loss\":1}\n{\"step\":2,\"lo")
                  .ok());
  {
    auto log = RunLog::open(folder / "out", 2);
    ASSERT_TRUE(log.ok());
    ASSERT_TRUE(log->append({{"step", 3}, {"loss", 2.25}}).ok());
  }
  EXPECT_EQ(*os::read_file(path, 1000),
            "{\"step\":1,\"loss\":3}\n{\"step\":2,\"loss\":null}\n{\"step\":2,\"validation_loss\":2.5}\n{\"step\":3,\"loss\":2.25}\n");
  auto curves = read_losses(path);
  ASSERT_TRUE(curves.ok());
  ASSERT_EQ(curves->training.size(), 3u);
  EXPECT_TRUE(std::isnan(curves->training[1].loss));
  EXPECT_EQ(curves->training[2].loss, 2.25);
  ASSERT_EQ(curves->validation.size(), 1u);
  ASSERT_TRUE(RunLog::open(folder / "out", 0).ok());
  EXPECT_EQ(*os::read_file(path, 1000), "") << "begun anew";
  EXPECT_FALSE(read_losses(folder / "none").ok());
}

}  // namespace
