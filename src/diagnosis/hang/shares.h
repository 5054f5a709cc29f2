// What ranks spend their time on while the run goes on: how often their first thread was found in which kind of place; and who is waited
// for. Pure.
//
// In a collective everybody waits for the last one. So a rank that hardly ever waits, while every other rank waits much more, is the one
// they wait for: the difference is what a step would save if it were as fast as they are.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "diagnosis/diagnosis.h"
#include "machine/ranks/sample.h"

namespace phalanx::diagnosis {

enum class Spent {
  kComputing,
  kCommunicating,  // in a collective, a receive, or at the store
  kLoading,        // in a data loader, or waiting for its workers
  kSaving,         // writing a checkpoint
  kDevice,         // waiting for its accelerator: what that does is not seen from outside
  kElse,           // asleep, or waiting for something else
};
inline constexpr size_t kKindsOfSpent = 6;
doctor::Words name_of(Spent spent);

Spent spent_on(const machine::ThreadSample& first_thread);

struct RankShares {
  int rank = 0;
  size_t host = 0;
  int64_t looks = 0;
  std::array<double, kKindsOfSpent> part{};  // of the looks
  std::string place;                         // "train.py:42 (augment)": where it was found most often outside of communication
  Spent at_place = Spent::kComputing;
  double of(Spent spent) const { return part[static_cast<size_t>(spent)]; }
};
RankShares shares_of(const machine::RankProfile& profile, size_t host);

inline constexpr int64_t kEnoughLooks = 16;  // for a suspicion
inline constexpr int64_t kManyLooks = 60;    // to name somebody

// Whom the others wait for. Nothing: all are about even, or some rank is not known well enough.
struct Straggler {
  std::vector<RankShares> ranks;      // all on one host
  double waits = 0, others_wait = 0;  // parts of the time: the most of any of `ranks`, the least of any other
  std::optional<Spent> more;          // what they do markedly more than any other rank, besides computing
  double times_as_fast() const;
};
std::optional<Straggler> straggler(const std::vector<RankShares>& all, int64_t looks);
Diagnosis straggler_verdict(const Straggler& straggler);

}  // namespace phalanx::diagnosis
