// Options of docker and kubectl that mean something at some verbs only: -t is a terminal of `docker run` and the grace period of
// `docker stop`. From docker's reference of its command line and kubectl's source (pkg/cmd).
#include "cli/flags/foreign_words.h"

namespace phalanx::cli {
namespace {

constexpr uint32_t kRun = bit(Verb::kRun) | bit(Verb::kPlan) | bit(Verb::kTrain);
constexpr uint32_t kStart = kRun | bit(Verb::kExec);
constexpr uint32_t kLogs = bit(Verb::kLogs);
constexpr uint32_t kAttach = bit(Verb::kAttach);
constexpr uint32_t kStop = bit(Verb::kStop);
constexpr uint32_t kPs = bit(Verb::kPs);
constexpr uint32_t kInspect = bit(Verb::kInspect);
constexpr uint32_t kWait = bit(Verb::kWait);
constexpr uint32_t kOneRun = kLogs | kAttach | kStop | kWait | kInspect | bit(Verb::kWhy) | bit(Verb::kReport) | bit(Verb::kStacks);

constexpr std::string_view kContainer =
    "write it in --container-args, beside --container docker-image:IMAGE; without it the command runs on the host itself";
constexpr std::string_view kAllRanks = "omit it: the logs of all ranks are printed";
constexpr std::string_view kWhen = "write --timestamps, which shows when each line was printed, or --tail N";
constexpr std::string_view kDetaches = "omit it: Ctrl-C detaches, and the run continues";
constexpr std::string_view kNoInput = "omit it: ranks have no standard input";
constexpr std::string_view kHere = "omit it: the output is shown here";
constexpr std::string_view kListed = "write the ids of the runs, which phalanx ps lists";
constexpr std::string_view kNameOfRun = "write the name of the run, set with phalanx run --name NAME";

constexpr ForeignWord kRows[] = {
    {"docker, kubectl", "since|since-time|until", kWhen, kLogs},
    {"kubectl", "all-containers|all-pods", kAllRanks, kLogs},
    {"kubectl", "container|c", "write --rank R", kLogs | kAttach},
    {"kubectl", "prefix", "omit it: every line is shown with its rank", kLogs},
    {"kubectl", "limit-bytes", "write --tail N", kLogs},
    {"kubectl", "previous|p", "write --attempt N", kLogs},

    {"docker", "detach-keys|sig-proxy", kDetaches, kAttach},
    {"docker, kubectl", "no-stdin|stdin|i", kNoInput, kAttach},
    {"kubectl", "tty|t|it", kHere, kAttach},

    {"docker", "time|timeout|t", "write --grace DURATION", kStop},
    {"docker", "signal|s", "write --kill for SIGKILL, otherwise omit it: SIGTERM, then SIGKILL after --grace", kStop},
    {"docker, kubectl", "force|f|now", "write --kill", kStop},
    {"kubectl", "all|a", kListed, kStop | kWait},
    {"kubectl", "wait", "omit it: phalanx stop returns when nothing is left", kStop},

    {"docker, kubectl", "filter|f|field-selector|sort-by|no-headers|no-trunc|quiet|q|size|s|show-labels|show-kind|label-columns|L",
     "write --json for a program to read", kPs},
    {"docker", "last|n", "write --all", kPs},
    {"docker", "latest|l", "phalanx inspect latest", kPs},
    {"kubectl", "all-namespaces|A", "write --all", kPs},
    {"kubectl", "selector", kListed, kPs},
    {"kubectl", "watch|w|watch-only", "phalanx attach RUN", kPs},

    {"docker", "f", "write --json", kInspect},
    {"kubectl", "show-events", "phalanx why RUN", kInspect},
    {"kubectl", "for", "omit it: phalanx wait returns when the runs have ended", kWait},
    {"kubectl", "selector|l", kNameOfRun, kOneRun},

    {"docker, kubectl", "detach|d", "phalanx run --detach -- COMMAND", bit(Verb::kExec)},
    {"kubectl", "container|c", "write --container docker:NAME", bit(Verb::kExec)},
    {"docker, kubectl", "interactive|stdin|leave-stdin-open", kNoInput, kStart},
    {"docker, kubectl", "tty|t|it", kHere, kStart},
    {"docker, kubectl", "attach|a", "omit it: the output is shown here unless you write phalanx run --detach", kStart},
    {"docker, kubectl", "detach-keys", "omit it: start with phalanx run --detach; phalanx attach shows the run again", kStart},
    {"docker", "sig-proxy", "omit it: Ctrl-C stops the ranks on every host", kStart},
    {"docker, kubectl", "publish|p|publish-all|P|expose|port", "omit it: the ranks use the network of their host", kStart},
    {"docker, kubectl", "label|labels|l|label-file|annotation|annotations", "write --name NAME", kRun},
    {"docker", "health-cmd|health-interval|health-retries|health-start-interval|health-start-period|health-timeout|no-healthcheck",
     "omit it: hangs are found from the ranks themselves (--on-stall)", kRun},
    {"kubectl", "pod-running-timeout|request-timeout", "write --connect-timeout DURATION", kStart},
    {"docker", "volume|volumes-from|volume-driver|mount|tmpfs|storage-opt|read-only", kContainer, kStart},
    {"docker", "privileged|cap-add|cap-drop|security-opt|group-add|userns|use-api-socket|isolation|platform", kContainer, kStart},
    {"docker", "ipc|pid|pids-limit|uts|cgroup-parent|cgroupns|sysctl|oom-kill-disable|oom-score-adj", kContainer, kStart},
    {"docker", "add-host|dns|dns-option|dns-search|domainname|ip|ip6|link|link-local-ip|mac-address|network-alias", kContainer, kStart},
    {"docker", "cpu-shares|c|cpu-count|cpu-percent|cpu-period|cpu-quota|cpu-rt-period|cpu-rt-runtime|cpuset-mems", kContainer, kStart},
    {"docker", "memory-reservation|memory-swap|memory-swappiness|blkio-weight|blkio-weight-device|io-maxbandwidth|io-maxiops", kContainer,
     kStart},
    {"docker", "device-cgroup-rule|device-read-bps|device-read-iops|device-write-bps|device-write-iops", kContainer, kStart},
};

}  // namespace

std::span<const ForeignWord> foreign_options_of_verbs() { return kRows; }

}  // namespace phalanx::cli
