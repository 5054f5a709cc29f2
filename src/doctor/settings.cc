#include "doctor/settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/text.h"
#include "doctor/views/nccl_variables.h"

namespace phalanx::doctor {

std::vector<Setting> settings(const Situation& situation, size_t host, std::initializer_list<std::string_view> prefixes) {
  auto wanted = [&](std::string_view name) {
    return std::any_of(prefixes.begin(), prefixes.end(), [&](std::string_view p) { return name.starts_with(p); });
  };
  std::map<std::string, Setting> found;
  for (const auto& [name, value] : situation.job.set)
    if (wanted(name)) found.emplace(name, Setting{name, value, Setting::Source::kUser});
  const machine::SoftwareFacts& software = situation.hosts[host].facts.software;
  for (const auto& [name, value] : software.environment)
    if (wanted(name)) found.emplace(name, Setting{name, value, Setting::Source::kHost});
  for (const auto& [name, value] : software.nccl_conf)
    if (wanted(name) && name.starts_with("NCCL_")) found.emplace(name, Setting{name, value, Setting::Source::kFile});
  std::vector<Setting> all;
  for (auto& [name, one] : found) all.push_back(std::move(one));
  return all;
}

std::optional<std::string> setting(const Situation& situation, size_t host, const std::string& name) {
  if (std::optional<std::string> value = situation.variable(host, name)) return value;
  const auto& conf = situation.hosts[host].facts.software.nccl_conf;
  auto found = conf.find(name);
  return found == conf.end() || !name.starts_with("NCCL_") ? std::nullopt : std::optional(found->second);
}

std::optional<int64_t> number_setting(const Situation& situation, size_t host, const std::string& name) {
  std::optional<std::string> value = setting(situation, host, name);
  std::optional<ReadNumber> read = value ? read_as_nccl(*value) : std::nullopt;
  return read ? std::optional(read->value) : std::nullopt;
}

bool is_on(const Situation& situation, size_t host, const std::string& name) {
  std::optional<std::string> value = setting(situation, host, name);
  if (!value || value->empty()) return false;
  if (name.starts_with("NCCL_")) return number_setting(situation, host, name).value_or(0) != 0;
  std::string lower = base::to_lower(base::trim(*value));
  return lower != "0" && lower != "false" && lower != "off" && lower != "no" && lower != "n" && lower != "f";
}

std::string away(const Situation& situation, size_t host, const Setting& setting) {
  if (setting.source == Setting::Source::kUser) return "unset " + base::shell_quote(setting.name);
  if (setting.source == Setting::Source::kFile) {
    std::string files = base::replace_all(situation.hosts[host].facts.software.nccl_conf_file, ",", "");
    return fmt::format("sed -i {} {}", base::shell_quote("/^" + setting.name + "=/d"), files);
  }
  return fmt::format("grep -ns {} ~/.bashrc ~/.profile ~/.bash_profile /etc/environment /etc/profile.d/*", base::shell_quote(setting.name));
}

std::string away(const Situation& situation, size_t host, const std::string& name) {
  for (const Setting& one : settings(situation, host, {name}))
    if (one.name == name) return away(situation, host, one);
  return "unset " + base::shell_quote(name);
}

std::vector<size_t> probed(const Situation& situation) {
  std::vector<size_t> all;
  for (size_t h = 0; h < situation.hosts.size(); ++h)
    if (situation.hosts[h].probed) all.push_back(h);
  return all;
}

std::string names_of(const Situation& situation, const std::vector<size_t>& hosts) {
  std::string names;
  for (size_t i = 0; i < hosts.size() && i < 4; ++i) names += (i ? ", " : "") + situation.hosts[hosts[i]].name;
  if (hosts.size() > 4) names += fmt::format(" (+{})", hosts.size() - 4);
  return names;
}

bool uses_nccl(const Situation& situation) { return situation.job.wants_gpus && situation.job.world != 1; }

std::string package(const Situation& situation, size_t host, const std::string& name) {
  const auto& packages = situation.hosts[host].facts.software.packages;
  auto found = packages.find(name);
  return found == packages.end() ? "" : found->second;
}

std::string nccl_version(const Situation& situation, size_t host) {
  const machine::SoftwareFacts& software = situation.hosts[host].facts.software;
  if (software.torch_cuda.empty() || software.torch_cuda == "cpu" || software.torch_nccl == "static" || software.nccl.empty()) return "";
  return software.nccl[0].version;
}

}  // namespace phalanx::doctor
