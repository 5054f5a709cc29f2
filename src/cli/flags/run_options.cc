#include "cli/flags/run_options.h"

#include <fmt/format.h>

#include "base/text.h"
#include "base/try.h"
#include "cli/by_hand/pod_place.h"
#include "cli/codes.h"
#include "cli/flags/flag_value.h"
#include "cli/flags/gpu_request.h"
#include "cli/records/named_run.h"

namespace phalanx::cli {
namespace {

using base::Error;
using base::Result;
using base::Status;

using base::usage;

Status refuse_both(const Invocation& invocation, Flag a, Flag b, std::string_view why) {
  const GivenFlag* first = nullptr;
  for (const GivenFlag& given : invocation.flags) {
    if (given.row->flag != a && given.row->flag != b) continue;
    if (!first) first = &given;
    else if (first->row != given.row)
      return usage(fmt::format("{} and {} cannot be combined: {}", first->typed, given.typed, why), "keep one of them");
  }
  return base::ok();
}

Status check_command(const Invocation& invocation) {
  if (!invocation.operands.empty()) {
    if (!invocation.operands[0].empty()) return base::ok();
    return usage("the command is an empty string", "check for an unset shell variable");
  }
  if (invocation.verb == Verb::kTrain) return usage("train needs a configuration", "phalanx train config.yaml");
  std::string_view name = row(invocation.verb).name;
  return usage(fmt::format("{} needs a command", name), fmt::format("phalanx {} [options] -- python train.py", name));
}

Fold fold_value(std::string_view value) { return value == "on" ? Fold::kOn : value == "off" ? Fold::kOff : Fold::kAuto; }
Color color_value(std::string_view value) { return value == "always" ? Color::kAlways : value == "never" ? Color::kNever : Color::kAuto; }

RanksPerHost ranks_value(std::string_view value) {
  using Kind = RanksPerHost::Kind;
  if (value == "auto") return {Kind::kAuto, 0};
  if (value == "gpu") return {Kind::kGpu, 0};
  if (value == "cpu") return {Kind::kCpu, 0};
  return {Kind::kCount, int_value(value)};
}

job::OnStall on_stall_value(std::string_view value) {
  return value == "restart" ? job::OnStall::kRestart : value == "stop" ? job::OnStall::kStop : job::OnStall::kReport;
}

job::Preflight preflight_value(std::string_view value) {
  return value == "off" ? job::Preflight::kOff : value == "warn" ? job::Preflight::kWarn : job::Preflight::kStrict;
}

// Hosts named by operands: `check gpu01,gpu02`, `check gpu01 gpu02`.
Status take_hosts(const Invocation& invocation, size_t first, RunOptions& options) {
  for (size_t i = first; i < invocation.operands.size(); ++i) {
    if (invocation.operands[i].empty()) return usage("a host is an empty string", "check for an unset shell variable");
    if (!options.hosts.empty() && i == first) return usage("hosts are given twice: with -H and as arguments", "keep one of them");
    if (!options.hostfile.empty()) return usage("--hostfile and hosts cannot be combined: each is the complete list", "keep one of them");
    options.hosts += (i > first ? "," : "") + invocation.operands[i];
  }
  return base::ok();
}

Status take_operands(const Invocation& invocation, RunOptions& options) {
  if (invocation.verb == Verb::kCheck) {
    options.command = invocation.command;
    return take_hosts(invocation, 0, options);
  }
  if (invocation.verb == Verb::kPush) {
    if (invocation.operands.empty() || invocation.operands[0].empty())
      return usage("push needs a directory", "phalanx push <directory> <host>,<host>");
    options.push_directory = invocation.operands[0];
    return take_hosts(invocation, 1, options);
  }
  if (invocation.verb == Verb::kEnv) return take_hosts(invocation, std::min<size_t>(2, invocation.operands.size()), options);
  if (invocation.verb == Verb::kFit || invocation.verb == Verb::kClean) return base::ok();  // a model (cli/verbs/fit.cc), or nothing
  if (invocation.verb != Verb::kBench) {
    options.command = invocation.operands;
    return base::ok();
  }
  if (invocation.operands.empty() || invocation.operands[0] != "fabric")
    return usage("bench needs the name of a measurement", "phalanx bench fabric <host>,<host>");
  if (!invocation.command.empty()) return usage("bench fabric takes no command", "phalanx bench fabric <host>,<host>");
  return take_hosts(invocation, 1, options);
}

void take_containers(const Invocation& invocation, RunOptions& options) {
  options.containers = invocation.values(Flag::kContainer);
  options.container_args = invocation.value(Flag::kContainerArgs).value_or("");
}

void take_by_hand(const Invocation& invocation, RunOptions& options) {
  if (auto rank = invocation.value(Flag::kNodeRank)) options.node_rank = int_value(*rank);
  if (auto file = invocation.value(Flag::kTokenFile)) options.token_file = *file;
  if (auto timeout = invocation.value(Flag::kJoinTimeout)) options.join_timeout = duration_value(*timeout);
}

Status check_manual(const RunOptions& options) {
  if (!options.node_rank) {
    if (options.token_file.empty()) return base::ok();
    return usage("--token-file needs --node-rank: a run that is started once needs no token", "omit it, or give --node-rank");
  }
  if (!options.hosts.empty() || !options.hostfile.empty() || !options.spares.empty())
    return usage("--node-rank and a list of hosts cannot be combined",
                 "with the list: start the line once, without --node-rank; without the list: start it on every machine");
  if (options.least_nodes) return usage("--node-rank needs a fixed number of nodes", "write --nnodes N");
  if (!options.nnodes || *options.nnodes < 2)
    return usage("--node-rank needs --nnodes with the number of machines",
                 "phalanx run --nnodes 2 --node-rank 0 --master-addr ADDRESS ...");
  if (*options.node_rank >= *options.nnodes)
    return usage(
        fmt::format("--node-rank {}: with --nnodes {} the highest is {}", *options.node_rank, *options.nnodes, *options.nnodes - 1),
        "node ranks count from 0");
  if (options.master_addr.empty())
    return usage("--node-rank needs --master-addr: there the nodes meet",
                 "give every machine the address of node 0: --master-addr ADDRESS");
  if (!options.containers.empty())
    return usage("--node-rank and --container cannot be combined: nothing is logged in to",
                 "start the line inside the container of every machine");
  if (options.detach || options.sync || options.max_restarts.value_or(0) > 0)
    return usage(fmt::format("--node-rank and {} cannot be combined", options.detach ? "--detach"
                                                                      : options.sync ? "--sync"
                                                                                     : "--max-restarts"),
                 "start the line once, with -H and ssh, instead");
  return base::ok();
}

FailOn fail_on_value(const std::string& value) {
  if (value == "never") return FailOn::kNever;
  return value == "note" ? FailOn::kNote : value == "warning" ? FailOn::kWarning : FailOn::kError;
}

void take_nnodes(const std::string& value, RunOptions& options) {
  size_t colon = value.find(':');
  if (colon != std::string::npos) options.least_nodes = int_value(value.substr(0, colon));
  options.nnodes = int_value(value.substr(colon == std::string::npos ? 0 : colon + 1));
}

std::pair<std::string, std::string> variable_value(const std::string& value) {
  size_t equals = value.find('=');
  return {value.substr(0, equals), value.substr(equals + 1)};
}

void apply(const GivenFlag& given, RunOptions& options) {
  const std::string& value = given.value;
  switch (given.row->flag) {
    case Flag::kHosts: options.hosts = value; break;
    case Flag::kHostfile: options.hostfile = value; break;
    case Flag::kInclude: options.include = value; break;
    case Flag::kExclude: options.exclude = value; break;
    case Flag::kNnodes: take_nnodes(value, options); break;
    case Flag::kSpares: options.spares = value; break;
    case Flag::kMaxRestarts: options.max_restarts = int_value(value); break;
    case Flag::kNproc: options.ranks_per_host = ranks_value(value); break;
    case Flag::kMasterAddr: options.master_addr = value; break;
    case Flag::kMasterPort: options.master_port = int_value(value); break;
    case Flag::kNoStore: options.no_store = true; break;
    case Flag::kLocalRankMacro: options.local_rank_macro = true; break;
    case Flag::kName: options.name = value; break;
    case Flag::kTimeout: options.timeout = duration_value(value); break;
    case Flag::kWorkdir: options.workdir = value; break;
    case Flag::kStall: options.stall.threshold = duration_value(value); break;
    case Flag::kOnStall: options.stall.action = on_stall_value(value); break;
    case Flag::kGrace: options.grace = duration_value(value); break;
    case Flag::kLease: options.lease = duration_value(value); break;
    case Flag::kFailureGrace: options.failure_grace = duration_value(value); break;
    case Flag::kCheckData: options.check_data = true; break;
    case Flag::kDryRun: options.dry_run = true; break;
    case Flag::kDetach: options.detach = true; break;
    case Flag::kSync:
      options.sync = value != "false";  // "./false" is a directory
      options.sync_directory = options.sync ? value : "";
      break;
    case Flag::kTo: options.push_to = value; break;
    case Flag::kDelete: options.push_delete = true; break;
    case Flag::kSyncMax: options.sync_max = base::parse_bytes(value).value(); break;
    case Flag::kPreflight: options.preflight = preflight_value(value); break;
    case Flag::kReuseChecks: options.reuse_checks = duration_value(value); break;
    case Flag::kGpus: add_gpu_request(value, options.gpus); break;
    case Flag::kIface: options.gpus.interface = value; break;
    case Flag::kSeconds: options.burst = std::chrono::seconds(int_value(value)); break;
    case Flag::kEnv: (given.line ? options.project_env : options.env).push_back(variable_value(value)); break;
    case Flag::kEnvFile: (given.line ? options.project_env_files : options.env_files).push_back(value); break;
    case Flag::kExport: (given.line ? options.project_export_globs : options.export_globs).push_back(value); break;
    case Flag::kNoExport: options.no_export = true; break;
    case Flag::kConnectTimeout: options.connect_timeout = duration_value(value); break;
    case Flag::kFanout: options.fanout = int_value(value); break;
    case Flag::kSshOption: options.ssh_options.push_back(value); break;
    case Flag::kLogDir: options.log_dir = value; break;
    case Flag::kLogMax: options.log_max = base::parse_bytes(value).value(); break;
    case Flag::kKeepRuns: options.keep_runs.runs = static_cast<size_t>(int_value(value)); break;
    case Flag::kFold: options.fold = fold_value(value); break;
    case Flag::kColor: options.color = color_value(value); break;
    case Flag::kJson: options.json = true; break;
    case Flag::kOnly: options.only.push_back(value); break;
    case Flag::kFailOn: options.fail_on = fail_on_value(value); break;
    case Flag::kWatch: options.watch = duration_value(value); break;
    case Flag::kQuiet: options.quiet = true; break;
    case Flag::kVerbose: options.verbose = true; break;
    // Of single verbs, which read them themselves: fit, those of runs that are there (cli/records/runs.h), clean, report, help;
    // clang-format off
    case Flag::kContainerArgs: case Flag::kJoinTimeout: case Flag::kGpusPerNode: case Flag::kAccumulate: case Flag::kTimestamps:
    case Flag::kReportFile: case Flag::kGpuMemory: case Flag::kPrecision: case Flag::kTokenFile: case Flag::kCacheOnly: case Flag::kNoFlash:
    case Flag::kOldPrefix: case Flag::kContainer: case Flag::kNoProject: case Flag::kSplitLogs: case Flag::kSequence: case Flag::kNodeRank:
    case Flag::kEveryRun: case Flag::kCleanAll: case Flag::kMarkdown: case Flag::kAttempt: case Flag::kRequeue: case Flag::kPartial:
    case Flag::kProject: case Flag::kParams: case Flag::kFollow: case Flag::kOnHost: case Flag::kSbatch: case Flag::kVolume:
    case Flag::kAccept: case Flag::kOrigin: case Flag::kBatch: case Flag::kNodes: case Flag::kImage: case Flag::kLora: case Flag::kTail:
    case Flag::kRank: case Flag::kKill: case Flag::kShow: case Flag::kFrom: case Flag::kHelp: case Flag::kYes: case Flag::kAll:
    case Flag::kMan: case Flag::kPythonHook: break;
      // clang-format on
  }
}

job::ProjectUse project_use(const Invocation& invocation) {
  job::ProjectUse use{invocation.project, {}, invocation.unset};
  for (const GivenFlag& given : invocation.flags) {
    if (given.line == 0) continue;
    const bool variable = given.row->flag == Flag::kEnv;
    std::string key(given.row->name);
    if (variable) key += "." + variable_value(given.value).first;
    use.values.push_back({std::move(key), variable ? "" : given.value, given.line});
  }
  return use;
}

}  // namespace

Result<RunOptions> run_options(const Invocation& invocation, const Pod* pod) {
  TRY(refuse_both(invocation, Flag::kHosts, Flag::kHostfile, "each is the complete list of hosts"));
  TRY(refuse_both(invocation, Flag::kInclude, Flag::kExclude, "name either the hosts to use or the hosts to skip"));
  TRY(refuse_both(invocation, Flag::kCheckData, Flag::kSpares, "one process reads the data and needs no spare host"));
  TRY(refuse_both(invocation, Flag::kDetach, Flag::kDryRun, "a dry run starts nothing that could be detached"));
  TRY(refuse_both(invocation, Flag::kDetach, Flag::kJson, "a detached run prints nothing"));
  TRY(refuse_both(invocation, Flag::kQuiet, Flag::kVerbose, "one asks for less, the other for more"));
  bool starts =
      invocation.verb == Verb::kRun || invocation.verb == Verb::kPlan || invocation.verb == Verb::kTrain || invocation.verb == Verb::kExec;
  if (starts) TRY(check_command(invocation));
  RunOptions options;
  for (const GivenFlag& given : invocation.flags) apply(given, options);
  take_by_hand(invocation, options);
  take_containers(invocation, options);
  for (const std::string& text : invocation.values(Flag::kAccept)) {
    TRY_ASSIGN(const std::vector<doctor::Acceptance> some, acceptances(text));
    options.accepted.insert(options.accepted.end(), some.begin(), some.end());
  }
  options.project = project_use(invocation);
  options.dry_run = options.dry_run || invocation.verb == Verb::kPlan;
  if (options.sync_max && !options.sync) return usage("--sync-max needs --sync", "phalanx run --sync --sync-max 10GB -- ...");
  options.split_logs = invocation.has(Flag::kSplitLogs);
  options.python_hook = invocation.has(Flag::kPythonHook);
  if (auto shown = invocation.value(Flag::kShow)) {
    base::Result<ShownStreams> streams = parse_shown_streams(*shown);
    if (!streams.ok()) return std::move(streams).error().within("reading --show");
    options.shown = std::move(*streams);
  }
  if (!options.name.empty()) TRY(check_run_name(options.name));
  TRY_ASSIGN(options.only, codes_or_prefixes(options.only));
  TRY(take_operands(invocation, options));
  if (options.preflight == job::Preflight::kOff && !options.gpus.interface.empty())
    return usage("--iface and --preflight off cannot be combined: the checks choose the addresses",
                 "write --preflight warn, or set NCCL_SOCKET_IFNAME and GLOO_SOCKET_IFNAME with --env");
  if (pod) { TRY_ASSIGN(options.in_pod, take_pod_place(*pod, options)); }
  TRY(check_manual(options));
  return options;
}

}  // namespace phalanx::cli
