#include "os/descriptor_limit.h"

#include <fcntl.h>

#include <vector>

#include "os/fd.h"

namespace phalanx::os {
namespace {

// Process-wide, as the limit itself is.
std::optional<rlimit>& original() {
  static std::optional<rlimit> limit;
  return limit;
}

}  // namespace

void raise_descriptor_limit() {
  rlimit limit{};
  if (original() || ::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == limit.rlim_max) return;
  rlimit raised = limit;
  raised.rlim_cur = limit.rlim_max;
  if (::setrlimit(RLIMIT_NOFILE, &raised) == 0) original() = limit;
}

std::optional<rlimit> original_descriptor_limit() { return original(); }

bool can_open_more(int descriptors) {
  std::vector<Fd> opened;
  for (int i = 0; i < descriptors; ++i) {
    opened.emplace_back(::open("/", O_PATH | O_CLOEXEC));
    if (!opened.back().valid()) return false;
  }
  return true;
}

bool is_low_descriptor(int fd) {
  rlimit limit{};
  return ::getrlimit(RLIMIT_NOFILE, &limit) == 0 && static_cast<rlim_t>(fd) < limit.rlim_cur / 4;
}

}  // namespace phalanx::os
