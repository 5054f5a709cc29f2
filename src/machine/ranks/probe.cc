#include <unistd.h>

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "machine/network/sockets.h"
#include "machine/probe.h"
#include "machine/ranks/process_table.h"

namespace phalanx::machine {
namespace {

constexpr os::milliseconds kHolderBudget{250};
constexpr os::milliseconds kLeftoverBudget{250};
constexpr size_t kMostLeftovers = 64;

// We ourselves: the child this runs in, the agent, the launcher. What they listen on is not in the job's way.
// Asked one by one: on a busy machine a scan of all processes may end before it comes to us.
std::vector<pid_t> own_family() {
  std::vector<pid_t> family;
  ProcessStat stat;
  for (int64_t pid = ::getpid(); pid > 1 && family.size() < 64 && read_stat("", pid, stat); pid = stat.parent)
    family.push_back(static_cast<pid_t>(pid));
  return family;
}

std::vector<PortOwner> port_owners(const ProbeRequest& r) {
  std::vector<Listener> sockets = listeners(r.root, r.ports);
  if (r.root.empty()) std::erase_if(sockets, [family = own_family()](const Listener& l) { return holds_socket(family, {l.inode}); });
  std::set<uint64_t> inodes;
  for (const Listener& l : sockets) inodes.insert(l.inode);
  std::map<uint64_t, int64_t> pids = inodes.empty() ? std::map<uint64_t, int64_t>{} : holders(r.root, inodes, kHolderBudget);
  std::vector<PortOwner> owners;
  for (const Listener& l : sockets) {
    PortOwner owner;
    owner.port = l.port;
    owner.address = l.address;
    owner.user = user_name(r.root, l.uid);
    auto held = pids.find(l.inode);
    if (held != pids.end()) {
      owner.pid = held->second;
      owner.command = command_line(r.root, owner.pid);
      if (ProcessStat stat; read_stat(r.root, owner.pid, stat)) {
        owner.parent = stat.parent;
        owner.age_s = age_s(r.root, stat);
        if (owner.command.empty()) owner.command = stat.comm;
      }
    }
    bool known = std::any_of(owners.begin(), owners.end(), [&](const PortOwner& o) { return o.port == owner.port && o.pid == owner.pid; });
    if (!known && owners.size() < 64) owners.push_back(std::move(owner));
  }
  return owners;
}

bool starts_with_any(const std::string& text, std::initializer_list<const char*> starts) {
  return std::any_of(starts.begin(), starts.end(), [&](const char* s) { return text.rfind(s, 0) == 0; });
}

// A launcher's child whose launcher has died is given to process 1, or to a subreaper: a user's systemd. In a container process 1 may
// be the launcher itself.
bool parent_is_gone(const ProcessStat& stat, const std::map<int64_t, ProcessStat>& table) {
  auto parent = table.find(stat.parent);
  if (stat.parent == 0 || parent == table.end()) return false;
  const std::string& comm = parent->second.comm;
  if (stat.parent == 1)
    return !starts_with_any(comm, {"python", "pt_", "torchrun", "accelerate", "deepspeed", "phalanx", "mpirun", "mpiexec", "orted", "prted",
                                   "hydra", "srun", "slurmstepd", "ray", "node", "java", "kubelet"});
  return comm == "systemd" || comm == "init" || comm == "tini" || comm == "dumb-init" || comm == "docker-init" || comm == "catatonit";
}

// Why a process looks like a rank: the variables that only a launcher gives to the ranks themselves.
std::string rank_words(const std::map<std::string, std::string>& environment) {
  auto value = [&](const char* name) {
    auto found = environment.find(name);
    return found == environment.end() ? std::string() : found->second.substr(0, 40);
  };
  std::string rank = value("RANK"), world = value("WORLD_SIZE");
  if (rank.empty() || world.empty()) return "";
  if (value("LOCAL_RANK").empty() && value("TORCHELASTIC_RUN_ID").empty()) return "";
  return fmt::format("RANK={} WORLD_SIZE={}", rank, world);
}

std::vector<Leftover> leftovers(const ProbeRequest& r, const std::map<int64_t, ProcessStat>& table) {
  std::vector<Leftover> found;
  os::Mono end = os::mono_now() + kLeftoverBudget;
  for (const auto& [pid, stat] : table) {
    if (found.size() >= kMostLeftovers || os::mono_now() > end) break;
    if (stat.state == 'Z' || !parent_is_gone(stat, table)) continue;
    std::string words = rank_words(environment_of(r.root, pid));
    if (words.empty()) continue;
    Leftover l;
    l.pid = pid;
    l.parent = stat.parent;
    l.age_s = age_s(r.root, stat);
    l.command = command_line(r.root, pid);
    l.user = user_name(r.root, owner_of(r.root, pid));
    l.why = words + ", its launcher has exited";
    found.push_back(std::move(l));
  }
  return found;
}

}  // namespace

ProcessFacts probe_processes(const ProbeRequest& r) {
  std::map<int64_t, ProcessStat> table;
  each_process(r.root, kHolderBudget, [&](int64_t pid, const ProcessStat& stat) {
    table.emplace(pid, stat);
    return true;
  });
  ProcessFacts p;
  p.ports = port_owners(r);
  p.leftovers = leftovers(r, table);
  return p;
}

}  // namespace phalanx::machine
