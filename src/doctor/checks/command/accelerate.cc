// Lints of accelerate's configuration and of DeepSpeed host files, as far as they are not rules (codes/rules/configs.yaml).
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/text.h"
#include "doctor/checks/rows.h"
#include "doctor/config_rules.h"
#include "doctor/views/command_view.h"

namespace phalanx::doctor {
namespace {

// A number that the launch line gives, else the configuration.
std::optional<int64_t> given(const Situation& s, const UserConfig& config, const std::string& key) {
  for (const UserLaunch& launch : user_launches(s)) {
    auto found = launch.line->options.find(key);
    if (launch.line->launcher == "accelerate" && found != launch.line->options.end())
      return whole_number(found->second) ? std::optional<int64_t>(std::stoll(found->second)) : std::nullopt;
  }
  return int_at(config.value, key);
}

void processes(const Situation& s, Findings& findings) {
  size_t gpus = 0;
  for (const HostView& h : s.hosts) gpus = std::max(gpus, h.facts.gpus.devices.size());
  for (const UserConfig& config : user_configs(s, "accelerate")) {
    auto total = given(s, config, "num_processes"), machines = given(s, config, "num_machines");
    if (!total || !machines || *machines < 2 || *total < 1) continue;
    Words why;
    if (*total % *machines != 0) {
      why = tr("{} processes cannot be divided evenly among {} machines", *total, *machines);
    } else if (gpus > 1 && *total == static_cast<int64_t>(gpus)) {
      why = tr("each of {} machines would start {} of {} GPUs", *machines, *total / *machines, gpus);
    }
    if (why.empty()) continue;
    const int64_t right = *machines * static_cast<int64_t>(std::max<size_t>(gpus, 1));
    tell(findings, s, config.file.hosts, tr("{}: num_processes: {}, the total; {}", config.place(s, "num_processes"), *total, why),
         gpus == 0 ? ""
                   : fmt::format("sed -i 's/^num_processes:.*/num_processes: {}/' {}", right, base::shell_quote(config.file.file->path)));
  }
}

bool own_launcher(const UserConfig& config) {  // one that starts the other machines by itself
  const base::Json* name = value_at(config.value, "deepspeed_config.deepspeed_multinode_launcher");
  return name && name->is_string() && name->get_ref<const std::string&>() != "standard";
}

void rank(const Situation& s, Findings& findings) {
  for (const UserConfig& config : user_configs(s, "accelerate")) {
    auto machines = given(s, config, "num_machines"), own = int_at(config.value, "machine_rank");
    if (!machines || *machines < 2 || !own || own_launcher(config) || config.file.hosts.size() < 2) continue;
    bool overridden = false, launched = false;
    for (const UserLaunch& launch : user_launches(s)) {
      launched = launched || launch.line->launcher == "accelerate";
      overridden = overridden || launch.line->options.count("machine_rank") > 0;
    }
    if (!launched || overridden) continue;
    findings.on(
        config.file.hosts, tr("{}: machine_rank: {} on all of them", config.place(s, "machine_rank"), *own),
        fmt::format("sed -i 's/^machine_rank:.*/machine_rank: {}/' {}", *own == 0 ? 1 : 0, base::shell_quote(config.file.file->path)));
  }
}

void machines(const Situation& s, Findings& findings) {
  for (const UserConfig& config : user_configs(s, "accelerate")) {
    auto count = given(s, config, "num_machines");
    bool launched = false;
    for (const UserLaunch& launch : user_launches(s)) launched = launched || launch.line->launcher == "accelerate";
    if (!launched || !count || s.single() || *count == static_cast<int64_t>(s.hosts.size())) continue;
    tell(findings, s, config.file.hosts,
         tr("{}: num_machines: {}; the job has {} hosts", config.place(s, "num_machines"), *count, s.hosts.size()),
         fmt::format("sed -i 's/^num_machines:.*/num_machines: {}/' {}", s.hosts.size(), base::shell_quote(config.file.file->path)));
  }
}

struct HostfileLine {
  std::string host;
  int slots = 0;
  Words error;  // not empty: the line is wrong
  int number = 0;
};

// deepspeed/launcher/runner.py: _parse_hostfile; a line is "name slots=N", '#' begins a comment line.
std::vector<HostfileLine> read_hostfile(const std::string& text) {
  std::vector<HostfileLine> all;
  std::set<std::string> seen;
  int number = 0;
  for (std::string_view raw : base::split_lines(text)) {
    ++number;
    std::string_view line = base::trim(raw);
    if (line.empty() || line[0] == '#') continue;
    std::vector<std::string_view> words = base::split_words(line.substr(0, line.find('#')));
    HostfileLine entry;
    entry.number = number;
    entry.host = words[0];
    if (words.size() != 2 || !words[1].starts_with("slots=") || !whole_number(words[1].substr(6))) {
      entry.error = tr("{} is not \"name slots=N\"", base::shell_quote(line));
    } else if (!seen.insert(entry.host).second) {
      entry.error = tr("{} is listed twice", entry.host);
    } else {
      entry.slots = std::stoi(std::string(words[1].substr(6)));
    }
    all.push_back(std::move(entry));
    if (all.size() > 10'000) break;
  }
  return all;
}

void hostfile(const Situation& s, Findings& findings) {
  for (const UserFile& file : user_files(s, "hostfile")) {
    for (const HostfileLine& line : read_hostfile(file.file->text)) {
      if (line.error.empty()) continue;
      std::string at = fmt::format("{}:{}", shown(s, file.file->path), line.number);
      tell(findings, s, file.hosts, tr("{}: {}", at, line.error));
      break;
    }
  }
}

void hostfile_slots(const Situation& s, Findings& findings) {
  for (const UserFile& file : user_files(s, "hostfile")) {
    int64_t sum = 0;
    bool whole = true;
    for (const HostfileLine& line : read_hostfile(file.file->text)) {
      whole = whole && line.error.empty();
      sum += line.slots;
      for (size_t h = 0; h < s.hosts.size(); ++h) {
        const HostView& host = s.hosts[h];
        if (host.name != line.host && host.address != line.host && host.facts.machine.hostname != line.host) continue;
        const size_t gpus = host.facts.gpus.devices.size();
        if (gpus == 0 || line.slots <= static_cast<int>(gpus)) continue;
        findings.on(h, tr("{}:{}: {} slots; the host has {} GPUs", shown(s, file.file->path), line.number, line.slots, gpus),
                    fmt::format("sed -i '{}s/slots=.*/slots={}/' {}", line.number, gpus, base::shell_quote(file.file->path)));
      }
    }
    for (const UserConfig& config : user_configs(s, "accelerate")) {
      auto total = given(s, config, "num_processes");
      if (!whole || !total || sum == 0 || *total == sum) continue;
      tell(findings, s, file.hosts,
           tr("{}: {} slots in all; {}: num_processes: {}", shown(s, file.file->path), sum, config.place(s, "num_processes"), *total),
           fmt::format("sed -i 's/^num_processes:.*/num_processes: {}/' {}", sum, base::shell_quote(config.file.file->path)));
    }
  }
}

void pdsh(const Situation& s, Findings& findings) {
  for (const UserConfig& config : user_configs(s, "accelerate")) {
    const base::Json* name = value_at(config.value, "deepspeed_config.deepspeed_multinode_launcher");
    if (!name || *name != "pdsh") continue;
    std::string lost;
    for (const auto& [variable, value] : s.job.set)
      if (variable.starts_with("CUDA_") || variable.starts_with("TORCH_") || variable.starts_with("GLOO_") || variable == "LD_LIBRARY_PATH")
        lost += " " + variable;
    std::string at = config.place(s, "deepspeed_config.deepspeed_multinode_launcher");
    tell(findings, s, config.file.hosts, tr("{}: pdsh{}", at, lost.empty() ? Words{} : tr("; it does not pass on{}", lost)));
  }
}

constexpr Row kAccelerateRows[] = {
    {"CMD-ACCELERATE-KEY", Severity::kWarning, check_config_rules},
    {"CMD-ACCELERATE-PROCESSES", Severity::kWarning, processes},
    {"CMD-ACCELERATE-RANK", Severity::kWarning, rank},
    {"CMD-ACCELERATE-MACHINES", Severity::kWarning, machines},
    {"CMD-HOSTFILE", Severity::kWarning, hostfile},
    {"CMD-HOSTFILE-SLOTS", Severity::kWarning, hostfile_slots},
    {"CMD-PDSH", Severity::kNote, pdsh},
};

}  // namespace

std::span<const Row> accelerate_rows() { return kAccelerateRows; }

}  // namespace phalanx::doctor
