// The program, its first line, and the Python behind it.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "doctor/checks/rows.h"
#include "doctor/settings.h"

namespace phalanx::doctor {
namespace {

std::string name_of(const std::string& path) { return path.substr(path.rfind('/') + 1); }
std::string folder_of(const std::string& path) { return path.rfind('/') == std::string::npos ? "" : path.substr(0, path.rfind('/')); }

void check_no_program(const Situation& s, Findings& findings) {
  std::string where;
  for (size_t host : probed(s))
    if (const auto& f = s.hosts[host].facts.software; f.program_error.empty() && !f.program.empty() && where.empty())
      where = fmt::format("{}: {}", s.hosts[host].name, f.program);
  for (size_t host : probed(s)) {
    const std::string& error = s.hosts[host].facts.software.program_error;
    if (s.job.argv.empty() || error.empty() || s.hosts[host].facts.software.bad_first_line) continue;
    findings.on(host, where.empty() ? tr("{}", error) : tr("{}; {}", error, where), "command -v " + base::shell_quote(s.job.argv[0]));
  }
}

void check_shebang(const Situation&, size_t h, const HostView& host, Findings& findings) {
  const machine::SoftwareFacts& f = host.facts.software;
  if (!f.bad_first_line) return;
  std::string python = f.prefix.empty() ? "python" : f.prefix + "/bin/python";
  findings.on(
      h, {f.program_error, f.program_error},
      f.program.empty() ? "" : fmt::format("sed -i {} {}", base::shell_quote("1s|.*|#!" + python + "|"), base::shell_quote(f.program)));
}

void check_moved(const Situation&, size_t h, const HostView& host, Findings& findings) {
  const machine::SoftwareFacts& f = host.facts.software;
  std::string names;
  const machine::BadShebang* first = nullptr;
  int count = 0;
  for (const machine::BadShebang& bad : f.shebangs) {
    if (bad.script == f.program && f.bad_first_line) continue;
    if (!first) first = &bad;
    if (++count <= 4) names += (names.empty() ? "" : ", ") + name_of(bad.script);
  }
  if (!first) return;
  std::string more = count > 4 ? fmt::format(" (+{})", count - 4) : "";
  findings.on(h, tr("in {}/bin: {}{} start with #!{}, which {}", f.prefix, names, more, first->interpreter, first->why),
              "phalanx env rehome " + base::shell_quote(f.prefix));
}

void check_other_python(const Situation&, size_t h, const HostView& host, Findings& findings) {
  const machine::SoftwareFacts& f = host.facts.software;
  std::string folder = folder_of(f.program);
  bool environment = folder.ends_with("/bin") && folder != "/usr/bin" && folder != "/bin" && folder != "/usr/local/bin" &&
                     !folder.ends_with("/.local/bin");
  if (f.assumed || f.prefix.empty() || !environment || folder == f.prefix + "/bin" || folder == folder_of(f.interpreter)) return;
  findings.on(h, tr("{} runs the Python of {}", f.program, f.prefix), fmt::format("head -1 {}", base::shell_quote(f.program)));
}

void check_python_differs(const Situation& s, Findings& findings) {
  std::vector<Camp> all = camps(s, [](const HostView& h) -> std::optional<std::string> {
    const std::string& version = h.facts.software.python;
    size_t dot = version.find('.');
    if (dot == std::string::npos || h.facts.software.assumed) return std::nullopt;
    return version.substr(0, version.find('.', dot + 1));
  });
  odd_ones(all, [&](const std::vector<size_t>& hosts, const Camp& odd, const Camp& common) {
    const auto& a = s.hosts[odd.hosts[0]].facts.software;
    const auto& b = s.hosts[common.hosts[0]].facts.software;
    std::string text = fmt::format("{}: Python {} ({}); {}: {} ({})", names_of(s, odd.hosts), a.python, a.interpreter,
                                   names_of(s, common.hosts), b.python, b.interpreter);
    findings.on(hosts, {text, text}, a.interpreter + " --version");
  });
}

void check_prefix_differs(const Situation& s, Findings& findings) {
  std::vector<Camp> all = camps(s, [](const HostView& h) -> std::optional<std::string> {
    if (h.facts.software.prefix.empty() || h.facts.software.assumed) return std::nullopt;
    return h.facts.software.prefix;
  });
  odd_ones(all, [&](const std::vector<size_t>& hosts, const Camp& odd, const Camp& common) {
    std::string text = fmt::format("{}: {}; {}: {}", names_of(s, odd.hosts), odd.value, names_of(s, common.hosts), common.value);
    findings.on(hosts, {text, text}, "command -v " + base::shell_quote(s.job.argv.empty() ? "python" : s.job.argv[0]));
  });
}

void check_launcher_old(const Situation& s, Findings& findings) {
  const auto& argv = s.job.argv;
  if (std::find(argv.begin(), argv.end(), "torch.distributed.launch") == argv.end()) return;
  for (size_t host : probed(s)) {
    std::string torch = package(s, host, "torch");
    if (torch.empty() || torch.starts_with("1.") || torch.starts_with("0.")) continue;
    findings.on(host, tr("python -m torch.distributed.launch with torch {}", torch), "torchrun --help");
  }
}

const Row kProgramRows[] = {
    {"ENV-NO-PROGRAM", Severity::kError, check_no_program},
    {"ENV-SHEBANG", Severity::kError, check_shebang},
    {"ENV-MOVED", Severity::kWarning, check_moved},
    {"ENV-OTHER-PYTHON", Severity::kWarning, check_other_python},
    {"ENV-PYTHON-DIFFERS", Severity::kWarning, check_python_differs},
    {"ENV-PREFIX-DIFFERS", Severity::kNote, check_prefix_differs},
    {"ENV-LAUNCHER-OLD", Severity::kWarning, check_launcher_old},
};

}  // namespace

std::span<const Row> program_rows() { return kProgramRows; }

}  // namespace phalanx::doctor
