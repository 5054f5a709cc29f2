// Which cards a rank really gets: CUDA_VISIBLE_DEVICES, CUDA_DEVICE_ORDER, architectures.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/text.h"
#include "doctor/examine.h"
#include "doctor/gpu_view.h"

namespace doctor {
namespace {

using host::Gpu;
using host::GpuFacts;

// "RTX 3090 (8.6), GT 1030 (6.1)": in CUDA's order.
std::string in_order(const std::vector<const Gpu*>& gpus) {
  std::vector<std::string> names;
  for (const Gpu* g : gpus) names.push_back(fmt::format("{} ({})", model(g->name), capability(*g)));
  return base::join(names, ", ");
}

// UUIDs of the cards of the most common architecture among all.
std::string uuids_of_strongest(const GpuFacts& facts) {
  std::vector<const Gpu*> all = gpus_of(facts, host::enumerate_gpus(facts, host::CudaOrder::kFastestFirst).devices);
  std::vector<std::string> ids;
  for (const Gpu* g : all)
    if (g->cc_major == all[0]->cc_major && g->cc_minor == all[0]->cc_minor && !g->uuid.empty()) ids.push_back(g->uuid);
  return base::join(ids, ",");
}

void check_mixed(const Situation& s, Findings& f) {
  for (size_t h = 0; h < s.hosts.size(); ++h) {
    if (!has_devices(s, h)) continue;
    Seen v = seen(s, h);
    std::vector<const Gpu*> gpus = gpus_of(s.hosts[h].facts.gpus, v.ranks.devices);
    std::set<std::string> kinds;
    for (const Gpu* g : gpus)
      if (std::string c = capability(*g); !c.empty()) kinds.insert(c);
    if (kinds.size() < 2) continue;
    f.on(h, {fmt::format("{}: ranks see {}", set_to(v), in_order(gpus)), fmt::format("{}：rank 能看到 {}", set_to_zh(v), in_order(gpus))},
         "export CUDA_VISIBLE_DEVICES=" + uuids_of_strongest(s.hosts[h].facts.gpus));
  }
}

void check_order(const Situation& s, Findings& f) {
  for (size_t h = 0; h < s.hosts.size(); ++h) {
    if (!has_devices(s, h)) continue;
    Seen v = seen(s, h);
    if (v.order_set || !v.value || !v.by_pci.by_index) continue;
    const GpuFacts& facts = s.hosts[h].facts.gpus;
    std::vector<const Gpu*> pci = gpus_of(facts, v.by_pci.devices), fast = gpus_of(facts, v.by_speed.devices);
    std::vector<std::string> a, b;
    for (const Gpu* g : pci) a.push_back(g->name);
    for (const Gpu* g : fast) b.push_back(g->name);
    if (a == b) continue;
    const char* guess = host::enumerate_gpus(facts, host::CudaOrder::kFastestFirst).certain ? "" : " (by our estimate of their speed)";
    const char* guess_zh = *guess ? "（按我们对速度的估计）" : "";
    f.on(h,
         {fmt::format("CUDA_VISIBLE_DEVICES={} means {} as nvidia-smi counts, and {} as CUDA counts without CUDA_DEVICE_ORDER{}", *v.value,
                      in_order(pci), in_order(fast), guess),
          fmt::format("CUDA_VISIBLE_DEVICES={} 按 nvidia-smi 的编号是 {}，而不设 CUDA_DEVICE_ORDER 时 CUDA 会选中 {}{}", *v.value,
                      in_order(pci), in_order(fast), guess_zh)},
         "export CUDA_DEVICE_ORDER=PCI_BUS_ID");
  }
}

void check_order_value(const Situation& s, Findings& f) {
  for (size_t h = 0; h < s.hosts.size(); ++h) {
    std::optional<std::string> value = s.variable(h, "CUDA_DEVICE_ORDER");
    if (!value || value->empty() || *value == "PCI_BUS_ID" || *value == "FASTEST_FIRST") continue;
    f.on(h,
         {"CUDA_DEVICE_ORDER=" + *value + " is no word CUDA knows, so FASTEST_FIRST holds",
          "CUDA_DEVICE_ORDER=" + *value + " 不是有效取值，实际按 FASTEST_FIRST 处理"},
         "export CUDA_DEVICE_ORDER=PCI_BUS_ID");
  }
}

// Binary code for sm_XY runs on X.Z with Z >= Y; PTX for compute_XY is compiled for anything from X.Y on; "sm_90a" is for 9.0 alone.
// (CUDA programming guide, binary and PTX compatibility.)
bool wheel_has(const std::vector<std::string>& archs, const Gpu& g) {
  for (const std::string& arch : archs) {
    bool ptx = arch.starts_with("compute_"), exact = !arch.empty() && arch.back() == 'a';
    std::string digits = arch.substr(arch.find('_') + 1);
    if (exact) digits.pop_back();
    base::Result<int64_t> number = base::parse_int(digits, 10, 9999);
    if (!number.ok()) continue;
    int64_t major = *number / 10, minor = *number % 10;
    if (exact ? major == g.cc_major && minor == g.cc_minor
        : ptx ? major < g.cc_major || (major == g.cc_major && minor <= g.cc_minor)
              : major == g.cc_major && minor <= g.cc_minor)
      return true;
  }
  return false;
}

// Certain only if no card in sight is known to the wheel, or the user chose the card by name: else the choice leaves it out.
void check_wheel(const Situation& s, Findings& f) {
  for (size_t h = 0; h < s.hosts.size(); ++h) {
    const std::vector<std::string>& archs = s.hosts[h].facts.software.torch_archs;
    if (!has_devices(s, h) || archs.empty()) continue;
    Seen v = seen(s, h);
    std::vector<const Gpu*> all = gpus_of(s.hosts[h].facts.gpus, v.ranks.devices), lacking;
    for (const Gpu* g : all)
      if (g->cc_major > 0 && !wheel_has(archs, *g)) lacking.push_back(g);
    if (lacking.empty() || (!v.value && lacking.size() < all.size())) continue;
    f.on(h, {fmt::format("{} is sm_{}{}; torch's code is for {}", cards(lacking), lacking[0]->cc_major, lacking[0]->cc_minor,
                         base::join(archs, " ")),
             fmt::format("{} 是 sm_{}{}，而 torch 只包含 {}", cards(lacking), lacking[0]->cc_major, lacking[0]->cc_minor,
                         base::join(archs, " "))});
  }
}

const Row kVisibilityRows[] = {
    {"VIS-MIXED-ARCH",
     Severity::kWarning,
     Group::kVisibility,
     {"ranks see GPUs of different architectures", "rank 能看到不同架构的 GPU"},
     {"Are all GPUs that ranks see of one compute capability?", "rank 能看到的 GPU 计算能力都相同吗？"},
     {"A rank on the odd card, mostly a display card, dies with \"no kernel image is available for execution on the device\" (CUDA 209), "
      "or is many times slower than the "
      "others.\nA widespread note says that CUDA_VISIBLE_DEVICES=0,2 fails on a machine with RTX 3090, GT 1030, RTX 3090 because the "
      "driver scans the GT 1030 all the same. "
      "That is not the reason: without CUDA_DEVICE_ORDER CUDA counts the fastest first (3090, 3090, 1030), so its device 2 is the GT 1030. "
      "The same note hopes that "
      "NCCL_P2P_DISABLE and NCCL_IB_DISABLE keep NCCL from looking at the old card: NCCL asks NVML about every card of the machine "
      "whatever they say, which is harmless; only a "
      "container or a device cgroup hides one.",
      "落在异类卡（多半是亮机卡）上的 rank 会以 \"no kernel image is available for execution on the device\"（CUDA 209）退出，或者比其他 "
      "rank 慢很多倍。\n流传的一种说法是：在 RTX 3090、GT "
      "1030、RTX 3090 的机器上设置 CUDA_VISIBLE_DEVICES=0,2 仍会失败，是因为驱动照样会扫描 GT 1030。真正的原因不是这个：不设 "
      "CUDA_DEVICE_ORDER 时，CUDA 按从快到慢编号（3090、3090、1030），所以它的 "
      "2 号设备就是 GT 1030。同一说法还指望用 NCCL_P2P_DISABLE 和 NCCL_IB_DISABLE 让 NCCL 不去碰旧卡：其实无论怎么设，NCCL 都会通过 NVML "
      "查询机器上的每一块卡，这本身无害；只有容器或 device cgroup "
      "才能真正把卡隐藏起来。"},
     {"Choose by UUID, which no order can change, or by index in nvidia-smi's order; phalanx run --gpus auto takes the largest set of "
      "equal cards by itself:\n$ nvidia-smi -L\n$ export CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA_VISIBLE_DEVICES=<gpus>",
      "用 UUID 选卡（不受编号顺序影响），或者按 nvidia-smi 的顺序用序号选卡；phalanx run --gpus auto 会自动选择数量最多的同型号卡：\n$ "
      "nvidia-smi -L\n$ export CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA_VISIBLE_DEVICES=<gpus>"},
     "CUDA programming guide, CUDA_DEVICE_ORDER; NCCL src/misc/nvmlwrap.cc",
     check_mixed},
    {"VIS-ORDER",
     Severity::kWarning,
     Group::kVisibility,
     {"CUDA_VISIBLE_DEVICES means other cards than nvidia-smi shows", "CUDA_VISIBLE_DEVICES 选中的卡与 nvidia-smi 显示的不同"},
     {"Do the indices in CUDA_VISIBLE_DEVICES mean the same cards in both orders?",
      "CUDA_VISIBLE_DEVICES 中的序号在两种编号顺序下是同样的卡吗？"},
     {"nvidia-smi counts by PCI address; CUDA, unless CUDA_DEVICE_ORDER=PCI_BUS_ID, from fastest to slowest. With cards of different "
      "models the same index is another card. "
      "phalanx always sets PCI_BUS_ID, so that its ranks get what nvidia-smi shows; the same script under plain torchrun gets the other "
      "cards. How CUDA rates speed is not "
      "documented; we estimate it from multiprocessors, clock, capability and memory.",
      "nvidia-smi 按 PCI 地址编号；除非设置 CUDA_DEVICE_ORDER=PCI_BUS_ID，CUDA "
      "按从快到慢编号。型号不同时，同一个序号指的就是不同的卡。phalanx 总会设置 PCI_BUS_ID，所以它启动的 rank 与 nvidia-smi "
      "一致；同一脚本直接用 torchrun 启动则会用到另外的卡。CUDA 判断快慢的方法没有公开，我们根据 SM 数、频率、计算能力和显存估计。"},
     {"Say which order you mean, or use UUIDs:\n$ export CUDA_DEVICE_ORDER=PCI_BUS_ID",
      "明确编号顺序，或者使用 UUID：\n$ export CUDA_DEVICE_ORDER=PCI_BUS_ID"},
     "CUDA programming guide, environment variables",
     check_order},
    {"VIS-ORDER-VALUE",
     Severity::kWarning,
     Group::kVisibility,
     {"CUDA_DEVICE_ORDER has a value CUDA does not know", "CUDA_DEVICE_ORDER 的取值无效"},
     {"Is CUDA_DEVICE_ORDER PCI_BUS_ID or FASTEST_FIRST?", "CUDA_DEVICE_ORDER 是 PCI_BUS_ID 或 FASTEST_FIRST 吗？"},
     {"CUDA says nothing of a word it does not know and counts the fastest card first. Case matters.",
      "CUDA 遇到不认识的取值不会报错，而是按从快到慢编号。区分大小写。"},
     {"Correct it:\n$ export CUDA_DEVICE_ORDER=PCI_BUS_ID", "改正取值：\n$ export CUDA_DEVICE_ORDER=PCI_BUS_ID"},
     "CUDA programming guide, environment variables",
     check_order_value},
    {"VIS-WHEEL-ARCH",
     Severity::kError,
     Group::kVisibility,
     {"torch has no code for this GPU", "torch 不包含该 GPU 架构的代码"},
     {"Does the installed torch contain code for the GPUs of the job?", "安装的 torch 是否包含任务所用 GPU 架构的代码？"},
     {"The first kernel fails: \"no kernel image is available for execution on the device\", after the warning \"… with CUDA capability "
      "sm_120 is not compatible with the "
      "current PyTorch installation\". New cards need a new wheel; very old ones an old wheel.",
      "第一个 kernel 就会失败：\"no kernel image is available for execution on the device\"，之前会有警告 \"… with CUDA capability sm_120 "
      "is not compatible with the current PyTorch "
      "installation\"。新卡需要新版 wheel，很旧的卡需要旧版 wheel。"},
     {"Install a wheel whose list has the card's sm_XY:\n$ python -c 'import torch; print(torch.cuda.get_arch_list())'\n$ pip install "
      "torch --index-url "
      "https://download.pytorch.org/whl/cu128",
      "安装架构列表中包含该卡 sm_XY 的 wheel：\n$ python -c 'import torch; print(torch.cuda.get_arch_list())'\n$ pip install torch "
      "--index-url https://download.pytorch.org/whl/cu128"},
     "torch/cuda/__init__.py, _check_cubins",
     check_wheel},
};

}  // namespace

std::span<const Row> visibility_rows() {
  static const std::vector<Row> kAll = joined({kVisibilityRows, visible_count_rows()});
  return kAll;
}

}  // namespace doctor
