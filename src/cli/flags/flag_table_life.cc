// Flags of runs one can come back to.
#include "cli/flags/flag_rows.h"

namespace phalanx::cli {
namespace {

using words::Text;

constexpr uint32_t kRead = bit(Verb::kLogs) | bit(Verb::kAttach);  // verbs that show what ranks print

constexpr uint32_t kJob = bit(Verb::kRun) | bit(Verb::kPlan) | bit(Verb::kConfig) | bit(Verb::kInit) | bit(Verb::kTrain);

constexpr FlagRow kFlags[] = {
    {Flag::kDetach, "-d detach", bit(Verb::kRun) | bit(Verb::kTrain), Section::kRanks,
     Text{"print the id of the run once the ranks have started, then detach it from this terminal"}},
    {Flag::kSync, "sync", Takes::directory("DIR").or_nothing(), kJob | bit(Verb::kCheck), Section::kRanks,
     Text{"copy DIR (default: the current directory) to every host before the start, without what .gitignore excludes, and start "
          "the ranks in the copy; files that a host has already are not sent again"}},
    {Flag::kSyncMax, "sync-max", Takes::bytes(), kJob | bit(Verb::kCheck), Section::kRanks,
     Text{"with --sync, copy up to this much, and any number of files (default: 2GB in 200,000 files)"}},
    {Flag::kTo, "to", Takes::text("PATH"), bit(Verb::kPush) | bit(Verb::kEnv), Section::kOther,
     Text{"the directory on the hosts, an absolute path (default: the same path as here)"}},
    {Flag::kDelete, "delete", bit(Verb::kPush), Section::kOther,
     Text{"remove files that an earlier push put there and that are gone here; files that were made or changed on a host stay"}},
    {Flag::kName, "name", Takes::text("NAME"), kJob | bit(Verb::kSubmit), Section::kOther,
     Text{"name the run: phalanx ps shows the name, and logs, stop, wait and the like find the newest run of that name"}},
    {Flag::kSplitLogs, "split-logs", kJob, Section::kOutput,
     Text{"also write attempt_N/RANK/stdout.log, stderr.log and error.json into the run's directory, as torchrun does"}},
    {Flag::kShow, "show", Takes::text("STREAMS[,LOCAL:STREAMS,...]"), kJob, Section::kOutput,
     Text{"which output of the ranks the terminal shows: 0 none, 1 standard output, 2 standard error, 3 both; LOCAL: of this local "
          "rank (default: 3)"}},
    {Flag::kNodes, "-N nodes", Takes::number("N", 1, 65'536), bit(Verb::kSubmit), Section::kHosts,
     Text{"ask for this many nodes (default: 1)"}},
    {Flag::kSbatch, "sbatch", Takes::text("NAME[=VALUE]").repeatedly(), bit(Verb::kSubmit), Section::kHosts,
     Text{"an option of sbatch without its dashes, such as time=24:00:00 or gpus-per-node=8"}},
    {Flag::kImage, "image", Takes::text("IMAGE"), bit(Verb::kSubmit), Section::kHosts,
     Text{"submit to Kubernetes instead: a Job with one pod of this image per node; phalanx has to be in its PATH"}},
    {Flag::kGpusPerNode, "gpus-per-node", Takes::number("N", 1, 1024), bit(Verb::kSubmit), Section::kHosts,
     Text{"ask for this many GPUs on each node"}},
    {Flag::kVolume, "volume", Takes::text("CLAIM:PATH").repeatedly(), bit(Verb::kSubmit), Section::kRanks,
     Text{"with --image, mount this PersistentVolumeClaim in every pod; the ranks start in the current directory if it lies in one"}},
    {Flag::kRequeue, "requeue", bit(Verb::kSubmit), Section::kRanks,
     Text{"two minutes before the time limit, stop the ranks with SIGTERM and put the job back into the queue; it is also requeued "
          "after the loss of a node"}},
    {Flag::kTimeout, "timeout", Takes::duration(1, 366LL * 24 * 3'600'000), kJob | bit(Verb::kWait) | bit(Verb::kExec), Section::kOther,
     Text{"run, train, exec: stop after this time, restarts included, with exit code 124; wait: give up after this time with exit "
          "code 5 (default: never)"}},
    {Flag::kAttempt, "attempt", Takes::number("N", 0, 1'000'000), bit(Verb::kLogs), Section::kOutput,
     Text{"only the output of this attempt: 0 is the first, 1 the one after the first restart; cannot be combined with --tail or "
          "--follow"}},
    {Flag::kYes, "-y yes", bit(Verb::kClean) | bit(Verb::kPush) | bit(Verb::kEnv), Section::kOther,
     Text{"clean: remove what is listed (default: only list it); push: also into a directory that holds other files: files of the "
          "same names are replaced, the others stay"}},
    {Flag::kCacheOnly, "cache", bit(Verb::kClean), Section::kOther,
     Text{"only old builds in the cache, neither runs nor ssh connections; always so on hosts"}},
    {Flag::kCleanAll, "all", bit(Verb::kClean), Section::kOther, Text{"every run that has ended, except the newest"}},
    {Flag::kLogMax, "log-max", Takes::bytes(64 << 10), kJob, Section::kOutput,
     Text{"keep at most this much of each rank's log, discarding the oldest part (default: 1GiB)"}},
    {Flag::kKeepRuns, "keep-runs", Takes::number("N", 0, 1'000'000), kJob | bit(Verb::kClean), Section::kOutput,
     Text{"keep the directories of the newest N runs and remove older runs that have ended; 0: keep all (default: 1000; 20 for clean)"}},
    {Flag::kKill, "kill", bit(Verb::kStop), Section::kRanks, Text{"send SIGKILL at once, without a grace period"}},
    {Flag::kFollow, "-f follow", bit(Verb::kLogs), Section::kOutput, Text{"keep printing new output until the run ends"}},
    {Flag::kTail, "-n tail", Takes::number("N", 0, 1'000'000'000), bit(Verb::kLogs), Section::kOutput,
     Text{"begin with the last N lines of each rank (default: all)"}},
    {Flag::kTimestamps, "-t timestamps", bit(Verb::kLogs), Section::kOutput, Text{"print before each line when it was printed (UTC)"}},
    {Flag::kRank, "rank|ranks", Takes::text("R[,R-R...]"), kRead | bit(Verb::kInspect) | bit(Verb::kStacks), Section::kOutput,
     Text{"only these ranks, for example 0,8-15; inspect prints the command that starts each of them alone"}},
    {Flag::kOnHost, "host", Takes::text("HOST"), kRead, Section::kOutput, Text{"only the ranks of this host"}},
    {Flag::kEveryRun, "-a all", bit(Verb::kPs), Section::kOutput, Text{"also runs that have ended"}},
    {Flag::kReportFile, "-o output", Takes::path("FILE"), bit(Verb::kReport) | bit(Verb::kEnv), Section::kOutput,
     Text{"report: write the archive here (default: phalanx-report-ID.tar.gz); env pack: to this .tar.zst, .tar.gz, or .run, which "
          "unpacks itself"}},
};

}  // namespace

std::span<const FlagRow> life_flags() { return kFlags; }

}  // namespace phalanx::cli
