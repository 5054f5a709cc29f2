#include "diagnosis/cause.h"

#include "base/text.h"

namespace diagnosis {

std::vector<CauseGroup> cause_groups() {
  return {
      {{"how ranks and hosts end", "rank 与主机如何结束"}, end_causes()},
      {{"why a run stands still", "运行为何停滞"}, hang_causes()},
      {{"why a run is slow", "运行为何缓慢"}, slow_causes()},
      {{"what NCCL tells of itself", "NCCL 自身的报告"}, nccl_causes()},
      {{"GPUs while a job runs", "运行中的 GPU"}, log_gpu_causes()},
      {{"networks and NCCL while a job runs", "运行中的网络与 NCCL"}, log_network_causes()},
      {{"how ranks meet", "rank 的会合"}, log_meeting_causes()},
      {{"software and files while a job runs", "运行中的软件与文件"}, log_software_causes()},
      {{"data and checkpoints while a job runs", "运行中的数据与检查点"}, log_data_causes()},
      {{"programs and torch.distributed", "程序与 torch.distributed"}, log_program_causes()},
      {{"what logs say besides causes", "日志中原因之外的内容"}, log_only_causes()},
  };
}

std::vector<const Cause*> causes() {
  std::vector<const Cause*> all;
  for (const CauseGroup& group : cause_groups())
    for (const Cause& cause : group.rows) all.push_back(&cause);
  return all;
}

const Cause* find_cause(std::string_view code) {
  for (const Cause* cause : causes())
    if (base::to_lower(cause->code) == base::to_lower(code)) return cause;
  return nullptr;
}

}  // namespace diagnosis
