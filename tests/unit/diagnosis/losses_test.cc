// Which host loses packets: the pairs of hosts that do have it in common; one pair alone needs a witness.
#include "diagnosis/hang/losses.h"

#include <gtest/gtest.h>

#include "codes/code.h"

using namespace phalanx;

namespace {

using diagnosis::Diagnosis;
using diagnosis::Losses;

const std::vector<std::string> kHosts = {"h1", "h2", "h3"};

std::optional<size_t> host_of(const std::string& address) {
  if (address.size() != 2 || address[0] != '@') return std::nullopt;
  return static_cast<size_t>(address[1] - '1');
}

// What a host has sent to others in one window: {"@2", sent, resent, looks, recovering}.
wire::Pulse pulse(std::vector<wire::PeerPulse> peers) { return {0, 2500, {}, std::move(peers), 0}; }

std::optional<Diagnosis> after(Losses& losses, int windows, const std::vector<std::pair<size_t, std::vector<wire::PeerPulse>>>& sent,
                               const std::vector<std::string>& hosts = kHosts) {
  std::optional<Diagnosis> told;
  for (int i = 0; i < windows; ++i) {
    for (const auto& [host, peers] : sent) losses.take(host, pulse(peers), host_of);
    if (std::optional<Diagnosis> verdict = losses.look(hosts)) {
      EXPECT_FALSE(told) << "twice";
      told = std::move(verdict);
    }
  }
  return told;
}

TEST(Losses, TheHostThatAllLossyPairsHaveInCommonIsNamedOnce) {
  Losses losses;
  std::optional<Diagnosis> told = after(losses, 20,
                                        {{0, {{"@2", 200, 10, 25, 18}, {"@3", 200, 0, 1, 0}}},
                                         {1, {{"@3", 200, 9, 25, 20}, {"@1", 200, 0, 25, 0}}},
                                         {2, {{"@1", 200, 0, 1, 0}, {"@2", 200, 12, 25, 19}}}});
  ASSERT_TRUE(told);
  EXPECT_EQ(told->code, "NET-LOSS");
  EXPECT_EQ(told->host, 1u);
  EXPECT_TRUE(told->ranks.empty());
  EXPECT_TRUE(codes::find(told->code));
  EXPECT_NE(told->evidence.english.find("between it and h1, h3 are lost; connections between other hosts lose none"), std::string::npos)
      << told->evidence.english;
  EXPECT_NE(told->evidence.english.find("times as fast"), std::string::npos);
  EXPECT_FALSE(told->evidence.chinese.empty());
}

TEST(Losses, AClearedHostOfOnePairLeavesTheOther) {
  Losses losses;
  std::optional<Diagnosis> told =
      after(losses, 8, {{0, {{"@2", 200, 10, 25, 18}, {"@3", 200, 0, 1, 0}}}, {1, {{"@1", 200, 8, 25, 18}}}, {2, {{"@1", 200, 0, 1, 0}}}});
  ASSERT_TRUE(told);
  EXPECT_EQ(told->host, 1u);
}

TEST(Losses, OfTwoHostsTheOneThatLosesElsewhereTooIsNamed) {
  Losses losses;
  std::optional<Diagnosis> told = after(
      losses, 8, {{0, {{"@2", 200, 10, 25, 18}, {"10.0.0.9", 20, 0, 1, 0}}}, {1, {{"@1", 200, 10, 25, 18}, {"10.0.0.9", 20, 1, 1, 0}}}},
      {"h1", "h2"});
  ASSERT_TRUE(told);
  EXPECT_EQ(told->host, 1u);
}

TEST(Losses, WithoutAWitnessThePairIsTold) {
  Losses losses;
  std::vector<std::pair<size_t, std::vector<wire::PeerPulse>>> sent = {{0, {{"@2", 200, 10, 25, 18}}}, {1, {{"@1", 200, 10, 25, 18}}}};
  EXPECT_FALSE(after(losses, 10, sent, {"h1", "h2"})) << "it is waited for one";
  std::optional<Diagnosis> told = after(losses, 40, sent, {"h1", "h2"});
  ASSERT_TRUE(told);
  EXPECT_FALSE(told->host);
  EXPECT_NE(told->evidence.english.find("between h1, h2 are lost"), std::string::npos) << told->evidence.english;
}

TEST(Losses, LittleABurstOrWhatDoesNotMatterIsNothing) {
  Losses few, burst, harmless, spread;
  EXPECT_FALSE(after(few, 30, {{0, {{"@2", 20'000, 20, 25, 10}}}})) << "one in a thousand";
  EXPECT_FALSE(after(burst, 1, {{0, {{"@2", 200, 100, 25, 20}}}}));
  EXPECT_FALSE(after(burst, 30, {{0, {{"@2", 200, 0, 1, 0}}}}));
  EXPECT_FALSE(after(harmless, 30, {{0, {{"@2", 2000, 40, 25, 1}, {"@3", 2000, 0, 1, 0}}}})) << "no time is lost on it";
  EXPECT_FALSE(after(spread, 30, {{0, {{"10.0.0.9", 2000, 100, 25, 20}}}})) << "what programs exchange with other machines is their affair";
}

TEST(Losses, HostileCountsAreHarmless) {
  Losses losses;
  after(losses, 30, {{0, {{"@2", 0, UINT32_MAX, 0, UINT32_MAX}, {"@9", 1, UINT32_MAX, 1, 9}}}, {7, {{"@1", 1, 50, 1, 1}}}});
}

}  // namespace
