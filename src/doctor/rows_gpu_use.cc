// Are the cards free, alike and set up for a job of several ranks.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/text.h"
#include "doctor/examine.h"
#include "doctor/gpu_view.h"

namespace doctor {
namespace {

using host::Gpu;
using host::GpuFacts;
using host::GpuPair;
using host::GpuProcess;

constexpr int64_t kMiB = 1 << 20;
constexpr int64_t kWorthTelling = 512 * kMiB;  // a monitor's context is smaller

// GPUs the ranks would see.
std::vector<const Gpu*> used(const Situation& s, size_t h) {
  std::vector<const Gpu*> gpus;
  for (int64_t index : seen(s, h).ranks.devices)
    if (const Gpu* g = find_gpu(s.hosts[h].facts.gpus, index)) gpus.push_back(g);
  return gpus;
}

bool orphan(const GpuProcess& p) {
  return p.visible && p.parent == 1 && (p.name.find("python") != std::string::npos || p.name.starts_with("pt_") || p.name == "torchrun");
}

std::string who(const GpuProcess& p) {
  return fmt::format("pid {} ({}{}{}), {}", p.pid, p.name, p.user.empty() ? "" : " of ", p.user,
                     base::format_bytes(static_cast<uint64_t>(p.used_bytes)));
}

void check_busy(const Situation& s, Findings& f) {
  for (size_t h = 0; h < s.hosts.size(); ++h)
    for (const Gpu* g : used(s, h))
      for (const GpuProcess& p : g->processes)
        if (p.visible && !orphan(p) && p.used_bytes >= kWorthTelling)
          f.on(h, {fmt::format("{}: {}", card(*g), who(p)), fmt::format("{}：{}", card(*g), who(p))},
               fmt::format("ps -o pid,user,etime,args -p {}", p.pid));
}

void check_orphan(const Situation& s, Findings& f) {
  for (size_t h = 0; h < s.hosts.size(); ++h)
    for (const Gpu* g : used(s, h))
      for (const GpuProcess& p : g->processes)
        if (orphan(p))
          f.on(h,
               {fmt::format("{}: {}, running for {}, its parent is gone", card(*g), who(p),
                            base::format_duration(std::chrono::seconds(p.age_s))),
                fmt::format("{}：{}，已运行 {}，父进程已不在", card(*g), who(p), base::format_duration(std::chrono::seconds(p.age_s)))},
               fmt::format("kill {}", p.pid));
}

// Memory that no process in sight accounts for. A driver that has no word for "reserved" counts that as used.
void check_held(const Situation& s, Findings& f) {
  for (size_t h = 0; h < s.hosts.size(); ++h) {
    for (const Gpu* g : used(s, h)) {
      int64_t named = 0;
      for (const GpuProcess& p : g->processes) named += p.visible ? p.used_bytes : 0;
      int64_t loose = g->memory_used_bytes - named, most = std::max<int64_t>(1536 * kMiB, g->memory_bytes / 20);
      if (loose < most || g->display_active == true) continue;
      auto hidden = std::find_if(g->processes.begin(), g->processes.end(), [](const GpuProcess& p) { return !p.visible; });
      std::string amount = base::format_bytes(static_cast<uint64_t>(loose));
      bool numbered = hidden != g->processes.end();
      f.on(h,
           {numbered ? fmt::format("{}: {} held by pid {} of another pid namespace", card(*g), amount, hidden->pid)
                     : fmt::format("{}: {} in use, and no process to be seen that has them", card(*g), amount),
            numbered ? fmt::format("{}：{} 被另一个 PID 命名空间中的进程 {} 占用", card(*g), amount, hidden->pid)
                     : fmt::format("{}：已占用 {}，但看不到占用它的进程", card(*g), amount)},
           fmt::format("sudo fuser -v /dev/nvidia{}", g->index));
    }
  }
}

void check_mode(const Situation& s, Findings& f) {
  for (size_t h = 0; h < s.hosts.size(); ++h) {
    for (const Gpu* g : used(s, h)) {
      bool prohibited = g->compute_mode == "prohibited", exclusive = g->compute_mode == "exclusive_process";
      if (!prohibited && !exclusive) continue;
      std::string state = prohibited             ? "prohibited: no program may use it"
                          : g->processes.empty() ? "exclusive: one program at a time"
                                                 : "exclusive, and in use";
      std::string zh = prohibited             ? "prohibited，禁止任何程序使用"
                       : g->processes.empty() ? "exclusive，同一时刻只允许一个程序"
                                              : "exclusive，且已被占用";
      f.on(h, {fmt::format("{}: compute mode {}", card(*g), state), fmt::format("{}：计算模式为 {}", card(*g), zh)},
           fmt::format("sudo nvidia-smi -i {} -c DEFAULT", g->index));
    }
  }
}

void check_mig(const Situation& s, Findings& f) {
  for (size_t h = 0; h < s.hosts.size(); ++h) {
    std::vector<const Gpu*> on;
    for (const Gpu* g : used(s, h))
      if (g->mig == true && (on.empty() || on.back() != g)) on.push_back(g);
    bool alone = s.single() && s.hosts[h].ranks <= 1 && s.variable(h, "CUDA_VISIBLE_DEVICES").value_or("").starts_with("MIG-");
    if (on.empty() || alone) continue;
    size_t parts = 0;
    for (const Gpu* g : on) parts += g->mig_devices.size();
    f.on(h, {fmt::format("{}: MIG is on, {} instances", cards(on), parts), fmt::format("{}：已启用 MIG，共 {} 个实例", cards(on), parts)},
         fmt::format("sudo nvidia-smi -i {} -mig 0", on[0]->index));
  }
}

bool consumer(const Gpu& g) { return g.name.find("GeForce") != std::string::npos || g.name.find("TITAN") != std::string::npos; }
bool recent_consumer(const Gpu& g) {
  return g.name.find("GeForce RTX 40") != std::string::npos || g.name.find("GeForce RTX 50") != std::string::npos;
}

// Pairs of one architecture among the cards in use.
template <typename What>
void each_pair(const Situation& s, What what) {
  for (size_t h = 0; h < s.hosts.size(); ++h) {
    std::vector<const Gpu*> gpus = used(s, h);
    auto in_use = [&](const Gpu* g) { return g && std::find(gpus.begin(), gpus.end(), g) != gpus.end(); };
    for (const GpuPair& p : s.hosts[h].facts.gpus.pairs) {
      const Gpu *a = find_gpu(s.hosts[h].facts.gpus, p.a), *b = find_gpu(s.hosts[h].facts.gpus, p.b);
      if (in_use(a) && in_use(b) && a->name == b->name) what(h, p, *a, *b);
    }
  }
}

void check_p2p_none(const Situation& s, Findings& f) {
  std::map<size_t, const GpuPair*> first;
  each_pair(s, [&](size_t h, const GpuPair& p, const Gpu&, const Gpu&) {
    if (!p.p2p_read.empty() && p.p2p_read != "ok" && !p.path.starts_with("NV")) first.emplace(h, &p);
  });
  for (const auto& [h, p] : first) {
    const Gpu* g = find_gpu(s.hosts[h].facts.gpus, p->a);
    const char* kind = consumer(*g) ? "a consumer card" : "this machine";
    f.on(h, {fmt::format("{} and GPU {}: \"{}\" ({})", card(*g), p->b, p->p2p_read, kind),
             fmt::format("{} 与 GPU {}：\"{}\"（{}）", card(*g), p->b, p->p2p_read, consumer(*g) ? "消费级显卡" : "本机")});
  }
}

void check_p2p_false(const Situation& s, Findings& f) {
  std::map<size_t, const GpuPair*> first;
  each_pair(s, [&](size_t h, const GpuPair& p, const Gpu& a, const Gpu&) {
    if (recent_consumer(a) && p.p2p_read == "ok" && !p.path.starts_with("NV")) first.emplace(h, &p);
  });
  for (const auto& [h, p] : first) {
    const GpuFacts& facts = s.hosts[h].facts.gpus;
    f.on(h,
         {fmt::format("{} and GPU {}: driver {} says P2P works", card(*find_gpu(facts, p->a)), p->b, facts.driver),
          fmt::format("{} 与 GPU {}：驱动 {} 声称支持 P2P", card(*find_gpu(facts, p->a)), p->b, facts.driver)},
         "export NCCL_P2P_DISABLE=1");
  }
}

void check_p2p_nvlink(const Situation& s, Findings& f) {
  each_pair(s, [&](size_t h, const GpuPair& p, const Gpu& a, const Gpu& b) {
    if (!p.path.starts_with("NV") || p.p2p_read.empty() || p.p2p_read == "ok") return;
    f.on(h,
         {fmt::format("{} and GPU {} are joined by {}, but P2P is \"{}\"", card(a), b.index, p.path, p.p2p_read),
          fmt::format("{} 与 GPU {} 之间有 {}，但 P2P 状态为 \"{}\"", card(a), b.index, p.path, p.p2p_read)},
         "nvidia-smi topo -p2p r");
  });
}

// The strongest of the cards in use stands for the host.
void check_models(const Situation& s, Findings& f) {
  std::vector<Camp> all = camps(s, [&](const HostView& host) -> std::optional<std::string> {
    std::vector<const Gpu*> gpus = used(s, static_cast<size_t>(&host - s.hosts.data()));
    if (gpus.empty()) return std::nullopt;
    const Gpu* best =
        *std::max_element(gpus.begin(), gpus.end(), [](const Gpu* a, const Gpu* b) { return a->memory_bytes < b->memory_bytes; });
    if (best->name.empty() || best->memory_bytes <= 0) return std::nullopt;
    return fmt::format("{} ({} GiB)", model(best->name), (best->memory_bytes + (1 << 29)) >> 30);
  });
  bool tie = all.size() == 2 && all[0].hosts.size() == all[1].hosts.size();
  for (size_t i = 1; i < all.size(); ++i) {
    std::vector<size_t> hosts = all[i].hosts;
    if (tie) hosts.insert(hosts.begin(), all[0].hosts.begin(), all[0].hosts.end());
    std::string mine =
        tie ? fmt::format("{} on {}, {} on {}", all[0].value, s.hosts[all[0].hosts[0]].name, all[1].value, s.hosts[all[1].hosts[0]].name)
            : fmt::format("{}; the others have {}", all[i].value, all[0].value);
    std::string zh =
        tie ? fmt::format("{} 是 {}，{} 是 {}", s.hosts[all[0].hosts[0]].name, all[0].value, s.hosts[all[1].hosts[0]].name, all[1].value)
            : fmt::format("{}，其他主机是 {}", all[i].value, all[0].value);
    f.on(hosts, {mine, zh});
  }
}

void check_persistence(const Situation& s, Findings& f) {
  for (size_t h = 0; h < s.hosts.size(); ++h) {
    std::vector<const Gpu*> off;
    for (const Gpu* g : used(s, h))
      if (g->persistence == false && g->display_active != true) off.push_back(g);
    if (!off.empty()) f.on(h, {cards(off) + ": persistence mode is off", cards(off) + "：没有开启持久模式"}, "sudo nvidia-smi -pm 1");
  }
}

void check_ecc_differs(const Situation& s, Findings& f) {
  std::map<std::string, std::pair<int, int>> votes;  // model → on, off
  for (size_t h = 0; h < s.hosts.size(); ++h)
    for (const Gpu* g : used(s, h))
      if (g->ecc) ++(*g->ecc ? votes[g->name].first : votes[g->name].second);
  for (size_t h = 0; h < s.hosts.size(); ++h)
    for (const Gpu* g : used(s, h)) {
      auto [on, off] = votes[g->name];
      if (!g->ecc || on == 0 || off == 0 || *g->ecc == (on >= off)) continue;
      f.on(h,
           {fmt::format("{}: ECC is {}; it is {} on {} cards of this model", card(*g), *g->ecc ? "on" : "off", *g->ecc ? "off" : "on",
                        std::max(on, off)),
            fmt::format("{}：ECC {}，而同型号的另外 {} 块卡为{}", card(*g), *g->ecc ? "开启" : "关闭", std::max(on, off),
                        *g->ecc ? "关闭" : "开启")},
           fmt::format("sudo nvidia-smi -i {} -e {}", g->index, *g->ecc ? 0 : 1));
    }
}

const Row kGpuUseRows[] = {
    {"GPU-BUSY",
     Severity::kWarning,
     Group::kGpu,
     {"a GPU is used by another program", "GPU 正被其他程序占用"},
     {"Are the job's GPUs free?", "任务要用的 GPU 空闲吗？"},
     {"Whoever shares a card shares its memory and its time: \"CUDA out of memory\" at the first allocation, or one rank that is slow and "
      "with it all ranks.",
      "共用一块卡就要共用显存和算力：要么第一次分配显存就 \"CUDA out of memory\"，要么某个 rank 变慢，拖慢所有 rank。"},
     {"Ask its owner, wait, or choose other cards:\n$ nvidia-smi\n$ phalanx run --gpus <host>:<gpus> …",
      "与占用者协调、等待，或者换用其他卡：\n$ nvidia-smi\n$ phalanx run --gpus <host>:<gpus> …"},
     "",
     check_busy},
    {"GPU-ORPHAN",
     Severity::kWarning,
     Group::kGpu,
     {"a process of an earlier job still holds a GPU", "先前任务的残留进程仍占用 GPU"},
     {"Is there a training process on the GPUs whose launcher is gone?", "GPU 上是否有启动器已退出的训练进程？"},
     {"Its launcher died and it stayed: it holds memory, often also the master port (\"Address already in use\"), and waits in a "
      "collective for ever at 100 % utilisation.",
      "启动器已经退出，进程却留了下来：占着显存，往往还占着 master 端口（\"Address already in use\"），并以 100 % "
      "的利用率一直等在集合通信里。"},
     {"End exactly this process, first kindly:\n$ kill <pid>\n$ kill -9 <pid>",
      "只结束这个进程，先用普通信号：\n$ kill <pid>\n$ kill -9 <pid>"},
     "",
     check_orphan},
    {"GPU-MEMORY-HELD",
     Severity::kWarning,
     Group::kGpu,
     {"GPU memory is held by a process that cannot be seen", "显存被看不见的进程占用"},
     {"Does every used byte of GPU memory belong to a process in sight?", "显存占用都能对应到可见的进程吗？"},
     {"The holder is in another container (another pid namespace), or died and is not cleaned up (state D or Z). nvidia-smi in a container "
      "shows the memory and no process.",
      "占用者在另一个容器（另一个 PID 命名空间）里，或者已经死亡但尚未清理（D 或 Z 状态）。在容器里执行 nvidia-smi "
      "只能看到显存占用，看不到进程。"},
     {"Look from the machine itself, outside any container:\n$ sudo fuser -v /dev/nvidia*\nTo see them from a container start it with:\n$ "
      "docker run --pid=host --gpus all …",
      "在宿主机上（容器之外）查看：\n$ sudo fuser -v /dev/nvidia*\n如果想在容器里看到，请这样启动：\n$ docker run --pid=host --gpus all …"},
     "",
     check_held},
    {"GPU-COMPUTE-MODE",
     Severity::kWarning,
     Group::kGpu,
     {"a GPU's compute mode limits who may use it", "GPU 的计算模式限制了使用者"},
     {"Is the compute mode of the job's GPUs Default?", "任务所用 GPU 的计算模式是 Default 吗？"},
     {"In EXCLUSIVE_PROCESS a second process on the card gets \"all CUDA-capable devices are busy or unavailable\" (46), also an "
      "evaluation or a data worker that touches "
      "CUDA; in PROHIBITED every process does.",
      "EXCLUSIVE_PROCESS 模式下，第二个使用该卡的进程（包括评测进程、碰到 CUDA 的数据进程）会得到 \"all CUDA-capable devices are busy or "
      "unavailable\"（46）；PROHIBITED 模式下任何进程"
      "都用不了。"},
     {"Set it back:\n$ sudo nvidia-smi -c DEFAULT", "改回默认模式：\n$ sudo nvidia-smi -c DEFAULT"},
     "nvidia-smi manual, compute mode",
     check_mode},
    {"GPU-MIG",
     Severity::kWarning,
     Group::kGpu,
     {"MIG is on", "启用了 MIG"},
     {"Are the job's GPUs whole?", "任务所用的 GPU 是完整的卡吗？"},
     {"A process sees one MIG instance at most, by default the first; two ranks on instances of one card stop NCCL with \"Duplicate GPU "
      "detected\", and instances have no P2P "
      "and no NVLink.",
      "一个进程最多只能看到一个 MIG 实例（默认第一个）；两个 rank 用同一块卡的不同实例时，NCCL 会报 \"Duplicate GPU detected\"；MIG "
      "实例之间也没有 P2P 和 NVLink。"},
     {"Switch it off when nothing uses the card (the card is reset):\n$ sudo nvidia-smi -i <gpu> -mig 0\nOr run one rank with "
      "CUDA_VISIBLE_DEVICES=MIG-<uuid>.",
      "在没有任务占用时关闭（会重置该卡）：\n$ sudo nvidia-smi -i <gpu> -mig 0\n或者只用一个 rank，并设置 "
      "CUDA_VISIBLE_DEVICES=MIG-<uuid>。"},
     "NVIDIA MIG user guide; NCCL src/init.cc",
     check_mig},
    {"GPU-P2P-NONE",
     Severity::kNote,
     Group::kGpu,
     {"the GPUs cannot write to each other directly", "GPU 之间不支持直接互访（P2P）"},
     {"Do the GPUs of one host reach each other without passing through memory?", "同一主机上的 GPU 能否不经内存直接互访？"},
     {"GeForce cards have no P2P over PCIe, and virtual machines often hide it. NCCL sees this by itself and goes through shared memory "
      "(\"via SHM/direct/direct\"): slower, "
      "and right. NCCL_P2P_DISABLE=1 is not needed for it; NCCL_SHM_DISABLE=1 would send the traffic through network sockets.",
      "GeForce 显卡不支持 PCIe P2P，虚拟机里也常常不可用。NCCL 会自动识别并改走共享内存（\"via "
      "SHM/direct/direct\"），速度慢一些，但结果正确。不需要为此设置 NCCL_P2P_DISABLE=1；而设置 "
      "NCCL_SHM_DISABLE=1 会让流量改走网络套接字。"},
     {"Nothing has to be done. Have enough /dev/shm in containers:\n$ docker run --ipc=host --gpus all …",
      "无需处理。容器里请保证 /dev/shm 足够：\n$ docker run --ipc=host --gpus all …"},
     "NCCL user guide, NCCL_P2P_DISABLE",
     check_p2p_none},
    {"GPU-P2P-FALSE",
     Severity::kWarning,
     Group::kGpu,
     {"the driver claims P2P that these cards do not have", "驱动声称支持 P2P，但这类显卡实际不支持"},
     {"Is P2P reported for cards that have none?", "驱动是否对不支持 P2P 的显卡误报了 P2P？"},
     {"Some drivers report P2P for GeForce RTX 40 cards though it is not there: the first collective hangs or yields garbage. accelerate "
      "switches it off for these cards: "
      "\"Using RTX 4000 series which doesn't support faster communication speedups.\" With the patched open kernel module it may be real: "
      "then ignore this.",
      "部分驱动会对 GeForce RTX 40 系误报支持 P2P：第一次集合通信就会卡住或者得到错误数据。accelerate 会对这类卡自动关闭：\"Using RTX 4000 "
      "series which doesn't support faster "
      "communication speedups.\" 如果使用打过 P2P 补丁的开源内核模块，则可以忽略本条。"},
     {"Switch it off for the job, or upgrade the driver:\n$ export NCCL_P2P_DISABLE=1",
      "为任务关闭 P2P，或者升级驱动：\n$ export NCCL_P2P_DISABLE=1"},
     "accelerate, utils/environment.py",
     check_p2p_false},
    {"GPU-P2P-NVLINK",
     Severity::kWarning,
     Group::kGpu,
     {"GPUs are joined by NVLink, but P2P is off", "GPU 之间有 NVLink，但 P2P 不可用"},
     {"Is P2P possible wherever there is an NVLink?", "有 NVLink 的 GPU 之间都可以 P2P 吗？"},
     {"NCCL stops with \"P2P is disabled between NVLINK connected GPUs … This should not be the case given their connectivity, and is "
      "probably due to a hardware issue.\"",
      "NCCL 会直接报错退出：\"P2P is disabled between NVLINK connected GPUs … This should not be the case given their connectivity, and is "
      "probably due to a hardware issue.\""},
     {"Reset the cards or reboot. Only to go on, slowly:\n$ export NCCL_IGNORE_DISABLED_P2P=1",
      "重置显卡或重启。如果只想先慢速跑起来：\n$ export NCCL_IGNORE_DISABLED_P2P=1"},
     "NCCL src/graph/paths.cc",
     check_p2p_nvlink},
    {"GPU-MODELS-DIFFER",
     Severity::kWarning,
     Group::kGpu,
     {"hosts have different GPUs", "各主机的 GPU 型号不同"},
     {"Have all hosts the same GPU model and memory?", "所有主机的 GPU 型号与显存一致吗？"},
     {"Data parallel steps end together: every step takes as long as on the slowest card, and the batch must fit the smallest memory, or "
      "ranks of one host die with \"CUDA "
      "out of memory\" while the others wait.",
      "数据并行的每一步要等所有 rank 完成：速度由最慢的卡决定，batch 也必须放得进最小的显存，否则某台主机的 rank 会 \"CUDA out of "
      "memory\"，而其他主机一直等待。"},
     {"Leave the odd hosts out, or size the batch for the smallest card:\n$ phalanx run --exclude <host> …",
      "去掉不同的主机，或者按最小的卡设置 batch：\n$ phalanx run --exclude <host> …"},
     "",
     check_models},
    {"GPU-PERSISTENCE",
     Severity::kNote,
     Group::kGpu,
     {"persistence mode is off", "没有开启 GPU 持久模式"},
     {"Does the driver stay initialised while no program runs?", "没有程序运行时，驱动是否保持初始化？"},
     {"Each first use of the cards then initialises them anew: seconds per card at the start of a job, and limits set with nvidia-smi -pl "
      "are forgotten in between.",
      "每次首次使用显卡都要重新初始化：任务启动时每块卡多花几秒，而且用 nvidia-smi -pl 设置的功率上限会在期间丢失。"},
     {"Until the next boot, or for good with the daemon:\n$ sudo nvidia-smi -pm 1\n$ sudo systemctl enable --now nvidia-persistenced",
      "临时开启，或者用守护进程长期开启：\n$ sudo nvidia-smi -pm 1\n$ sudo systemctl enable --now nvidia-persistenced"},
     "NVIDIA driver persistence",
     check_persistence},
    {"GPU-ECC-DIFFERS",
     Severity::kNote,
     Group::kGpu,
     {"ECC is on for some cards of a model and off for others", "同型号显卡的 ECC 设置不一致"},
     {"Is ECC set alike on all cards of a model?", "同型号显卡的 ECC 设置一致吗？"},
     {"With ECC on, cards with GDDR memory have some 6 % less of it and less bandwidth: the ranks on them are slower and run out of memory "
      "first.",
      "在 GDDR 显存的卡上开启 ECC 会减少约 6 % 的可用显存并降低带宽：这些卡上的 rank 更慢，也更早显存不足。"},
     {"Set them alike; it takes effect after a reset:\n$ sudo nvidia-smi -i <gpu> -e 1",
      "统一设置；重置后生效：\n$ sudo nvidia-smi -i <gpu> -e 1"},
     "nvidia-smi manual",
     check_ecc_differs},
};

}  // namespace

std::span<const Row> gpu_use_rows() { return kGpuUseRows; }

}  // namespace doctor
