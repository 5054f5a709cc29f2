#include "cli/push/push_hosts.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/name_ranges.h"
#include "base/text.h"
#include "base/try.h"
#include "cli/make_job.h"
#include "wire/bounds.h"

namespace phalanx::cli {

namespace {

// What a host refuses, it refuses again: its own hint says what helps, if anything is known to.
bool may_end_by_itself(base::ErrorKind kind) {
  return kind == base::ErrorKind::kUnreachable || kind == base::ErrorKind::kTimeout || kind == base::ErrorKind::kInterrupted;
}

}  // namespace

base::Result<std::vector<hosts::Target>> targets_of(const RunOptions& options, const std::string& missing, const std::string& example) {
  TRY_ASSIGN(const job::Job job, make_job(options, detect_terminal()));
  std::vector<hosts::Target> targets;
  for (const job::HostRequest& host : job.hosts) targets.push_back(host.target);
  if (options.hosts.empty() && options.hostfile.empty() && targets.size() == 1 && targets[0].destination.empty())
    return base::fail(base::ErrorKind::kUsage, missing).with_hint(example);
  return targets;
}

std::vector<base::Error> folded_errors(const std::vector<job::CopiedHost>& hosts) {
  std::vector<std::pair<base::Error, std::vector<std::string>>> groups;
  for (const job::CopiedHost& host : hosts) {
    if (!host.error) continue;
    base::Error error = *host.error;
    if (error.message.starts_with(host.name + ": ")) error.message.erase(0, host.name.size() + 2);
    auto same = std::find_if(groups.begin(), groups.end(),
                             [&](const auto& group) { return group.first.message == error.message && group.first.hint == error.hint; });
    if (same == groups.end()) groups.push_back({std::move(error), {host.name}});
    else same->second.push_back(host.name);
  }
  std::vector<base::Error> errors;
  for (auto& [error, names] : groups) {
    error.message = base::join(base::fold_names(names), ",") + ": " + error.message;
    if (error.hint.empty() && may_end_by_itself(error.kind)) error.hint = std::string(wire::kAdviceOnArrived);
    errors.push_back(std::move(error));
  }
  return errors;
}

base::Json push_json(const std::string& root, const sync::Manifest& manifest, const std::vector<job::CopiedHost>& hosts) {
  base::Json list = base::Json::array();
  for (const job::CopiedHost& host : hosts) {
    base::Json one = {{"host", host.name},     {"path", host.path},           {"files", host.files},
                      {"bytes", host.bytes},   {"passed_on", host.passed_on}, {"removed", host.removed},
                      {"stayed", host.stayed}, {"is_source", host.is_source}, {"seconds", static_cast<double>(host.took.count()) / 1e9}};
    if (host.error) one["error"] = host.error->message;
    list.push_back(std::move(one));
  }
  return {{"schema", 1}, {"directory", root}, {"files", manifest.files()}, {"bytes", manifest.bytes()}, {"hosts", std::move(list)}};
}

}  // namespace phalanx::cli
