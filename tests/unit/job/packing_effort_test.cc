#include "job/copy/packing_effort.h"

#include <gtest/gtest.h>

#include <algorithm>

using namespace phalanx;
using base::Effort;
using job::PackingEffort;

namespace {

constexpr uint64_t kBlock = 256 << 10;

// A launcher that packs blocks for a link with little room in front of it. What a byte takes, in ns: to read and pack by effort, to send
// when it is packed so, and on the host, which works while others are sent.
struct Link {
  double pack[base::kEfforts], send[base::kEfforts], host[base::kEfforts] = {};
  double idle = .8;  // of the processors
  int64_t now = 1'000'000, link_free = 0, host_free = 0;
  int changes = 0;
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
      auto time = [number](const double(&ns)[base::kEfforts]) { return static_cast<int64_t>(kBlock * ns[number]); };
      const int64_t end = now + time(pack);
      effort.made(kBlock, {now}, {end});
      if (effort.now() != static_cast<Effort>(number)) ++changes;
      link_free = std::max(link_free, end) + time(send);
      host_free = std::max(host_free, link_free) + time(host);
      constexpr int64_t kRoom = 30'000'000;  // of what the systems buffer
      now = std::max(end, std::max(link_free, host_free) - kRoom);
    }
    return static_cast<double>(count) * kBlock / (static_cast<double>(now - begin) * 1e-9);
  }
};

// bits per second; contents pack to 40, 30 and 27 % unless told otherwise.
Link link_of(double rate, double slower = 1, double least = .4, double little = .3, double much = .27) {
  const double ns = 8e9 / rate;
  return {{2.7 * slower, 5.2 * slower, 11 * slower}, {least * ns, little * ns, much * ns}};
}
double best_rate(const Link& link) {
  double best = 0;
  for (size_t i = 0; i < base::kEfforts; ++i) best = std::max(best, 1e9 / std::max({link.pack[i], link.send[i], link.host[i]}));
  return best;
}

TEST(PackingEffort, ASlowLinkGetsTheShortestBlocks) {
  Link link = link_of(100e6);
  link.send_blocks(300);
  EXPECT_EQ(link.effort.now(), Effort::kMuch);
  EXPECT_GT(link.send_blocks(2000), best_rate(link) * .97);
  EXPECT_EQ(link.changes, 2);
}

TEST(PackingEffort, AFastLinkDoesNotWaitForPacking) {
  Link link = link_of(10e9);
  link.send_blocks(2000);
  EXPECT_EQ(link.effort.now(), Effort::kLeast);
  EXPECT_EQ(link.changes, 0);
}

// Whatever the link, the contents and the processor: nearly as fast as the best of the three, and without going back and forth.
TEST(PackingEffort, EveryLinkIsServedNearlyAsWellAsItCouldBe) {
  const double ratios[][3] = {{.4, .3, .27}, {.45, .3, .26}, {.5, .3, .26}, {.35, .2, .16}, {.4, .37, .36}};
  for (const auto& [least, little, much] : ratios)
    for (double slower : {.5, 1., 3.})
      for (double rate = 20e6; rate < 5e9; rate *= 1.07) {
        Link link = link_of(rate, slower, least, little, much);
        link.send_blocks(1000);
        link.changes = 0;
        EXPECT_GT(link.send_blocks(8000), .9 * best_rate(link)) << rate << ' ' << slower << ' ' << least;
        EXPECT_LE(link.changes, 20) << rate << ' ' << slower << ' ' << least;
      }
}

TEST(PackingEffort, ALinkThatChangesIsFollowed) {
  Link link = link_of(100e6);
  link.send_blocks(400);
  ASSERT_EQ(link.effort.now(), Effort::kMuch);
  for (double& ns : link.send) ns /= 100;
  link.send_blocks(4000);
  EXPECT_EQ(link.effort.now(), Effort::kLeast);
  for (double& ns : link.send) ns *= 100;
  link.send_blocks(3000);
  EXPECT_EQ(link.effort.now(), Effort::kMuch);
}

TEST(PackingEffort, AStallIsForgotten) {
  for (int before : {20, 60, 200}) {
    Link link = link_of(100e6);
    link.send_blocks(before);
    const double usual = link.pack[static_cast<size_t>(link.effort.now())];
    double& one = link.pack[static_cast<size_t>(link.effort.now())];
    one = 400e6 / kBlock;
    link.send_blocks(1);
    one = usual;
    link.send_blocks(6000);
    EXPECT_EQ(link.effort.now(), Effort::kMuch) << before;
  }
}

TEST(PackingEffort, SlowReadingIsForgotten) {
  Link link = link_of(100e6);
  for (double& ns : link.pack) ns += 20;
  link.send_blocks(400);
  for (double& ns : link.pack) ns -= 20;
  link.send_blocks(6000);
  EXPECT_EQ(link.effort.now(), Effort::kMuch);
}

TEST(PackingEffort, BusyProcessorsAreNotGivenMoreToDo) {
  Link link = link_of(100e6);
  link.idle = .1;
  link.send_blocks(1000);
  EXPECT_EQ(link.changes, 0);
  link.idle = .5;
  link.send_blocks(1000);
  EXPECT_EQ(link.effort.now(), Effort::kMuch);
}

TEST(PackingEffort, WithoutACountOfProcessorsTheLinkDecides) {
  Link link = link_of(100e6);
  link.effort = PackingEffort([] { return machine::CpuTimes{}; });
  link.send_blocks(300);
  EXPECT_EQ(link.effort.now(), Effort::kMuch);
}

// Which takes longer to unpack what was packed with more effort.
TEST(PackingEffort, ASlowHostIsNotSlowedFurther) {
  for (double ns : {8., 15., 30.}) {
    Link link = link_of(5e9);
    for (size_t i = 0; i < base::kEfforts; ++i) link.host[i] = ns + (i == 0 ? 0 : 1.2);
    link.send_blocks(1000);
    EXPECT_GT(link.send_blocks(6000), .97 * best_rate(link)) << ns;
  }
}

TEST(PackingEffort, ContentsThatDoNotPackAreNotTriedForLong) {
  Link link = link_of(500e6);
  link.pack[0] = .4;
  for (double& ns : link.send) ns = 16;
  link.send_blocks(1000);
  link.changes = 0;
  link.send_blocks(6000);
  EXPECT_LE(link.changes, 10);
  EXPECT_EQ(link.effort.now(), Effort::kLeast);
}

}  // namespace
