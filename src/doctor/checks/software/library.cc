// The C library, CUDA's libraries, the kernel, and leftovers of builds.
#include <fmt/format.h>

#include "doctor/checks/rows.h"
#include "doctor/settings.h"
#include "machine/software/elf_reader.h"

namespace phalanx::doctor {
namespace {

std::string folder_of(const std::string& path) { return path.substr(0, path.rfind('/')); }
std::string name_of(const std::string& path) { return path.substr(path.rfind('/') + 1); }
std::string major(const std::string& version) { return version.substr(0, version.find('.')); }

void check_glibc(const Situation&, size_t h, const HostView& host, Findings& findings) {
  const machine::SoftwareFacts& f = host.facts.software;
  const std::string& have = host.facts.machine.glibc;
  if (have.empty() || f.assumed || !machine::version_less(have, f.glibc_needed)) return;
  findings.on(h, tr("{} needs GLIBC_{}; this host has {}", f.glibc_needed_by, f.glibc_needed, have), "ldd --version");
}

void check_cuda_mix(const Situation& s, size_t h, const HostView& host, Findings& findings) {
  const machine::SoftwareFacts& f = host.facts.software;
  if (f.torch_cuda.empty() || f.torch_cuda[0] < '0' || f.torch_cuda[0] > '9') return;
  for (const machine::LibraryFile& library : f.cuda_libraries) {
    std::string name = name_of(library.path);
    if (!name.starts_with("libnvJitLink.so.") && !name.starts_with("libcusparse.so.")) continue;
    bool jit = name.starts_with("libnvJitLink");  // numbered as CUDA is; the others of CUDA have numbers of their own
    if (!jit || library.version.find('.') == std::string::npos) continue;
    if (major(library.version) != major(f.torch_cuda) || !machine::version_less(library.version, f.torch_cuda)) continue;
    findings.on(h,
                tr("LD_LIBRARY_PATH has {} ({}), older than CUDA {} that torch was built for", library.path, library.version, f.torch_cuda),
                away(s, h, "LD_LIBRARY_PATH"));
  }
}

void check_cuda_other(const Situation& s, size_t h, const HostView& host, Findings& findings) {
  const machine::SoftwareFacts& f = host.facts.software;
  if (f.torch_cuda.empty() || f.torch_cuda[0] < '0' || f.torch_cuda[0] > '9') return;
  for (const machine::LibraryFile& library : f.cuda_libraries) {
    if (!name_of(library.path).starts_with("libcudart.so.") || major(library.version) == major(f.torch_cuda)) continue;
    findings.on(
        h, tr("{} in LD_LIBRARY_PATH is CUDA {}; torch is built for {}", folder_of(library.path), major(library.version), f.torch_cuda),
        away(s, h, "LD_LIBRARY_PATH"));
    break;
  }
}

void check_ext_lock(const Situation&, size_t h, const HostView& host, Findings& findings) {
  for (const std::string& lock : host.facts.software.stale_locks)
    findings.on(h, tr("{} is older than 10 minutes, but no process on this host has it open", lock), "rm " + lock);
}

void check_kernel_old(const Situation& s, size_t h, const HostView& host, Findings& findings) {
  const std::string& kernel = host.facts.machine.kernel;
  if (kernel.empty() || package(s, h, "accelerate").empty() || !machine::version_less(kernel, "5.5")) return;
  findings.on(h, {fmt::format("Linux {}", kernel), fmt::format("Linux {}", kernel)}, "uname -r");
}

const Row kLibraryRows[] = {
    {"ENV-GLIBC", Severity::kError, check_glibc},          {"ENV-CUDA-MIX", Severity::kWarning, check_cuda_mix},
    {"ENV-CUDA-OTHER", Severity::kNote, check_cuda_other}, {"ENV-EXT-LOCK", Severity::kWarning, check_ext_lock},
    {"ENV-KERNEL-OLD", Severity::kNote, check_kernel_old},
};

}  // namespace

std::span<const Row> library_rows() { return kLibraryRows; }

}  // namespace phalanx::doctor
