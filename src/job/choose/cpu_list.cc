#include "job/choose/cpu_list.h"

#include <algorithm>

#include "base/text.h"

namespace phalanx::job {
namespace {

constexpr int kMost = 8192;

std::vector<int> numbers(const CpuList& list) {
  std::vector<int> out;
  for (auto [first, last] : list)
    for (int cpu = first; cpu <= last; ++cpu) out.push_back(cpu);
  return out;
}

CpuList ranges(std::vector<int> cpus) {
  std::sort(cpus.begin(), cpus.end());
  CpuList list;
  for (int cpu : cpus) {
    if (!list.empty() && cpu <= list.back().second + 1) list.back().second = cpu;
    else list.emplace_back(cpu, cpu);
  }
  return list;
}

}  // namespace

CpuList parse_cpu_list(const std::string& text) {
  std::vector<int> cpus;
  for (std::string_view part : base::split(base::trim(text), ',')) {
    size_t dash = part.find('-');
    base::Result<int64_t> first = base::parse_int(part.substr(0, dash), 0, kMost - 1);
    base::Result<int64_t> last = dash == std::string_view::npos ? first : base::parse_int(part.substr(dash + 1), 0, kMost - 1);
    if (!first.ok() || !last.ok() || *last < *first || cpus.size() + static_cast<size_t>(*last - *first) >= kMost) return {};
    for (int64_t cpu = *first; cpu <= *last; ++cpu) cpus.push_back(static_cast<int>(cpu));
  }
  return ranges(std::move(cpus));
}

std::string text_of(const CpuList& list) {
  std::string out;
  for (auto [first, last] : list) {
    out += (out.empty() ? "" : ",") + std::to_string(first);
    if (last > first) out += "-" + std::to_string(last);
  }
  return out;
}

int64_t count(const CpuList& list) {
  int64_t n = 0;
  for (auto [first, last] : list) n += last - first + 1;
  return n;
}

CpuList join(const CpuList& a, const CpuList& b) {
  std::vector<int> all = numbers(a), more = numbers(b);
  all.insert(all.end(), more.begin(), more.end());
  return ranges(std::move(all));
}

CpuList intersect(const CpuList& a, const CpuList& b) {
  std::vector<int> x = numbers(a), y = numbers(b), both;
  std::set_intersection(x.begin(), x.end(), y.begin(), y.end(), std::back_inserter(both));
  return ranges(std::move(both));
}

std::vector<CpuList> split(const CpuList& list, size_t parts) {
  bool each_is_enough =
      std::all_of(list.begin(), list.end(), [&](const auto& r) { return static_cast<size_t>(r.second - r.first + 1) >= parts; });
  std::vector<std::vector<int>> out(parts);
  auto deal = [&](const std::vector<int>& cpus) {
    for (size_t i = 0; i < cpus.size(); ++i) out[i * parts / cpus.size()].push_back(cpus[i]);
  };
  if (each_is_enough)
    for (const auto& range : list) deal(numbers({range}));
  else deal(numbers(list));
  std::vector<CpuList> lists;
  for (std::vector<int>& cpus : out) lists.push_back(ranges(std::move(cpus)));
  return lists;
}

}  // namespace phalanx::job
