// Lints of LLaMA-Factory's and Lightning's YAML.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "doctor/checks/rows.h"
#include "doctor/views/command_view.h"
#include "doctor/views/known_keys.h"
#include "machine/command/launch_line.h"

namespace phalanx::doctor {
namespace {

void keys(const Situation& s, Findings& findings) {
  for (const UserConfig& config : user_configs(s, "llamafactory")) {
    for (const Misspelt& m : misspelt_keys(config.value, llamafactory_keys())) {
      std::string at = config.place(s, m.key);
      tell(findings, s, config.file.hosts, tr("{}: {} is unknown; {} was probably meant", at, m.key, m.meant),
           fmt::format("sed -i 's/^{}:/{}:/' {}", m.key, m.meant, base::shell_quote(config.file.file->path)));
    }
  }
}

void timeout(const Situation& s, Findings& findings) {
  if (s.job.world < 2) return;
  for (const UserConfig& config : user_configs(s, "llamafactory")) {
    const base::Json* given = value_at(config.value, "ddp_timeout");
    const base::Json* prepared = value_at(config.value, "tokenized_path");
    if (!config.value.contains("dataset") || (prepared && prepared->is_string()) ||
        base::get_bool(config.value, "streaming").value_or(false))
      continue;
    if (given && (!given->is_number() || given->get<double>() > 1800)) continue;
    Words value = given ? tr("{} s", base::to_text(*given)) : tr("1800 s by default");
    tell(findings, s, config.file.hosts,
         tr("{}: ddp_timeout is {}; rank 0 prepares the data first, the others wait", config.place(s, "ddp_timeout"), value),
         given ? fmt::format("sed -i 's/^ddp_timeout:.*/ddp_timeout: 180000000/' {}", base::shell_quote(config.file.file->path))
               : fmt::format("echo 'ddp_timeout: 180000000' >> {}", base::shell_quote(config.file.file->path)));
  }
}

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
    {"CMD-LLAMAFACTORY-KEY", Severity::kWarning, keys},
    {"CMD-LLAMAFACTORY-TIMEOUT", Severity::kNote, timeout},
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
         fmt::format("phalanx run -H {} -- python cli.py fit -c {} --trainer.devices={} --trainer.num_nodes={}", host_list(s),
                     base::shell_quote(shown(s, config.file.file->path)),
                     s.job.world / static_cast<int64_t>(std::max<size_t>(s.hosts.size(), 1)), s.hosts.size()));
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

// "00:10:00", or a number of seconds.
std::optional<int64_t> seconds_in(const base::Json* value) {
  if (!value) return std::nullopt;
  if (value->is_number_integer()) return value->get<int64_t>();
  if (!value->is_string()) return std::nullopt;
  int64_t total = 0;
  for (std::string_view part : base::split(value->get_ref<const std::string&>(), ':')) {
    if (!whole_number(part) || total > 1'000'000) return std::nullopt;
    total = total * 60 + std::stoll(std::string(part));
  }
  return total;
}

void short_timeout(const Situation& s, Findings& findings) {
  if (s.job.world < 2) return;
  for (const UserConfig& config : user_configs(s, "lightning")) {
    const std::string key = "trainer.strategy.init_args.timeout";
    auto given = seconds_in(value_at(config.value, key));
    if (!given || *given > 600 || *given < 1) continue;
    std::string at = config.place(s, key);
    tell(findings, s, config.file.hosts, tr("{}: the timeout for a rank is {} s", at, *given),
         fmt::format("sed -i 's/timeout: .*/timeout: \"01:00:00\"/' {}", base::shell_quote(config.file.file->path)));
  }
}

constexpr Row kLightningRows[] = {
    {"CMD-LIGHTNING-DEVICES", Severity::kWarning, devices},
    {"CMD-LIGHTNING-DEVICE-LIST", Severity::kNote, device_list},
    {"CMD-LIGHTNING-TIMEOUT", Severity::kNote, short_timeout},
};

}  // namespace

std::span<const Row> llamafactory_rows() { return kLlamafactoryRows; }
std::span<const Row> lightning_rows() { return kLightningRows; }

}  // namespace phalanx::doctor
