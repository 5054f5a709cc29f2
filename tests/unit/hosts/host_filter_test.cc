#include "hosts/lists/host_filter.h"

#include <gtest/gtest.h>

#include <random>

#include "base/text.h"

namespace phalanx::hosts {
namespace {

HostList hosts() { return parse_hostfile("gpu01 slots=4\ngpu02 slots=2\nalice@gpu03\n", "h").value(); }

std::string shown(const base::Result<HostList>& list) {
  if (!list.ok()) return "error: " + list.error().message;
  std::string out;
  for (const HostSpec& host : *list) {
    out += (out.empty() ? "" : " ") + host.name;
    if (!host.selected.empty()) out += ":" + base::format_ranges(host.selected);
    if (!host.left_out.empty()) out += "-" + base::format_ranges(host.left_out);
  }
  return out;
}

std::string include(std::string_view filter) { return shown(include_hosts(hosts(), filter)); }
std::string exclude(std::string_view filter) { return shown(exclude_hosts(hosts(), filter)); }

// The examples of DeepSpeed's documentation of --include and --exclude.
TEST(HostFilter, AsDeepSpeedDocuments) {
  EXPECT_EQ(include("gpu01@gpu02:0,1"), "gpu01 gpu02:0–1");
  EXPECT_EQ(include("gpu01"), "gpu01");
  EXPECT_EQ(include("gpu02:1"), "gpu02:1");
  EXPECT_EQ(exclude("gpu02:0"), "gpu01 gpu02:1 gpu03");
  EXPECT_EQ(exclude("gpu02"), "gpu01 gpu03");
}

TEST(HostFilter, OrderOfTheListAndAscendingSlots) { EXPECT_EQ(include("gpu03@gpu01:3,0"), "gpu01:0, 3 gpu03"); }

TEST(HostFilter, Extensions) {
  EXPECT_EQ(include("gpu01:0-2"), "gpu01:0–2");
  EXPECT_EQ(include("gpu01:0-1,3"), "gpu01:0–1, 3");
  EXPECT_EQ(include("gpu[01-02]:1"), "gpu01:1 gpu02:1");
  EXPECT_EQ(exclude("gpu[02-03]"), "gpu01");
}

TEST(HostFilter, UnknownSlotCountsWaitForTheProbe) {
  auto chosen = include_hosts(hosts(), "gpu03:0,6");
  ASSERT_TRUE(chosen.ok());
  EXPECT_EQ(used_slots(chosen->at(0), 8).value(), (std::vector<int>{0, 6}));
  auto refused = used_slots(chosen->at(0), 4);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().kind, base::ErrorKind::kUnfit);
  EXPECT_EQ(refused.error().message, "host gpu03 has no slot 6");
  EXPECT_EQ(refused.error().cause, "its slots are 0–3");

  EXPECT_EQ(exclude("gpu03:1"), "gpu01 gpu02 gpu03-1");
  auto left = exclude_hosts(hosts(), "gpu03:1");
  EXPECT_EQ(used_slots(left->at(2), 3).value(), (std::vector<int>{0, 2}));
  EXPECT_FALSE(used_slots(left->at(2), 1).ok());
  EXPECT_FALSE(used_slots(left->at(2), 0).ok());
  EXPECT_EQ(used_slots(left->at(0), 99).value().size(), 4u);  // what the user wrote counts, not the probe
}

TEST(HostFilter, LosingTheLastSlotLosesTheHost) {
  EXPECT_EQ(exclude("gpu02:0,1"), "gpu01 gpu03");
  EXPECT_EQ(exclude("gpu[01-03]"), "error: --exclude leaves no hosts");
  EXPECT_FALSE(used_slots(exclude_hosts(hosts(), "gpu03:0")->at(2), 1).ok());
}

TEST(HostFilter, RefusalsNameWhatExists) {
  EXPECT_EQ(include("gpu04"), "error: --include, character 1: unknown host \"gpu04\"");
  EXPECT_EQ(include_hosts(hosts(), "gpuO1").error().hint, "did you mean gpu01? known hosts: gpu[01-03]");
  EXPECT_EQ(include("gpu01:0,9"), "error: --include, character 1: host gpu01 has no slot 9");
  EXPECT_EQ(include_hosts(hosts(), "gpu01:0,9").error().hint, "its slots are 0–3 (h:1)");
  EXPECT_EQ(exclude("gpu02@gpu01:4"), "error: --exclude, character 7: host gpu01 has no slot 4");
  EXPECT_EQ(include("gpu[01-09]"), "error: --include, character 1: unknown host \"gpu04\"");
  EXPECT_EQ(include("alice@gpu03"), "error: --include, character 1: unknown host \"alice\"");
  EXPECT_EQ(include_hosts(hosts(), "alice@gpu03").error().hint,
            "'@' separates hosts here; write the host without its user; known hosts: gpu[01-03]");
}

TEST(HostFilter, RefusesMalformed) {
  for (std::string_view bad : {"",
                               "@",
                               "gpu01@",
                               "@gpu01",
                               "gpu01:",
                               "gpu01:,",
                               "gpu01:0,",
                               "gpu01:a",
                               "gpu01:-1",
                               "gpu01:0-",
                               "gpu01:2-0",
                               "gpu01:0,0",
                               "gpu01:0-2,1",
                               "gpu01@gpu01",
                               "gpu01:0@gpu01:1",
                               "gpu01:99999999999",
                               "gpu01:0 ",
                               " gpu01",
                               "gpu[",
                               "gpu[01-",
                               "[]",
                               "[",
                               "]",
                               ":",
                               ":0",
                               "gpu01:0:1",
                               "gpu01:0-4096"})
    EXPECT_FALSE(include_hosts(hosts(), bad).ok()) << bad;
  EXPECT_EQ(include("gpu01:0,x"), "error: --include, character 9: \"x\" is not a valid slot");
  EXPECT_EQ(include("gpu01:0,0"), "error: --include, character 7: slot 0 is named twice");
  std::string endless = "gpu03:";
  for (int i = 0; i < 10'000; ++i) endless += "0-4095,";
  EXPECT_EQ(include(endless), "error: --include, character 7: slot 0 is named twice");
}

TEST(HostFilter, NamesThatHoldColons) {
  HostList list = parse_hostfile("fd00::1 slots=4\n127.0.0.1 port=2201 slots=2\n127.0.0.1 port=2202 slots=2", "h").value();
  EXPECT_EQ(shown(include_hosts(list, "fd00::1")), "fd00::1");
  EXPECT_EQ(shown(include_hosts(list, "fd00::1:0,2")), "fd00::1:0, 2");
  EXPECT_EQ(shown(include_hosts(list, "[fd00::1]")), "fd00::1");
  EXPECT_EQ(shown(include_hosts(list, "[fd00::1]:3")), "fd00::1:3");
  EXPECT_EQ(shown(include_hosts(list, "127.0.0.1:2202@fd00::1")), "fd00::1 127.0.0.1:2202");
  EXPECT_EQ(shown(include_hosts(list, "127.0.0.1:2202:1")), "127.0.0.1:2202:1");
}

TEST(HostFilter, FirstHosts) {
  EXPECT_EQ(shown(first_hosts(hosts(), 2)), "gpu01 gpu02");
  EXPECT_EQ(shown(first_hosts(hosts(), 3)), "gpu01 gpu02 gpu03");
  EXPECT_EQ(shown(first_hosts(hosts(), 4)), "error: --nnodes 4 exceeds the number of available hosts: 3 (gpu[01-03])");
}

// With all slots known, --include and --exclude of the same text split the slots in two.
TEST(HostFilter, IncludeAndExcludePartitionTheSlots) {
  std::mt19937 random(6);
  HostList list = parse_host_argument("a:3,b:2,c:4").value();
  for (int round = 0; round < 3000; ++round) {
    std::string filter;
    for (const HostSpec& host : list) {
      if (random() % 3 == 0) continue;
      std::string slots;
      for (int slot = 0; slot < *host.slots; ++slot)
        if (random() % 2) slots += (slots.empty() ? ":" : ",") + std::to_string(slot);
      filter += (filter.empty() ? "" : "@") + host.name + slots;
    }
    if (filter.empty()) continue;
    auto in = include_hosts(list, filter);
    auto out = exclude_hosts(list, filter);
    ASSERT_TRUE(in.ok()) << filter;
    size_t used = 0;
    for (const HostSpec& host : *in) used += used_slots(host, 0)->size();
    if (out.ok())
      for (const HostSpec& host : *out) used += used_slots(host, 0)->size();
    ASSERT_EQ(used, 9u) << filter;
  }
}

TEST(HostFilter, RandomTextNeverCrashes) {
  std::mt19937 random(8);
  const std::string_view pieces[] = {"gpu01", "gpu02", "@", ":", ",", "0", "1", "-", "[", "]", "gpu[01-02]", "\xff", " "};
  for (int round = 0; round < 30'000; ++round) {
    std::string text;
    for (size_t n = random() % 8; n > 0; --n) text += pieces[random() % std::size(pieces)];
    auto in = include_hosts(hosts(), text);
    if (in.ok()) { ASSERT_FALSE(in->empty()); }
    if (exclude_hosts(hosts(), text).ok()) { ASSERT_TRUE(in.ok()) << text; }
  }
}

}  // namespace
}  // namespace phalanx::hosts
