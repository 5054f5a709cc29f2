// `testbed`: the test cluster for shell scripts and benches. See usage().
#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <functional>

#include "base/text.h"
#include "cluster.h"

using namespace phalanx;

namespace {

using testbed::Cluster;
using Words = std::vector<std::string>;

int usage() {
  fmt::print(stderr,
             "usage: testbed [-n NAME] COMMAND\n"
             "  up N [--detach] [--sshd LINE]   make N hosts (h1, h2, …) and ctl; they end with the calling process,\n"
             "                                  with --detach at `down`; --sshd gives every host's sshd a line\n"
             "  down                            remove them\n"
             "  exec [--user NAME] HOST COMMAND...   run a command on a host, this terminal and all, as root or\n"
             "                                  as worker, who can log in everywhere, or stranger, who cannot\n"
             "  hosts                           names and addresses\n"
             "  ps [HOST...]                    the processes of the hosts\n"
             "  kill HOST TEXT [SIGNAL]         signal the processes whose command contains TEXT (default 9)\n"
             "  cut HOST                        pull the cable\n"
             "  drop HOST from|to|both          a black hole for what comes from or goes to the host\n"
             "  separate HOST HOST              a black hole between two hosts\n"
             "  throttle HOST RATE              10mbit, both ways\n"
             "  reject HOST FIRST [LAST]        answer new TCP connections to these ports with a reset\n"
             "  freeze HOST | thaw HOST         stop and continue every process\n"
             "  heal HOST                       undo all of the above\n"
             "  power-off HOST | kill-all HOST  end every process, unheard by its peers or with FIN and RST\n"
             "  boot HOST                       after power-off and kill-all\n"
             "  sweep                           remove what dead clusters left\n"
             "NAME (or $TESTBED) tells clusters apart; it is `default` when not given.\n");
  return 2;
}

int report(const base::Status& status) {
  if (status.ok()) return 0;
  fmt::print(stderr, "{}", status.error().render());
  return base::exit_code(status.error().kind);
}

int up(const std::string& name, const Words& args) {
  testbed::Options options;
  options.name = name;
  options.owner = ::getppid();
  options.ssh_as_it_comes = true;
  if (args.empty()) return usage();
  auto count = base::parse_int(args[0], 1, 250);
  if (!count.ok()) return report(std::move(count).error());
  options.hosts = static_cast<int>(*count);
  options.host.resize(static_cast<size_t>(options.hosts));
  for (size_t i = 1; i < args.size(); ++i) {
    if (args[i] == "--detach") {
      options.owner = -1;
    } else if (args[i] == "--sshd" && i + 1 < args.size()) {
      for (auto& host : options.host) host.sshd_config.push_back(args[i + 1]);
      ++i;
    } else {
      return usage();
    }
  }
  auto cluster = Cluster::up(options);
  return cluster.ok() ? 0 : report(std::move(cluster).error());
}

int execute(const Cluster& cluster, Words args) {
  std::string user;
  if (args[0] == "--user") {
    if (args.size() < 4) return usage();
    user = args[1];
    args.erase(args.begin(), args.begin() + 2);
  }
  testbed::Command command{.argv = Words(args.begin() + 1, args.end()), .stdio = testbed::Command::kInherit, .user = user};
  for (const char* name : {"TERM", "COLUMNS", "LINES"}) {
    if (const char* value = std::getenv(name)) command.env[name] = value;
  }
  auto process = cluster.start_on(args[0], command);
  if (!process.ok()) return report(std::move(process).error());
  for (int number : {SIGINT, SIGQUIT}) ::signal(number, SIG_IGN);  // the command hears the terminal's keys itself
  while (!process->wait(std::chrono::hours(1))) {}
  return process->finish(testbed::milliseconds(0)).exit_code;
}

int list_hosts(const Cluster& cluster) {
  for (const auto& host : cluster.hosts()) {
    auto address = cluster.address(host);
    fmt::print("{} {}\n", host, address.ok() ? *address : "?");
  }
  return 0;
}

int list_processes(const Cluster& cluster, Words hosts) {
  if (hosts.empty()) {
    hosts = cluster.hosts();
    hosts.insert(hosts.begin(), "ctl");
  }
  for (const auto& host : hosts) {
    for (const auto& process : cluster.processes(host)) {
      fmt::print("{} {} {} {} {}\n", host, process.pid, process.parent, process.name, process.command);
    }
  }
  return 0;
}

int drop(const Cluster& cluster, const Words& args) {
  using testbed::Direction;
  if (args[1] == "from") return report(cluster.drop(args[0], Direction::kFrom));
  if (args[1] == "to") return report(cluster.drop(args[0], Direction::kTo));
  if (args[1] == "both") return report(cluster.drop(args[0], Direction::kBoth));
  return usage();
}

int reject(const Cluster& cluster, const Words& args) {
  auto first = base::parse_int(args[1], 1, 65535);
  auto last = base::parse_int(args.back(), 1, 65535);
  if (!first.ok() || !last.ok()) return usage();
  return report(cluster.reject(args[0], {static_cast<int>(*first), args.size() > 2 ? static_cast<int>(*last) : static_cast<int>(*first)}));
}

int kill_some(const Cluster& cluster, const Words& args) {
  auto signal = base::parse_int(args.size() > 2 ? args[2] : "9", 1, 64);
  if (!signal.ok()) return usage();
  fmt::print("{}\n", cluster.kill_processes(args[0], args[1], static_cast<int>(*signal)));
  return 0;
}

struct Verb {
  const char* name;
  size_t least;  // words it needs
  std::function<int(Cluster&, const Words&)> act;
};

const std::vector<Verb>& verbs() {
  static const std::vector<Verb> table = {
      {"down", 0, [](Cluster& c, const Words&) { return report(c.down()); }},
      {"exec", 2, [](Cluster& c, const Words& w) { return execute(c, w); }},
      {"hosts", 0, [](Cluster& c, const Words&) { return list_hosts(c); }},
      {"ps", 0, [](Cluster& c, const Words& w) { return list_processes(c, w); }},
      {"kill", 2, [](Cluster& c, const Words& w) { return kill_some(c, w); }},
      {"cut", 1, [](Cluster& c, const Words& w) { return report(c.cut(w[0])); }},
      {"drop", 2, [](Cluster& c, const Words& w) { return drop(c, w); }},
      {"separate", 2, [](Cluster& c, const Words& w) { return report(c.separate(w[0], w[1])); }},
      {"throttle", 2, [](Cluster& c, const Words& w) { return report(c.throttle(w[0], w[1])); }},
      {"reject", 2, [](Cluster& c, const Words& w) { return reject(c, w); }},
      {"freeze", 1, [](Cluster& c, const Words& w) { return report(c.freeze(w[0])); }},
      {"thaw", 1, [](Cluster& c, const Words& w) { return report(c.thaw(w[0])); }},
      {"heal", 1, [](Cluster& c, const Words& w) { return report(c.heal(w[0])); }},
      {"power-off", 1, [](Cluster& c, const Words& w) { return report(c.power_off(w[0])); }},
      {"kill-all", 1, [](Cluster& c, const Words& w) { return report(c.kill_all(w[0])); }},
      {"boot", 1, [](Cluster& c, const Words& w) { return report(c.boot(w[0])); }},
  };
  return table;
}

}  // namespace

int main(int argc, char** argv) {
  Words args(argv + 1, argv + argc);
  const char* from_environment = std::getenv("TESTBED");
  std::string name = from_environment != nullptr ? from_environment : "default";
  if (args.size() >= 2 && args[0] == "-n") {
    name = args[1];
    args.erase(args.begin(), args.begin() + 2);
  }
  if (args.empty()) return usage();
  std::string verb = args[0];
  args.erase(args.begin());
  if (verb == "up") return up(name, args);
  if (verb == "sweep") {
    for (const auto& removed : testbed::sweep()) fmt::print("{}\n", removed);
    return 0;
  }
  for (const auto& row : verbs()) {
    if (verb != row.name) continue;
    if (args.size() < row.least) return usage();
    auto cluster = Cluster::attach(name);
    return cluster.ok() ? row.act(*cluster, args) : report(std::move(cluster).error());
  }
  return usage();
}
