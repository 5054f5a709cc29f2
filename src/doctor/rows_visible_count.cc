// How many cards the hosts see, and whether ranks have one each.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "doctor/examine.h"
#include "doctor/gpu_view.h"

namespace doctor {
namespace {

using host::Gpu;
using host::Selection;

// Ranks follow the number of visible cards unless the user gave a number: then all hosts have as many and nothing differs.
void check_differs(const Situation& s, Findings& f) {
  if (s.single()) return;
  std::set<int> planned;
  for (const HostView& host : s.hosts) planned.insert(host.ranks);
  std::vector<Camp> all = camps(s, [&](const HostView& host) -> std::optional<std::string> {
    size_t h = static_cast<size_t>(&host - s.hosts.data());
    return has_devices(s, h) ? std::optional(std::to_string(seen(s, h).ranks.devices.size())) : std::nullopt;
  });
  if (all.size() < 2 || (planned.size() == 1 && !planned.contains(0))) return;
  auto tell = [&](const Camp& camp) {
    for (size_t h : camp.hosts) {
      Seen v = seen(s, h);
      size_t has = s.hosts[h].facts.gpus.devices.size(), sees = v.ranks.devices.size();
      if (sees == has) continue;
      const Camp& other = camp.value == all[0].value ? all[1] : all[0];
      f.on(
          h,
          {fmt::format("{}: {} of {} GPUs seen; {} sees {}", set_to(v), sees, has, s.hosts[other.hosts[0]].name, other.value),
           fmt::format("{}：{} 块 GPU 中可见 {} 块，而 {} 可见 {} 块", set_to_zh(v), has, sees, s.hosts[other.hosts[0]].name, other.value)},
          "unset CUDA_VISIBLE_DEVICES");
    }
  };
  for (const Camp& camp : all) tell(camp);
}

void check_count(const Situation& s, Findings& f) {
  std::vector<Camp> all = camps(s, [&](const HostView& h) -> std::optional<std::string> {
    return h.facts.gpus.devices.empty() ? std::nullopt : std::optional(std::to_string(h.facts.gpus.devices.size()));
  });
  for (size_t i = 1; i < all.size(); ++i) {
    f.on(all[i].hosts, {fmt::format("{} GPUs; {} has {}", all[i].value, s.hosts[all[0].hosts[0]].name, all[0].value),
                        fmt::format("{} 块 GPU，而 {} 有 {} 块", all[i].value, s.hosts[all[0].hosts[0]].name, all[0].value)});
  }
}

Words why(const Selection& v) {
  switch (v.why) {
    case Selection::Why::kNoSuchIndex: return {"there is no such GPU", "没有这块 GPU"};
    case Selection::Why::kNoSuchUuid: return {"no GPU of this host has that UUID", "本机没有这个 UUID 的 GPU"};
    case Selection::Why::kAmbiguous: return {"more than one GPU begins so", "有多块 GPU 以此开头"};
    case Selection::Why::kMixed: return {"indices and UUIDs cannot stand in one list", "序号与 UUID 不能混用"};
    case Selection::Why::kTwice: return {"given twice, and then CUDA shows no GPU at all", "重复出现，此时 CUDA 一块 GPU 也不会显示"};
    default: return {"not a GPU's number", "不是 GPU 序号"};
  }
}

void check_bad(const Situation& s, Findings& f) {
  for (size_t h = 0; h < s.hosts.size(); ++h) {
    if (!has_devices(s, h)) continue;
    Seen v = seen(s, h);
    if (!v.value || v.ranks.why == Selection::Why::kNone || v.ranks.devices.empty() || v.ranks.refused == "-1") continue;
    Words reason = why(v.ranks);
    size_t left = v.ranks.devices.size();
    f.on(h, {fmt::format("{}: \"{}\": {}; the list ends there, {} GPU{} left", set_to(v), v.ranks.refused, reason.english, left,
                         left == 1 ? "" : "s"),
             fmt::format("{}：\"{}\" {}；列表到此为止，只剩 {} 块 GPU", set_to_zh(v), v.ranks.refused, reason.chinese, left)});
  }
}

void check_nothing(const Situation& s, Findings& f) {
  if (!s.job.wants_gpus) return;
  for (size_t h = 0; h < s.hosts.size(); ++h) {
    if (!has_devices(s, h)) continue;
    Seen v = seen(s, h);
    if (!v.value || !v.ranks.devices.empty()) continue;
    Words reason = v.value->empty() ? Words{"it is empty", "值为空"} : why(v.ranks);
    f.on(h,
         {fmt::format("CUDA_VISIBLE_DEVICES=\"{}\" hides all {} GPUs: {}", *v.value, s.hosts[h].facts.gpus.devices.size(), reason.english),
          fmt::format("CUDA_VISIBLE_DEVICES=\"{}\" 隐藏了全部 {} 块 GPU：{}", *v.value, s.hosts[h].facts.gpus.devices.size(),
                      reason.chinese)},
         "unset CUDA_VISIBLE_DEVICES");
  }
}

void check_ranks(const Situation& s, Findings& f) {
  if (!s.job.wants_gpus) return;
  for (size_t h = 0; h < s.hosts.size(); ++h) {
    if (!has_devices(s, h)) continue;
    Seen v = seen(s, h);
    size_t sees = v.ranks.devices.size();
    if (sees == 0 || s.hosts[h].ranks <= static_cast<int>(sees)) continue;
    f.on(h, {fmt::format("{} ranks, {} GPU{} ({})", s.hosts[h].ranks, sees, sees == 1 ? "" : "s", set_to(v)),
             fmt::format("{} 个 rank，只有 {} 块 GPU（{}）", s.hosts[h].ranks, sees, set_to_zh(v))});
  }
}

void check_duplicate(const Situation& s, Findings& f) {
  std::map<std::string, std::vector<size_t>> owners;
  for (size_t h = 0; h < s.hosts.size(); ++h)
    for (const Gpu* g : gpus_of(s.hosts[h].facts.gpus, seen(s, h).ranks.devices)) {
      std::vector<size_t>& hosts = owners[g->uuid];
      if (!g->uuid.empty() && (hosts.empty() || hosts.back() != h)) hosts.push_back(h);
    }
  std::set<std::vector<size_t>> told;
  for (const auto& [uuid, hosts] : owners) {
    if (hosts.size() < 2 || !told.insert(hosts).second) continue;
    f.on(hosts, {fmt::format("{} and {} both have {}", s.hosts[hosts[0]].name, s.hosts[hosts[1]].name, uuid),
                 fmt::format("{} 与 {} 都有 {}", s.hosts[hosts[0]].name, s.hosts[hosts[1]].name, uuid)});
  }
}

void check_local_rank(const Situation& s, Findings& f) {
  for (const auto& [name, value] : s.job.set)
    if (name == "LOCAL_RANK" || name == "RANK")
      for (size_t h = 0; h < s.hosts.size(); ++h)
        if (s.hosts[h].ranks > 1)
          f.on(h,
               {fmt::format("{}={} is set for all {} ranks", name, value, s.hosts[h].ranks),
                fmt::format("{} 个 rank 都被设成 {}={}", s.hosts[h].ranks, name, value)},
               "unset " + name);
}

const Row kVisibleCountRows[] = {
    {"VIS-CVD-DIFFERS",
     Severity::kError,
     Group::kVisibility,
     {"CUDA_VISIBLE_DEVICES leaves hosts with different numbers of GPUs", "CUDA_VISIBLE_DEVICES 使各主机可见的 GPU 数不同"},
     {"Do all hosts see as many GPUs, whatever CUDA_VISIBLE_DEVICES says there?",
      "各主机在各自的 CUDA_VISIBLE_DEVICES 下可见的 GPU 数相同吗？"},
     {"Launchers start as many ranks as they see GPUs. With the variable set on one machine only (a forgotten export, a .bashrc), one host "
      "starts fewer ranks than the others "
      "count on: the job hangs right after the model is loaded, without any error.",
      "启动器按可见 GPU 数启动 rank。如果只有一台机器设置了这个变量（忘了取消的 export、.bashrc），它启动的 rank "
      "就比其他主机预期的少：任务会在加载完模型后无任何报错地卡住。"},
     {"Set it alike everywhere, or nowhere; or say the number of ranks:\n$ unset CUDA_VISIBLE_DEVICES\n$ phalanx run --nproc-per-node 4 …",
      "所有主机统一设置，或者都不设置；也可以明确指定 rank 数：\n$ unset CUDA_VISIBLE_DEVICES\n$ phalanx run --nproc-per-node 4 …"},
     "hiyouga/LLaMA-Factory#7215",
     check_differs},
    {"VIS-COUNT-DIFFERS",
     Severity::kWarning,
     Group::kVisibility,
     {"hosts have different numbers of GPUs", "各主机的 GPU 数量不同"},
     {"Have all hosts as many GPUs?", "所有主机的 GPU 数量相同吗？"},
     {"Either a card is lost on the odd host, or the hosts are built differently. Scripts that compute the world size as hosts × GPUs of "
      "the first host then wait for ranks that "
      "nobody starts.",
      "要么那台主机丢了卡，要么主机配置本来就不同。按“主机数 × 第一台主机的 GPU 数”计算 world size 的脚本会一直等待没有人启动的 rank。"},
     {"See whether one is missing; else say how many ranks each host gets:\n$ nvidia-smi -L\n$ lspci -d 10de:",
      "确认是否少了卡；否则明确每台主机的 rank 数：\n$ nvidia-smi -L\n$ lspci -d 10de:"},
     "",
     check_count},
    {"VIS-CVD-BAD",
     Severity::kWarning,
     Group::kVisibility,
     {"CUDA_VISIBLE_DEVICES ends before its end", "CUDA_VISIBLE_DEVICES 只有前一部分有效"},
     {"Is every entry of CUDA_VISIBLE_DEVICES a GPU of this host?", "CUDA_VISIBLE_DEVICES 的每一项都是本机的 GPU 吗？"},
     {"CUDA reads the list up to the first entry that is not a GPU and drops the rest without a word: 0,9,1 shows one GPU. UUIDs of "
      "another machine, a blank too many and the "
      "letter O do the same.",
      "CUDA 从头读到第一个无效项为止，后面的会被悄悄丢弃：0,9,1 只显示一块 GPU。写了别的机器的 UUID、多了空格或把 0 写成字母 O "
      "都是这个结果。"},
     {"Correct the list:\n$ nvidia-smi -L", "改正列表：\n$ nvidia-smi -L"},
     "CUDA programming guide, CUDA_VISIBLE_DEVICES; torch/cuda/__init__.py",
     check_bad},
    {"VIS-CVD-NONE",
     Severity::kError,
     Group::kVisibility,
     {"CUDA_VISIBLE_DEVICES hides every GPU", "CUDA_VISIBLE_DEVICES 隐藏了所有 GPU"},
     {"Does CUDA_VISIBLE_DEVICES leave at least one GPU?", "CUDA_VISIBLE_DEVICES 是否至少留下一块 GPU？"},
     {"An empty value, -1, a bad first entry or an entry given twice leaves none: \"no CUDA-capable device is detected\" (100), "
      "\"ProcessGroupNCCL is only supported with "
      "GPUs, no GPUs found!\", or the script quietly trains on the CPU.",
      "空值、-1、第一项无效或有重复项，都会使 GPU 全部不可见：\"no CUDA-capable device is detected\"（100）、\"ProcessGroupNCCL is only "
      "supported with GPUs, no GPUs found!\"，或者脚本不声不响地用 CPU "
      "训练。"},
     {"Unset it, or name cards:\n$ unset CUDA_VISIBLE_DEVICES\n$ export CUDA_VISIBLE_DEVICES=<gpus>",
      "取消设置，或者写明要用的卡：\n$ unset CUDA_VISIBLE_DEVICES\n$ export CUDA_VISIBLE_DEVICES=<gpus>"},
     "CUDA programming guide, CUDA_VISIBLE_DEVICES",
     check_nothing},
    {"VIS-NPROC",
     Severity::kError,
     Group::kVisibility,
     {"more ranks than GPUs", "rank 数多于 GPU 数"},
     {"Has every rank of a host a GPU of its own?", "主机上的每个 rank 都有自己的 GPU 吗？"},
     {"The ranks beyond the last card die with \"invalid device ordinal\" (CUDA 101), or share a card, and NCCL stops with \"Duplicate GPU "
      "detected\".",
      "多出来的 rank 会以 \"invalid device ordinal\"（CUDA 101）退出；如果共用一块卡，NCCL 会报 \"Duplicate GPU detected\"。"},
     {"Ask for as many ranks as there are cards, or show more cards:\n$ phalanx run --nproc-per-node 2 …",
      "rank 数不要超过卡数，或者放开更多的卡：\n$ phalanx run --nproc-per-node 2 …"},
     "NCCL src/init.cc",
     check_ranks},
    {"VIS-DUP-GPU",
     Severity::kError,
     Group::kVisibility,
     {"two hosts of the list share a GPU", "列表中的两台主机共用同一块 GPU"},
     {"Is every GPU of the job seen by one host only?", "任务中的每块 GPU 只属于一台主机吗？"},
     {"One machine stands in the list twice (by name and by address), or two containers were given the same card. NCCL stops: \"Duplicate "
      "GPU detected : rank 0 and rank 2 both on "
      "CUDA device 3b000\".",
      "同一台机器在列表里出现了两次（一次用名字，一次用地址），或者两个容器分到了同一块卡。NCCL 会报错退出：\"Duplicate GPU detected : "
      "rank 0 and rank 2 both on CUDA device 3b000\"。"},
     {"Name each machine once, and give each container cards of its own:\n$ docker run --gpus '\"device=<gpus>\"' …",
      "每台机器只写一次，每个容器分配各自的卡：\n$ docker run --gpus '\"device=<gpus>\"' …"},
     "NCCL src/init.cc",
     check_duplicate},
    {"VIS-LOCAL-RANK",
     Severity::kWarning,
     Group::kVisibility,
     {"a rank's number is fixed for all ranks", "所有 rank 的编号被固定成同一个值"},
     {"Are RANK and LOCAL_RANK left to the launcher?", "RANK 与 LOCAL_RANK 是否交由启动器设置？"},
     {"A fixed LOCAL_RANK=0 puts every rank of a host on GPU 0 (\"Duplicate GPU detected\", or out of memory there), a fixed RANK makes "
      "them all claim to be one.",
      "固定 LOCAL_RANK=0 会把一台主机的所有 rank 都放到 GPU 0 上（\"Duplicate GPU detected\" 或显存不足）；固定 RANK "
      "则会让它们都自称同一个 rank。"},
     {"Leave them to the launcher:\n$ unset RANK LOCAL_RANK", "交由启动器设置：\n$ unset RANK LOCAL_RANK"},
     "",
     check_local_rank},
};

}  // namespace

std::span<const Row> visible_count_rows() { return kVisibleCountRows; }

}  // namespace doctor
