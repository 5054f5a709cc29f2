// Which libnccl torch would load.
#include <fmt/format.h>

#include "doctor/checks/rows.h"
#include "doctor/settings.h"
#include "doctor/views/nccl_variables.h"
#include "machine/software/elf_reader.h"

namespace phalanx::doctor {
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
    const machine::LibraryFile& file = s.hosts[odd.hosts[0]].facts.software.nccl[0];
    const std::string& other = s.hosts[common.hosts[0]].facts.software.nccl[0].path;
    findings.on(
        hosts,
        tr("{}: NCCL {} ({}); {}: {} ({})", names_of(s, odd.hosts), odd.value, file.path, names_of(s, common.hosts), common.value, other),
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

void check_shadowed(const Situation& s, size_t h, const HostView& host, Findings& findings) {
  const machine::SoftwareFacts& f = host.facts.software;
  if (nccl_version(s, h).empty() || f.nccl_ways.size() != f.nccl.size()) return;
  const std::string& way = f.nccl_ways[0];
  if (way != "LD_LIBRARY_PATH" && way != "LD_PRELOAD") return;
  for (size_t i = 1; i < f.nccl.size(); ++i) {
    if (f.nccl_ways[i] == "LD_LIBRARY_PATH" || f.nccl_ways[i] == "the system's folders") continue;
    if (!machine::version_less(f.nccl[0].version, f.nccl[i].version)) continue;
    findings.on(h, tr("{} puts NCCL {} ({}) before torch's own {}", way, f.nccl[0].version, f.nccl[0].path, f.nccl[i].version),
                away(s, h, way));
    break;
  }
}

void check_missing(const Situation&, size_t h, const HostView& host, Findings& findings) {
  const machine::SoftwareFacts& f = host.facts.software;
  if (f.torch_nccl != "dynamic" || !f.nccl.empty() || f.assumed) return;
  std::string name = f.torch_cuda.starts_with("11")   ? "nvidia-nccl-cu11"
                     : f.torch_cuda.starts_with("13") ? "nvidia-nccl-cu13"
                                                      : "nvidia-nccl-cu12";
  findings.on(
      h, tr("{} needs libnccl.so.2, which is in none of the directories searched by the loader", f.torch_folder + "/lib/libtorch_cuda.so"),
      f.interpreter + " -m pip install " + name);
}

void check_old(const Situation& s, size_t h, const HostView& host, Findings& findings) {
  if (!uses_nccl(s)) return;
  std::string version = nccl_version(s, h);
  int minor = nccl_minor(version);
  if (minor < 0 || minor >= 12) return;
  findings.on(h, tr("NCCL {} ({})", version, host.facts.software.nccl[0].path));
}

const Row kNcclLibraryRows[] = {
    {"NCCL-VERSION-DIFFERS", Severity::kError, check_version_differs},
    {"NCCL-BUILD-DIFFERS", Severity::kNote, check_build_differs},
    {"NCCL-SHADOWED", Severity::kWarning, check_shadowed},
    {"NCCL-MISSING", Severity::kError, check_missing},
    {"NCCL-OLD", Severity::kNote, check_old},
};

}  // namespace

std::span<const Row> nccl_library_rows() { return kNcclLibraryRows; }

}  // namespace phalanx::doctor
