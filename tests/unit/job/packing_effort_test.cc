#include "job/copy/packing_effort.h"

#include <gtest/gtest.h>

#include <algorithm>

using namespace phalanx;
using base::Effort;
using job::PackingEffort;

namespace {

constexpr uint64_t kBlock = 256 << 10;

// A launcher that packs blocks for a link with little room in front of it. What a byte takes, in ns: to read and pack by effort, and to
// send when it is packed so.
struct Link {
  double pack[base::kEfforts], send[base::kEfforts];
  int64_t now = 1'000'000, link_free = 0;
  int changes = 0;
  double idle = .8;  // of the processors
  machine::CpuTimes cpus = {};
  int64_t cpus_until = 0;
  PackingEffort effort{[this] {
    cpus.all += now - cpus_until;
    cpus.idle += static_cast<int64_t>(static_cast<double>(now - cpus_until) * idle);
    cpus_until = now;
    return cpus;
  }};

  // Bytes per second over so many blocks.
  double send_blocks(int count) {
    const int64_t begin = now;
    for (int i = 0; i < count; ++i) {
      const auto number = static_cast<size_t>(effort.now());
      const int64_t end = now + static_cast<int64_t>(kBlock * pack[number]);
      effort.made(kBlock, {now}, {end});
      if (effort.now() != static_cast<Effort>(number)) ++changes;
      link_free = std::max(link_free, end) + static_cast<int64_t>(kBlock * send[number]);
      constexpr int64_t kRoom = 30'000'000;  // of what the system buffers
      now = std::max(end, link_free - kRoom);
    }
    return static_cast<double>(count) * kBlock / (static_cast<double>(now - begin) * 1e-9);
  }
};

// bits per second; contents pack to 40, 30 and 27 %.
Link link_of(double rate, double slower = 1) {
  const double ns = 8e9 / rate;
  return {{2.7 * slower, 5.2 * slower, 11 * slower}, {.4 * ns, .3 * ns, .27 * ns}};
}

TEST(PackingEffort, ASlowLinkGetsTheShortestBlocks) {
  Link link = link_of(100e6);
  link.send_blocks(200);
  EXPECT_EQ(link.effort.now(), Effort::kMuch);
  EXPECT_GT(link.send_blocks(200), 100e6 / 8 / .27 * .95);
}

TEST(PackingEffort, AFastLinkDoesNotWaitForPacking) {
  Link link = link_of(10e9);
  link.send_blocks(2000);
  EXPECT_EQ(link.effort.now(), Effort::kLeast);
  EXPECT_EQ(link.changes, 0);
}

TEST(PackingEffort, NoLinkIsSlowedForLong) {
  for (double rate : {50e6, 100e6, 200e6, 300e6, 400e6, 600e6, 1e9, 2e9, 5e9})
    for (double slower : {.5, 1., 2., 5.}) {
      Link link = link_of(rate, slower), plain = link_of(rate, slower);
      plain.send[1] = plain.send[2] = plain.send[0];
      plain.pack[1] = plain.pack[2] = plain.pack[0];
      EXPECT_GT(link.send_blocks(4000), .97 * plain.send_blocks(4000)) << rate << ' ' << slower;
    }
}

// Where the guess of what more effort takes is wrong, it is tried once, not again and again.
TEST(PackingEffort, AWrongGuessIsMadeOnce) {
  Link link = link_of(400e6);
  link.pack[1] = 30;
  link.send_blocks(4000);
  EXPECT_EQ(link.effort.now(), Effort::kLeast);
  EXPECT_EQ(link.changes, 2);
}

TEST(PackingEffort, ALinkThatChangesIsFollowed) {
  Link link = link_of(100e6);
  link.send_blocks(400);
  ASSERT_EQ(link.effort.now(), Effort::kMuch);
  for (double& ns : link.send) ns /= 100;
  link.send_blocks(1000);
  EXPECT_EQ(link.effort.now(), Effort::kLeast);
}

TEST(PackingEffort, BusyProcessorsAreNotGivenMoreToDo) {
  Link link = link_of(100e6);
  link.send_blocks(200);
  ASSERT_EQ(link.effort.now(), Effort::kMuch);
  link.idle = .1;
  link.send_blocks(200);
  EXPECT_EQ(link.effort.now(), Effort::kLeast);
  link.idle = .5;
  link.send_blocks(200);
  EXPECT_EQ(link.effort.now(), Effort::kMuch);
}

// What is packed already takes LZ4 next to no time, and deflate as long as ever.
TEST(PackingEffort, ContentsThatDoNotPackAreNotTriedHard) {
  Link link = link_of(2e9);
  link.pack[0] = .4;
  for (double& ns : link.send) ns = 4;
  link.send_blocks(2000);
  EXPECT_EQ(link.effort.now(), Effort::kLeast);
}

}  // namespace
