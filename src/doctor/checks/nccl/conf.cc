// NCCL's conf files, and settings that are not the same on all hosts.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/text.h"
#include "doctor/checks/rows.h"
#include "doctor/settings.h"
#include "doctor/views/nccl_variables.h"

namespace phalanx::doctor {
namespace {

std::string conf_text(const HostView& h) {
  std::string text;
  for (const auto& [name, value] : h.facts.software.nccl_conf) text += (text.empty() ? "" : ", ") + name + "=" + value;
  return text;
}

// The file of ~/.nccl.conf and /etc/nccl.conf that can be edited.
std::string first_file(const HostView& h) {
  const std::string& files = h.facts.software.nccl_conf_file;
  return files.substr(0, files.find(','));
}

void check_conf_file(const Situation&, size_t h, const HostView& host, Findings& findings) {
  if (host.facts.software.nccl_conf.empty()) return;
  findings.on(h, tr("{} sets {}", host.facts.software.nccl_conf_file, conf_text(host)),
              "cat " + base::replace_all(host.facts.software.nccl_conf_file, ",", ""));
}

void check_conf_differs(const Situation& s, Findings& findings) {
  std::vector<Camp> all = camps(s, [](const HostView& h) { return std::optional<std::string>(conf_text(h)); });
  odd_ones(all, [&](const std::vector<size_t>& hosts, const Camp& odd, const Camp& common) {
    auto told = [](const std::string& text) { return text.empty() ? tr("none") : tr("{}", text); };
    const Camp& has = odd.value.empty() ? common : odd;
    findings.on(hosts, tr("{}: {}; {}: {}", names_of(s, odd.hosts), told(odd.value), names_of(s, common.hosts), told(common.value)),
                "cat " + first_file(s.hosts[has.hosts[0]]));
  });
}

void check_conf_blanks(const Situation&, size_t h, const HostView& host, Findings& findings) {
  for (const auto& [name, value] : host.facts.software.nccl_conf) {
    bool blank = base::trim(name) != name || (!value.empty() && base::is_blank(value[0]));
    if (!blank || base::trim(name).starts_with('#')) continue;
    std::string file = first_file(host);
    findings.on(h, tr("{} contains \"{}={}\": the spaces become part of the name and the value", file, name, value),
                fmt::format("sed -i -E {} {}", base::shell_quote("s/^[ \t]*([A-Z0-9_]+)[ \t]*=[ \t]*/\\1=/"), base::shell_quote(file)));
  }
}

void check_conf_missing(const Situation& s, size_t h, const HostView& host, Findings& findings) {
  std::optional<std::string> named = s.variable(h, "NCCL_CONF_FILE");
  const std::string& read = host.facts.software.nccl_conf_file;
  if (!named || named->empty() || (!read.empty() && !read.starts_with("/etc/nccl.conf"))) return;
  if (*named == "/etc/nccl.conf" && !read.empty()) return;
  findings.on(h, tr("NCCL_CONF_FILE={} cannot be read", *named), "ls -l " + base::shell_quote(*named));
}

// Settings that name what lies in one machine, and so may differ.
bool is_local(std::string_view name) {
  for (std::string_view local : {"IFNAME", "IB_HCA", "GID_INDEX", "_FILE", "HOSTID", "RAS_ADDR", "_PLUGIN", "CONF", "CPUSET", "CUDA_PATH",
                                 "_DEBUG", "IGNORE_CPU_AFFINITY", "SOCKET_NTHREADS", "NSOCKS"})
    if (name.find(local) != std::string_view::npos) return true;
  return false;
}

void check_settings_differ(const Situation& s, Findings& findings) {
  if (s.hosts.size() < 2) return;
  std::set<std::string> names;
  for (size_t host : probed(s))
    for (const Setting& one : settings(s, host, {"NCCL_"}))
      if (!is_local(one.name) && !is_others_nccl_name(one.name)) names.insert(one.name);
  for (const std::string& name : names) {
    std::vector<Camp> all = camps(s, [&](const HostView& h) {
      std::optional<std::string> value = setting(s, static_cast<size_t>(&h - s.hosts.data()), name);
      return std::optional<std::string>(value ? name + "=" + *value : "");
    });
    odd_ones(all, [&](const std::vector<size_t>& hosts, const Camp& odd, const Camp& common) {
      auto told = [](const std::string& text) { return text.empty() ? tr("not set") : tr("{}", text); };
      const Camp& has = odd.value.empty() ? common : odd;
      findings.on(hosts, tr("{}: {}; {}: {}", names_of(s, odd.hosts), told(odd.value), names_of(s, common.hosts), told(common.value)),
                  "export " + base::shell_quote(has.value));
    });
  }
}

const Row kNcclConfRows[] = {
    {"NCCL-CONF-FILE", Severity::kNote, check_conf_file},
    {"NCCL-CONF-DIFFERS", Severity::kWarning, check_conf_differs},
    {"NCCL-CONF-BLANKS", Severity::kWarning, check_conf_blanks},
    {"NCCL-CONF-MISSING", Severity::kWarning, check_conf_missing},
    {"NCCL-SETTINGS-DIFFER", Severity::kWarning, check_settings_differ},
};

}  // namespace

std::span<const Row> nccl_conf_rows() { return kNcclConfRows; }

}  // namespace phalanx::doctor
