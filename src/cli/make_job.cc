#include "cli/make_job.h"

#include <unistd.h>

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "base/text.h"
#include "base/try.h"
#include "base/unicode.h"
#include "cli/flags/containers.h"
#include "cli/flags/env_file.h"
#include "cli/flags/exported_env.h"
#include "cli/passed_on.h"
#include "cli/records/port_run.h"
#include "hosts/lists/allocation.h"
#include "hosts/lists/host_filter.h"
#include "hosts/lists/host_list.h"
#include "logs/runs/run_directory.h"
#include "os/files.h"
#include "os/net.h"

namespace phalanx::cli {
namespace {

constexpr size_t kEnvFileBytes = 4 << 20;
constexpr size_t kMostVariableBytes = 8 << 20;  // of all together: half a frame, and more than exec takes

std::string variable_of(const Here& here, std::string_view name) {
  for (const char* const* e = here.environment; e && *e; ++e) {
    std::string_view entry(*e);
    if (entry.size() > name.size() && entry[name.size()] == '=' && entry.substr(0, name.size()) == name)
      return std::string(entry.substr(name.size() + 1));
  }
  return "";
}

// Hosts that are named win over the allocation, and are reached with ssh.
base::Result<std::string> slurm_job(const RunOptions& options, const Here& here, hosts::HostList& nodes) {
  if (!options.hosts.empty() || !options.hostfile.empty()) return std::string();
  TRY_ASSIGN(std::optional<hosts::Allocation> allocation,
             hosts::slurm_allocation([&](const char* name) { return variable_of(here, name); }));
  if (!allocation) return std::string();
  nodes = std::move(allocation->hosts);
  return std::move(allocation->job);
}

// nodes: of the Slurm allocation, if there is one.
base::Result<hosts::HostList> read_hosts(const RunOptions& options, const Here& here, const hosts::HostList& nodes) {
  hosts::HostList hosts;
  if (!options.hosts.empty()) {
    TRY_ASSIGN(hosts, hosts::parse_host_argument(options.hosts));
  } else if (!options.hostfile.empty()) {
    TRY_ASSIGN(hosts, hosts::read_hostfile(options.hostfile));
  } else if (!nodes.empty()) {
    hosts = nodes;
  } else {
    hosts::HostSpec local;
    local.name = here.hostname;
    local.address = "localhost";
    local.source = "this machine";
    hosts.push_back(std::move(local));
  }
  if (!options.include.empty()) {
    TRY_ASSIGN(hosts, hosts::include_hosts(hosts, options.include));
  } else if (!options.exclude.empty()) {
    TRY_ASSIGN(hosts, hosts::exclude_hosts(hosts, options.exclude));
    for (const hosts::HostSpec& host : hosts)
      if (!host.left_out.empty())
        return base::fail(base::ErrorKind::kUsage,
                          fmt::format("--exclude {}: the list of hosts gives {} no number of slots", options.exclude, host.name))
            .with_hint("write the number after the name (NAME:SLOTS), or as slots=SLOTS in a hostfile");
  }
  return hosts;
}

// A spare without slots gets those of the host that it may replace, so that the job keeps its number of ranks.
base::Status give_slots(const RunOptions& options, const hosts::HostList& hosts, hosts::HostList& spares) {
  if (options.ranks_per_host) return base::ok();  // every host has this number
  auto ranks_of = [](const hosts::HostSpec& spec) {
    return spec.selected.empty() ? spec.slots : std::optional<int>(static_cast<int>(spec.selected.size()));
  };
  std::string listed;
  bool equal = true;
  for (const hosts::HostSpec& host : hosts) {
    const std::optional<int> ranks = ranks_of(host);
    equal = equal && ranks == ranks_of(hosts.front());
    if (listed.size() < 80) listed += (listed.empty() ? "" : ", ") + host.name + (ranks ? fmt::format(":{}", *ranks) : "");
  }
  for (hosts::HostSpec& spare : spares) {
    if (spare.slots) continue;
    if (!equal)
      return base::fail(base::ErrorKind::kUsage,
                        fmt::format("--spares: {} has no slots, but the hosts have different numbers of slots", base::quote(spare.name)))
          .because(fmt::format("the hosts are {}", listed))
          .with_hint(fmt::format("write the number of ranks that the spare may run: --spares {}:N", spare.name));
    spare.slots = ranks_of(hosts.front());
  }
  return base::ok();
}

// The hosts that the run begins with, and those that may take a place later: of --nnodes MIN:MAX what is behind MAX, then --spares.
base::Status split_hosts(const RunOptions& options, hosts::HostList& hosts, hosts::HostList& spares) {
  if (options.nnodes) {
    hosts::HostList all = hosts;
    TRY_ASSIGN(hosts, hosts::first_hosts(hosts, *options.nnodes));
    if (options.least_nodes) spares.assign(all.begin() + *options.nnodes, all.end());
  }
  if (options.spares.empty()) return base::ok();
  TRY_ASSIGN(hosts::HostList more, hosts::parse_host_argument(options.spares));
  TRY(give_slots(options, hosts, more));
  for (hosts::HostSpec& spec : more) {
    bool twice = false;
    for (const hosts::HostList* list : {&hosts, &spares})
      for (const hosts::HostSpec& other : *list) twice = twice || (other.name == spec.name && other.port == spec.port);
    if (twice)
      return base::fail(base::ErrorKind::kUsage, fmt::format("--spares: {} is already one of the hosts", base::quote(spec.name)))
          .with_hint("a spare is a host that the run does not start on");
    spares.push_back(std::move(spec));
  }
  return base::ok();
}

job::HostRequest request_of(const hosts::HostSpec& spec, const Here& here, const std::string& slurm_job) {
  job::HostRequest request;
  request.target.name = spec.name;
  request.target.port = spec.port;
  bool local = spec.user.empty() && spec.port == 0 && is_here(spec.address, here);
  if (!local) request.target.destination = spec.destination();
  request.target.slurm_job = slurm_job;
  request.slots = spec.slots;
  request.selected = spec.selected;
  return request;
}

void add(job::Job& job, const wire::Variables& variables, const std::string& from) {
  job.set.insert(job.set.end(), variables.begin(), variables.end());
  job.origins.insert(job.origins.end(), variables.size(), from);
}

// Where a virtual or conda environment is active here, the same one is looked for on every host.
void carry_python_environment(const Here& here, job::Job& job) {
  std::string venv = variable_of(here, "VIRTUAL_ENV"), conda = variable_of(here, "CONDA_PREFIX");
  if (venv.empty() && conda.empty()) return;
  job.path_prefix = (venv.empty() ? conda : venv) + "/bin";
  for (const char* name : {"VIRTUAL_ENV", "CONDA_PREFIX", "CONDA_DEFAULT_ENV"})
    if (std::string v = variable_of(here, name); !v.empty()) add(job, {{name, v}}, kFromPython);
}

base::Status add_file(const std::string& path, job::Job& job) {
  base::Result<std::string> text = os::read_file(path, kEnvFileBytes);
  if (!text.ok()) {
    base::Error error = std::move(text).error();
    error.kind = base::ErrorKind::kConfig;
    return std::move(error).within("reading --env-file");
  }
  TRY_ASSIGN(wire::Variables more, parse_env_file(*text, path));
  add(job, more, "--env-file " + path);
  return base::ok();
}

// Of several values for one name the ranks get the last. Checks and choices read the same list, so it holds no other.
void keep_last_values(job::Job& job) {
  std::set<std::string_view> names;
  std::vector<size_t> kept;
  for (size_t i = job.set.size(); i-- > 0;)
    if (names.insert(job.set[i].first).second) kept.push_back(i);
  wire::Variables set;
  std::vector<std::string> origins;
  for (auto i = kept.rbegin(); i != kept.rend(); ++i) {
    set.push_back(job.set[*i]);
    origins.push_back(std::move(job.origins[*i]));
  }
  job.set = std::move(set);
  job.origins = std::move(origins);
}

// What only travels because this machine has it says nothing of this job.
bool hides_gpus(const job::Job& job) {
  for (size_t i = 0; i < job.set.size(); ++i) {
    const auto& [name, value] = job.set[i];
    if (job.origins[i] == kFromHere) continue;
    if (name == "CUDA_VISIBLE_DEVICES" && (value.empty() || value == "-1")) return true;
    if (name == "ACCELERATE_USE_CPU" && (value == "1" || base::to_lower(value) == "true")) return true;
  }
  return false;
}

base::Status collect_variables(const RunOptions& options, const Here& here, job::Job& job) {
  if (!options.no_export) carry_python_environment(here, job);
  for (const auto& [name, value] : job.set) job.exported.push_back(name);
  if (!options.no_export) {
    TRY_ASSIGN(wire::Variables by_default, select_exports(here.environment, {}));
    for (const auto& [name, value] : by_default) job.exported.push_back(name);
    add(job, by_default, kFromHere);
  }
  const std::string project = "project file " + options.project.file;
  TRY_ASSIGN(wire::Variables exported, select_exports(here.environment, {options.project_export_globs, false}));
  add(job, exported, project);
  for (const std::string& path : options.project_env_files) TRY(add_file(path, job));
  add(job, options.project_env, project);
  TRY_ASSIGN(exported, select_exports(here.environment, {options.export_globs, false}));
  add(job, exported, kFromExport);
  for (const std::string& path : options.env_files) TRY(add_file(path, job));
  add(job, options.env, kFromEnv);
  keep_last_values(job);
  job.hides_gpus = hides_gpus(job);
  job.unset = stale_variables();
  size_t bytes = 0;
  for (const auto& [name, value] : job.set) bytes += name.size() + value.size();
  if (bytes <= kMostVariableBytes) return base::ok();
  return base::fail(base::ErrorKind::kUsage, fmt::format("the variables for the ranks take {}; at most {} can be passed on",
                                                         base::format_bytes(bytes), base::format_bytes(kMostVariableBytes)))
      .because(options.env_files.empty() ? "they come from --env, --export and the default exports"
                                         : fmt::format("most of it is in --env-file {}", base::join(options.env_files, ", ")))
      .with_hint("pass large values in a file on a shared file system, and its path in a variable");
}

std::optional<job::RanksRule> rule_of(const RunOptions& options) {
  if (!options.ranks_per_host) return std::nullopt;
  switch (options.ranks_per_host->kind) {
    case RanksPerHost::Kind::kAuto: return job::RanksRule::kAuto;
    case RanksPerHost::Kind::kGpu: return job::RanksRule::kGpu;
    case RanksPerHost::Kind::kCpu: return job::RanksRule::kCpu;
    case RanksPerHost::Kind::kCount: return job::RanksRule::kCount;
  }
  return std::nullopt;
}

}  // namespace

Here detect_terminal() {
  Here here;
  char name[256] = "";
  ::gethostname(name, sizeof(name) - 1);
  here.hostname = name;
  here.folder = os::current_folder();
  here.environment = environ;
  base::Result<std::vector<os::InterfaceAddress>> all = os::interface_addresses();
  if (all.ok())
    for (const os::InterfaceAddress& a : *all) here.addresses.push_back(a.address);
  return here;
}

bool is_here(const std::string& address, const Here& here) {
  if (address == "localhost" || address == here.hostname) return true;
  if (address.rfind("127.", 0) == 0 || address == "::1") return true;
  if (address == here.hostname.substr(0, here.hostname.find('.'))) return true;
  return std::find(here.addresses.begin(), here.addresses.end(), address) != here.addresses.end();
}

base::Result<job::Job> make_job(const RunOptions& options, const Here& here) {
  job::Job job;
  hosts::HostList nodes;
  TRY_ASSIGN(const std::string allocation, slurm_job(options, here, nodes));
  TRY_ASSIGN(hosts::HostList hosts, read_hosts(options, here, nodes));
  hosts::HostList spares;
  TRY(split_hosts(options, hosts, spares));
  for (const hosts::HostSpec& spec : hosts) job.hosts.push_back(request_of(spec, here, allocation));
  for (const hosts::HostSpec& spec : spares) job.spares.push_back(request_of(spec, here, allocation));
  job.least_hosts = options.least_nodes.value_or(0);
  bool goes_on = !job.spares.empty() || options.least_nodes || options.stall.action == job::OnStall::kRestart;
  job.max_restarts = options.max_restarts.value_or(goes_on ? 3 : 0);
  job.rule = rule_of(options);
  job.count = options.ranks_per_host ? options.ranks_per_host->count : 0;
  job.argv = options.command;
  job.local_rank_macro = options.local_rank_macro;
  if (here.folder.empty() && !options.workdir.starts_with('/'))
    return base::fail(base::ErrorKind::kUsage, "the current directory does not exist any more").with_hint("cd to another one, or -C /path");
  job.directory = options.workdir.empty() ? here.folder : options.workdir[0] == '/' ? options.workdir : here.folder + "/" + options.workdir;
  TRY(collect_variables(options, here, job));
  job.serve_store = !options.no_store;
  job.master_address = options.master_addr;
  job.master_port = options.master_port.value_or(0);
  if (job.master_port != 0)
    if (auto runs = logs::RunDirectory::base_folder(options.log_dir); runs.ok())
      job.port_run = run_on_port(*runs, job.hosts.front().target.name, job.master_port);
  job.grace = options.grace;
  job.failure_grace = options.failure_grace.value_or(std::min(job.failure_grace, options.grace));
  job.lease = options.lease;
  job.stall = options.stall;
  if (options.python_hook) add(job, {{wire::kPythonHookVariable, "1"}}, "--python-hook");
  job.dry_run = options.dry_run;
  job.preflight = options.preflight;
  job.wish = options.gpus;
  job.accepted = options.accepted;
  job.project = options.project;
  TRY(put_in_containers(options, job));
  return job;
}

}  // namespace phalanx::cli
