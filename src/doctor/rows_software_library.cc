// The C library, CUDA's libraries, the kernel, and leftovers of builds.
#include <fmt/format.h>

#include "doctor/rows_software_parts.h"
#include "doctor/settings.h"
#include "host/elf_reader.h"

namespace doctor {
namespace {

std::string folder_of(const std::string& path) { return path.substr(0, path.rfind('/')); }
std::string name_of(const std::string& path) { return path.substr(path.rfind('/') + 1); }
std::string major(const std::string& version) { return version.substr(0, version.find('.')); }

void check_glibc(const Situation& s, Findings& findings) {
  for (size_t host : probed(s)) {
    const host::SoftwareFacts& f = s.hosts[host].facts.software;
    const std::string& have = s.hosts[host].facts.machine.glibc;
    if (have.empty() || f.assumed || !host::version_less(have, f.glibc_needed)) continue;
    findings.on(host,
                {fmt::format("{} needs GLIBC_{}; this host has {}", f.glibc_needed_by, f.glibc_needed, have),
                 fmt::format("{} 需要 GLIBC_{}，本机只有 {}", f.glibc_needed_by, f.glibc_needed, have)},
                "ldd --version");
  }
}

void check_cuda_mix(const Situation& s, Findings& findings) {
  for (size_t host : probed(s)) {
    const host::SoftwareFacts& f = s.hosts[host].facts.software;
    if (f.torch_cuda.empty() || f.torch_cuda[0] < '0' || f.torch_cuda[0] > '9') continue;
    for (const host::LibraryFile& library : f.cuda_libraries) {
      std::string name = name_of(library.path);
      if (!name.starts_with("libnvJitLink.so.") && !name.starts_with("libcusparse.so.")) continue;
      bool jit = name.starts_with("libnvJitLink");  // numbered as CUDA is; the others of CUDA have numbers of their own
      if (!jit || library.version.find('.') == std::string::npos) continue;
      if (major(library.version) != major(f.torch_cuda) || !host::version_less(library.version, f.torch_cuda)) continue;
      findings.on(host,
                  {fmt::format("LD_LIBRARY_PATH has {} ({}), older than CUDA {} that torch was built for", library.path, library.version,
                               f.torch_cuda),
                   fmt::format("LD_LIBRARY_PATH 中的 {}（{}）比 torch 所用的 CUDA {} 旧", library.path, library.version, f.torch_cuda)},
                  away(s, host, "LD_LIBRARY_PATH"));
    }
  }
}

void check_cuda_other(const Situation& s, Findings& findings) {
  for (size_t host : probed(s)) {
    const host::SoftwareFacts& f = s.hosts[host].facts.software;
    if (f.torch_cuda.empty() || f.torch_cuda[0] < '0' || f.torch_cuda[0] > '9') continue;
    for (const host::LibraryFile& library : f.cuda_libraries) {
      if (!name_of(library.path).starts_with("libcudart.so.") || major(library.version) == major(f.torch_cuda)) continue;
      findings.on(host,
                  {fmt::format("{} in LD_LIBRARY_PATH is CUDA {}; torch is built for {}", folder_of(library.path), major(library.version),
                               f.torch_cuda),
                   fmt::format("LD_LIBRARY_PATH 中的 {} 是 CUDA {}，而 torch 用的是 {}", folder_of(library.path), major(library.version),
                               f.torch_cuda)},
                  away(s, host, "LD_LIBRARY_PATH"));
      break;
    }
  }
}

void check_ext_lock(const Situation& s, Findings& findings) {
  for (size_t host : probed(s))
    for (const std::string& lock : s.hosts[host].facts.software.stale_locks)
      findings.on(host,
                  {fmt::format("{} is older than 10 minutes, and no process of this host has it open", lock),
                   fmt::format("{} 已存在 10 分钟以上，本机没有进程打开它", lock)},
                  "rm " + lock);
}

void check_kernel_old(const Situation& s, Findings& findings) {
  for (size_t host : probed(s)) {
    const std::string& kernel = s.hosts[host].facts.machine.kernel;
    if (kernel.empty() || package(s, host, "accelerate").empty() || !host::version_less(kernel, "5.5")) continue;
    findings.on(host, {fmt::format("Linux {}", kernel), fmt::format("Linux {}", kernel)}, "uname -r");
  }
}

const Row kLibraryRows[] = {
    {"ENV-GLIBC",
     Severity::kError,
     Group::kSoftware,
     {"a library needs a newer glibc than the host has", "程序库需要比本机更新的 glibc"},
     {"Is the host's glibc new enough for the environment's libraries?", "本机的 glibc 满足该环境的程序库吗？"},
     {"\"version `GLIBC_2.34' not found\" as soon as it is loaded: the environment was made on a newer distribution.",
      "加载时立即报 “version `GLIBC_2.34' not found”：该环境是在更新的发行版上建立的。"},
     {"Make the environment on the oldest host, or run in a container.\n$ ldd --version",
      "在系统最旧的机器上建立环境，或在容器中运行。\n$ ldd --version"},
     "ld.so(8)",
     check_glibc},
    {"ENV-CUDA-MIX",
     Severity::kWarning,
     Group::kSoftware,
     {"LD_LIBRARY_PATH puts an older CUDA library before torch's", "LD_LIBRARY_PATH 让较旧的 CUDA 库排在 torch 自带的之前"},
     {"Are CUDA's libraries in LD_LIBRARY_PATH at least as new as torch's?", "LD_LIBRARY_PATH 中的 CUDA 库不旧于 torch 自带的吗？"},
     {"\"undefined symbol: __nvJitLinkAddData_12_1, version libnvJitLink.so.12\" on import of torch.",
      "导入 torch 时报 “undefined symbol: __nvJitLinkAddData_12_1, version libnvJitLink.so.12”。"},
     {"Take the folder out of it; wheels bring their own.\n$ unset LD_LIBRARY_PATH",
      "把该目录去掉；wheel 自带所需的库。\n$ unset LD_LIBRARY_PATH"},
     "pytorch/pytorch issues on nvJitLink",
     check_cuda_mix},
    {"ENV-CUDA-OTHER",
     Severity::kNote,
     Group::kSoftware,
     {"LD_LIBRARY_PATH has another CUDA than torch", "LD_LIBRARY_PATH 中的 CUDA 与 torch 的不同"},
     {"Is the CUDA in LD_LIBRARY_PATH the one torch was built for?", "LD_LIBRARY_PATH 中的 CUDA 与 torch 构建时的一致吗？"},
     {"torch brings its own and mostly works; extensions built here (flash-attn, DeepSpeed ops) would be built for the other one.",
      "torch 自带 CUDA 库，多半能用；但在本机编译的扩展（flash-attn、DeepSpeed 算子）会针对另一个版本。"},
     {"Point it to the same major version.\n$ echo \"$LD_LIBRARY_PATH\"", "指向相同主版本。\n$ echo \"$LD_LIBRARY_PATH\""},
     "",
     check_cuda_other},
    {"ENV-EXT-LOCK",
     Severity::kWarning,
     Group::kSoftware,
     {"a build of a torch extension left its lock", "torch 扩展编译遗留了锁文件"},
     {"Is there a lock of torch_extensions that nobody holds?", "torch_extensions 中有无人持有的锁吗？"},
     {"Every later start waits for it in file_baton.py without a word, for ever (DeepSpeed's \"Using … as PyTorch extensions root\" is the "
      "last line). A host that shares the folder could still be building.",
      "之后的每次启动都会在 file_baton.py 里无声地一直等下去（最后一行日志是 DeepSpeed 的 “Using … as PyTorch extensions "
      "root”）。若目录是共享的，也可能另一台机器正在编译。"},
     {"Remove it when nothing is being built.\n$ rm ~/.cache/torch_extensions/*/*/lock",
      "确认没有编译在进行后删除。\n$ rm ~/.cache/torch_extensions/*/*/lock"},
     "torch/utils/file_baton.py; microsoft/DeepSpeed#3416",
     check_ext_lock},
    {"ENV-KERNEL-OLD",
     Severity::kNote,
     Group::kSoftware,
     {"the kernel is older than accelerate recommends", "内核版本低于 accelerate 的建议"},
     {"Is the kernel 5.5 or newer?", "内核是否为 5.5 或更新？"},
     {"accelerate warns: \"Detected kernel version 5.4.0, which is below the recommended minimum of 5.5.0; this can cause the process to "
      "hang.\"",
      "accelerate 会警告：“Detected kernel version 5.4.0, which is below the recommended minimum of 5.5.0; this can cause the process to "
      "hang.”"},
     {"Upgrade the kernel when you can.\n$ uname -r", "有条件时升级内核。\n$ uname -r"},
     "accelerate utils/other.py",
     check_kernel_old},
};

}  // namespace

std::span<const Row> library_rows() { return kLibraryRows; }

}  // namespace doctor
