// The faults a cluster can have. Those of the network act at the switch (the guard's network namespace) or, for what a
// firewall or a network card would do, in the host's own.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "base/try.h"
#include "cgroup.h"
#include "cluster.h"
#include "state.h"
#include "tool.h"

namespace phalanx::testbed {

namespace {

base::Result<os::Fd> network_of(const std::string& pid) {
  std::string path = "/proc/" + pid + "/ns/net";
  os::Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return base::system_error("open", path);
  return fd;
}

}  // namespace

base::Status Cluster::on_switch(const std::vector<std::string>& argv, const std::string& input) const {
  TRY_ASSIGN(std::string guard, read_text(state_path(name_, "guard")));
  TRY_ASSIGN(os::Fd network, network_of(guard));
  TRY(run_tool(argv, input, network.get()));
  return base::ok();
}

base::Status Cluster::on_network(const std::string& host, const std::vector<std::string>& argv, const std::string& input) const {
  TRY_ASSIGN(pid_t init, init_of(host));
  TRY_ASSIGN(os::Fd network, network_of(std::to_string(init)));
  TRY(run_tool(argv, input, network.get()));
  return base::ok();
}

base::Result<std::string> Cluster::port(const std::string& host) const {
  TRY_ASSIGN(std::string own, address(host));
  return "p-" + (host == "ctl" ? "0" : own.substr(own.rfind('.') + 1));
}

base::Status Cluster::cut(const std::string& host) const {
  TRY_ASSIGN(std::string name, port(host));
  return on_switch({"ip", "link", "set", name, "down"});
}

base::Status Cluster::drop(const std::string& host, Direction direction) const {
  TRY_ASSIGN(std::string name, port(host));
  std::string rules;
  if (direction != Direction::kTo) rules += fmt::format("add element bridge testbed mute {{ \"{}\" }}\n", name);
  if (direction != Direction::kFrom) rules += fmt::format("add element bridge testbed deaf {{ \"{}\" }}\n", name);
  return on_switch({"nft", "-f", "-"}, rules);
}

base::Status Cluster::separate(const std::string& a, const std::string& b) const {
  TRY_ASSIGN(std::string one, port(a));
  TRY_ASSIGN(std::string other, port(b));
  return on_switch({"nft", "-f", "-"},
                   fmt::format("add element bridge testbed apart {{ \"{0}\" . \"{1}\", \"{1}\" . \"{0}\" }}\n", one, other));
}

base::Status Cluster::lose(const std::string& host, int percent) const {
  TRY_ASSIGN(std::string name, port(host));
  return on_switch({"nft", "-f", "-"}, fmt::format("add rule bridge testbed lossy iifname \"{0}\" numgen random mod 100 < {1} drop\n"
                                                   "add rule bridge testbed lossy oifname \"{0}\" numgen random mod 100 < {1} drop\n",
                                                   name, percent));
}

base::Status Cluster::throttle(const std::string& host, const std::string& rate) const {
  TRY_ASSIGN(std::string name, port(host));
  std::string rule = " root tbf burst 64kb latency 200ms rate " + rate;
  TRY(on_switch({"tc", "-batch", "-"}, "qdisc replace dev " + name + rule + "\n"));
  return on_network(host, {"tc", "-batch", "-"}, "qdisc replace dev eth0" + rule + "\n");
}

base::Status Cluster::reject(const std::string& host, Ports ports, Answer answer) const {
  return on_network(host, {"nft", "-f", "-"},
                    fmt::format(R"(add table inet testbed
    add chain inet testbed input {{ type filter hook input priority 0; }}
    add rule inet testbed input iifname "eth0" ct state new tcp dport {}-{} {}
  )",
                                ports.first, ports.last, answer == Answer::kReset ? "reject with tcp reset" : "drop"));
}

base::Status Cluster::heal(const std::string& host) const {
  TRY_ASSIGN(std::string name, port(host));
  TRY(thaw(host));
  // A set element that is not there cannot be deleted, so each is added first. Pairs and what is lost by chance are forgotten for all
  // hosts.
  TRY(on_switch({"nft", "-f", "-"}, fmt::format(R"(add element bridge testbed mute {{ "{0}" }}
    add element bridge testbed deaf {{ "{0}" }}
    delete element bridge testbed mute {{ "{0}" }}
    delete element bridge testbed deaf {{ "{0}" }}
    flush set bridge testbed apart
    flush chain bridge testbed lossy
  )",
                                                name)));
  TRY(on_switch({"ip", "link", "set", name, "up"}));
  TRY(on_network(host, {"nft", "-f", "-"}, "add table inet testbed\ndelete table inet testbed\n"));
  TRY(on_switch({"tc", "-batch", "-"}, "qdisc replace dev " + name + " root pfifo_fast\n"));
  return on_network(host, {"tc", "-batch", "-"}, "qdisc replace dev eth0 root pfifo_fast\n");
}

base::Status Cluster::freeze(const std::string& host) const {
  TRY_ASSIGN(std::string cgroup, host_cgroup(name_, host));
  return freeze_cgroup(cgroup, true);
}

base::Status Cluster::thaw(const std::string& host) const {
  TRY_ASSIGN(std::string cgroup, host_cgroup(name_, host));
  return freeze_cgroup(cgroup, false);
}

base::Status Cluster::power_off(const std::string& host) const { return ask_guard("power-off " + host); }
base::Status Cluster::kill_all(const std::string& host) const { return ask_guard("kill-all " + host); }
base::Status Cluster::boot(const std::string& host) const {
  TRY(ask_guard("boot " + host));
  return heal(host);
}

}  // namespace phalanx::testbed
