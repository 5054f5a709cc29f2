#include "cli/passed_on.h"

#include <sys/random.h>

#include <algorithm>
#include <map>

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
