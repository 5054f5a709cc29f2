#include "sync/prepared.h"

#include <gtest/gtest.h>

using namespace phalanx;

namespace {

sync::Prepared sample() {
  sync::Prepared prepared{"/opt/envs/llm", "/data/llm", 0755, {}, {}};
  prepared.manifest.with_modes = true;
  prepared.manifest.entries.push_back({"bin", sync::Kind::kFolder, 0, 5, "", 0755});
  prepared.manifest.entries.push_back({"bin/tool", sync::Kind::kProgram, 7, 6, std::string(32, 'd'), 0755});
  prepared.aside.emplace(std::string(32, 'd'), 100);
  return prepared;
}

TEST(Prepared, ComesBackAsItWasWritten) {
  const base::Result<sync::Prepared> read = sync::decode_prepared(sync::encode(sample()));
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->root, "/opt/envs/llm");
  EXPECT_EQ(read->to, "/data/llm");
  EXPECT_TRUE(read->manifest.entries == sample().manifest.entries);
  EXPECT_EQ(read->aside, sample().aside);
}

TEST(Prepared, WhatIsMalformedIsRefused) {
  const std::string whole = sync::encode(sample());
  for (size_t size = 0; size < whole.size(); ++size) EXPECT_FALSE(sync::decode_prepared(whole.substr(0, size)).ok()) << size;
  EXPECT_FALSE(sync::decode_prepared(whole + "x").ok());
  sync::Prepared other = sample();
  other.to = "relative";
  EXPECT_FALSE(sync::decode_prepared(sync::encode(other)).ok());
  other = sample();
  other.mode = 0777;
  EXPECT_FALSE(sync::decode_prepared(sync::encode(other)).ok());
  other = sample();
  other.manifest.with_modes = false;
  EXPECT_FALSE(sync::decode_prepared(sync::encode(other)).ok());
  other = sample();
  other.aside.emplace("short", 1);
  EXPECT_FALSE(sync::decode_prepared(sync::encode(other)).ok());
}

}  // namespace
