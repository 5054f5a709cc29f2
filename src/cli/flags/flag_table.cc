// The rows. Help is written for people who know torchrun and ssh and nothing of us.
#include <vector>

#include "cli/flags/flag_rows.h"

namespace phalanx::cli {
namespace {

using words::Text;

constexpr uint32_t kConfig = bit(Verb::kConfig) | bit(Verb::kInit);  // verbs that show or write down the options of run
constexpr uint32_t kJob = bit(Verb::kRun) | bit(Verb::kPlan) | bit(Verb::kTrain) | kConfig;
constexpr uint32_t kStarts = bit(Verb::kRun) | bit(Verb::kPlan) | bit(Verb::kTrain);
constexpr uint32_t kProbe = kJob | bit(Verb::kCheck);                      // verbs that look at the hosts for a job
constexpr uint32_t kReach = kProbe | bit(Verb::kBench) | bit(Verb::kFit);  // verbs that probe hosts
constexpr uint32_t kOnce = bit(Verb::kExec) | bit(Verb::kPush) | bit(Verb::kClean) | bit(Verb::kEnv);  // verbs that only log in to them
constexpr uint32_t kRead = bit(Verb::kLogs) | bit(Verb::kAttach);                                      // verbs that show what ranks print
constexpr uint32_t kLife = kRead | bit(Verb::kPs) | bit(Verb::kStop) | bit(Verb::kWait) | bit(Verb::kInspect) | bit(Verb::kWhy) |
                           bit(Verb::kStacks) | bit(Verb::kReport);  // of runs that are there
constexpr uint32_t kAll =
    kReach | kOnce | kLife | bit(Verb::kSubmit) | bit(Verb::kExplain) | bit(Verb::kHelp) | bit(Verb::kCompletion) | bit(Verb::kVersion);
constexpr int64_t kMostHosts = 65'536;
constexpr int64_t kMostRanksPerHost = 4'096;
constexpr int64_t kHour = 3'600'000;  // in milliseconds

constexpr FlagRow kFlags[] = {
    {Flag::kHosts, "-H hosts|host", Takes::text("HOST[:SLOTS],..."), kReach | kOnce, Section::kHosts,
     Text{"hosts to run on, in rank order: names, ssh aliases, user@host, [IPv6]:slots, ranges like gpu[01-04,7]:8"}},
    {Flag::kHostfile, "hostfile|machinefile", Takes::path("FILE"), kReach | kOnce, Section::kHosts,
     Text{"read the hosts from a DeepSpeed or Open MPI hostfile"}},
    {Flag::kInclude, "-i include", Takes::text("HOST[:SLOT,...][@...]"), kReach | kOnce, Section::kHosts,
     Text{"use only these hosts and slots, for example gpu01:0,2@gpu02 (gpu02 with all its slots)"}},
    {Flag::kExclude, "-e exclude", Takes::text("HOST[:SLOT,...][@...]"), kReach | kOnce, Section::kHosts,
     Text{"use all hosts and slots except these; cannot be combined with --include"}},
    {Flag::kNnodes, "nnodes|num-nodes", Takes{ValueKind::kNodes, "N|MIN:MAX", "", 1, kMostHosts}, kReach, Section::kHosts,
     Text{"use the first N hosts of the list; fewer are an error. MIN:MAX: use the first MAX, keep the others as spares, and "
          "continue with as few as MIN after losing hosts"}},
    {Flag::kSpares, "spares", Takes::text("HOST[:SLOTS],..."), kJob, Section::kHosts,
     Text{"hosts that replace a lost or unfit one, in this order; without slots, a spare has as many as the hosts"}},

    {Flag::kNproc, "nproc-per-node|num-gpus", Takes{ValueKind::kRanks, "N|auto|gpu|cpu", "auto|gpu|cpu", 1, kMostRanksPerHost},
     kProbe | bit(Verb::kFit), Section::kRanks,
     Text{"ranks per host: a number, one per GPU, or one per CPU core (default: the host's slots, else auto: one per GPU, or one "
          "where there is none)"}},
    {Flag::kWorkdir, "-C workdir|chdir", Takes::directory("DIR"), kProbe | bit(Verb::kExec), Section::kRanks,
     Text{"working directory of the ranks on every host (default: the current directory)"}},
    {Flag::kMasterAddr, "master-addr", Takes::text("ADDRESS"), kProbe, Section::kRanks,
     Text{"address of rank 0's host where the other hosts reach the store (default: chosen by a connection test)"}},
    {Flag::kMasterPort, "master-port", Takes::number("PORT", 1, 65'535), kProbe, Section::kRanks,
     Text{"port of the store (default: any free port)"}},
    {Flag::kContainer, "container", Takes{ValueKind::kContainer, "[HOST,...=]KIND:NAME"}.repeatedly(),
     kProbe | bit(Verb::kBench) | bit(Verb::kExec), Section::kHosts,
     Text{"run inside a container, on every host or on the ones named: docker:NAME or podman:NAME (running), docker-image:IMAGE, "
          "podman-image:IMAGE or apptainer:FILE (started for the run), command:'PREFIX {}'"}},
    {Flag::kContainerArgs, "container-args", Takes::text("WORDS"), kProbe | bit(Verb::kBench) | bit(Verb::kExec), Section::kHosts,
     Text{"further options for the container engine, for example '-v /mnt:/mnt'"}},
    {Flag::kNodeRank, "node-rank|machine-rank", Takes::number("N", 0, kMostHosts - 1), kStarts, Section::kHosts,
     Text{"start by hand, without ssh: the same line on each of --nnodes machines, each with its own number; node 0 listens at "
          "--master-addr (port: --master-port, else 29500)"}},
    {Flag::kTokenFile, "token-file", Takes::path("FILE"), kStarts, Section::kConnection,
     Text{"with --node-rank: file of the secret that all nodes share (default: PHALANX_TOKEN, else ~/.config/phalanx/token, which "
          "is created if it is missing)"}},
    {Flag::kJoinTimeout, "join-timeout", Takes::duration(100, 24 * kHour), kStarts, Section::kConnection,
     Text{"with --node-rank: how long the nodes wait for each other (default: 10m)"}},
    {Flag::kNoStore, "no-store", kProbe, Section::kRanks, Text{"let rank 0 serve the store, as torchrun's static mode does"}},
    {Flag::kLocalRankMacro, "local-rank-macro", kJob, Section::kRanks,
     Text{"as torchrun does, replace the macro local_rank in every argument of the command by the rank's number on its host"}},
    {Flag::kMaxRestarts, "max-restarts", Takes::number("N", 0, 10'000), kJob, Section::kRanks,
     Text{"restart the whole job after a failure, up to N times, with growing delays; give up early if the program fails the same "
          "way at the same step twice (default: 0; 3 with --spares, --nnodes MIN:MAX or --on-stall restart)"}},
    {Flag::kGrace, "grace", Takes::duration(0, kHour), kJob | bit(Verb::kStop), Section::kRanks,
     Text{"wait this long after SIGTERM before killing a rank, for example 500ms, 10s, 2m (default: 10s)"}},
    {Flag::kFailureGrace, "failure-grace", Takes::duration(0, kHour), kJob, Section::kRanks,
     Text{"the same for the remaining ranks after one has failed (default: --grace, at most 5s)"}},
    {Flag::kLease, "lease", Takes::duration(3000, kHour), kJob, Section::kRanks,
     Text{"stop the ranks of a host after this long without contact with the launcher; a restart without a lost host waits as long "
          "(default: 30s)"}},
    {Flag::kStall, "stall", Takes::duration(0, 24 * kHour), kJob, Section::kRanks,
     Text{"report a stall after this long without a training step, and find the rank that causes it; 0: never (default: 5 times "
          "the slowest steps, at least 60s)"}},
    {Flag::kOnStall, "on-stall", Takes::choice("report|restart|stop"), kJob, Section::kRanks,
     Text{"what to do about a stalled run: report the rank that causes it, restart (counts against --max-restarts), or stop with "
          "exit code 5 (default: report)"}},
    {Flag::kPythonHook, "python-hook", kJob, Section::kRanks,
     Text{"let Python ranks report their line of code when the run stalls, through a sitecustomize that registers faulthandler on "
          "a real-time signal"}},
    {Flag::kCheckData, "check-data", bit(Verb::kTrain), Section::kRanks,
     Text{"do not train: read the whole data set in one process on the first host, and report its problems"}},
    {Flag::kDryRun, "dry-run", (kJob & ~kConfig) | bit(Verb::kSubmit) | bit(Verb::kEnv), Section::kRanks,
     Text{"print what would be done without doing it, like phalanx plan"}},
    {Flag::kPreflight, "preflight", Takes::choice("strict|warn|off"), kJob, Section::kRanks,
     Text{"checks before the start: refuse a job that would fail, only warn, or skip the checks (default: strict)"}},
    {Flag::kReuseChecks, "reuse-checks", Takes::duration(0, 24 * kHour), kJob, Section::kRanks,
     Text{"start at once if the same job passed its checks on these hosts within this time, and repeat the checks while the "
          "program starts; hosts with GPUs are always checked first; 0: always check first (default: 5m)"}},
    {Flag::kGpus, "gpus", Takes{ValueKind::kGpuWish, "auto|N|HOST:INDEX,...[@...]", "auto", 1, kMostRanksPerHost}, kProbe, Section::kRanks,
     Text{"GPUs to use: N on every host, or a list per host with nvidia-smi's indices, for example gpu01:0,2 (default: auto, the "
          "largest set of free GPUs of one model)"}},
    {Flag::kIface, "iface", Takes::text("NAME"), kReach, Section::kRanks,
     Text{"network interface for traffic between the ranks (default: the fastest over which all hosts reach each other)"}},

    {Flag::kConnectTimeout, "connect-timeout", Takes::duration(100, kHour), kReach | kOnce | bit(Verb::kStop), Section::kConnection,
     Text{"time limit for one attempt to reach a host, extended while other hosts are still answering (default: 10s)"}},
    {Flag::kFanout, "fanout", Takes::number("N", 1, kMostRanksPerHost), kReach | kOnce, Section::kConnection,
     Text{"number of simultaneous logins; lower it if a jump host drops connections"}},
    {Flag::kSshOption, "ssh-option", Takes{ValueKind::kSshOption, "NAME=VALUE"}.repeatedly(), kReach | kOnce | bit(Verb::kStop),
     Section::kConnection, Text{"pass an option to ssh -o, for example ProxyJump=bastion or Port=2222"}},

    {Flag::kLogDir, "log-dir", Takes::directory("DIR"), kJob | kLife | bit(Verb::kClean), Section::kOutput,
     Text{"directory of the runs: each run keeps its record and the logs of its ranks in a subdirectory (default: "
          "~/.local/state/phalanx/runs)"}},
    {Flag::kFold, "fold", Takes::choice("auto|on|off"), kJob, Section::kOutput,
     Text{"fold a line that several ranks print into one line with a count (auto: on a terminal)"}},
    {Flag::kColor, "color|colour", Takes::choice("auto|always|never"), kReach | kRead, Section::kOutput,
     Text{"use colour (auto: on a terminal, unless NO_COLOR is set)"}},
    {Flag::kJson, "json",
     (kReach & ~bit(Verb::kInit)) | (kOnce & ~bit(Verb::kClean)) | bit(Verb::kInspect) | bit(Verb::kPs) | bit(Verb::kWhy) |
         bit(Verb::kStacks) | bit(Verb::kExplain),
     Section::kOutput, Text{"print the report as JSON on standard output"}},
    {Flag::kOnly, "only", Takes::text("CODE,...").repeatedly(), bit(Verb::kCheck), Section::kOutput,
     Text{"check only these codes or prefixes of codes, for example NET-,FS-SHM"}},
    {Flag::kFailOn, "fail-on", Takes::choice("error|warning|note|never"), bit(Verb::kCheck), Section::kOutput,
     Text{"exit with code 3 on a finding of at least this severity (default: error)"}},
    {Flag::kWatch, "watch", Takes::duration(1'000, kHour), bit(Verb::kCheck) | bit(Verb::kWhy), Section::kOutput,
     Text{"repeat after this pause, for example 10s, until Ctrl-C or the end of the run; check without a terminal prints only changes"}},
    {Flag::kQuiet, "-q quiet", (kReach & ~kConfig) | bit(Verb::kPush) | bit(Verb::kEnv) | bit(Verb::kStop) | bit(Verb::kAttach),
     Section::kOutput, Text{"print only errors and the output of the ranks"}},
    {Flag::kVerbose, "-v verbose", kReach & ~kConfig, Section::kOutput, Text{"also print what is being done on each host"}},

    {Flag::kAll, "all", bit(Verb::kExplain), Section::kOther, Text{"list every code"}},
    {Flag::kMan, "man", bit(Verb::kHelp), Section::kOther, Text{"print the manual page (roff)"}},
    {Flag::kMarkdown, "markdown", bit(Verb::kHelp) | bit(Verb::kExplain), Section::kOther,
     Text{"print the reference (help: docs/cli.md) or every page (explain) as Markdown"}},
    {Flag::kHelp, "-h help", kAll, Section::kOther, Text{"print help for the verb"}},
};

}  // namespace

std::span<const FlagRow> flag_table() {
  static const std::vector<FlagRow> all = [] {
    std::vector<FlagRow> rows(std::begin(kFlags), std::end(kFlags));
    for (std::span<const FlagRow> some : {environment_flags(), measure_flags(), life_flags(), move_flags(), project_flags()})
      rows.insert(rows.end() - 1, some.begin(), some.end());
    return rows;
  }();
  return all;
}

}  // namespace phalanx::cli
