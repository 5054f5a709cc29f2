// Settings for finding faults that were left on.
#include <fmt/format.h>

#include "base/text.h"
#include "doctor/checks/rows.h"
#include "doctor/settings.h"

namespace phalanx::doctor {
namespace {

// One finding per host where `name` holds, with the value it has.
template <typename Holds>
void each_value(const Situation& s, Findings& findings, std::initializer_list<const char*> names, Holds holds, const Words& then) {
  for (size_t host : probed(s)) {
    for (const char* name : names) {
      std::optional<std::string> value = setting(s, host, name);
      if (!value || !holds(host, *value)) continue;
      findings.on(host, tr("{}={}{}", name, *value, then), away(s, host, name));
    }
  }
}

bool reads_as_on(const std::string& value) {  // c10's getCvarBool
  std::string lower = base::to_lower(value);
  return lower == "y" || lower == "yes" || lower == "1" || lower == "t" || lower == "true";
}

void check_watchdog_off(const Situation& s, Findings& findings) {
  each_value(
      s, findings, {"TORCH_NCCL_BLOCKING_WAIT", "NCCL_BLOCKING_WAIT"}, [](size_t, const std::string& v) { return reads_as_on(v); },
      tr(": torch starts no watchdog thread"));
}

void check_async_off(const Situation& s, Findings& findings) {
  each_value(
      s, findings, {"TORCH_NCCL_ASYNC_ERROR_HANDLING", "NCCL_ASYNC_ERROR_HANDLING"}, [](size_t, const std::string& v) { return v == "0"; },
      tr(": a failed or stuck collective stops no rank"));
}

void check_no_recorder(const Situation& s, Findings& findings) {
  each_value(
      s, findings, {"TORCH_NCCL_TRACE_BUFFER_SIZE", "TORCH_FR_BUFFER_SIZE"}, [](size_t, const std::string& v) { return v == "0"; },
      tr(": no flight recorder, so a hang leaves no trace"));
}

void check_debug_left(const Situation& s, Findings& findings) {
  each_value(
      s, findings, {"NCCL_DEBUG"}, [](size_t, const std::string& v) { return base::to_lower(v) == "trace"; },
      tr(": large amounts of output"));
  each_value(
      s, findings, {"NCCL_DEBUG_SUBSYS"},
      [&](size_t host, const std::string& v) {
        std::string level = base::to_lower(setting(s, host, "NCCL_DEBUG").value_or("")), all = base::to_lower(v);
        return level == "info" && all[0] != '^' && (all == "all" || all.find("coll") != std::string::npos);
      },
      tr(": one line per collective"));
  each_value(
      s, findings, {"TORCH_DISTRIBUTED_DEBUG"}, [](size_t, const std::string& v) { return base::to_lower(v) == "detail"; },
      tr(": all ranks compare every collective first"));
}

void check_debug_file(const Situation& s, Findings& findings) {
  each_value(
      s, findings, {"NCCL_DEBUG_FILE"},
      [&](size_t host, const std::string& v) { return !v.empty() && v.find("%p") == std::string::npos && s.hosts[host].ranks > 1; },
      tr(": without %p all ranks of a host overwrite one file"));
  each_value(
      s, findings, {"NCCL_DEBUG_FILE"}, [](size_t, const std::string& v) { return v.starts_with('~'); }, tr(": NCCL does not expand ~"));
}

bool names_ll128(std::string_view value) {
  std::string lower = base::to_lower(value);
  return lower.find("ll128") != std::string::npos && lower.find('^') == std::string::npos;
}

void check_ll128(const Situation& s, Findings& findings) {
  each_value(
      s, findings, {"NCCL_PROTO"}, [](size_t, const std::string& v) { return names_ll128(v); },
      tr(" also enables LL128 where the hardware does not support it safely"));
}

void check_algo(const Situation& s, Findings& findings) {
  each_value(
      s, findings, {"NCCL_ALGO", "NCCL_PROTO"}, [](size_t, const std::string& v) { return !v.empty(); },
      tr(" restricts NCCL's own choice"));
}

void check_launch_blocking(const Situation& s, Findings& findings) {
  if (!s.job.wants_gpus) return;
  each_value(
      s, findings, {"CUDA_LAUNCH_BLOCKING"}, [](size_t, const std::string& v) { return !v.empty() && v != "0"; },
      tr(": the host waits for every kernel"));
}

void check_comm_id(const Situation& s, Findings& findings) {
  each_value(
      s, findings, {"NCCL_COMM_ID"}, [](size_t, const std::string& v) { return !v.empty(); },
      tr(": all communicators of the job use this one address for bootstrap"));
}

const Row kNcclHabitRows[] = {
    {"NCCL-WATCHDOG-OFF", Severity::kWarning, check_watchdog_off},
    {"NCCL-ASYNC-OFF", Severity::kWarning, check_async_off},
    {"NCCL-NO-RECORDER", Severity::kNote, check_no_recorder},
    {"NCCL-DEBUG-LEFT", Severity::kNote, check_debug_left},
    {"NCCL-DEBUG-FILE", Severity::kNote, check_debug_file},
    {"NCCL-LL128", Severity::kWarning, check_ll128},
    {"NCCL-ALGO", Severity::kNote, check_algo},
    {"NCCL-LAUNCH-BLOCKING", Severity::kWarning, check_launch_blocking},
    {"NCCL-COMM-ID", Severity::kWarning, check_comm_id},
};

}  // namespace

std::span<const Row> nccl_habit_rows() { return kNcclHabitRows; }

}  // namespace phalanx::doctor
