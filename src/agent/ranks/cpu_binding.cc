#include "agent/ranks/cpu_binding.h"

#include "base/text.h"

namespace phalanx::agent {
namespace {

bool parse(const std::string& cpus, cpu_set_t& set) {
  CPU_ZERO(&set);
  for (std::string_view part : base::split(cpus, ',')) {
    size_t dash = part.find('-');
    base::Result<int64_t> first = base::parse_int(part.substr(0, dash), 0, CPU_SETSIZE - 1);
    if (!first.ok()) return false;
    base::Result<int64_t> last = dash == std::string_view::npos ? first : base::parse_int(part.substr(dash + 1), *first, CPU_SETSIZE - 1);
    if (!last.ok()) return false;
    for (int64_t cpu = *first; cpu <= *last; ++cpu) CPU_SET(static_cast<size_t>(cpu), &set);
  }
  return true;
}

}  // namespace

CpuBinding::CpuBinding(const std::string& cpus) {
  cpu_set_t wanted;
  if (cpus.empty() || !parse(cpus, wanted) || ::sched_getaffinity(0, sizeof(before_), &before_) != 0) return;
  CPU_AND(&wanted, &wanted, &before_);
  bound_ = CPU_COUNT(&wanted) > 0 && ::sched_setaffinity(0, sizeof(wanted), &wanted) == 0;
}

CpuBinding::~CpuBinding() {
  if (bound_) ::sched_setaffinity(0, sizeof(before_), &before_);
}

}  // namespace phalanx::agent
