// The wall clock of one machine. The offset between hosts is measured by the launcher (doctor/situation.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/fields.h"

namespace phalanx::machine {

struct ClockFacts {
  int64_t wall_ns = 0;               // CLOCK_REALTIME when the probe ended
  int64_t mono_ns = 0;               // CLOCK_MONOTONIC at the same moment
  std::optional<bool> synchronized;  // adjtimex: STA_UNSYNC is not set
  std::string daemon;                // "chronyd", "ntpd", "systemd-timesyncd", empty: none runs
  std::string time_zone;             // "Asia/Shanghai", "+0800"
  int64_t utc_offset_s = 0;
};
PHALANX_FIELDS(ClockFacts, wall_ns, mono_ns, synchronized, daemon, time_zone, utc_offset_s);

}  // namespace phalanx::machine
