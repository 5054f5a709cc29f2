#include "tune/tokenizer/merges.h"

#include <algorithm>
#include <queue>
#include <tuple>

namespace phalanx::tune {
namespace {

// Up to so many ids a word is merged by looking at all its pairs again and again, which is quadratic and needs no memory.
constexpr size_t kShortWord = 24;

uint64_t pair_of(int32_t left, int32_t right) { return uint64_t{static_cast<uint32_t>(left)} << 32 | static_cast<uint32_t>(right); }

// An id of a long word in a list, so that merged neighbours can be left out.
struct Link {
  int32_t id;
  int32_t before;
  int32_t next;
};

struct Candidate {
  uint32_t rank;
  int32_t place;
  int32_t id;
  bool operator>(const Candidate& other) const { return std::tie(rank, place) > std::tie(other.rank, other.place); }
};

}  // namespace

void Merges::reserve(size_t merges) {
  size_t size = 16;
  while (size < 2 * merges + 2) size *= 2;
  if (size <= slots_.size()) return;
  std::vector<Slot> old(size);
  old.swap(slots_);
  for (const Slot& slot : old)
    if (slot.pair != kFree) slots_[slot_of(slot.pair)] = slot;
}

size_t Merges::slot_of(uint64_t pair) const {
  uint64_t hash = pair * 0x9E3779B97F4A7C15ULL;
  hash ^= hash >> 32;
  size_t at = hash & (slots_.size() - 1);
  while (slots_[at].pair != kFree && slots_[at].pair != pair) at = (at + 1) & (slots_.size() - 1);
  return at;
}

void Merges::add(int32_t left, int32_t right, Merge merge) {
  reserve(used_ + 1);
  Slot& slot = slots_[slot_of(pair_of(left, right))];
  if (slot.pair == kFree) ++used_;
  slot = {pair_of(left, right), merge};
}

Merges::Merge Merges::find(int32_t left, int32_t right) const { return slots_[slot_of(pair_of(left, right))].merge; }

void Merges::apply(std::vector<int32_t>* ids) const {
  if (ids->size() < 2) return;
  if (ids->size() > kShortWord) return apply_to_long(ids);
  Merge merges[kShortWord];
  size_t count = ids->size();
  int32_t* id = ids->data();
  for (size_t i = 0; i + 1 < count; ++i) merges[i] = find(id[i], id[i + 1]);
  while (count > 1) {
    size_t best = count;
    for (size_t i = 0; i + 1 < count; ++i)
      if (merges[i].id >= 0 && (best == count || merges[i].rank < merges[best].rank)) best = i;
    if (best == count) break;
    id[best] = merges[best].id;
    std::copy(id + best + 2, id + count, id + best + 1);
    std::copy(merges + best + 1, merges + count - 1, merges + best);
    --count;
    if (best > 0) merges[best - 1] = find(id[best - 1], id[best]);
    if (best + 1 < count) merges[best] = find(id[best], id[best + 1]);
  }
  ids->resize(count);
}

// A heap of the known pairs. A pair that a merge has changed stays in the heap and is recognised when it comes up: what stands at its
// place no longer makes the same token.
void Merges::apply_to_long(std::vector<int32_t>* ids) const {
  const auto count = static_cast<int32_t>(ids->size());
  std::vector<Link> links;
  links.reserve(ids->size());
  for (int32_t i = 0; i < count; ++i) links.push_back({(*ids)[static_cast<size_t>(i)], i - 1, i + 1 < count ? i + 1 : -1});
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> heap;
  auto offer = [&](int32_t place) {
    const Link& left = links[static_cast<size_t>(place)];
    if (left.next < 0) return;
    const Merge merge = find(left.id, links[static_cast<size_t>(left.next)].id);
    if (merge.id >= 0) heap.push({merge.rank, place, merge.id});
  };
  for (int32_t i = 0; i + 1 < count; ++i) offer(i);
  while (!heap.empty()) {
    const Candidate top = heap.top();
    heap.pop();
    Link& left = links[static_cast<size_t>(top.place)];
    if (left.id < 0 || left.next < 0) continue;
    Link& right = links[static_cast<size_t>(left.next)];
    const Merge merge = find(left.id, right.id);
    if (merge.id != top.id || merge.rank != top.rank) continue;
    left.id = top.id;
    right.id = -1;
    left.next = right.next;
    if (left.next >= 0) links[static_cast<size_t>(left.next)].before = top.place;
    if (left.before >= 0) offer(left.before);
    offer(top.place);
  }
  ids->clear();
  for (int32_t at = 0; at >= 0; at = links[static_cast<size_t>(at)].next) ids->push_back(links[static_cast<size_t>(at)].id);
}

}  // namespace phalanx::tune
