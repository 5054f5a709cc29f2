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
      std::string text = fmt::format("{}={}", name, *value);
      findings.on(host, {text + then.english, text + then.chinese}, away(s, host, name));
    }
  }
}

bool reads_as_on(const std::string& value) {  // c10's getCvarBool
  std::string lower = base::to_lower(value);
  return lower == "y" || lower == "yes" || lower == "1" || lower == "t" || lower == "true";
}

void check_watchdog_off(const Situation& s, Findings& findings) {
  each_value(s, findings, {"TORCH_NCCL_BLOCKING_WAIT", "NCCL_BLOCKING_WAIT"}, [](size_t, const std::string& v) { return reads_as_on(v); },
             {": torch starts no watchdog thread", "：torch 不会启动 watchdog 线程"});
}

void check_async_off(const Situation& s, Findings& findings) {
  each_value(s, findings, {"TORCH_NCCL_ASYNC_ERROR_HANDLING", "NCCL_ASYNC_ERROR_HANDLING"},
             [](size_t, const std::string& v) { return v == "0"; },
             {": a failed or stuck collective stops no rank", "：集合通信失败或卡住时不会结束任何 rank"});
}

void check_no_recorder(const Situation& s, Findings& findings) {
  each_value(s, findings, {"TORCH_NCCL_TRACE_BUFFER_SIZE", "TORCH_FR_BUFFER_SIZE"}, [](size_t, const std::string& v) { return v == "0"; },
             {": no flight recorder, so a hang leaves no trace", "：没有 flight recorder，卡死后不留任何记录"});
}

void check_debug_left(const Situation& s, Findings& findings) {
  each_value(s, findings, {"NCCL_DEBUG"}, [](size_t, const std::string& v) { return base::to_lower(v) == "trace"; },
             {": large amounts of output", "：日志量极大"});
  each_value(s, findings, {"NCCL_DEBUG_SUBSYS"},
             [&](size_t host, const std::string& v) {
               std::string level = base::to_lower(setting(s, host, "NCCL_DEBUG").value_or("")), all = base::to_lower(v);
               return level == "info" && all[0] != '^' && (all == "all" || all.find("coll") != std::string::npos);
             },
             {": one line per collective", "：每次集合通信都会打一行日志"});
  each_value(s, findings, {"TORCH_DISTRIBUTED_DEBUG"}, [](size_t, const std::string& v) { return base::to_lower(v) == "detail"; },
             {": all ranks compare every collective first", "：每次集合通信前都先与所有 rank 核对"});
}

void check_debug_file(const Situation& s, Findings& findings) {
  each_value(s, findings, {"NCCL_DEBUG_FILE"},
             [&](size_t host, const std::string& v) { return !v.empty() && v.find("%p") == std::string::npos && s.hosts[host].ranks > 1; },
             {": without %p all ranks of a host overwrite one file", "：没有 %p，同一台机器的 rank 会互相覆盖同一个文件"});
  each_value(s, findings, {"NCCL_DEBUG_FILE"}, [](size_t, const std::string& v) { return v.starts_with('~'); },
             {": NCCL does not expand ~", "：NCCL 不会展开 ~"});
}

bool names_ll128(std::string_view value) {
  std::string lower = base::to_lower(value);
  return lower.find("ll128") != std::string::npos && lower.find('^') == std::string::npos;
}

void check_ll128(const Situation& s, Findings& findings) {
  each_value(s, findings, {"NCCL_PROTO"}, [](size_t, const std::string& v) { return names_ll128(v); },
             {" also enables LL128 where the hardware does not support it safely", " 在硬件不支持的平台上也会强制启用 LL128"});
}

void check_algo(const Situation& s, Findings& findings) {
  each_value(s, findings, {"NCCL_ALGO", "NCCL_PROTO"}, [](size_t, const std::string& v) { return !v.empty(); },
             {" restricts NCCL's own choice", " 限制了 NCCL 的自动选择"});
}

void check_launch_blocking(const Situation& s, Findings& findings) {
  if (!s.job.wants_gpus) return;
  each_value(s, findings, {"CUDA_LAUNCH_BLOCKING"}, [](size_t, const std::string& v) { return !v.empty() && v != "0"; },
             {": the host waits for every kernel", "：每个 kernel 都同步等待"});
}

void check_comm_id(const Situation& s, Findings& findings) {
  each_value(s, findings, {"NCCL_COMM_ID"}, [](size_t, const std::string& v) { return !v.empty(); },
             {": all communicators of the job use this one address for bootstrap", "：任务的所有通信域都在这一个地址会合"});
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
