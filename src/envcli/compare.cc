// compare: the environments of several hosts, as `show --json` described each of them: which have the same packages, and what differs.
#include <algorithm>
#include <map>

#include "base/json.h"
#include "base/name_ranges.h"
#include "base/text.h"
#include "base/try.h"
#include "base/unicode.h"
#include "envcli/output.h"
#include "envcli/verbs.h"
#include "os/files.h"
#include "words/message.h"

namespace phalanx::envcli {
namespace {

using base::ErrorKind;
using base::Json;
using words::tr;

constexpr size_t kMostInput = 1 << 30;
constexpr size_t kShown = 20;

struct Seen {
  std::string host, fingerprint, python, problem;
  std::map<std::string, std::string> versions;  // by package, "python" among them
};

Seen read_host(const Json& host) {
  Seen seen;
  seen.host = base::get_string(host, "host").value_or("?");
  const auto shown = host.find("output");
  if (shown == host.end() || !shown->is_object() || base::get_string(*shown, "fingerprint").value_or("").size() != 64) {
    const std::string said = base::get_string(host, "output").value_or("");
    seen.problem = std::string(base::trim(said.empty() ? std::string("no answer") : said));
    return seen;
  }
  seen.fingerprint = *base::get_string(*shown, "fingerprint");
  seen.python = base::get_string(*shown, "python").value_or("");
  seen.versions["python"] = seen.python;
  for (const Json& package : base::get_list(*shown, "packages")) {
    if (!package.is_object()) continue;
    std::string& versions = seen.versions[base::get_string(package, "name").value_or("?")];
    const std::string version = base::get_string(package, "version").value_or("?");
    if (!versions.empty() && versions != version) versions += "+" + version;  // conda and pip installed both
    else versions = version;
  }
  return seen;
}

// What some hosts have in common, with these hosts; in the order of the hosts.
using Groups = std::vector<std::pair<std::string, std::vector<std::string>>>;
void add(Groups& groups, const std::string& what, const std::string& host) {
  auto same = std::find_if(groups.begin(), groups.end(), [&](const auto& group) { return group.first == what; });
  if (same == groups.end()) groups.push_back({what, {host}});
  else same->second.push_back(host);
}

// Packages of which not all hosts have the same version: by name, then version (or "-") with its hosts.
std::vector<std::pair<std::string, Groups>> differences(const std::vector<Seen>& hosts) {
  std::map<std::string, Groups> all;
  for (const Seen& one : hosts)
    for (const auto& [name, version] : one.versions) all.emplace(name, Groups{});
  std::vector<std::pair<std::string, Groups>> out;
  for (auto& [name, versions] : all) {
    for (const Seen& one : hosts) {
      if (!one.problem.empty()) continue;
      const auto has = one.versions.find(name);
      add(versions, has == one.versions.end() ? "-" : has->second, one.host);
    }
    if (versions.size() > 1) out.emplace_back(name, std::move(versions));
  }
  return out;
}

std::string folded(const std::vector<std::string>& names) { return base::join(base::fold_names(names), ","); }

Json compare_json(const std::string& name, const std::vector<Seen>& hosts, const std::vector<std::pair<std::string, Groups>>& differ) {
  Json json = {{"schema", 1}, {"environment", name}, {"hosts", Json::array()}, {"differences", Json::array()}};
  for (const Seen& one : hosts) {
    Json host = {{"host", one.host}, {"fingerprint", one.fingerprint}, {"python", one.python}};
    if (!one.problem.empty()) host["error"] = one.problem;
    json["hosts"].push_back(std::move(host));
  }
  for (const auto& [package, versions] : differ)
    for (const auto& [version, names] : versions)
      json["differences"].push_back(
          {{"package", package}, {"version", version == "-" ? Json(nullptr) : Json(version)}, {"hosts", Json(names)}});
  return json;
}

std::string compare_page(const std::vector<Seen>& hosts, const std::vector<std::pair<std::string, Groups>>& differ,
                         base::Language language) {
  Groups same, problems;
  for (const Seen& one : hosts) add(one.problem.empty() ? same : problems, one.problem.empty() ? one.fingerprint : one.problem, one.host);
  std::string out;
  for (const auto& [fingerprint, names] : same)
    out += folded(names) + ": " + tr(language, "fingerprint {}", fingerprint.substr(0, 16)) + "\n";
  for (const auto& [problem, names] : problems) out += folded(names) + ": " + problem + "\n";
  if (same.size() < 2) return out;
  out += "\n";
  for (size_t i = 0; i < std::min(differ.size(), kShown); ++i) {
    out += "  " + differ[i].first + ":";
    for (size_t v = 0; v < differ[i].second.size(); ++v)
      out += std::string(v > 0 ? ";" : "") + " " + differ[i].second[v].first + " (" + folded(differ[i].second[v].second) + ")";
    out += "\n";
  }
  if (differ.size() > kShown) out += tr(language, "  and {} more packages (--json lists all)", differ.size() - kShown) + "\n";
  return out;
}

}  // namespace

base::Result<int> compare(const Request& request) {
  TRY_ASSIGN(const std::string text, os::read_file("/dev/stdin", kMostInput));
  TRY_ASSIGN(const Json input, base::parse_json(text, kMostInput));
  const auto listed = input.is_object() ? input.find("hosts") : input.end();
  if (!input.is_object() || listed == input.end() || !listed->is_array())
    return base::fail(ErrorKind::kUsage, "only phalanx env diff starts this").with_hint("phalanx help env");
  std::vector<Seen> hosts;
  for (const Json& host : *listed)
    if (host.is_object()) hosts.push_back(read_host(host));
  const std::vector<std::pair<std::string, Groups>> differ = differences(hosts);
  if (request.json) std::fputs((base::to_text(compare_json(request.environment, hosts, differ), 2) + "\n").c_str(), stdout);
  else print(stdout, compare_page(hosts, differ, language_here()));
  if (std::any_of(hosts.begin(), hosts.end(), [](const Seen& one) { return !one.problem.empty(); }))
    return base::exit_code(ErrorKind::kUnfit);
  return differ.empty() ? 0 : 1;
}

}  // namespace phalanx::envcli
