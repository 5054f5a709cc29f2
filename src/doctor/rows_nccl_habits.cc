// Settings for finding faults that were left on.
#include <fmt/format.h>

#include "base/text.h"
#include "doctor/rows_nccl_parts.h"
#include "doctor/settings.h"

namespace doctor {
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
             {": a failed or stuck collective ends no rank", "：集合通信失败或卡住时不会结束任何 rank"});
}

void check_no_recorder(const Situation& s, Findings& findings) {
  each_value(s, findings, {"TORCH_NCCL_TRACE_BUFFER_SIZE", "TORCH_FR_BUFFER_SIZE"}, [](size_t, const std::string& v) { return v == "0"; },
             {": no flight recorder, so a hang leaves no trace", "：没有 flight recorder，卡死后不留任何记录"});
}

void check_debug_left(const Situation& s, Findings& findings) {
  each_value(s, findings, {"NCCL_DEBUG"}, [](size_t, const std::string& v) { return base::to_lower(v) == "trace"; },
             {": very many lines", "：日志量极大"});
  each_value(s, findings, {"NCCL_DEBUG_SUBSYS"},
             [&](size_t host, const std::string& v) {
               std::string level = base::to_lower(setting(s, host, "NCCL_DEBUG").value_or("")), all = base::to_lower(v);
               return level == "info" && all[0] != '^' && (all == "all" || all.find("coll") != std::string::npos);
             },
             {": a line for every collective", "：每次集合通信都会打一行日志"});
  each_value(s, findings, {"TORCH_DISTRIBUTED_DEBUG"}, [](size_t, const std::string& v) { return base::to_lower(v) == "detail"; },
             {": every collective is checked against all ranks first", "：每次集合通信前都先与所有 rank 核对"});
}

void check_debug_file(const Situation& s, Findings& findings) {
  each_value(s, findings, {"NCCL_DEBUG_FILE"},
             [&](size_t host, const std::string& v) { return !v.empty() && v.find("%p") == std::string::npos && s.hosts[host].ranks > 1; },
             {": without %p all ranks of a host write one file over", "：没有 %p，同一台机器的 rank 会互相覆盖同一个文件"});
  each_value(s, findings, {"NCCL_DEBUG_FILE"}, [](size_t, const std::string& v) { return v.starts_with('~'); },
             {": NCCL does not expand ~", "：NCCL 不会展开 ~"});
}

bool names_ll128(std::string_view value) {
  std::string lower = base::to_lower(value);
  return lower.find("ll128") != std::string::npos && lower.find('^') == std::string::npos;
}

void check_ll128(const Situation& s, Findings& findings) {
  each_value(s, findings, {"NCCL_PROTO"}, [](size_t, const std::string& v) { return names_ll128(v); },
             {" turns LL128 on also where the hardware does not keep its promise", " 在硬件不支持的平台上也会强制启用 LL128"});
}

void check_algo(const Situation& s, Findings& findings) {
  each_value(s, findings, {"NCCL_ALGO", "NCCL_PROTO"}, [](size_t, const std::string& v) { return !v.empty(); },
             {" narrows NCCL's own choice", " 限制了 NCCL 的自动选择"});
}

void check_launch_blocking(const Situation& s, Findings& findings) {
  if (!s.job.wants_gpus) return;
  each_value(s, findings, {"CUDA_LAUNCH_BLOCKING"}, [](size_t, const std::string& v) { return !v.empty() && v != "0"; },
             {": every kernel is waited for", "：每个 kernel 都同步等待"});
}

void check_comm_id(const Situation& s, Findings& findings) {
  each_value(s, findings, {"NCCL_COMM_ID"}, [](size_t, const std::string& v) { return !v.empty(); },
             {": all communicators of the job meet at this one address", "：任务的所有通信域都在这一个地址会合"});
}

const Row kNcclHabitRows[] = {
    {"NCCL-WATCHDOG-OFF",
     Severity::kWarning,
     Group::kNccl,
     {"blocking wait switches torch's watchdog off", "阻塞等待模式会关闭 torch 的 watchdog"},
     {"Is TORCH_NCCL_BLOCKING_WAIT left on?", "是否遗留了 TORCH_NCCL_BLOCKING_WAIT？"},
     {"torch then logs \"TORCH_NCCL_BLOCKING_WAIT is enabled, NO watchdog thread is created.\": nothing ends a hang outside wait(), no "
      "flight recorder dump is written.",
      "torch 会打印 “TORCH_NCCL_BLOCKING_WAIT is enabled, NO watchdog thread is created.”：除 wait() 之外的卡死无人处理，也不会写 flight "
      "recorder。"},
     {"Remove it.\n$ unset TORCH_NCCL_BLOCKING_WAIT NCCL_BLOCKING_WAIT", "删除它。\n$ unset TORCH_NCCL_BLOCKING_WAIT NCCL_BLOCKING_WAIT"},
     "torch ProcessGroupNCCL.cpp",
     check_watchdog_off},
    {"NCCL-ASYNC-OFF",
     Severity::kWarning,
     Group::kNccl,
     {"errors of collectives are ignored", "集合通信的错误被忽略"},
     {"Is TORCH_NCCL_ASYNC_ERROR_HANDLING left at 0?", "TORCH_NCCL_ASYNC_ERROR_HANDLING 是否为 0？"},
     {"With 0 a rank whose peer died keeps waiting for ever: a silent hang with GPUs at 100 %.",
      "设为 0 时，对端死掉的 rank 会一直等下去：静默卡死，GPU 仍显示 100%。"},
     {"Remove it.\n$ unset TORCH_NCCL_ASYNC_ERROR_HANDLING NCCL_ASYNC_ERROR_HANDLING",
      "删除它。\n$ unset TORCH_NCCL_ASYNC_ERROR_HANDLING NCCL_ASYNC_ERROR_HANDLING"},
     "torch ProcessGroupNCCL.hpp",
     check_async_off},
    {"NCCL-NO-RECORDER",
     Severity::kNote,
     Group::kNccl,
     {"torch's flight recorder is switched off", "torch 的 flight recorder 被关闭"},
     {"Is the flight recorder's buffer larger than 0?", "flight recorder 的缓冲区大于 0 吗？"},
     {"After a timeout nothing tells which rank did not come.", "超时之后，没有任何记录能说明是哪个 rank 没到。"},
     {"Give it a size.\n$ export TORCH_NCCL_TRACE_BUFFER_SIZE=2000", "设置缓冲区大小。\n$ export TORCH_NCCL_TRACE_BUFFER_SIZE=2000"},
     "torch FlightRecorder.hpp",
     check_no_recorder},
    {"NCCL-DEBUG-LEFT",
     Severity::kNote,
     Group::kNccl,
     {"a slow debugging level is left on", "遗留了拖慢训练的调试级别"},
     {"Is logging at a level for training, not for finding faults?", "日志级别适合训练而不是排障吗？"},
     {"A line per collective and per rank fills disks and slows training; TORCH_DISTRIBUTED_DEBUG=DETAIL adds a collective to each "
      "collective.",
      "每个 rank 每次集合通信都打日志会撑满磁盘、拖慢训练；TORCH_DISTRIBUTED_DEBUG=DETAIL 会给每次通信再加一次通信。"},
     {"Keep INFO without COLL.\n$ unset NCCL_DEBUG_SUBSYS TORCH_DISTRIBUTED_DEBUG",
      "保留 INFO，去掉 COLL。\n$ unset NCCL_DEBUG_SUBSYS TORCH_DISTRIBUTED_DEBUG"},
     "NCCL user guide env.rst",
     check_debug_left},
    {"NCCL-DEBUG-FILE",
     Severity::kNote,
     Group::kNccl,
     {"NCCL's log files overwrite each other", "NCCL 日志文件互相覆盖"},
     {"Does NCCL_DEBUG_FILE name one file per process?", "NCCL_DEBUG_FILE 是否为每个进程指定了独立文件？"},
     {"Every rank opens the same file and truncates it; the lines that matter are lost.",
      "每个 rank 都会打开并清空同一个文件，关键的日志行就丢了。"},
     {"Put host and process into the name.\n$ export NCCL_DEBUG_FILE=/tmp/nccl.%h.%p.log",
      "在文件名里加入主机名和进程号。\n$ export NCCL_DEBUG_FILE=/tmp/nccl.%h.%p.log"},
     "NCCL src/debug.cc",
     check_debug_file},
    {"NCCL-LL128",
     Severity::kWarning,
     Group::kNccl,
     {"the protocol LL128 is forced", "强制启用了 LL128 协议"},
     {"Does NCCL_PROTO name LL128?", "NCCL_PROTO 是否指定了 LL128？"},
     {"NCCL turns LL128 on by itself where it is safe. \"Enabling LL128 on platforms that don't support it can lead to data corruption\": "
      "wrong gradients, no message.",
      "在安全的平台上 NCCL 会自行启用 LL128。官方文档警告：在不支持的平台上启用 LL128 可能导致数据损坏，即梯度错误且没有任何提示。"},
     {"Remove it, or exclude a protocol with ^.\n$ unset NCCL_PROTO", "删除它，或用 ^ 排除某个协议。\n$ unset NCCL_PROTO"},
     "NCCL user guide env.rst, NCCL_PROTO",
     check_ll128},
    {"NCCL-ALGO",
     Severity::kNote,
     Group::kNccl,
     {"NCCL's algorithm or protocol is narrowed", "限制了 NCCL 的算法或协议"},
     {"Are NCCL_ALGO and NCCL_PROTO unset?", "NCCL_ALGO 与 NCCL_PROTO 未设置吗？"},
     {"Since 2.24 NCCL does not fall back to Ring: \"no algorithm/protocol available for function …\" ends the job where the named one "
      "does not fit.",
      "2.24 起 NCCL 不再隐式回退到 Ring：若指定的算法不适用，会报 “no algorithm/protocol available for function …” 并结束任务。"},
     {"Leave the choice to NCCL.\n$ unset NCCL_ALGO NCCL_PROTO", "交给 NCCL 自动选择。\n$ unset NCCL_ALGO NCCL_PROTO"},
     "NCCL user guide env.rst",
     check_algo},
    {"NCCL-LAUNCH-BLOCKING",
     Severity::kWarning,
     Group::kNccl,
     {"CUDA_LAUNCH_BLOCKING is left on", "遗留了 CUDA_LAUNCH_BLOCKING"},
     {"Is CUDA_LAUNCH_BLOCKING unset?", "CUDA_LAUNCH_BLOCKING 未设置吗？"},
     {"It serialises every kernel, so compute and communication do not overlap; with NCCL before 2.17 it can hang the first collectives.",
      "它让每个 kernel 串行执行，计算与通信无法重叠；NCCL 2.17 之前还可能在最初的集合通信处卡死。"},
     {"Remove it.\n$ unset CUDA_LAUNCH_BLOCKING", "删除它。\n$ unset CUDA_LAUNCH_BLOCKING"},
     "NVIDIA/nccl#750",
     check_launch_blocking},
    {"NCCL-COMM-ID",
     Severity::kWarning,
     Group::kNccl,
     {"NCCL_COMM_ID is set", "设置了 NCCL_COMM_ID"},
     {"Is NCCL_COMM_ID unset?", "NCCL_COMM_ID 未设置吗？"},
     {"It is for programs without a launcher. torch makes several communicators; all of them would meet at the same port, and the second "
      "waits for ever or fails with \"Address already in use\".",
      "它是给没有启动器的程序用的。torch 会建立多个通信域，全部挤在同一个端口会合，第二个会一直等待，或报 “Address already in use”。"},
     {"Remove it; torch passes the id through its store.\n$ unset NCCL_COMM_ID",
      "删除它；torch 会通过 store 传递 id。\n$ unset NCCL_COMM_ID"},
     "NCCL src/bootstrap.cc, bootstrapGetUniqueId",
     check_comm_id},
};

}  // namespace

std::span<const Row> nccl_habit_rows() { return kNcclHabitRows; }

}  // namespace doctor
