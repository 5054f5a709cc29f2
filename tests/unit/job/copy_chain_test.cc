// Chains of hosts that pass contents on, with links that break, hosts that stand still and hosts that die: every host that lives gets every
// block once and in order.
#include "job/copy/copy_chain.h"

#include <gtest/gtest.h>

#include <deque>
#include <random>

using namespace phalanx;

namespace {

constexpr uint64_t kBlock = 256 << 10;

// Hosts, their links, and the launcher's part of the talk with them, in steps of 10 ms. A block is its number, and has kBlock bytes.
class World {
 public:
  World(size_t hosts, uint64_t blocks, uint32_t seed) : blocks_(blocks), random_(seed), hosts_(hosts) {
    std::vector<job::CopyChain::Member> members;
    for (size_t h = 0; h < hosts; ++h) members.push_back({h, "10.0.0." + std::to_string(h)});
    chain_ = std::make_unique<job::CopyChain>(std::move(members), std::vector<std::string>(hosts - 1, "key"),
                                              [this](size_t h, const std::string& frames) { hosts_[h].orders.push_back(frames); });
    chain_->begin(now_);
  }
  struct Host {
    uint64_t taken = 0, told = 0, next = 0;  // next: of what the launcher sends it
    std::deque<std::string> orders;          // frames of the launcher; "" is a block
    std::deque<uint64_t> direct;             // the blocks of those
    std::deque<uint64_t> linked;             // on their way from the host before
    bool inlet = false, dead = false, over = false, refuses = false, deaf = false;
    int still = 0;                               // steps for which it does nothing
    int slow = 0;                                // takes something in every so many steps
    bool ignoring = false;                       // what the launcher sends, until it begins again
    std::deque<std::pair<uint64_t, bool>> mail;  // on its way to the launcher: blocks taken, lost
    size_t passes_to = 0;
  };

  void step() {
    now_ = now_ + os::milliseconds(10);
    for (size_t h = 0; h < hosts_.size(); ++h) {
      send(h);
      live(h);
      while (!hosts_[h].mail.empty() && random(3) != 0) deliver(h);
    }
    if (++steps_ % 100 == 0) chain_->tick(now_);
  }
  bool done() const {
    return std::all_of(hosts_.begin(), hosts_.end(), [](const Host& host) { return host.over; });
  }
  uint64_t run(int most = 200'000) {
    while (!done() && most-- > 0) step();
    EXPECT_TRUE(done());
    return direct_;
  }
  void die(size_t h) {
    if (hosts_[h].over) return;
    hosts_[h].dead = hosts_[h].over = true;
    break_links(h);
    chain_->on_over(h, true, now_);
  }
  void break_links(size_t h) {
    lose(h);
    if (hosts_[h].passes_to) lose(hosts_[h].passes_to);
  }
  // What had been taken of a file was damaged.
  void fall_back(size_t h, uint64_t blocks) {
    Host& host = hosts_[h];
    host.taken -= std::min(host.taken, blocks);
    host.ignoring = !host.inlet;
    host.inlet = false;
    host.linked.clear();
    if (host.passes_to) lose(host.passes_to);
    host.passes_to = 0;
    tell(h, true);
  }
  void stand_still(size_t h, int steps) { hosts_[h].still = steps; }
  Host& host(size_t h) { return hosts_[h]; }
  job::CopyChain& chain() { return *chain_; }
  uint32_t random(uint32_t below) { return static_cast<uint32_t>(random_() % below); }
  uint64_t in_flight() const { return most_in_flight_; }

 private:
  void send(size_t h) {
    Host& host = hosts_[h];
    if (host.dead || host.over || !chain_->ready() || chain_->fed(h)) return;
    for (int i = 0; i < 3 && host.next < blocks_ && chain_->may_send(h); ++i) {
      host.orders.push_back("");
      host.direct.push_back(host.next++);
      chain_->sent(h, kBlock, now_);
      ++direct_;
    }
  }
  void live(size_t h) {
    Host& host = hosts_[h];
    if (host.dead || (host.still > 0 && host.still-- > 0)) return;
    for (int i = 0; i < 3 && !host.orders.empty(); ++i) {
      const std::string order = host.orders.front();
      host.orders.pop_front();
      if (order.empty()) {
        const uint64_t block = host.direct.front();
        host.direct.pop_front();
        if (!host.ignoring) take(h, block);
      } else {
        obey(h, order);
      }
    }
    if (host.slow > 0 && steps_ % host.slow != 0) return;
    for (int i = 0; i < 2 && host.inlet && !host.linked.empty(); ++i) {
      const uint64_t block = host.linked.front();
      host.linked.pop_front();
      take(h, block);
    }
  }
  void take(size_t h, uint64_t block) {
    Host& host = hosts_[h];
    ASSERT_EQ(block, host.taken) << "host " << h;
    ++host.taken;
    Host& next = hosts_[host.passes_to];
    if (host.passes_to && next.inlet) next.linked.push_back(block);
    most_in_flight_ = std::max<uint64_t>(most_in_flight_, next.linked.size());
    if (host.taken - host.told >= 4 || host.taken == blocks_) tell(h, false);
  }
  void tell(size_t h, bool lost) {
    hosts_[h].told = hosts_[h].taken;
    hosts_[h].mail.emplace_back(hosts_[h].taken, lost);
  }
  void deliver(size_t h) {
    Host& host = hosts_[h];
    const auto [blocks, lost] = host.mail.front();
    host.mail.pop_front();
    if (host.dead || host.over) return;
    const std::optional<job::CopyChain::Taken> taken = chain_->on_taken(h, {blocks * kBlock, lost}, now_);
    ASSERT_TRUE(taken) << "host " << h;
    if (taken->from) {
      ASSERT_EQ(*taken->from, blocks * kBlock) << "host " << h;
      host.next = blocks;
    }
    if (blocks < blocks_) return;
    host.over = true;
    chain_->on_over(h, false, now_);
  }
  void lose(size_t h) {
    Host& host = hosts_[h];
    if (!host.inlet) return;
    host.inlet = false;
    host.linked.clear();
    if (!host.dead && !host.over) tell(h, true);
  }
  void obey(size_t h, const std::string& frames) {
    wire::FrameReader reader;
    reader.feed(wire::kStreamMagic);
    reader.feed(frames);
    const wire::Frame frame = **reader.next();
    Host& host = hosts_[h];
    if (frame.type == wire::FrameType::kCopyListen) {
      const wire::CopyListen message = *wire::decode<wire::CopyListen>(frame.payload);
      if (message.address.empty() && host.ignoring) {
        host.ignoring = false;
      } else if (message.address.empty()) {
        host.inlet = false;
        host.linked.clear();
        if (!host.over) tell(h, true);
      } else if (!host.deaf) {
        chain_->on_listening(h, {{!host.refuses, {}}, static_cast<uint32_t>(h)});
      }
      return;
    }
    const wire::CopyPassOn message = *wire::decode<wire::CopyPassOn>(frame.payload);
    if (message.address.empty()) {
      if (host.passes_to) lose(host.passes_to);
      host.passes_to = 0;
      return;
    }
    host.passes_to = message.port;
    hosts_[message.port].inlet = true;
    chain_->on_passing(h, {});
  }

  uint64_t blocks_, direct_ = 0, most_in_flight_ = 0;
  int steps_ = 0;
  os::Mono now_;
  std::mt19937 random_;
  std::vector<Host> hosts_;
  std::unique_ptr<job::CopyChain> chain_;
};

TEST(CopyChain, TheLauncherSendsOnce) {
  World world(8, 1000, 1);
  EXPECT_EQ(world.run(), 1000u);
  EXPECT_LE(world.in_flight() * kBlock, job::CopyChain::kWindow + 8 * job::CopyChain::kWindowPerHost + 2 * kBlock);
}

TEST(CopyChain, AHostThatCannotListenBeginsAChainOfItsOwn) {
  World world(6, 500, 1);
  world.host(3).refuses = true;
  EXPECT_EQ(world.run(), 1000u);
}

TEST(CopyChain, AHostThatSaysNothingIsNotWaitedForLong) {
  World world(6, 500, 1);
  world.host(1).deaf = true;
  EXPECT_EQ(world.run(), 1000u);
}

TEST(CopyChain, ABrokenLinkCostsNoBlockTwice) {
  World world(4, 1000, 1);
  for (int i = 0; i < 100; ++i) world.step();
  const uint64_t there = world.host(2).taken;
  ASSERT_GT(there, 0u);
  world.break_links(2);
  const uint64_t direct = world.run();
  constexpr uint64_t kUnderWay = 2 * job::CopyChain::kWindow / kBlock;
  EXPECT_GE(direct + kUnderWay, 1000 + 2 * (1000 - there));
  EXPECT_LE(direct, 1000 + 2 * (1000 - there) + kUnderWay) << "hosts 2 and 3 from where they were";
}

TEST(CopyChain, AHostThatStandsStillHoldsOthersUpForSecondsOnly) {
  for (size_t still : {0u, 1u, 2u, 3u}) {
    World world(4, 2000, 1);
    for (int i = 0; i < 100; ++i) world.step();
    world.stand_still(still, 100'000);
    for (int i = 0; i < 3000; ++i) world.step();  // 30 s
    for (size_t h = 0; h < 4; ++h) EXPECT_EQ(world.host(h).over, h != still) << still << " stands still: " << h;
    world.stand_still(still, 0);
    world.run();
  }
}

TEST(CopyChain, TwoNeighboursThatStandStillDoNotHoldOthersUpEither) {
  for (size_t still : {0u, 1u, 2u}) {
    for (int later : {0, 300}) {
      World world(5, 2000, 1);
      for (int i = 0; i < 100; ++i) world.step();
      world.stand_still(still, 100'000);
      for (int i = 0; i < later; ++i) world.step();
      world.stand_still(still + 1, 100'000);
      for (int i = 0; i < 3000; ++i) world.step();
      for (size_t h = 0; h < 5; ++h) EXPECT_EQ(world.host(h).over, h != still && h != still + 1) << still << " stands still: " << h;
      for (size_t h : {still, still + 1}) world.stand_still(h, 0);
      world.run();
    }
  }
}

TEST(CopyChain, AHostThatIsFarSlowerGoesItsOwnWay) {
  World world(4, 3000, 1);
  world.host(2).slow = 60;
  for (int i = 0; i < 6000; ++i) world.step();
  EXPECT_TRUE(world.host(1).over);
  EXPECT_TRUE(world.host(3).over) << "it was behind the slow one";
  world.run();
}

// What was passed on was damaged: the launcher sends the file again, and those behind get theirs from the launcher too.
TEST(CopyChain, AHostCanFallBack) {
  World world(4, 1000, 1);
  for (int i = 0; i < 100; ++i) world.step();
  ASSERT_GT(world.host(1).taken, 10u);
  world.fall_back(1, 7);
  world.run();
}

TEST(CopyChain, OneThatClaimsTooMuchIsRefused) {
  World world(3, 100, 1);
  for (int i = 0; i < 20; ++i) world.step();
  EXPECT_FALSE(world.chain().on_taken(1, {1'000'000'000, false}, {}));
  EXPECT_FALSE(world.chain().on_taken(2, {0, false}, {})) << "it had more";
}

TEST(CopyChain, WhateverHappensEveryHostGetsEveryBlockOnce) {
  for (uint32_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    World world(2 + seed % 7, 300 + seed, seed);
    const size_t hosts = 2 + seed % 7;
    for (size_t h = 1; h < hosts; ++h) {
      world.host(h).refuses = world.random(10) == 0;
      world.host(h).deaf = world.random(10) == 0;
    }
    for (int i = 0; i < 60'000 && !world.done() && !testing::Test::HasFatalFailure(); ++i) {
      const size_t h = world.random(static_cast<uint32_t>(hosts));
      if (world.random(150) == 0) world.break_links(h);
      if (world.random(300) == 0) world.stand_still(h, static_cast<int>(world.random(1500)));
      if (world.random(2000) == 0) world.die(h);
      const World::Host& host = world.host(h);
      const bool can = !host.over && !host.dead && !host.ignoring && host.taken < 300 + seed && host.still == 0;
      if (can && world.random(500) == 0) world.fall_back(h, world.random(40));
      if (world.random(1000) == 0) world.host(h).slow = static_cast<int>(world.random(30));
      world.step();
    }
    ASSERT_TRUE(world.done());
    if (testing::Test::HasFatalFailure()) return;
  }
}

}  // namespace
