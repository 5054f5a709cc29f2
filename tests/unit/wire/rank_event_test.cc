#include "wire/rank_event.h"

#include <gtest/gtest.h>

#include <cmath>

namespace phalanx::wire {
namespace {

TEST(RankEvent, RoundTrip) {
  RankProgress p;
  p.step = 120;
  p.total = 1000;
  p.loss = 2.31;
  p.tokens_per_s = 15300.5;
  p.phase = "train";
  std::string line = encode(p);
  EXPECT_EQ(line,
            "{\"v\":1,\"type\":\"progress\",\"step\":120,\"total\":1000,\"loss\":2.31,\"tokens_per_s\":15300.5,\"phase\":\"train\"}\n");
  RankProgress back = parse_rank_progress(line).value();
  EXPECT_EQ(back.step, 120);
  EXPECT_EQ(back.loss, 2.31);
  EXPECT_EQ(back.phase, "train");
}

TEST(RankEvent, ALossThatIsNotANumberIsLeftOut) {
  RankProgress p;
  p.loss = std::nan("");
  EXPECT_EQ(encode(p), "{\"v\":1,\"type\":\"progress\"}\n");
}

TEST(RankEvent, HostileLinesAreErrors) {
  for (std::string line : {"", "{", "[]", "{\"v\":2,\"type\":\"progress\"}", "{\"v\":1}", "{\"v\":\"1\",\"type\":\"progress\"}"})
    EXPECT_FALSE(parse_rank_progress(line).ok()) << line;
  EXPECT_FALSE(parse_rank_progress(std::string(5000, ' ')).ok());
  EXPECT_FALSE(parse_rank_progress(std::string(2000, '[')).ok());
  EXPECT_TRUE(parse_rank_progress("{\"v\":1,\"type\":\"progress\",\"step\":\"x\",\"later\":[1]}").ok())
      << "unknown and ill-typed fields are ignored";
}

}  // namespace
}  // namespace phalanx::wire
