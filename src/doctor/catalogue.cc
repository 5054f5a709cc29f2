#include "doctor/catalogue.h"

#include <strings.h>

namespace doctor {
namespace {

struct GroupRow {
  Group group;
  std::string_view prefix;
  base::Bilingual title;
  std::span<const Row> (*rows)();
};

constexpr GroupRow kGroups[] = {
    {Group::kGpu, "GPU-", {"GPUs and their driver", "GPU 与驱动"}, gpu_rows},
    {Group::kVisibility, "VIS-", {"which GPUs a rank sees", "rank 能看到哪些 GPU"}, visibility_rows},
    {Group::kNetwork, "NET-", {"interfaces, addresses and links", "网卡、地址与链路"}, network_rows},
    {Group::kInfiniband, "IB-", {"InfiniBand and RoCE", "InfiniBand 与 RoCE"}, infiniband_rows},
    {Group::kNccl, "NCCL-", {"NCCL's library and settings", "NCCL 库与设置"}, nccl_rows},
    {Group::kRendezvous, "RDZV-", {"addresses, ports and names the ranks meet by", "rank 会合所用的地址、端口与名字"}, rendezvous_rows},
    {Group::kSoftware, "ENV-", {"Python, packages and variables", "Python、软件包与环境变量"}, software_rows},
    {Group::kStorage, "FS-", {"file systems and shared memory", "文件系统与共享内存"}, storage_rows},
    {Group::kTime, "TIME-", {"clocks", "时钟"}, time_rows},
    {Group::kLimits, "LIM-", {"limits", "资源限制"}, limits_rows},
    {Group::kProcess, "PROC-", {"what earlier jobs left", "先前任务的残留"}, process_rows},
    {Group::kCommand, "CMD-", {"scripts and configurations", "脚本与配置"}, command_rows},
    {Group::kData, "DATA-", {"data, loader, checkpoints and memory", "数据、加载、检查点与内存"}, data_rows},
    {Group::kSpeed, "PERF-", {"speed", "性能"}, speed_rows},
};

}  // namespace

std::vector<const Row*> catalogue() {
  std::vector<const Row*> all;
  for (const GroupRow& group : kGroups)
    for (const Row& row : group.rows()) all.push_back(&row);
  return all;
}

const Row* find_row(std::string_view code) {
  for (const Row* row : catalogue())
    if (row->code.size() == code.size() && ::strncasecmp(row->code.data(), code.data(), code.size()) == 0) return row;
  return nullptr;
}

std::string_view prefix(Group group) { return kGroups[static_cast<size_t>(group)].prefix; }
base::Bilingual title(Group group) { return kGroups[static_cast<size_t>(group)].title; }

}  // namespace doctor
