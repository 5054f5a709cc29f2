// Time. Durations are std::chrono; instants inside the program are monotonic nanoseconds of this host (Mono), instants
// shown to people or compared with other programs' files are wall-clock nanoseconds since 1970 (Wall).
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace phalanx::os {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

struct Mono {
  int64_t ns = 0;
  auto operator<=>(const Mono&) const = default;
};
inline Mono operator+(Mono t, nanoseconds d) { return {t.ns + d.count()}; }
inline nanoseconds operator-(Mono a, Mono b) { return nanoseconds(a.ns - b.ns); }

Mono mono_now();        // CLOCK_MONOTONIC
Mono boot_now();        // CLOCK_BOOTTIME: goes on while the machine is suspended
int64_t wall_now_ns();  // CLOCK_REALTIME
// Of this machine since it was started, as the kernel draws it; "" where it cannot be read. root: of the /proc that is looked at.
std::string boot_id(const std::string& root = "");
std::string iso_time(int64_t wall_ns);                         // "2026-11-21T07:31:02.123Z"
std::optional<int64_t> parse_iso_time(std::string_view text);  // such a text as seconds since 1970

}  // namespace phalanx::os
