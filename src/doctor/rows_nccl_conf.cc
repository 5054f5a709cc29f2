// NCCL's conf files, and settings that are not the same on all hosts.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/text.h"
#include "doctor/nccl_variables.h"
#include "doctor/rows_nccl_parts.h"
#include "doctor/settings.h"

namespace doctor {
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

void check_conf_file(const Situation& s, Findings& findings) {
  for (size_t host : probed(s)) {
    const HostView& h = s.hosts[host];
    if (h.facts.software.nccl_conf.empty()) continue;
    findings.on(host,
                {fmt::format("{} sets {}", h.facts.software.nccl_conf_file, conf_text(h)),
                 fmt::format("{} 设置了 {}", h.facts.software.nccl_conf_file, conf_text(h))},
                "cat " + base::replace_all(h.facts.software.nccl_conf_file, ",", ""));
  }
}

void check_conf_differs(const Situation& s, Findings& findings) {
  std::vector<Camp> all = camps(s, [](const HostView& h) { return std::optional<std::string>(conf_text(h)); });
  odd_ones(all, [&](const std::vector<size_t>& hosts, const Camp& odd, const Camp& common) {
    auto told = [](const std::string& text, const char* none) { return text.empty() ? std::string(none) : text; };
    const Camp& has = odd.value.empty() ? common : odd;
    findings.on(
        hosts,
        {fmt::format("{}: {}; {}: {}", names_of(s, odd.hosts), told(odd.value, "none"), names_of(s, common.hosts),
                     told(common.value, "none")),
         fmt::format("{}：{}；{}：{}", names_of(s, odd.hosts), told(odd.value, "无"), names_of(s, common.hosts), told(common.value, "无"))},
        "cat " + first_file(s.hosts[has.hosts[0]]));
  });
}

void check_conf_blanks(const Situation& s, Findings& findings) {
  for (size_t host : probed(s)) {
    for (const auto& [name, value] : s.hosts[host].facts.software.nccl_conf) {
      bool blank = base::trim(name) != name || (!value.empty() && base::is_blank(value[0]));
      if (!blank || base::trim(name).starts_with('#')) continue;
      std::string file = first_file(s.hosts[host]);
      findings.on(host,
                  {fmt::format("{} has \"{}={}\": the blanks become part of the name and the value", file, name, value),
                   fmt::format("{} 中有“{}={}”：空格会成为变量名和值的一部分", file, name, value)},
                  fmt::format("sed -i -E {} {}", base::shell_quote("s/^[ \t]*([A-Z0-9_]+)[ \t]*=[ \t]*/\\1=/"), base::shell_quote(file)));
    }
  }
}

void check_conf_missing(const Situation& s, Findings& findings) {
  for (size_t host : probed(s)) {
    std::optional<std::string> named = s.variable(host, "NCCL_CONF_FILE");
    const std::string& read = s.hosts[host].facts.software.nccl_conf_file;
    if (!named || named->empty() || (!read.empty() && !read.starts_with("/etc/nccl.conf"))) continue;
    if (*named == "/etc/nccl.conf" && !read.empty()) continue;
    findings.on(host, {fmt::format("NCCL_CONF_FILE={} cannot be read", *named), fmt::format("NCCL_CONF_FILE={} 无法读取", *named)},
                "ls -l " + base::shell_quote(*named));
  }
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
      auto told = [](const std::string& text, const char* none) { return text.empty() ? std::string(none) : text; };
      const Camp& has = odd.value.empty() ? common : odd;
      findings.on(hosts,
                  {fmt::format("{}: {}; {}: {}", names_of(s, odd.hosts), told(odd.value, "not set"), names_of(s, common.hosts),
                               told(common.value, "not set")),
                   fmt::format("{}：{}；{}：{}", names_of(s, odd.hosts), told(odd.value, "未设置"), names_of(s, common.hosts),
                               told(common.value, "未设置"))},
                  "export " + base::shell_quote(has.value));
    });
  }
}

const Row kNcclConfRows[] = {
    {"NCCL-CONF-FILE",
     Severity::kNote,
     Group::kNccl,
     {"a conf file sets NCCL's variables", "配置文件设置了 NCCL 变量"},
     {"Does NCCL read settings from a file?", "NCCL 会从文件读取设置吗？"},
     {"Settings from ~/.nccl.conf or /etc/nccl.conf show in no environment; what is set there surprises whoever looks at the variables "
      "only. $NCCL_CONF_FILE replaces ~/.nccl.conf.",
      "~/.nccl.conf 或 /etc/nccl.conf 里的设置不会出现在环境变量中，只看环境变量会一头雾水。$NCCL_CONF_FILE 会取代 ~/.nccl.conf。"},
     {"Look whether it is still wanted.\n$ cat ~/.nccl.conf /etc/nccl.conf",
      "确认这些设置是否仍然需要。\n$ cat ~/.nccl.conf /etc/nccl.conf"},
     "NCCL src/misc/param.cc, initEnv",
     check_conf_file},
    {"NCCL-CONF-DIFFERS",
     Severity::kWarning,
     Group::kNccl,
     {"NCCL's conf files differ between hosts", "各机器的 NCCL 配置文件不同"},
     {"Do all hosts have the same NCCL conf files?", "各机器的 NCCL 配置文件一致吗？"},
     {"One host then runs with other settings than the rest, and no variable shows it: hangs at connect, or \"message truncated\".",
      "某台机器会用不同的设置运行，而环境变量里看不出来：表现为连接时卡死，或 “message truncated”。"},
     {"Make them equal, or remove them.\n$ cat ~/.nccl.conf /etc/nccl.conf", "使其一致，或删除。\n$ cat ~/.nccl.conf /etc/nccl.conf"},
     "NCCL src/misc/param.cc",
     check_conf_differs},
    {"NCCL-CONF-BLANKS",
     Severity::kWarning,
     Group::kNccl,
     {"blanks around '=' in an NCCL conf file", "NCCL 配置文件的等号两边有空格"},
     {"Are the lines of the conf file NAME=value, without blanks?", "配置文件的每行都是不带空格的 NAME=value 吗？"},
     {"NCCL trims nothing: \"NCCL_DEBUG = INFO\" sets a variable whose name ends in a blank, and NCCL_DEBUG stays unset.",
      "NCCL 不会去掉空格：“NCCL_DEBUG = INFO” 设置的是名字末尾带空格的变量，NCCL_DEBUG 仍未设置。"},
     {"Write NAME=value.\n$ sed -i 's/ *= */=/' ~/.nccl.conf", "写成 NAME=value。\n$ sed -i 's/ *= */=/' ~/.nccl.conf"},
     "NCCL src/misc/param.cc, setEnvFile",
     check_conf_blanks},
    {"NCCL-CONF-MISSING",
     Severity::kWarning,
     Group::kNccl,
     {"NCCL_CONF_FILE names a file that cannot be read", "NCCL_CONF_FILE 指向的文件无法读取"},
     {"Does the file of NCCL_CONF_FILE exist on every host?", "NCCL_CONF_FILE 指定的文件在每台机器上都存在吗？"},
     {"NCCL says nothing, and does not read ~/.nccl.conf either: this host runs with defaults.",
      "NCCL 不会有任何提示，也不会再读 ~/.nccl.conf：这台机器会以默认值运行。"},
     {"Copy the file, or remove the variable.\n$ ls -l \"$NCCL_CONF_FILE\"", "复制该文件，或去掉变量。\n$ ls -l \"$NCCL_CONF_FILE\""},
     "NCCL src/misc/param.cc",
     check_conf_missing},
    {"NCCL-SETTINGS-DIFFER",
     Severity::kWarning,
     Group::kNccl,
     {"an NCCL variable is not the same on all hosts", "NCCL 变量在各机器上不一致"},
     {"Do all ranks get the same NCCL settings?", "所有 rank 得到的 NCCL 设置一致吗？"},
     {"Ranks that choose other algorithms, protocols or buffers do not fit together: \"message truncated\", or a hang at the first "
      "collective. The usual cause is a profile of one host.",
      "算法、协议或缓冲区不同的 rank 无法配合：报 “message truncated”，或在首个集合通信处卡死。常见原因是某台机器的 profile "
      "里单独设置过。"},
     {"Set it once, for all ranks.\n$ phalanx run --env NCCL_DEBUG=INFO -- python <script>",
      "由启动器统一设置。\n$ phalanx run --env NCCL_DEBUG=INFO -- python <script>"},
     "NCCL src/init.cc",
     check_settings_differ},
};

}  // namespace

std::span<const Row> nccl_conf_rows() { return kNcclConfRows; }

}  // namespace doctor
