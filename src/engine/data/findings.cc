#include "engine/data/findings.h"

#include <algorithm>

namespace phalanx::engine::data {

void Findings::add(const FindingKind& kind, const std::function<std::string()>& place) {
  auto found = std::find_if(list_.begin(), list_.end(), [&](const DataFinding& one) { return one.code == kind.code; });
  if (found == list_.end()) found = list_.insert(list_.end(), {std::string(kind.code), kind.severity, std::string(kind.what), 0, {}});
  ++found->count;
  if (found->places.size() < DataFinding::kPlaces) found->places.push_back(place());
}

int64_t Findings::problems() const {
  int64_t count = 0;
  for (const DataFinding& finding : list_)
    if (finding.severity != Severity::kNote) count += finding.count;
  return count;
}

std::vector<DataFinding> Findings::sorted() const {
  std::vector<DataFinding> list = list_;
  std::stable_sort(list.begin(), list.end(), [](const DataFinding& a, const DataFinding& b) { return a.severity < b.severity; });
  return list;
}

}  // namespace phalanx::engine::data
