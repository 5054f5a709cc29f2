#include "os/clock.h"

#include <ctime>

#include <fmt/format.h>

#include "base/text.h"
#include "os/files.h"

namespace phalanx::os {
namespace {
int64_t read_clock(clockid_t id) {
  timespec t{};
  ::clock_gettime(id, &t);
  return t.tv_sec * 1'000'000'000LL + t.tv_nsec;
}
}  // namespace

Mono mono_now() { return {read_clock(CLOCK_MONOTONIC)}; }
Mono boot_now() { return {read_clock(CLOCK_BOOTTIME)}; }
int64_t wall_now_ns() { return read_clock(CLOCK_REALTIME); }

std::string boot_id(const std::string& root) {
  base::Result<std::string> id = read_file(root + "/proc/sys/kernel/random/boot_id", 256);
  return id.ok() ? std::string(base::trim(*id)) : "";
}

std::string iso_time(int64_t wall_ns) {
  time_t seconds = wall_ns / 1'000'000'000;
  tm parts{};
  ::gmtime_r(&seconds, &parts);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z", parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday, parts.tm_hour,
                     parts.tm_min, parts.tm_sec, wall_ns / 1'000'000 % 1000);
}

std::optional<int64_t> parse_iso_time(std::string_view text) {
  tm parts{};
  std::string copy(text.substr(0, 40));
  const char* rest = ::strptime(copy.c_str(), "%Y-%m-%dT%H:%M:%S", &parts);
  if (!rest || (*rest != '.' && *rest != 'Z')) return std::nullopt;
  return static_cast<int64_t>(::timegm(&parts));
}

}  // namespace phalanx::os
