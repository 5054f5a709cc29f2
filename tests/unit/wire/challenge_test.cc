#include "wire/challenge.h"

#include <gtest/gtest.h>

#include <set>

namespace phalanx::wire {
namespace {

TEST(Challenge, OnlyTheSameKeyNoncesAndSideProve) {
  const std::string key = key_for(Purpose::kStore, "token"), mine(kNonceBytes, 'a'), theirs(kNonceBytes, 'b');
  const std::string proof = proof_of(Side::kDialer, key, mine, theirs);
  EXPECT_EQ(key.size(), kKeyBytes);
  EXPECT_EQ(proof.size(), kProofBytes);
  EXPECT_TRUE(proves(proof, Side::kDialer, key, mine, theirs));
  EXPECT_FALSE(proves(proof, Side::kListener, key, mine, theirs)) << "a proof that is sent back to its author";
  EXPECT_FALSE(proves(proof, Side::kDialer, key, theirs, mine));
  EXPECT_FALSE(proves(proof, Side::kDialer, key, mine, std::string(kNonceBytes, 'c'))) << "a recording";
  EXPECT_FALSE(proves(proof, Side::kDialer, key_for(Purpose::kMesh, "token"), mine, theirs)) << "another purpose";
  EXPECT_FALSE(proves(proof, Side::kDialer, key_for(Purpose::kStore, "tokeN"), mine, theirs));
  EXPECT_FALSE(proves("", Side::kDialer, key, mine, theirs));
  EXPECT_FALSE(proves(proof_of(Side::kDialer, "", mine, theirs), Side::kDialer, "", mine, theirs)) << "no key proves nothing";
}

TEST(Challenge, NoncesDiffer) {
  std::set<std::string> seen;
  for (int i = 0; i < 1000; ++i) seen.insert(fresh_nonce().value());
  EXPECT_EQ(seen.size(), 1000u);
  EXPECT_EQ(seen.begin()->size(), kNonceBytes);
}

}  // namespace
}  // namespace phalanx::wire
