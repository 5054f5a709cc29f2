#include "live_rows.h"

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <memory>
#include <set>

#include <fmt/format.h>

#include "base/text.h"
#include "base/try.h"

namespace phalanx::testbed {
namespace {

using Clock = std::chrono::steady_clock;
constexpr milliseconds kStart{90'000};  // of interpreters on a busy machine, to the first step
constexpr milliseconds kTurn{20};

// A fault that a trainer has by itself, or that is made from outside.
LiveRow proved(InjectedFault fault) {
  LiveRow row;
  row.name = fault.name;
  row.says = {{fault.code, fault.rank == 1 ? "rank 1 (h2" : ""}};
  row.most = fault.most;
  row.trainer = true;
  if (fault.strike) row.strike = [fault](const Cluster& c) { return fault.strike(c, Names{}); };
  return row;
}

// A CPU limit for the rank on a host, of cgroups of version 1; it stays behind until the machine's end if the rank outlives it.
base::Status limit_cpu(const Cluster& cluster, const std::string& host, int percent) {
  const std::string group = fmt::format("/sys/fs/cgroup/cpu/phalanx-live-{}-{}", ::getpid(), cluster.name());
  if (::mkdir(group.c_str(), 0755) != 0) return base::fail(base::ErrorKind::kUnfit, "no cpu controller of version 1");
  std::ofstream(group + "/cpu.cfs_quota_us") << percent * 1000;
  int moved = 0;
  for (const HostProcess& p : cluster.processes(host)) {
    if (p.command.find("behaviour.py") == std::string::npos || p.name.rfind("python", 0) != 0) continue;
    std::ofstream(group + "/cgroup.procs") << p.pid;
    ++moved;
  }
  return moved > 0 ? base::ok() : base::fail(base::ErrorKind::kInternal, "no rank on " + host);
}

LiveRow slow(std::string name, std::map<std::string, std::string> says, int hosts,
             std::function<base::Status(const Cluster&)> strike = {}) {
  LiveRow row;
  row.name = std::move(name);
  row.says = std::move(says);
  row.hosts = hosts;
  row.strike = std::move(strike);
  return row;
}

class Trial {
 public:
  Trial(const LiveRow& row, const std::string& phalanx, const std::string& scripts) : row_(row) {
    base::Result<Cluster> cluster = Cluster::up({.hosts = row.hosts});
    if (!cluster.ok()) {
      fail(cluster.error().render());
      return;
    }
    cluster_ = std::make_unique<Cluster>(std::move(cluster).value());
    std::string hosts;
    for (int h = 1; h <= row.hosts; ++h) hosts += fmt::format("{}h{}", h == 1 ? "" : ",", h);
    std::vector<std::string> argv = {phalanx, "run", "--lease", "30s", "-H", hosts, "--preflight", "off", "--grace", "1s"};
    const std::string behaviour = row.name.substr(0, row.name.find('+'));
    for (const std::string& set : {(row.trainer ? "FAULT=" : "BEHAVIOUR=") + (row.trainer && row.strike ? "" : behaviour),
                                   std::string("SECONDS=") + (row.says.empty() ? "14" : "600"), std::string("OMP_NUM_THREADS=1")}) {
      argv.push_back("--env");
      argv.push_back(set);
    }
    argv.insert(argv.end(), {"--", "/usr/bin/python3", scripts + (row.trainer ? "/trainer.py" : "/behaviour.py")});
    base::Result<Process> process = cluster_->start_on("ctl", {.argv = argv, .cwd = "/tmp"});
    if (!process.ok()) {
      fail(process.error().render());
      return;
    }
    process_ = std::make_unique<Process>(std::move(process).value());
    began_ = Clock::now();
  }
  ~Trial() {
    if (process_) process_->signal(SIGINT), process_->finish(milliseconds(8000));
    cluster_.reset();
    ::rmdir(fmt::format("/sys/fs/cgroup/cpu/phalanx-live-{}-{}", ::getpid(), name_).c_str());
  }

  // One turn; false: it is over.
  bool turn() {
    if (!process_ || !result_.problem.empty()) return false;
    name_ = cluster_->name();
    if (!struck_ && !begins()) return result_.problem.empty();
    look();
    if (row_.says.empty()) {
      if (!process_->wait(kTurn)) return in_time(row_.most + kStart, "it has not ended");
      Outcome outcome = process_->finish(milliseconds(0));
      if (outcome.exit_code != 0) fail(fmt::format("it ended with {}", outcome.exit_code));
      return false;
    }
    if (result_.told_after.size() >= row_.says.size()) return false;
    if (process_->wait(kTurn)) return fail("it ended"), false;
    return in_time(row_.most, "not told in time");
  }

  LiveResult take() {
    if (process_) result_.text = process_->err();
    if (row_.says.empty())
      for (const char* alarm : {"[HANG-", "[SLOW-", "[NET-", "[LIM-", "[PERF-"})
        if (size_t at = result_.text.find(alarm); at != std::string::npos) fail("alarm " + result_.text.substr(at, 40));
    for (const auto& [code, who] : row_.says) {
      size_t at = result_.text.find("[" + code + "]"), line = at == std::string::npos ? at : result_.text.rfind('\n', at);
      if (at != std::string::npos && result_.text.substr(line + 1, at - line).find(who) == std::string::npos)
        fail(fmt::format("{} is not told of {}", code, who));
    }
    return std::move(result_);
  }

 private:
  void fail(std::string why) {
    if (result_.problem.empty()) result_.problem = std::move(why);
  }
  bool in_time(milliseconds most, const char* otherwise) {
    if (Clock::now() - since_ <= most) return true;
    fail(otherwise);
    return false;
  }
  // Of a trainer, when its fault has struck on every host; of others, some steps after the start.
  bool begins() {
    if (process_->wait(kTurn)) return fail("it ended before it had begun: " + process_->err()), false;
    since_ = began_;
    if (!in_time(kStart, "it has not begun")) return false;
    bool ready = row_.says.empty() || process_->out().find("step 20 ") != std::string::npos;
    if (row_.trainer) {
      const char* mark = row_.strike ? "/tmp/steps" : "/tmp/struck";
      ready = true;
      for (const std::string& host : row_.strike ? std::vector<std::string>{"h1", "h2"} : std::vector<std::string>{"h2"})
        ready = ready && cluster_->run_on(host, {.argv = {"test", "-e", mark}}).exit_code == 0;
    }
    if (!ready) return false;
    if (row_.strike)
      if (base::Status done = row_.strike(*cluster_); !done.ok()) return fail(done.error().render()), false;
    struck_ = true;
    since_ = Clock::now();
    return true;
  }
  void look() {
    for (const auto& [code, who] : row_.says)
      if (process_->err().find("[" + code + "]") != std::string::npos)
        result_.told_after.try_emplace(code, std::chrono::duration<double>(Clock::now() - since_).count());
  }

  const LiveRow row_;
  std::unique_ptr<Cluster> cluster_;
  std::unique_ptr<Process> process_;
  std::string name_;
  Clock::time_point began_, since_;
  bool struck_ = false;
  LiveResult result_;
};

}  // namespace

std::vector<LiveRow> proved_rows() {
  std::vector<LiveRow> rows;
  for (InjectedFault& fault : proved_faults()) rows.push_back(proved(std::move(fault)));
  for (LiveRow& row : rows) {
    static const std::set<std::string> kTested = {"barrier-against-broadcast", "opposite-groups", "store-key-that-nobody-sets"};
    row.in_tests = kTested.count(row.name) > 0;
  }
  return rows;
}

std::vector<LiveRow> slow_rows() {
  auto lose = [](const Cluster& c) { return c.lose("h2", 5); };
  std::vector<LiveRow> rows = {
      slow("slow-network", {{"NET-LOSS", "h2"}}, 2, lose),
      slow("slow-network+of-three", {{"NET-LOSS", "h2"}}, 3, lose),
      slow("slow-network+30-percent", {{"NET-LOSS", "h2"}}, 3, [](const Cluster& c) { return c.lose("h2", 30); }),
      slow("slow-quota", {{"SLOW-CPU-LIMIT", "rank 1 (h2"}}, 2, [](const Cluster& c) { return limit_cpu(c, "h2", 20); }),
      slow("slow-quota+and-loss", {{"SLOW-CPU-LIMIT", "rank 1 (h2"}, {"NET-LOSS", "h3"}}, 3,
           [](const Cluster& c) -> base::Status {
             TRY(c.lose("h3", 5));
             return limit_cpu(c, "h2", 20);
           }),
      slow("slow-rank", {{"SLOW-RANK", "rank 1 (h2"}}, 3),
      slow("slow-loader", {{"SLOW-LOADER", "rank 1 (h2"}}, 3),
  };
  for (LiveRow& row : rows) row.in_tests = row.name == "slow-network+of-three";
  return rows;
}

std::vector<LiveRow> healthy_rows() {
  static const std::set<std::string> kTested = {"save-by-rank-0", "evaluation-by-rank-1", "gradient-accumulation"};
  std::vector<LiveRow> rows;
  for (const char* name : {"even",
                           "even-silent",
                           "long-steps",
                           "compilation-in-first-step",
                           "compilation-on-one-rank",
                           "compilation-in-children",
                           "save-by-rank-0",
                           "save-by-rank-0-asleep",
                           "save-by-rank-1",
                           "save-by-all",
                           "evaluation-by-rank-0",
                           "evaluation-by-rank-1",
                           "evaluation-by-all",
                           "evaluation-in-a-child",
                           "download-by-rank-0",
                           "waits-at-the-store",
                           "slow-loader-at-the-end",
                           "slow-loader-at-the-start",
                           "loader-workers",
                           "loader-workers-start-late",
                           "even-loaders",
                           "gradient-accumulation",
                           "pauses-between-epochs",
                           "pauses-of-one-rank",
                           "jitter",
                           "alternating",
                           "a-little-more-work",
                           "progress-bar",
                           "silent-import",
                           "late-start",
                           "save-in-a-thread",
                           "log-thread",
                           "uneven-ends",
                           "last-save",
                           "many-small-collectives",
                           "large-collectives",
                           "barrier-every-step",
                           "broadcasts-of-rank-0",
                           "garbage-collection",
                           "steps-get-longer"}) {
    LiveRow row;
    row.name = name;
    row.most = milliseconds(90'000);
    row.in_tests = kTested.count(row.name) > 0;
    rows.push_back(std::move(row));
  }
  return rows;
}

std::vector<LiveResult> play(const std::vector<LiveRow>& rows, const std::string& phalanx, const std::string& scripts, size_t at_once) {
  std::vector<LiveResult> results;
  for (size_t begin = 0; begin < rows.size(); begin += at_once) {
    std::vector<std::unique_ptr<Trial>> trials;
    for (size_t i = begin; i < std::min(rows.size(), begin + at_once); ++i)
      trials.push_back(std::make_unique<Trial>(rows[i], phalanx, scripts));
    std::vector<bool> over(trials.size(), false);
    while (std::find(over.begin(), over.end(), false) != over.end())
      for (size_t i = 0; i < trials.size(); ++i)
        if (!over[i]) over[i] = !trials[i]->turn();
    for (auto& trial : trials) results.push_back(trial->take());
  }
  return results;
}

}  // namespace phalanx::testbed
