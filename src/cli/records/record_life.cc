#include "cli/records/record_life.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "base/text.h"
#include "base/unicode.h"
#include "cli/passed_on.h"
#include "logs/runs/run_list.h"

namespace phalanx::cli {
namespace {

using base::Json;

constexpr size_t kMostHosts = 65'536;

Json describe_error(const base::Error& error) {
  Json json = {{"message", error.message}};
  if (!error.context.empty()) json["while"] = error.context;
  if (!error.cause.empty()) json["because"] = error.cause;
  if (!error.hint.empty()) json["hint"] = error.hint;
  return json;
}

// Lower case, as ssh compares them.
std::string name_of(std::string_view option) { return base::to_lower(base::trim(option.substr(0, option.find_first_of("= \t")))); }

// ssh_config(5), OpenSSH 7.4 to 9.9. Not here, because they run or load something: ProxyCommand, LocalCommand, KnownHostsCommand, Match,
// Include, PKCS11Provider, SecurityKeyProvider, XAuthLocation, RemoteCommand, and everything that forwards.
constexpr std::string_view kHarmless =
    "addressfamily,bindaddress,bindinterface,checkhostip,ciphers,compression,connectionattempts,connecttimeout,globalknownhostsfile,"
    "gssapiauthentication,hostkeyalgorithms,hostkeyalias,hostname,identitiesonly,identityfile,ipqos,kexalgorithms,loglevel,macs,port,"
    "preferredauthentications,proxyjump,pubkeyacceptedalgorithms,pubkeyauthentication,rekeylimit,serveralivecountmax,"
    "serveraliveinterval,stricthostkeychecking,tcpkeepalive,updatehostkeys,user,userknownhostsfile";

}  // namespace

base::Status add_recorded(std::vector<std::string>& given, const std::vector<std::string>& recorded, const std::string& command) {
  std::set<std::string> known;
  for (const std::string& option : given) known.insert(name_of(option));
  for (const std::string& option : recorded) {
    std::string name = name_of(option);
    bool harmless = base::is_listed(name, kHarmless, ',') && option.find('\n') == std::string::npos;
    if (harmless) given.push_back(option);
    else if (!known.contains(name))
      return base::fail(base::ErrorKind::kUsage,
                        fmt::format("run.json has the ssh option {}, which is not taken from a file", base::quote(option)))
          .because("it could run a program on this machine")
          .with_hint(fmt::format("{} --ssh-option {}    # if you gave it to the run yourself", command, base::shell_quote({option})));
  }
  return base::ok();
}

Json describe_reach(const job::Job& job, const RunOptions& options) {
  Json hosts = Json::array();
  for (const std::vector<job::HostRequest>* list : {&job.hosts, &job.spares})
    for (const job::HostRequest& host : *list) {
      Json one = {{"host", host.target.name}};
      if (!host.target.destination.empty()) one["destination"] = host.target.destination;
      if (host.target.port > 0) one["port"] = host.target.port;
      if (!host.target.slurm_job.empty()) one["slurm_job"] = host.target.slurm_job;
      if (host.target.node_rank > 0) one["node_rank"] = host.target.node_rank;
      if (host.target.container) one["container"] = hosts::to_text(host.target.container);
      hosts.push_back(std::move(one));
    }
  Json json = {{"launcher", logs::describe_mark(os::own_mark())},
               {"lease_ms", job.lease.count()},
               {"passed_on", describe_passed_on(job)},
               {"reach", {{"ssh_options", options.ssh_options}, {"hosts", std::move(hosts)}}}};
  if (!options.name.empty()) json["name"] = options.name;
  if (!job.project.file.empty()) json["project"] = describe_project(job.project);
  return json;
}

Json describe_words(const job::State& state, const job::Verdict& verdict, const std::string& last_lines, const std::string& log) {
  auto in = [&](base::Language language) {
    Json list = Json::array();
    for (const base::Error& error : job::explain(state, verdict, last_lines, log, language)) list.push_back(describe_error(error));
    return list;
  };
  Json english = in(base::Language::kEnglish);
  if (english.empty()) return Json::object();
  return {{"explained", {{"en", std::move(english)}, {"zh", in(base::Language::kChinese)}}}};
}

std::vector<base::Error> words_of(const Json& record, base::Language language) {
  std::vector<base::Error> errors;
  auto explained = record.find("explained");
  if (explained == record.end()) return errors;
  for (const Json& item : base::get_list(*explained, language == base::Language::kChinese ? "zh" : "en")) {
    if (!item.is_object()) continue;
    base::Error error = base::fail(base::ErrorKind::kJobFailed, base::get_string(item, "message").value_or(""));
    error.cause = base::get_string(item, "because").value_or("");
    error.hint = base::get_string(item, "hint").value_or("");
    error.context = base::get_strings(item, "while");
    errors.push_back(std::move(error));
  }
  return errors;
}

std::chrono::milliseconds lease_of(const Json& record) {
  std::optional<int64_t> lease = base::get_int(record, "lease_ms");
  constexpr int64_t kMost = 3'600'000;
  return lease && *lease > 0 && *lease <= kMost ? std::chrono::milliseconds(*lease) : job::kDefaultLease;
}

base::Result<Reached> reach_of(const Json& record) {
  auto reach = record.find("reach");
  auto unknown = [] { return base::fail(base::ErrorKind::kConfig, "run.json does not say how the hosts of this run are reached"); };
  if (reach == record.end() || !reach->is_object()) return unknown();
  Reached out;
  out.ssh_options = base::get_strings(*reach, "ssh_options");
  const Json& hosts = base::get_list(*reach, "hosts");
  if (hosts.empty() || hosts.size() > kMostHosts) return unknown();
  for (const Json& host : hosts) {
    hosts::Target target;
    if (host.is_object()) target.name = base::get_string(host, "host").value_or("");
    if (target.name.empty()) return unknown();
    target.destination = base::get_string(host, "destination").value_or("");
    target.port = static_cast<int>(base::get_int(host, "port").value_or(0));
    target.slurm_job = base::get_string(host, "slurm_job").value_or("");
    const int64_t node_rank = base::get_int(host, "node_rank").value_or(0);
    if (node_rank < 0 || node_rank > 65'535) return unknown();
    target.node_rank = static_cast<uint32_t>(node_rank);
    if (!std::all_of(target.slurm_job.begin(), target.slurm_job.end(), base::is_digit)) return unknown();
    if (const std::string text = base::get_string(host, "container").value_or(""); !text.empty()) {
      base::Result<hosts::Container> container = hosts::parse_container(text);
      if (!container.ok()) return unknown();
      target.container = std::move(*container);
    }
    if (target.destination.starts_with('-') || target.port < 0 || target.port > 65'535) return unknown();
    out.hosts.push_back(std::move(target));
  }
  return out;
}

}  // namespace phalanx::cli
