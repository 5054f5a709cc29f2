#include "fault_trial.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/try.h"

namespace phalanx::bench {

using testbed::Cluster;
using testbed::Command;
using testbed::InjectedFault;
using testbed::Instant;
using testbed::milliseconds;
using testbed::Process;
using Clock = std::chrono::steady_clock;

namespace {

constexpr milliseconds kStart{60'000};  // for the ranks to train

// The terminals that the user has open, and the run that goes on in them.
class Session {
 public:
  Session(Cluster& cluster, const InjectedFault& fault) : cluster_(cluster), fault_(fault) {}

  base::Status start(const std::string& host, Command command) {
    TRY_ASSIGN(Process process, cluster_.start_on(host, std::move(command)));
    terminals_.push_back(std::move(process));
    return base::ok();
  }
  // Puts the fault in, or waits for the program to go wrong; then for the end, at most for the cap.
  base::Result<Trial> play(const testbed::Names& names, milliseconds cap);
  const std::string& err(size_t terminal) const { return terminals_[terminal].err(); }
  std::string out() const { return terminals_[0].out() + terminals_[0].err(); }

 private:
  base::Status await(const std::string& host, const std::string& path);
  base::Status strike(const testbed::Names& names);
  bool wait(Instant until);  // for all to end
  size_t said() const;       // bytes on stderr

  Cluster& cluster_;
  const InjectedFault& fault_;
  std::vector<Process> terminals_;
  Instant struck_;
};

size_t Session::said() const {
  size_t bytes = 0;
  for (const Process& terminal : terminals_) bytes += terminal.err().size();
  return bytes;
}

bool Session::wait(Instant until) {
  bool all = true;
  for (Process& terminal : terminals_)
    all &= terminal.wait(std::max(milliseconds(0), std::chrono::ceil<milliseconds>(until - Clock::now())));
  return all;
}

// Until trainer.py has written the file, every terminal has its prompt back, or it takes too long.
base::Status Session::await(const std::string& host, const std::string& path) {
  Instant most = Clock::now() + kStart;
  while (true) {
    bool over = wait(Clock::now());  // looked at first: what it wrote before its end is found below
    if (testbed::await_file(cluster_, host, path, milliseconds(1000))) return base::ok();
    if (over || Clock::now() > most)
      return base::fail(base::ErrorKind::kInternal, host + " has no " + path + ": the training went another way").because(out());
  }
}

base::Status Session::strike(const testbed::Names& names) {
  if (!fault_.strike) {
    TRY(await("h2", "/tmp/struck"));
    struck_ = Instant(std::chrono::nanoseconds(testbed::struck_at(cluster_, "h2")));
    return base::ok();
  }
  for (const char* host : {"h1", "h2"}) TRY(await(host, "/tmp/steps"));
  wait(Clock::now());
  struck_ = Clock::now();
  return fault_.strike(cluster_, names);
}

base::Result<Trial> Session::play(const testbed::Names& names, milliseconds cap) {
  TRY(strike(names));
  size_t before = fault_.strike ? said() : 0;
  Trial trial;
  bool ended = wait(struck_ + cap);
  if (ended) trial.seconds = std::chrono::duration<double>(Clock::now() - struck_).count();
  trial.spoke = said() > before;
  if (!ended) {
    for (Process& terminal : terminals_) terminal.signal_group(SIGINT);
    wait(Clock::now() + kInterrupt);
  }
  if (!fault_.host_is_gone) TRY(cluster_.heal("h2"));
  trial.left = testbed::leftovers(cluster_, {"h1", "h2", "ctl"}, "", kGone);
  return trial;
}

// From run.json.
void read_verdict(const base::Json& record, const InjectedFault& fault, Trial& trial) {
  if (fault.stalls) {
    base::Json stall = record.value("stall", base::Json::object());
    std::string code = base::get_string(stall, "code").value_or("");
    base::Json ranks = stall.value("ranks", base::Json::array());
    std::sort(ranks.begin(), ranks.end());
    trial.named = code == fault.code && ranks == (fault.rank < 0 ? base::Json::array({0, 1}) : base::Json::array({fault.rank}));
    trial.says = code;
    for (const base::Json& rank : ranks) trial.says += fmt::format("{}{}", trial.says == code ? " rank " : ", ", base::to_text(rank));
    return;
  }
  std::string code = base::get_string(record, "cause").value_or(""), host = base::get_string(record, "host").value_or("");
  int rank = record.value("rank", -1);
  trial.named = code == fault.code && host == "h2" && rank == fault.rank;
  trial.says = fmt::format("{} {}{}", code, host, rank < 0 ? "" : fmt::format(" rank {}", rank));
}

}  // namespace

base::Result<Trial> under_phalanx(const Setting& setting, const InjectedFault& fault) {
  testbed::MemoryGroup group;
  TRY_ASSIGN(Cluster cluster, Cluster::up(testbed::cluster_for(fault)));
  Session session(cluster, fault);
  Command command{.argv = {setting.phalanx, "run", "-H", "h1,h2", "--preflight", "off"}, .cwd = "/tmp"};
  auto add = [&](std::vector<std::string> words) { command.argv.insert(command.argv.end(), words.begin(), words.end()); };
  for (const auto& [name, value] : testbed::environment_for(fault, group)) add({"--env", name + "=" + value});
  if (fault.stalls) add({"--stall", fmt::format("{}ms", testbed::kStallAfter.count()), "--on-stall", "stop"});
  add({"--", "/usr/bin/python3", setting.scripts + "/trainer.py"});
  TRY(session.start("ctl", std::move(command)));
  TRY_ASSIGN(Trial trial, session.play(testbed::Names{}, setting.cap));
  TRY_ASSIGN(base::Json record, base::parse_json(cluster.run_on("ctl", Command{{"cat", ".local/state/phalanx/runs/latest/run.json"}}).out));
  read_verdict(record, fault, trial);
  return trial;
}

base::Result<Trial> under_torchrun(const Setting& setting, const InjectedFault& fault) {
  testbed::MemoryGroup group;
  TRY_ASSIGN(Cluster cluster, Cluster::up(testbed::cluster_for(fault)));
  TRY_ASSIGN(std::string master, cluster.address("h1"));
  Session session(cluster, fault);
  for (int node = 0; node < 2; ++node) {
    Command command{.argv = {"/usr/bin/python3", setting.scripts + "/torchrun.py", "--nnodes", "2", "--node_rank", std::to_string(node),
                             "--master_addr", master, "--master_port", "29512", "--nproc_per_node", "1", "--max_restarts", "0",
                             setting.scripts + "/trainer.py"},
                    .env = testbed::environment_for(fault, group),
                    .cwd = "/tmp"};
    TRY(session.start(fmt::format("h{}", node + 1), std::move(command)));
  }
  TRY_ASSIGN(Trial trial, session.play({.rank = "python3 -u", .agent = "torchrun.py"}, setting.cap));
  std::vector<std::optional<Blame>> blames = {root_cause(session.err(0)), root_cause(session.err(1))};
  trial.rank = judge(blames, fault.rank);
  trial.named = trial.rank == Named::kRight;
  trial.says = describe(blames);
  return trial;
}

}  // namespace phalanx::bench
