#include "elastic.h"

#include <cstring>
#include <fstream>

#include <fmt/format.h>

#include "base/json.h"
#include "base/text.h"
#include "os/files.h"

namespace phalanx::testbed {
namespace {

constexpr size_t kLogBytes = 4 << 20;

constexpr const char* kConfig = R"(seed: 7
device: cpu
data: { corpus: CORPUS, validation: 0 }
model: { layers: 1, heads: 2, width: 32, context: 32 }
train: { steps: STEPS, batch: 24, log_every: 5 }
optimizer: { lr: 3e-3, min_lr: 3e-4, warmup: 10 }
validation: { every: 0 }
checkpoint: { every: EVERY, keep: 3 }
sample: { bytes: 0 }
)";

base::Status strike(const Cluster& cluster, const Trial& trial) {
  auto killed = [&](const std::string& process) {
    return cluster.kill_processes(trial.host, process) > 0 ? base::ok()
                                                           : base::Status(base::fail(base::ErrorKind::kInternal, "no " + process));
  };
  switch (trial.blow) {
    case Blow::kPowerOff: return cluster.power_off(trial.host);
    case Blow::kEveryProcess: return cluster.kill_all(trial.host);
    case Blow::kStandsStill: return cluster.freeze(trial.host);
    case Blow::kCut: return cluster.cut(trial.host);
    case Blow::kBlackHole: return cluster.drop(trial.host, Direction::kBoth);
    case Blow::kAgentKilled: return killed("phalanx-agent");
    case Blow::kRankKilled: return killed("phalanx-train");
  }
  return base::ok();
}

std::vector<base::Json> lines_of(const std::string& path) {
  std::vector<base::Json> list;
  base::Result<std::string> text = os::read_file(path, kLogBytes);
  if (!text.ok()) return list;
  for (std::string_view line : base::split_lines(*text))
    if (base::Result<base::Json> json = base::parse_json(line); json.ok() && json->is_object()) list.push_back(std::move(json).value());
  return list;
}

}  // namespace

const char* name(Blow blow) {
  constexpr const char* kNames[kBlows] = {"power off",  "every process gone", "stands still", "cut",
                                          "black hole", "agent killed",       "rank killed"};
  return kNames[static_cast<int>(blow)];
}

ElasticTraining::ElasticTraining(std::string folder, std::string phalanx, std::string corpus)
    : folder_(std::move(folder)), phalanx_(std::move(phalanx)) {
  std::string config = base::replace_all(kConfig, "CORPUS", corpus);
  config = base::replace_all(config, "STEPS", std::to_string(kSteps));
  std::ofstream(folder_ + "/config.yaml") << base::replace_all(config, "EVERY", std::to_string(kCheckpointEvery));
}

Command ElasticTraining::command(const std::vector<std::string>& options, const std::string& out) const {
  Command command{{phalanx_, "train"}};
  command.argv.insert(command.argv.end(), options.begin(), options.end());
  for (const char* word :
       {"--nproc-per-node", "2", "--preflight", "off", "--failure-grace", "1s", "--lease", "6s", "--env", "OMP_NUM_THREADS=1"})
    command.argv.push_back(word);
  command.argv.push_back(folder_ + "/config.yaml");
  command.argv.push_back("out=" + out);
  return command;
}

int64_t ElasticTraining::steps_done(const std::string& out) const {
  std::vector<base::Json> lines = lines_of(out + "/log.jsonl");
  return lines.empty() ? 0 : lines.back().value("step", int64_t{0});
}

TrialResult ElasticTraining::result(const Cluster& cluster, const Outcome& outcome, const std::string& out) const {
  TrialResult result;
  result.ended = outcome.ended;
  result.exit_code = outcome.exit_code;
  result.talk = outcome.err;
  result.seconds = static_cast<double>(outcome.took.count()) / 1e3;
  for (const base::Json& line : lines_of(out + "/log.jsonl"))
    if (line.contains("loss")) result.losses[line.value("step", int64_t{0})] = line.value("loss", 0.0);
  if (auto last = result.losses.find(kSteps); last != result.losses.end()) result.loss = last->second;
  size_t at = (outcome.out + outcome.err).find("resumed after step ");
  if (at != std::string::npos) result.resumed = std::atoll((outcome.out + outcome.err).c_str() + at + std::strlen("resumed after step "));
  // What the launcher could not reach ends by its lease.
  Instant most = std::chrono::steady_clock::now() + std::chrono::seconds(9);
  do {
    result.left.clear();
    for (const std::string& host : cluster.hosts())
      for (const HostProcess& process : cluster.processes(host))
        if (process.name.starts_with("phalanx")) result.left += fmt::format("{}: {} {}; ", host, process.pid, process.command);
  } while (!result.left.empty() && std::chrono::steady_clock::now() < most);
  return result;
}

TrialResult ElasticTraining::undisturbed(const Cluster& cluster) { return on_hosts(cluster, "h1"); }

TrialResult ElasticTraining::on_hosts(const Cluster& cluster, const std::string& hosts) {
  std::string out = fmt::format("{}/undisturbed-{}", folder_, ++trials_);
  return result(cluster, cluster.run_on("ctl", command({"-H", hosts}, out), std::chrono::seconds(120)), out);
}

TrialResult ElasticTraining::disturbed(const Cluster& cluster, const Trial& trial) {
  std::string out = fmt::format("{}/trial-{}", folder_, ++trials_);
  std::vector<std::string> options = {"-H", "h1,h2,h3,h4", "--max-restarts", "3"};
  for (const char* word : trial.spare ? std::vector<const char*>{"--spares", "h5"} : std::vector<const char*>{"--nnodes", "3:4"})
    options.push_back(word);
  base::Result<Process> phalanx = cluster.start_on("ctl", command(options, out));
  if (!phalanx.ok()) return {};
  Instant most = std::chrono::steady_clock::now() + std::chrono::seconds(120);
  while (steps_done(out) < trial.step && std::chrono::steady_clock::now() < most)
    if (phalanx->wait(milliseconds(20))) break;
  base::Status struck = strike(cluster, trial);
  Outcome outcome = phalanx->finish(std::chrono::seconds(180));
  bool gone = trial.blow == Blow::kPowerOff || trial.blow == Blow::kEveryProcess;
  if (!gone && struck.ok()) struck = cluster.heal(trial.host);  // a host that stood still ends what it has when it goes on
  TrialResult r = result(cluster, outcome, out);
  if (!struck.ok()) r.talk += "\nthe blow failed: " + struck.error().message;
  return r;
}

}  // namespace phalanx::testbed
