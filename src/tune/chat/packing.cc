#include "tune/chat/packing.h"

#include <algorithm>

namespace phalanx::tune {

std::vector<std::pair<size_t, size_t>> packing_groups(size_t examples, int64_t parts, int64_t size) {
  std::vector<std::pair<size_t, size_t>> out;
  const size_t count = std::max<size_t>(std::min(examples, static_cast<size_t>(parts)), 1), most = static_cast<size_t>(size);
  size_t begin = 0;
  for (size_t part = 0; part < count; ++part) {
    const size_t end = begin + examples / count + (part < examples % count ? 1 : 0);
    for (; begin < end; begin = std::min(begin + most, end)) out.emplace_back(begin, std::min(begin + most, end));
  }
  return out;
}

std::vector<std::vector<size_t>> pack(const std::vector<int64_t>& lengths, int64_t capacity) {
  // By length, and among equal ones the last example last: it is taken first.
  std::vector<std::pair<int64_t, size_t>> left;
  for (size_t i = 0; i < lengths.size(); ++i)
    if (lengths[i] > 0 && lengths[i] <= capacity) left.emplace_back(lengths[i], i);
  std::sort(left.begin(), left.end());
  std::vector<std::vector<size_t>> out;
  while (!left.empty()) {
    std::vector<size_t>& sequence = out.emplace_back();
    for (int64_t room = capacity; room > 0;) {
      auto fits = std::upper_bound(left.begin(), left.end(), std::pair{room, lengths.size()});
      if (fits == left.begin()) break;
      --fits;
      room -= fits->first;
      sequence.push_back(fits->second);
      left.erase(fits);
    }
  }
  return out;
}

}  // namespace phalanx::tune
