#include "hosts/mesh.h"

#include <algorithm>
#include <random>
#include <set>

namespace phalanx::hosts {
namespace {

constexpr int kAllPairsUpTo = 16;
constexpr int kSecondRing = 8;

// The circle method: one host stays, the others go round. With an odd number one sits out each round.
std::vector<std::vector<Pair>> tournament(int hosts) {
  int places = hosts + hosts % 2;
  std::vector<std::vector<Pair>> rounds;
  for (int r = 0; r + 1 < places; ++r) {
    std::vector<Pair> there, back;
    for (int i = 0; i < places / 2; ++i) {
      auto at = [&](int place) { return place == 0 ? 0 : (place - 1 + r) % (places - 1) + 1; };
      int a = at(i), b = at(places - 1 - i);
      if (a >= hosts || b >= hosts) continue;
      there.emplace_back(a, b);
      back.emplace_back(b, a);
    }
    rounds.push_back(std::move(there));
    rounds.push_back(std::move(back));
  }
  return rounds;
}

// Puts each pair into the first round in which both hosts are free.
std::vector<std::vector<Pair>> packed(const std::set<Pair>& pairs) {
  std::vector<std::vector<Pair>> rounds;
  std::vector<std::set<int>> busy;
  for (const Pair& pair : pairs) {
    size_t r = 0;
    while (r < rounds.size() && (busy[r].count(pair.first) || busy[r].count(pair.second))) ++r;
    if (r == rounds.size()) {
      rounds.emplace_back();
      busy.emplace_back();
    }
    rounds[r].push_back(pair);
    busy[r].insert({pair.first, pair.second});
  }
  return rounds;
}

}  // namespace

std::vector<std::vector<Pair>> mesh_rounds(int hosts, uint32_t seed) {
  if (hosts < 2) return {};
  if (hosts <= kAllPairsUpTo) return tournament(hosts);
  std::set<Pair> pairs;
  for (int h = 0; h < hosts; ++h) {
    pairs.emplace(h, (h + 1) % hosts);
    pairs.emplace((h + 1) % hosts, h);
    pairs.emplace(h, (h + kSecondRing) % hosts);
  }
  std::minstd_rand random(seed);
  for (int i = 0; i < hosts; ++i) {
    int a = static_cast<int>(random() % static_cast<uint32_t>(hosts)), b = static_cast<int>(random() % static_cast<uint32_t>(hosts));
    if (a != b) pairs.emplace(a, b);
  }
  return packed(pairs);
}

}  // namespace phalanx::hosts
