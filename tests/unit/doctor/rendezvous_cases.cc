#include "cases.h"

namespace phalanx::doctor::test {
namespace {

machine::NetworkFacts& network(Situation& s, size_t h) { return s.hosts[h].facts.network; }

void master(Situation& s, const std::string& address, int port = 0) {
  s.job.master_address = address;
  s.job.master_port = port;
}
void answer(Situation& s, size_t h, const std::string& name, std::vector<std::string> addresses, const std::string& error = "") {
  for (machine::Resolved& r : network(s, h).names)
    if (r.name == name) {
      r.addresses = std::move(addresses);
      r.error = error;
      return;
    }
  network(s, h).names.push_back({name, std::move(addresses), error, 1000});
}
void listener(Situation& s, size_t h, int port, int64_t parent) {
  s.hosts[h].facts.processes.ports = {{port, "::", 4711, "python train.py", s.hosts[h].facts.machine.user, parent, 5400}};
}
void script(Situation& s, const std::string& text) {
  for (HostView& h : s.hosts) {
    machine::CommandFile file;
    file.path = "/home/train/work/train.py";
    file.role = "script";
    file.exists = true;
    file.text = text;
    h.facts.command.files = {file};
  }
}

std::vector<Case> meeting() {
  return {
      hit("RDZV-PORT-TAKEN", "an orphan", plain_ethernet, [](Situation& s) { s.job.master_port = 29500, listener(s, 0, 29500, 1); }),
      miss("RDZV-PORT-TAKEN", "on another host", plain_ethernet, [](Situation& s) { s.job.master_port = 29500, listener(s, 1, 29500, 1); }),
      miss("RDZV-PORT-TAKEN", "another port", plain_ethernet, [](Situation& s) { s.job.master_port = 29500, listener(s, 0, 29501, 1); }),
      hit("RDZV-MASTER-LOOPBACK", "localhost and four hosts", plain_ethernet, [](Situation& s) { master(s, "localhost"); }),
      hit("RDZV-MASTER-LOOPBACK", "a name that is 127.0.1.1 on another host", plain_ethernet,
          [](Situation& s) { master(s, "node01"), answer(s, 2, "node01", {"127.0.1.1"}); }),
      miss("RDZV-MASTER-LOOPBACK", "localhost and one host", single_machine, [](Situation& s) { master(s, "localhost"); }),
      miss("RDZV-MASTER-LOOPBACK", "a real address", plain_ethernet, [](Situation& s) { master(s, "192.168.20.11"); }),
      hit("RDZV-MASTER-OTHER-HOST", "the second host's", plain_ethernet, [](Situation& s) { master(s, "192.168.20.12"); }),
      miss("RDZV-MASTER-OTHER-HOST", "the first host's", plain_ethernet, [](Situation& s) { master(s, "192.168.20.11"); }),
      hit("RDZV-MASTER-NOT-RANK0", "nobody's", plain_ethernet, [](Situation& s) { master(s, "192.168.20.99"); }),
      miss("RDZV-MASTER-NOT-RANK0", "the first host's name", plain_ethernet, [](Situation& s) { master(s, "node01"); }),
      hit("RDZV-PORT-EPHEMERAL", "54321", plain_ethernet, [](Situation& s) { s.job.master_port = 54321; }),
      miss("RDZV-PORT-EPHEMERAL", "29500", plain_ethernet, [](Situation& s) { s.job.master_port = 29500; }),
      miss("RDZV-PORT-EPHEMERAL", "reserved", plain_ethernet,
           [](Situation& s) {
             s.job.master_port = 54321;
             for (HostView& h : s.hosts) h.facts.network.reserved_ports = "8080,54000-54999";
           }),
      hit("RDZV-PORT-RANDOM", "the field note's", single_machine,
          [](Situation& s) { script(s, "import random\nrnd_port = 54000 + random.randint(0, 888)\nargs.tcp_port = str(rnd_port)\n"); }),
      hit("RDZV-PORT-RANDOM", "in a shell, on four hosts", plain_ethernet,
          [](Situation& s) { script(s, "export MASTER_PORT=$((RANDOM % 1000 + 20000))\n"); }),
      miss("RDZV-PORT-RANDOM", "one host, outside the range", single_machine,
           [](Situation& s) { script(s, "export MASTER_PORT=$((RANDOM % 1000 + 20000))\n"); }),
      miss("RDZV-PORT-RANDOM", "no port", plain_ethernet,
           [](Situation& s) { script(s, "seed = random.randint(0, 50000)\n# port = random.randint(40000, 50000)\n"); }),
      hit("RDZV-INIT-LOCALHOST", "the field note's", plain_ethernet,
          [](Situation& s) { script(s, "init_process_group(backend='nccl', init_method='tcp://localhost:'+str(args.tcp_port))\n"); }),
      miss("RDZV-INIT-LOCALHOST", "on one machine", single_machine,
           [](Situation& s) { script(s, "init(init_method='tcp://localhost:1')\n"); }),
      miss("RDZV-INIT-LOCALHOST", "in a comment", plain_ethernet, [](Situation& s) { script(s, "# init_method='tcp://localhost:1'\n"); }),
      hit("RDZV-SOMAXCONN", "128 for 1024 ranks", bond_infiniband, [](Situation& s) { network(s, 0).somaxconn = 128, s.job.world = 1024; }),
      miss("RDZV-SOMAXCONN", "128 for 32", bond_infiniband, [](Situation& s) { network(s, 0).somaxconn = 128; }),
      hit("RDZV-HAND-SET", "a left-over RANK", plain_ethernet, [](Situation& s) { s.job.set = {{"RANK", "0"}, {"WORLD_SIZE", "2"}}; }),
      miss("RDZV-HAND-SET", "another variable", plain_ethernet, [](Situation& s) { s.job.set = {{"OMP_NUM_THREADS", "8"}}; }),
  };
}

std::vector<Case> names() {
  return {
      hit("RDZV-NAME-LOOPBACK", "Debian's /etc/hosts", plain_ethernet,
          [](Situation& s) { answer(s, 1, "node02", {"127.0.1.1"}), network(s, 1).hosts_file_loopback_name = "127.0.1.1\tnode02"; }),
      miss("RDZV-NAME-LOOPBACK", "one machine", single_machine, [](Situation& s) { answer(s, 0, "workstation", {"127.0.1.1"}); }),
      miss("RDZV-NAME-LOOPBACK", "Gloo is told its interface", plain_ethernet,
           [](Situation& s) { answer(s, 1, "node02", {"127.0.1.1"}), s.job.set = {{"GLOO_SOCKET_IFNAME", "eno1"}}; }),
      hit("RDZV-DUPLICATE-HOSTNAME", "a cloned image", plain_ethernet, [](Situation& s) { s.hosts[2].facts.machine.hostname = "node01"; }),
      miss("RDZV-DUPLICATE-HOSTNAME", "one machine listed twice is another row's", plain_ethernet,
           [](Situation& s) { s.hosts[2].facts = s.hosts[0].facts; }),
      hit("RDZV-SAME-MACHINE", "by name and by address", plain_ethernet, [](Situation& s) { s.hosts[1].facts = s.hosts[0].facts; }),
      miss("RDZV-SAME-MACHINE", "containers of one machine, with names and addresses of their own", plain_ethernet,
           [](Situation& s) {
             for (HostView& h : s.hosts) h.facts.machine.boot_id = "b007", h.facts.machine.machine_id = "1d";
           }),
      hit("RDZV-MACHINE-ID", "cloned", plain_ethernet,
          [](Situation& s) { s.hosts[1].facts.machine.machine_id = s.hosts[0].facts.machine.machine_id; }),
      miss("RDZV-MACHINE-ID", "containers share an image", docker_host_network,
           [](Situation& s) { s.hosts[1].facts.machine.machine_id = s.hosts[0].facts.machine.machine_id; }),
      hit("RDZV-HOSTID", "one for all", bond_infiniband, [](Situation& s) { s.job.set = {{"NCCL_HOSTID", "x"}}; }),
      miss("RDZV-HOSTID", "one per host", bond_infiniband,
           [](Situation& s) {
             for (HostView& h : s.hosts) h.facts.software.environment["NCCL_HOSTID"] = h.name;
           }),
      hit("RDZV-MASTER-UNKNOWN", "on one host", plain_ethernet,
          [](Situation& s) { master(s, "node01"), answer(s, 3, "node01", {}, "Name or service not known"); }),
      miss("RDZV-MASTER-UNKNOWN", "known to all", plain_ethernet, [](Situation& s) { master(s, "node01"); }),
      hit("RDZV-NAME-UNKNOWN", "a peer", plain_ethernet, [](Situation& s) { answer(s, 0, "node03", {}, "Name or service not known"); }),
      miss("RDZV-NAME-UNKNOWN", "not asked", plain_ethernet, [](Situation& s) { network(s, 0).names.clear(); }),
      hit("RDZV-NAME-STALE", "an old address", plain_ethernet, [](Situation& s) { answer(s, 0, "node03", {"192.168.20.77"}); }),
      miss("RDZV-NAME-STALE", "another address of the same host", plain_ethernet,
           [](Situation& s) {
             network(s, 2).interfaces[1].addresses.push_back({"10.5.0.3", 24, false});
             answer(s, 0, "node03", {"10.5.0.3"});
           }),
      hit("RDZV-NAMES-DISAGREE", "an old line in one hosts file", plain_ethernet,
          [](Situation& s) { master(s, "node01"), answer(s, 3, "node01", {"192.168.20.77"}); }),
      miss("RDZV-NAMES-DISAGREE", "two networks of one host", plain_ethernet,
           [](Situation& s) {
             master(s, "node01");
             network(s, 0).interfaces[1].addresses.push_back({"10.5.0.1", 24, false});
             answer(s, 3, "node01", {"10.5.0.1"});
           }),
      miss("RDZV-NAMES-DISAGREE", "its own name is 127.0.1.1 at home", plain_ethernet,
           [](Situation& s) { master(s, "node01"), answer(s, 0, "node01", {"127.0.1.1"}); }),
  };
}

}  // namespace

std::vector<Case> rendezvous_cases() {
  std::vector<Case> all = meeting();
  for (Case& c : names()) all.push_back(std::move(c));
  return all;
}

}  // namespace phalanx::doctor::test
