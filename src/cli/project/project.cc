#include "cli/project/project.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include <fmt/format.h>

#include "base/text.h"
#include "base/try.h"
#include "base/unicode.h"
#include "cli/project/find_project.h"
#include "cli/records/runs.h"
#include "hosts/connect/container.h"
#include "os/files.h"
#include "words/message.h"

namespace phalanx::cli {
namespace {

using base::Result;
using base::Status;

bool starts_or_probes(Verb verb) {
  constexpr uint32_t kStarters = bit(Verb::kRun) | bit(Verb::kPlan) | bit(Verb::kTrain) | bit(Verb::kCheck) | bit(Verb::kBench) |
                                 bit(Verb::kFit) | bit(Verb::kExec) | bit(Verb::kPush) | bit(Verb::kConfig);
  return (kStarters & bit(verb)) != 0;
}

bool adds_up(Flag flag) {
  return flag == Flag::kEnv || flag == Flag::kEnvFile || flag == Flag::kExport || flag == Flag::kSshOption || flag == Flag::kAccept;
}

bool names_hosts(const Invocation& invocation) {
  if (invocation.has(Flag::kHosts) || invocation.has(Flag::kHostfile)) return true;
  if (invocation.verb == Verb::kCheck) return !invocation.operands.empty();
  if (invocation.verb == Verb::kBench || invocation.verb == Verb::kPush) return invocation.operands.size() > 1;
  return invocation.verb == Verb::kFit && invocation.has(Flag::kGpuMemory);  // GPUs that no host has yet
}

// Whether the command line has overridden this value.
bool overridden(const ProjectValue& value, const Invocation& invocation, bool other_hosts) {
  const Flag flag = value.flag->flag;
  if (std::find(invocation.off.begin(), invocation.off.end(), value.flag) != invocation.off.end()) return true;
  if (!adds_up(flag) && invocation.has(flag)) return true;
  switch (flag) {
    case Flag::kHosts:
    case Flag::kHostfile:
    case Flag::kNnodes: return other_hosts;
    case Flag::kSpares: return other_hosts || invocation.has(Flag::kCheckData);
    case Flag::kInclude:
    case Flag::kExclude: return other_hosts || invocation.has(Flag::kInclude) || invocation.has(Flag::kExclude);
    case Flag::kContainer: return other_hosts && !hosts::is_container_text(value.value);
    case Flag::kGpus: return other_hosts && value.value.find(':') != std::string::npos;
    case Flag::kPreflight: return value.value == "off" && invocation.has(Flag::kIface);
    default: return false;
  }
}

std::string resolved(const ProjectFile& file, const FlagRow& flag, const std::string& value, const Lookup& variable) {
  if (flag.kind != ValueKind::kPath && flag.kind != ValueKind::kDirectory) return value;
  if (value.starts_with('/') || (flag.flag == Flag::kSync && value == "false")) return value;
  if (value == "~" || value.starts_with("~/"))
    if (auto home = variable("HOME"); home && !home->empty()) return *home + value.substr(1);
  const std::string folder = file.path.substr(0, file.path.rfind('/') + 1);
  return value == "." ? folder.substr(0, std::max<size_t>(folder.size(), 2) - 1)
                      : folder + (value.starts_with("./") ? value.substr(2) : value);
}

Result<std::string> value_of(const ProjectFile& file, const ProjectVariable& one, const Lookup& variable) {
  if (one.value) return *one.value;
  if (auto here = variable(one.name)) return *here;
  return base::fail(base::ErrorKind::kConfig, fmt::format("{}:{}:{}: {} has no value here, and is not set on this machine either",
                                                          base::printable(file.path, 300), one.line, one.column, one.name))
      .with_hint(fmt::format("export {0}=<value>, or give it to this command: --env {0}=<value>", one.name));
}

bool given_by_env(const Invocation& invocation, const std::string& name) {
  const std::vector<std::string> all = invocation.values(Flag::kEnv);
  return std::any_of(all.begin(), all.end(), [&](const std::string& value) { return value.starts_with(name + "="); });
}

// Nothing runs: a variable that has no value yet is a finding there (ENV-UNSET), not an end.
bool only_looks(Verb verb) { return verb == Verb::kPlan || verb == Verb::kCheck; }

// NO_COLOR and CLICOLOR_FORCE are settings of this user, which override the project's.
bool coloured_by_environment(const Lookup& variable) {
  for (const char* name : {"NO_COLOR", "CLICOLOR_FORCE"})
    if (auto value = variable(name); value && !value->empty()) return true;
  return false;
}

Result<std::optional<ProjectFile>> load(const Invocation& invocation) {
  const std::string folder = os::current_folder();
  const std::string named = invocation.value(Flag::kProject).value_or("");
  if (invocation.has(Flag::kNoProject) || named == "none") return std::optional<ProjectFile>();
  std::optional<FoundProject> found;
  if (named.empty()) {
    TRY_ASSIGN(found, find_project(folder, os::environment_value("HOME")));
  } else {
    if (folder.empty() && !named.starts_with('/'))
      return base::fail(base::ErrorKind::kUsage, "the current directory does not exist any more").with_hint("cd to another one");
    TRY_ASSIGN(found, read_project(named, folder));
  }
  if (!found) return std::optional<ProjectFile>();
  TRY_ASSIGN(ProjectFile file, parse_project_file(found->text, found->path));
  return std::optional<ProjectFile>(std::move(file));
}

std::optional<std::string> variable_here(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  return value ? std::optional<std::string>(value) : std::nullopt;
}

Status load_and_merge(Invocation& invocation) {
  TRY_ASSIGN(const std::optional<ProjectFile> file, load(invocation));
  return file ? merge_project(*file, variable_here, invocation) : base::ok();
}

}  // namespace

bool takes_from_project(Verb verb, const FlagRow& flag) {
  if (!is_project_key(flag) || (flag.verbs & bit(verb)) == 0) return false;
  if (starts_or_probes(verb) || flag.section == Section::kOutput) return true;
  return verb == Verb::kStop && flag.section == Section::kConnection;
}

Status merge_project(const ProjectFile& file, const Lookup& variable, Invocation& invocation) {
  const bool other_hosts = names_hosts(invocation);
  const std::string name = base::printable(file.path.substr(file.path.rfind('/') + 1));
  std::vector<GivenFlag> added;
  for (const ProjectValue& one : file.values) {
    if (!takes_from_project(invocation.verb, *one.flag) || overridden(one, invocation, other_hosts)) continue;
    if (one.flag->kind == ValueKind::kNone && one.value == "false") continue;
    if (one.flag->flag == Flag::kColor && coloured_by_environment(variable)) continue;
    std::string value = one.flag->kind == ValueKind::kNone ? "" : resolved(file, *one.flag, one.value, variable);
    added.push_back({one.flag, fmt::format("{}:{}: {}", name, one.line, one.flag->name), std::move(value), one.line});
  }
  const FlagRow& env = row(Flag::kEnv);
  for (const ProjectVariable& one : file.env) {
    if (!takes_from_project(invocation.verb, env) || given_by_env(invocation, one.name)) continue;
    Result<std::string> value = value_of(file, one, variable);
    if (!value.ok() && only_looks(invocation.verb)) {
      invocation.unset.push_back(fmt::format("{}:{}:{}: {}", name, one.line, one.column, one.name));
      continue;
    }
    if (!value.ok()) return std::move(value).error();
    added.push_back({&env, fmt::format("{}:{}: env", name, one.line), one.name + "=" + *value, one.line});
  }
  // Behind the others, because of an option that ssh is given twice the first one counts.
  if (!added.empty() || !invocation.unset.empty()) invocation.project = file.path;
  std::move(added.begin(), added.end(), std::back_inserter(invocation.flags));
  return base::ok();
}

std::string taken_from_project(const Invocation& invocation) {
  std::vector<std::string> names, variables;
  for (const GivenFlag& given : invocation.flags) {
    if (given.line == 0) continue;
    if (given.row->flag == Flag::kEnv) variables.push_back(given.value.substr(0, given.value.find('=')));
    else if (std::find(names.begin(), names.end(), given.row->name) == names.end()) names.emplace_back(given.row->name);
  }
  if (!variables.empty()) names.push_back(fmt::format("env ({})", base::join(variables, " ")));
  return base::join(names, ", ");
}

Status use_project(Invocation& invocation) {
  if (!find_flag(invocation.verb, "project")) return base::ok();
  if (invocation.has(Flag::kNoProject) && invocation.has(Flag::kProject))
    return base::fail(base::ErrorKind::kUsage, "--project and --no-project cannot be combined: one names a file, the other uses none")
        .with_hint("keep one of them");
  Status merged = load_and_merge(invocation);
  if (!merged.ok()) {
    if (starts_or_probes(invocation.verb)) return merged;
    warn_of(merged.error());
    return base::ok();
  }
  const std::string taken = taken_from_project(invocation);
  if (taken.empty() || invocation.has(Flag::kQuiet) || invocation.verb == Verb::kConfig) return base::ok();
  const std::string line = words::tr(language_here(), "phalanx: {} sets {}\n", invocation.project, taken);
  std::fputs(base::printable_lines(line).c_str(), stderr);
  return base::ok();
}

}  // namespace phalanx::cli
