// Xids by what they mean (codes/values/xid.tsv). They tell of the past: the card may have been reset since, so none of
// these is an error by itself; GPU-LOST, GPU-ECC and their like look at the present.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/text.h"
#include "codes/values.h"
#include "doctor/checks/rows.h"
#include "doctor/views/gpu_view.h"

namespace phalanx::doctor {
namespace {

using machine::Xid;

Words ago(int64_t age_s) { return age_s < 0 ? tr("at an unknown time") : tr("{} ago", base::format_duration(std::chrono::seconds(age_s))); }

// Per host and card the newest line of a class, with how often, unless that line says that it is over.
template <typename Belongs, typename IsOver>
void tell(const Situation& s, Findings& f, Belongs belongs, IsOver is_over) {
  for (size_t h = 0; h < s.hosts.size(); ++h) {
    std::map<std::string, std::pair<const Xid*, int>> by_card;
    for (const Xid& x : s.hosts[h].facts.gpus.xids) {
      if (!belongs(x)) continue;
      auto& entry = by_card[x.pci];
      entry.first = &x;
      ++entry.second;
    }
    for (const auto& [pci, entry] : by_card) {
      const auto& [last, times] = entry;
      if (is_over(*last)) continue;
      f.on(h, times > 1 ? tr("{}, {} times, last {}", last->line, times, ago(last->age_s)) : tr("{}, {}", last->line, ago(last->age_s)),
           "sudo dmesg -T | grep -i xid");
    }
  }
}

template <typename Belongs>
void tell(const Situation& s, Findings& f, Belongs belongs) {
  tell(s, f, belongs, [](const Xid&) { return false; });
}

// Whether the number stands for that code (codes/values/xid.tsv).
bool among(const Xid& x, std::string_view code) {
  codes::ValueRow row = codes::values("xid").find(std::to_string(x.xid));
  return !x.nvswitch && !row.empty() && row[1] == code;
}

// "Nonfatal" of NVLink 5, "Non-fatal" of NVSwitches.
bool is_nonfatal(const Xid& x) { return x.line.find("Nonfatal") != std::string::npos || x.line.find("Non-fatal") != std::string::npos; }

// GPU-REMAP-PENDING and PERF-POWER-BRAKE are not told from the past: the driver says how the card is now.
void check_bus(const Situation& s, Findings& f) {
  tell(s, f, [](const Xid& x) { return among(x, "GPU-XID-BUS") || among(x, "GPU-LOST"); });
}
void check_memory(const Situation& s, Findings& f) {
  tell(s, f, [](const Xid& x) { return among(x, "GPU-XID-MEMORY"); });
}
void check_nvlink(const Situation& s, Findings& f) {
  tell(s, f, [](const Xid& x) { return (among(x, "GPU-XID-NVLINK") || x.nvswitch) && !is_nonfatal(x); });
}
void check_firmware(const Situation& s, Findings& f) {
  tell(s, f, [](const Xid& x) { return among(x, "GPU-XID-FIRMWARE"); });
}
// "changed from 0x0 (None) to 0x2 (Node Reboot Required)", and back after it.
void check_recovery(const Situation& s, Findings& f) {
  tell(
      s, f, [](const Xid& x) { return among(x, "GPU-XID-RECOVERY"); },
      [](const Xid& x) { return x.line.find("to 0x0 ") != std::string::npos; });
}
void check_program(const Situation& s, Findings& f) {
  tell(s, f, [](const Xid& x) { return among(x, "GPU-XID-PROGRAM"); });
}

const Row kGpuLogRows[] = {
    {"GPU-XID-BUS", Severity::kWarning, check_bus},       {"GPU-XID-MEMORY", Severity::kWarning, check_memory},
    {"GPU-XID-NVLINK", Severity::kWarning, check_nvlink}, {"GPU-XID-FIRMWARE", Severity::kWarning, check_firmware},
    {"GPU-XID-PROGRAM", Severity::kNote, check_program},  {"GPU-XID-RECOVERY", Severity::kWarning, check_recovery},
};

}  // namespace

std::span<const Row> gpu_log_rows() { return kGpuLogRows; }

}  // namespace phalanx::doctor
