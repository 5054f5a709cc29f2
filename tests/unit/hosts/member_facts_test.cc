#include "hosts/join/member_facts.h"

#include <gtest/gtest.h>

#include "hosts/join/gather.h"

namespace phalanx::hosts {
namespace {

MemberFacts facts(uint32_t rank) { return {rank, 3, "abc123", rank ? "gpu02" : "gpu01", "8", {"python", "train.py"}}; }

TEST(MemberFacts, SurviveTheWay) {
  base::Result<MemberFacts> read = decode_member_facts(encode(facts(2)));
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->node_rank, 2u);
  EXPECT_EQ(read->command, facts(2).command);
  EXPECT_EQ(disagreement(facts(0), *read), "");
}

TEST(MemberFacts, WhatDoesNotBelongThereIsRefused) {
  const std::string whole = encode(facts(1));
  for (size_t bytes = 0; bytes < whole.size(); ++bytes) EXPECT_FALSE(decode_member_facts(whole.substr(0, bytes)).ok()) << bytes;
  for (const char* name : {"", "-oProxyCommand=x", "a b", "\x1b[2J", "a;b"}) {
    MemberFacts bad = facts(1);
    bad.hostname = name;
    EXPECT_FALSE(decode_member_facts(encode(bad)).ok()) << name;
  }
  MemberFacts bad = facts(1);
  bad.node_rank = 1 << 30;
  EXPECT_FALSE(decode_member_facts(encode(bad)).ok());
}

TEST(MemberFacts, ACommandThatNoRecordCarriesIsRefusedBeforeItIsSent) {
  EXPECT_TRUE(fits_a_record(facts(1)).ok());
  MemberFacts large = facts(1);
  large.command.resize(20'000, std::string(100, 'x'));
  const base::Status refused = fits_a_record(large);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().kind, base::ErrorKind::kUsage);
  EXPECT_NE(refused.error().message.find("20000 words"), std::string::npos) << refused.error().message;
}

TEST(MemberFacts, EveryDisagreementIsNamed) {
  auto says = [](void (*change)(MemberFacts&)) {
    MemberFacts other = facts(1);
    change(other);
    return disagreement(facts(0), other);
  };
  EXPECT_EQ(says([](MemberFacts& f) { f.build = "def"; }), "node 1 (gpu02) has another version of phalanx than node 0 (gpu01)");
  EXPECT_EQ(says([](MemberFacts& f) { f.nodes = 2; }), "node 1 (gpu02) was started with --nnodes 2, node 0 with --nnodes 3");
  EXPECT_EQ(says([](MemberFacts& f) { f.node_rank = 0; }), "node rank 0 is given twice: on gpu01 and on gpu02");
  EXPECT_EQ(says([](MemberFacts& f) { f.node_rank = 3; }), "node 3 (gpu02): with --nnodes 3 the highest node rank is 2");
  EXPECT_EQ(says([](MemberFacts& f) { f.ranks = ""; }),
            "node 1 (gpu02) was started without --nproc-per-node, node 0 with --nproc-per-node 8");
  EXPECT_EQ(says([](MemberFacts& f) { f.command.push_back("--lr"); }),
            "node 1 (gpu02) was started with another command than node 0: word 3 differs");
}

TEST(JoinVerdict, IsReadWithinItsBounds) {
  base::Result<JoinVerdict> read = decode_join_verdict(encode(JoinVerdict{7, "why"}));
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->exit_code, 7u);
  EXPECT_EQ(read->text, "why");
  EXPECT_FALSE(decode_join_verdict(encode(JoinVerdict{256, ""})).ok());
  EXPECT_FALSE(decode_join_verdict("").ok());
}

}  // namespace
}  // namespace phalanx::hosts
