#include "job/facts_bounds.h"

#include <gtest/gtest.h>

#include <fmt/format.h>

#include "base/json_fields.h"

namespace phalanx::job {
namespace {

base::Json sane() {
  machine::Facts facts;
  facts.machine.hostname = "gpu01";
  facts.machine.cpus_online = facts.machine.cpus_usable = 64;
  facts.gpus.devices.resize(8);
  facts.clock.wall_ns = 1'800'000'000'000'000'000;
  return base::to_json(facts);
}

TEST(FactsBounds, WhatAMachineSaysPasses) {
  base::Result<machine::Facts> facts = facts_from_host(base::to_text(sane()));
  ASSERT_TRUE(facts.ok()) << facts.error().render();
  EXPECT_EQ(facts->gpus.devices.size(), 8u);
}

TEST(FactsBounds, WhatNoMachineCanSayIsRefused) {
  auto refused = [](auto change) {
    base::Json json = sane();
    change(json);
    return !facts_from_host(base::to_text(json)).ok();
  };
  EXPECT_TRUE(refused([](base::Json& j) { j["gpus"]["devices"][0]["index"] = -7; }));
  EXPECT_TRUE(refused([](base::Json& j) { j["gpus"]["devices"][0]["index"] = INT32_MAX; }));
  EXPECT_TRUE(refused([](base::Json& j) { j["gpus"]["devices"] = base::Json::array_t(5000, j["gpus"]["devices"][0]); }));
  EXPECT_TRUE(refused([](base::Json& j) { j["machine"]["cpus_online"] = 1'000'000'000; }));
  EXPECT_TRUE(refused([](base::Json& j) { j["clock"]["wall_ns"] = -1; }));
  EXPECT_TRUE(refused([](base::Json& j) { j["clock"]["mono_ns"] = INT64_MIN; }));
  EXPECT_TRUE(refused([](base::Json& j) { j["machine"]["hostname"] = std::string((1 << 20) + 1, 'h'); }));
  EXPECT_TRUE(refused([](base::Json& j) { j["software"]["environment"]["NCCL_\x1b[2J"] = "x"; }));
  EXPECT_FALSE(parse_from_host("[" + std::string(40'000, '[')).ok());
  std::string many = "[0";
  for (int i = 0; i < 20'000; ++i) many += ",0";
  EXPECT_FALSE(parse_from_host(many + "]").ok());
}

// Tables of hosts show these texts.
TEST(FactsBounds, NoTextSteersATerminal) {
  base::Json json = sane();
  json["machine"]["hostname"] =
      "gpu\x1b]0;title\x07 \xc2\x9b"
      "2J\ttab\nline 主机";
  base::Result<machine::Facts> facts = facts_from_host(base::to_text(json));
  ASSERT_TRUE(facts.ok());
  EXPECT_EQ(facts->machine.hostname, "gpu?]0;title? ?2J\ttab\nline 主机");
}

}  // namespace
}  // namespace phalanx::job
