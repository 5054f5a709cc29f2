// Which libnccl torch would load.
#include <fmt/format.h>

#include "doctor/nccl_variables.h"
#include "doctor/rows_nccl_parts.h"
#include "doctor/settings.h"
#include "host/elf_reader.h"

namespace doctor {
namespace {

std::string bare(const std::string& version) { return version.substr(0, version.find('+')); }
std::string built(const std::string& version) {
  return version.find('+') == std::string::npos ? "" : version.substr(version.find('+') + 1);
}

std::vector<Camp> version_camps(const Situation& s, std::string (*part)(const std::string&)) {
  return camps(s, [&](const HostView& h) {
    std::string version = part(nccl_version(s, static_cast<size_t>(&h - s.hosts.data())));
    return version.empty() ? std::nullopt : std::optional(version);
  });
}

void check_version_differs(const Situation& s, Findings& findings) {
  if (!uses_nccl(s)) return;
  odd_ones(version_camps(s, bare), [&](const std::vector<size_t>& hosts, const Camp& odd, const Camp& common) {
    const host::LibraryFile& file = s.hosts[odd.hosts[0]].facts.software.nccl[0];
    const std::string& other = s.hosts[common.hosts[0]].facts.software.nccl[0].path;
    findings.on(hosts,
                {fmt::format("{}: NCCL {} ({}); {}: {} ({})", names_of(s, odd.hosts), odd.value, file.path, names_of(s, common.hosts),
                             common.value, other),
                 fmt::format("{}：NCCL {}（{}）；{}：{}（{}）", names_of(s, odd.hosts), odd.value, file.path, names_of(s, common.hosts),
                             common.value, other)},
                fmt::format("pip install torch=={}",
                            package(s, common.hosts[0], "torch").empty() ? "2.4.0" : package(s, common.hosts[0], "torch")));
  });
}

void check_build_differs(const Situation& s, Findings& findings) {
  if (!uses_nccl(s) || version_camps(s, bare).size() > 1) return;
  odd_ones(version_camps(s, built), [&](const std::vector<size_t>& hosts, const Camp& odd, const Camp& common) {
    std::string text = fmt::format("{}: +{}; {}: +{}", names_of(s, odd.hosts), odd.value, names_of(s, common.hosts), common.value);
    findings.on(hosts, {text, text});
  });
}

void check_shadowed(const Situation& s, Findings& findings) {
  for (size_t host : probed(s)) {
    const host::SoftwareFacts& f = s.hosts[host].facts.software;
    if (nccl_version(s, host).empty() || f.nccl_ways.size() != f.nccl.size()) continue;
    const std::string& way = f.nccl_ways[0];
    if (way != "LD_LIBRARY_PATH" && way != "LD_PRELOAD") continue;
    for (size_t i = 1; i < f.nccl.size(); ++i) {
      if (f.nccl_ways[i] == "LD_LIBRARY_PATH" || f.nccl_ways[i] == "the system's folders") continue;
      if (!host::version_less(f.nccl[0].version, f.nccl[i].version)) continue;
      findings.on(host,
                  {fmt::format("{} puts NCCL {} ({}) before torch's own {}", way, f.nccl[0].version, f.nccl[0].path, f.nccl[i].version),
                   fmt::format("{} 让 NCCL {}（{}）排在 torch 自带的 {} 之前", way, f.nccl[0].version, f.nccl[0].path, f.nccl[i].version)},
                  away(s, host, way));
      break;
    }
  }
}

void check_missing(const Situation& s, Findings& findings) {
  for (size_t host : probed(s)) {
    const host::SoftwareFacts& f = s.hosts[host].facts.software;
    if (f.torch_nccl != "dynamic" || !f.nccl.empty() || f.assumed) continue;
    std::string name = f.torch_cuda.starts_with("11")   ? "nvidia-nccl-cu11"
                       : f.torch_cuda.starts_with("13") ? "nvidia-nccl-cu13"
                                                        : "nvidia-nccl-cu12";
    findings.on(
        host,
        {fmt::format("{} needs libnccl.so.2; none of the folders the loader searches has it", f.torch_folder + "/lib/libtorch_cuda.so"),
         fmt::format("{} 需要 libnccl.so.2，但加载器搜索的目录里都没有", f.torch_folder + "/lib/libtorch_cuda.so")},
        f.interpreter + " -m pip install " + name);
  }
}

void check_old(const Situation& s, Findings& findings) {
  if (!uses_nccl(s)) return;
  for (size_t host : probed(s)) {
    std::string version = nccl_version(s, host);
    int minor = nccl_minor(version);
    if (minor < 0 || minor >= 12) continue;
    findings.on(host, {fmt::format("NCCL {} ({})", version, s.hosts[host].facts.software.nccl[0].path),
                       fmt::format("NCCL {}（{}）", version, s.hosts[host].facts.software.nccl[0].path)});
  }
}

const Row kNcclLibraryRows[] = {
    {"NCCL-VERSION-DIFFERS",
     Severity::kError,
     Group::kNccl,
     {"hosts would load different versions of NCCL", "各机器会加载不同版本的 NCCL"},
     {"Is the libnccl that torch would load the same version on all hosts?", "各机器上 torch 将加载的 libnccl 版本一致吗？"},
     {"NCCL compares versions when ranks meet: \"Mismatched NCCL version detected : rank 0 version 22005 rank 8 version 21805\", then "
      "\"invalid usage\". Older pairs just hang.",
      "rank 会合时 NCCL 会比较版本：“Mismatched NCCL version detected : rank 0 version 22005 rank 8 version 21805”，随后报 “invalid "
      "usage”。较旧的版本则直接卡死。"},
     {"Install the same torch on all hosts, and clear LD_LIBRARY_PATH of other copies.\n$ python -c 'import torch; "
      "print(torch.cuda.nccl.version())'",
      "在所有机器上安装相同的 torch，并把其他副本从 LD_LIBRARY_PATH 中去掉。\n$ python -c 'import torch; "
      "print(torch.cuda.nccl.version())'"},
     "NCCL src/init.cc",
     check_version_differs},
    {"NCCL-BUILD-DIFFERS",
     Severity::kNote,
     Group::kNccl,
     {"NCCL is built for different CUDA versions", "NCCL 是针对不同 CUDA 版本构建的"},
     {"Is NCCL built for the same CUDA on all hosts?", "各机器的 NCCL 是为同一 CUDA 版本构建的吗？"},
     {"Versions agree, so the job starts; features that depend on CUDA (NVLS, cuMem) can differ between ranks.",
      "版本一致，任务能启动；但依赖 CUDA 的特性（NVLS、cuMem）在各 rank 之间可能不同。"},
     {"Install the same wheel everywhere.\n$ pip list | grep nccl", "在所有机器上安装同一个 wheel。\n$ pip list | grep nccl"},
     "NCCL src/init.cc",
     check_build_differs},
    {"NCCL-SHADOWED",
     Severity::kWarning,
     Group::kNccl,
     {"an older NCCL comes before torch's own", "较旧的 NCCL 排在 torch 自带版本之前"},
     {"Would the loader take the NCCL that torch was built with?", "加载器会选用 torch 构建时对应的 NCCL 吗？"},
     {"torch then fails to import (\"undefined symbol: ncclCommRegister\") or NCCL 2.30 refuses: \"NCCL library is too old\". It depends "
      "on the host's LD_LIBRARY_PATH, so often one host only.",
      "torch 导入时会报 “undefined symbol: ncclCommRegister”，或 NCCL 2.30 拒绝：“NCCL library is too old”。这取决于各机器的 "
      "LD_LIBRARY_PATH，往往只有一台出问题。"},
     {"Take the folder out of LD_LIBRARY_PATH.\n$ unset LD_LIBRARY_PATH", "把该目录从 LD_LIBRARY_PATH 中去掉。\n$ unset LD_LIBRARY_PATH"},
     "ld.so(8)",
     check_shadowed},
    {"NCCL-MISSING",
     Severity::kError,
     Group::kNccl,
     {"torch needs libnccl, and there is none", "torch 需要 libnccl，但找不到"},
     {"Is there a libnccl.so.2 where the loader looks?", "加载器的搜索路径里有 libnccl.so.2 吗？"},
     {"Importing torch ends with \"libnccl.so.2: cannot open shared object file: No such file or directory\".",
      "导入 torch 时报 “libnccl.so.2: cannot open shared object file: No such file or directory”。"},
     {"Install the wheel that torch asks for.\n$ pip install nvidia-nccl-cu12",
      "安装 torch 所需的 wheel。\n$ pip install nvidia-nccl-cu12"},
     "ld.so(8); torch wheels",
     check_missing},
    {"NCCL-OLD",
     Severity::kNote,
     Group::kNccl,
     {"NCCL is very old", "NCCL 版本很旧"},
     {"Is NCCL 2.12 or newer?", "NCCL 是否为 2.12 或更新？"},
     {"Before 2.12 there is no PXN, no DMA-BUF, and errors of the network are told late.",
      "2.12 之前没有 PXN 和 DMA-BUF，网络错误也很晚才会报出。"},
     {"Upgrade torch, which brings its NCCL.\n$ pip install --upgrade torch", "升级 torch（自带 NCCL）。\n$ pip install --upgrade torch"},
     "NCCL release notes",
     check_old},
};

}  // namespace

std::span<const Row> nccl_library_rows() { return kNcclLibraryRows; }

}  // namespace doctor
