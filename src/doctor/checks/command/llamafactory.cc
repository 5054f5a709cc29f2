// Lints of LLaMA-Factory's and Lightning's YAML, as far as they are not rules (codes/rules/configs.yaml).
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "doctor/checks/rows.h"
#include "doctor/config_rules.h"
#include "doctor/views/command_view.h"
#include "machine/command/launch_line.h"

namespace phalanx::doctor {
namespace {

void overwrite(const Situation& s, Findings& findings) {
  for (const UserConfig& config : user_configs(s, "llamafactory")) {
    const base::Json* on = value_at(config.value, "overwrite_output_dir");
    auto output = base::get_string(config.value, "output_dir");
    const base::Json* resume = value_at(config.value, "resume_from_checkpoint");
    if (!on || *on != true || !output || (resume && resume->is_string())) continue;
    std::string whole = (*output)[0] == '/' ? *output : s.job.directory + "/" + *output;
    for (size_t h = 0; h < s.hosts.size(); ++h)
      for (const machine::PathFact& path : s.hosts[h].facts.storage.paths)
        if (path.path == whole && path.exists && path.entries > 0)
          findings.on(
              h, tr("{}: overwrite_output_dir: true; {} holds {} entries", config.place(s, "overwrite_output_dir"), whole, path.entries));
  }
}

constexpr Row kLlamafactoryRows[] = {
    {"CMD-LLAMAFACTORY-KEY", Severity::kWarning, check_config_rules},
    {"CMD-LLAMAFACTORY-TIMEOUT", Severity::kNote, check_config_rules},
    {"CMD-LLAMAFACTORY-OVERWRITE", Severity::kNote, overwrite},
};

// --- Lightning ---------------------------------------------------------------------------------------------------------------

// devices of a trainer: a number, a list, "0,1"; none for -1 and "auto".
std::optional<int64_t> device_count(const base::Json* value) {
  if (!value) return std::nullopt;
  if (value->is_array()) return static_cast<int64_t>(value->size());
  if (value->is_number_integer() && value->get<int64_t>() > 0) return value->get<int64_t>();
  if (!value->is_string()) return std::nullopt;
  const std::string& text = value->get_ref<const std::string&>();
  if (whole_number(text)) return std::stoll(text);
  if (text.find(',') == std::string::npos) return std::nullopt;
  int64_t n = 0;
  for (std::string_view part : base::split(text, ',')) n += base::trim(part).empty() ? 0 : 1;
  return n;
}

// A trainer.* argument of the command replaces the configuration's.
bool overridden(const Situation& s, const std::string& name) {
  for (const UserLaunch& launch : user_launches(s))
    for (const machine::Argument& a : machine::read_arguments(launch.line->arguments))
      if (a.name == name) return true;
  return false;
}

// The command with the numbers set; empty where the script that reads the configuration was not seen.
std::string devices_fix(const Situation& s, const UserConfig& config) {
  for (const UserLaunch& launch : user_launches(s)) {
    if (launch.line->module || !launch.line->program.ends_with(".py")) continue;
    const size_t hosts = std::max<size_t>(s.hosts.size(), 1);
    return fmt::format("phalanx run -H {} -- python {} fit -c {} --trainer.devices={} --trainer.num_nodes={}", host_list(s),
                       base::shell_quote(launch.line->program), base::shell_quote(shown(s, config.file.file->path)),
                       s.job.world / static_cast<int64_t>(hosts), hosts);
  }
  return "";
}

void devices(const Situation& s, Findings& findings) {
  if (overridden(s, "trainer.devices") || overridden(s, "trainer.num_nodes")) return;
  for (const UserConfig& config : user_configs(s, "lightning")) {
    auto count = device_count(value_at(config.value, "trainer.devices"));
    const int64_t nodes = int_at(config.value, "trainer.num_nodes").value_or(1);
    if (!count || s.job.world < 1 || nodes < 1 || nodes > 100'000 || *count > 100'000 || *count * nodes == s.job.world) continue;
    std::string at = config.place(s, "trainer.devices");
    tell(findings, s, config.file.hosts,
         tr("{}: {} devices × {} nodes = {}; the job has {} ranks on {} hosts", at, *count, nodes, *count * nodes, s.job.world,
            s.hosts.size()),
         devices_fix(s, config));
  }
}

void device_list(const Situation& s, Findings& findings) {
  for (const UserConfig& config : user_configs(s, "lightning")) {
    const base::Json* value = value_at(config.value, "trainer.devices");
    if (!value || !value->is_array() || value->empty()) continue;
    std::vector<size_t> hosts;
    std::string visible;
    for (size_t h : config.file.hosts) {
      auto set = s.variable(h, "CUDA_VISIBLE_DEVICES");
      for (const UserLaunch& launch : user_launches(s))
        if (!set && launch.line->variables.count("CUDA_VISIBLE_DEVICES")) set = launch.line->variables.at("CUDA_VISIBLE_DEVICES");
      if (!set || set->empty()) continue;
      hosts.push_back(h);
      visible = *set;
    }
    if (hosts.empty()) continue;
    std::string at = config.place(s, "trainer.devices"), list = base::to_text(*value);
    tell(findings, s, hosts, tr("{}: devices: {} is an index into CUDA_VISIBLE_DEVICES={}", at, list, visible));
  }
}

constexpr Row kLightningRows[] = {
    {"CMD-LIGHTNING-DEVICES", Severity::kWarning, devices},
    {"CMD-LIGHTNING-DEVICE-LIST", Severity::kNote, device_list},
    {"CMD-LIGHTNING-TIMEOUT", Severity::kNote, check_config_rules},
};

}  // namespace

std::span<const Row> llamafactory_rows() { return kLlamafactoryRows; }
std::span<const Row> lightning_rows() { return kLightningRows; }

}  // namespace phalanx::doctor
