#include "cli/passed_on.h"

#include <sys/random.h>

#include <algorithm>
#include <map>

#include "base/json_fields.h"
#include "base/text.h"
#include "logs/passed_values.h"
#include "logs/redact.h"
#include "words/message.h"

namespace phalanx::cli {

std::vector<PassedOn> passed_on(const job::Job& job) {
  std::map<std::string, std::string> last;
  for (size_t i = 0; i < job.set.size(); ++i) last[job.set[i].first] = i < job.origins.size() ? job.origins[i] : kFromEnv;
  std::vector<PassedOn> all;
  for (auto& [name, from] : last) all.push_back({name, std::move(from)});
  return all;
}

base::Json describe_passed_on(const job::Job& job) {
  base::Json list = base::Json::array();
  for (PassedOn& one : passed_on(job)) list.push_back({{"name", std::move(one.name)}, {"from", std::move(one.from)}});
  return list;
}

base::Json describe_project(const job::ProjectUse& project) {
  base::Json values = base::Json::array();
  for (const job::ProjectValue& one : project.values) {
    base::Json value = {{"key", one.key}, {"line", one.line}};
    if (!one.key.starts_with("env.")) value["value"] = one.value;
    values.push_back(std::move(value));
  }
  return {{"file", project.file}, {"values", std::move(values)}};
}

job::ProjectUse project_in(const base::Json& json) {
  job::ProjectUse use;
  if (!json.is_object()) return use;
  use.file = base::get_string(json, "file").value_or("");
  for (const base::Json& one : base::get_list(json, "values")) {
    if (!one.is_object()) continue;
    use.values.push_back({base::get_string(one, "key").value_or(""), base::get_string(one, "value").value_or(""),
                          static_cast<int>(std::clamp<int64_t>(base::get_int(one, "line").value_or(0), 0, 1 << 20))});
  }
  return use;
}

std::string project_line(const job::ProjectUse& project) {
  if (project.file.empty()) return "";
  std::vector<std::string> keys;
  for (const job::ProjectValue& one : project.values)
    if (std::find(keys.begin(), keys.end(), one.key) == keys.end()) keys.push_back(one.key);
  return project.file + ": " + base::join(keys, ", ");
}

std::vector<std::string> passed_on_lines(const job::Job& job, base::Language language) {
  std::vector<std::pair<std::string, std::string>> groups;  // origin, names
  for (const PassedOn& one : passed_on(job)) {
    auto group = std::find_if(groups.begin(), groups.end(), [&](const auto& g) { return g.first == one.from; });
    if (group == groups.end()) groups.emplace_back(one.from, one.name);
    else group->second += " " + one.name;
  }
  constexpr words::Text kHere{"this machine (--no-export keeps them here)"};
  constexpr words::Text kPython{"the active Python environment (--no-export keeps them here)"};
  std::vector<std::string> lines;
  for (const auto& [from, names] : groups) {
    std::string origin = from == kFromHere     ? std::string(kHere.in(language))
                         : from == kFromPython ? std::string(kPython.in(language))
                                               : from;
    lines.push_back(words::tr(language, "{}: {}", origin, names));
  }
  return lines;
}

base::Result<std::string> masks_of(const job::Job& job) {
  std::vector<std::string> secrets;
  for (const auto& [name, value] : job.set)
    if (logs::keeps_secret(name, value)) secrets.push_back(value);
  if (secrets.empty()) return std::string();
  std::string key(16, '\0');
  if (::getrandom(key.data(), key.size(), 0) != static_cast<ssize_t>(key.size())) return base::system_error("getrandom", "16 bytes");
  const logs::PassedValues values(std::move(key), secrets);
  return values.empty() ? std::string() : values.text();
}

}  // namespace phalanx::cli
