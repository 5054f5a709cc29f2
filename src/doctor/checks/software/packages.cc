// What is installed, and where hosts differ.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/text.h"
#include "doctor/checks/rows.h"
#include "doctor/settings.h"
#include "machine/software/elf_reader.h"

namespace phalanx::doctor {
namespace {

// Packages whose version decides what ranks send each other or how they start.
constexpr std::string_view kWeighty[] = {
    "accelerate",    "apex",   "bitsandbytes", "datasets",          "deepspeed",     "flash-attn", "lightning",   "llamafactory",
    "megatron-core", "numpy",  "peft",         "pytorch-lightning", "sentencepiece", "tokenizers", "torchvision", "transformer-engine",
    "transformers",  "triton", "trl",          "xformers"};

bool is_weighty(std::string_view name) { return std::find(std::begin(kWeighty), std::end(kWeighty), name) != std::end(kWeighty); }

// Hosts whose packages can be compared: those with a Python, and packages at all.
std::vector<size_t> comparable(const Situation& s) {
  std::vector<size_t> all;
  for (size_t host : probed(s))
    if (!s.hosts[host].facts.software.packages.empty() && !s.hosts[host].facts.software.assumed) all.push_back(host);
  return all;
}

std::vector<Camp> package_camps(const Situation& s, const std::string& name) {
  return camps(s, [&](const HostView& h) -> std::optional<std::string> {
    auto found = h.facts.software.packages.find(name);
    if (h.facts.software.assumed || found == h.facts.software.packages.end() || found->second.empty()) return std::nullopt;
    return found->second;
  });
}

void tell_versions(const Situation& s, Findings& findings, const std::string& name) {
  odd_ones(package_camps(s, name), [&](const std::vector<size_t>& hosts, const Camp& odd, const Camp& common) {
    std::string text = fmt::format("{} {}: {}; {}: {}", name, odd.value, names_of(s, odd.hosts), common.value, names_of(s, common.hosts));
    findings.on(hosts, {text, text},
                fmt::format("{} -m pip install {}=={}", s.hosts[odd.hosts[0]].facts.software.interpreter, name, common.value));
  });
}

void check_torch_differs(const Situation& s, Findings& findings) {
  tell_versions(s, findings, "torch");
  if (package_camps(s, "torch").size() > 1) return;
  std::vector<Camp> cuda = camps(s, [](const HostView& h) -> std::optional<std::string> {
    if (h.facts.software.torch_cuda.empty() || h.facts.software.assumed) return std::nullopt;
    return h.facts.software.torch_cuda;
  });
  odd_ones(cuda, [&](const std::vector<size_t>& hosts, const Camp& odd, const Camp& common) {
    std::string text =
        fmt::format("torch + CUDA {}: {}; CUDA {}: {}", odd.value, names_of(s, odd.hosts), common.value, names_of(s, common.hosts));
    findings.on(hosts, {text, text},
                s.hosts[odd.hosts[0]].facts.software.interpreter + " -c 'import torch; print(torch.__version__, torch.version.cuda)'");
  });
}

void check_package_differs(const Situation& s, Findings& findings) {
  for (std::string_view name : kWeighty) tell_versions(s, findings, std::string(name));
}

void check_other_packages(const Situation& s, Findings& findings) {
  std::vector<size_t> hosts = comparable(s);
  if (hosts.size() < 2) return;
  std::map<std::string, std::set<std::string>> versions;
  for (size_t host : hosts)
    for (const auto& [name, version] : s.hosts[host].facts.software.packages)
      if (!is_weighty(name) && name != "torch") versions[name].insert(version);
  std::string names;
  int count = 0;
  for (const auto& [name, found] : versions)
    if (found.size() > 1 && ++count <= 8) names += (names.empty() ? "" : ", ") + name;
  if (count == 0) return;
  findings.on(hosts, tr("{} packages differ: {}{}", count, names, count > 8 ? tr(", …") : Words{}), "pip list --format=freeze");
}

// Packages the launcher imports before the script starts.
std::string needed_by_launcher(const Situation& s, size_t host) {
  const machine::SoftwareFacts& f = s.hosts[host].facts.software;
  std::string launcher = f.program.substr(f.program.rfind('/') + 1);
  const auto& argv = s.job.argv;
  auto module = std::find(argv.begin(), argv.end(), "-m");
  std::string name = module == argv.end() || module + 1 == argv.end() ? "" : (module + 1)->substr(0, (module + 1)->find('.'));
  for (auto [program, package] : {std::pair{"torchrun", "torch"},
                                  {"accelerate", "accelerate"},
                                  {"deepspeed", "deepspeed"},
                                  {"llamafactory-cli", "llamafactory"},
                                  {"lightning", "lightning"}})
    if (launcher == program || name == package) return package;
  return name == "pytorch_lightning" ? "pytorch-lightning" : "";
}

bool has_package(const Situation& s, size_t host, const std::string& name) {
  const machine::SoftwareFacts& f = s.hosts[host].facts.software;
  auto editable = [&](const machine::Editable& e) { return e.package.find(name) != std::string::npos; };
  return f.packages.count(name) > 0 || std::any_of(f.editables.begin(), f.editables.end(), editable);
}

void check_package_missing(const Situation& s, Findings& findings) {
  std::vector<size_t> hosts = comparable(s);
  for (size_t host : hosts) {
    std::string name = needed_by_launcher(s, host);
    if (name.empty() || has_package(s, host, name)) continue;
    bool others = std::any_of(hosts.begin(), hosts.end(), [&](size_t h) { return h != host && has_package(s, h, name); });
    if (!others) continue;  // perhaps installed in a way this probe does not see
    const std::string& python = s.hosts[host].facts.software.interpreter;
    findings.on(host, tr("{} is not installed for {}, but is on the other hosts", name, python),
                fmt::format("{} -m pip install {}", python, name));
  }
}

void check_package_absent(const Situation& s, Findings& findings) {
  std::vector<size_t> hosts = comparable(s);
  if (hosts.size() < 2) return;
  std::vector<std::string> names = {"torch"};
  for (std::string_view name : kWeighty) names.emplace_back(name);
  for (size_t host : hosts) {
    std::string missing;
    for (const std::string& name : names) {
      size_t having = static_cast<size_t>(std::count_if(hosts.begin(), hosts.end(), [&](size_t h) { return has_package(s, h, name); }));
      if (!has_package(s, host, name) && having * 2 >= hosts.size() && having > 0 && name != needed_by_launcher(s, host))
        missing += (missing.empty() ? "" : " ") + name;
    }
    if (missing.empty()) continue;
    findings.on(host, tr("missing here, but installed on the other hosts: {}", missing),
                fmt::format("{} -m pip install {}", s.hosts[host].facts.software.interpreter, missing));
  }
}

void check_editable_gone(const Situation&, size_t h, const HostView& host, Findings& findings) {
  for (const machine::Editable& e : host.facts.software.editables) {
    if (e.exists) continue;
    findings.on(h, tr("{} is installed in {}, which does not exist here", e.package, e.path),
                fmt::format("{} -m pip uninstall -y {}", host.facts.software.interpreter, e.package));
  }
}

void check_user_site(const Situation& s, Findings& findings) {
  for (size_t host : probed(s)) {
    const machine::SoftwareFacts& f = s.hosts[host].facts.software;
    for (const machine::HiddenPackage& h : f.hidden) {
      if (f.user_site.empty() || h.folder != f.user_site || (!is_weighty(h.package) && h.package != "torch")) continue;
      std::string text = fmt::format("{} {} ({}) > {} ({})", h.package, h.version, h.folder, h.hidden_version, h.hidden_folder);
      findings.on(host, {text, text}, "export PYTHONNOUSERSITE=1");
    }
  }
}

void check_cpu_torch(const Situation& s, size_t h, const HostView& host, Findings& findings) {
  if (!s.job.wants_gpus) return;
  const machine::SoftwareFacts& f = host.facts.software;
  if (f.torch_cuda != "cpu" || f.assumed || host.facts.gpus.devices.empty()) return;
  findings.on(h, tr("{}: torch {} is built without CUDA", f.torch_folder.empty() ? f.prefix : f.torch_folder, package(s, h, "torch")),
              f.interpreter + " -m pip install --force-reinstall torch --index-url https://download.pytorch.org/whl/cu121");
}

void check_lightning_old(const Situation& s, size_t h, const HostView& host, Findings& findings) {
  for (const char* name : {"lightning", "pytorch-lightning"}) {
    std::string version = package(s, h, name);
    if (version.empty() || !machine::version_less(version, "2.2.1")) continue;
    std::string text = fmt::format("{} {}", name, version);
    findings.on(h, {text, text}, fmt::format("{} -m pip install {}==2.2.1", host.facts.software.interpreter, name));
  }
}

const Row kPackageRows[] = {
    {"ENV-TORCH-DIFFERS", Severity::kWarning, check_torch_differs},   {"ENV-PACKAGE-DIFFERS", Severity::kWarning, check_package_differs},
    {"ENV-PACKAGES-OTHER", Severity::kNote, check_other_packages},    {"ENV-PACKAGE-MISSING", Severity::kError, check_package_missing},
    {"ENV-PACKAGE-ABSENT", Severity::kWarning, check_package_absent}, {"ENV-EDITABLE-GONE", Severity::kWarning, check_editable_gone},
    {"ENV-USER-SITE", Severity::kWarning, check_user_site},           {"ENV-CPU-TORCH", Severity::kWarning, check_cpu_torch},
    {"ENV-LIGHTNING-OLD", Severity::kNote, check_lightning_old},
};

}  // namespace

std::span<const Row> package_rows() { return kPackageRows; }

}  // namespace phalanx::doctor
