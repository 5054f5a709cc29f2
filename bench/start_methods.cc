#include "start_methods.h"

#include <filesystem>
#include <memory>

#include <fmt/format.h>

#include "base/try.h"
#include "os/files.h"
#include "os/program.h"

namespace phalanx::bench {
namespace {

std::string host(int index) { return fmt::format("h{}", index + 1); }

std::string host_list(int hosts, const char* suffix = "") {
  std::string list;
  for (int i = 0; i < hosts; ++i) list += (i ? "," : "") + host(i) + suffix;
  return list;
}

Words joined(Words first, const Words& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

// The same ssh command to every host, all at once.
Launch ssh_all(int hosts, const Words& options, const std::string& command) {
  Launch launch;
  for (int i = 0; i < hosts; ++i) {
    Words words = joined({"ssh", "-o", "BatchMode=yes"}, options);
    words.insert(words.end(), {host(i), command});
    launch.commands.push_back(std::move(words));
  }
  return launch;
}

Words through(const std::string& folder) { return {"-o", "ControlPath=" + folder + "/%C"}; }

base::Status open_masters(const std::string& folder, int hosts) {
  TRY(os::make_folders(folder, 0700));
  return run_quietly(ssh_all(hosts, joined(through(folder), {"-o", "ControlMaster=auto", "-o", "ControlPersist=yes"}), "true"));
}

// Ends every shared connection whose socket lies in the folder.
base::Status close_masters(const std::string& folder) {
  Launch launch;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error))
    if (entry.is_socket(error)) launch.commands.push_back({"ssh", "-q", "-o", "ControlPath=" + entry.path().string(), "-O", "exit", "any"});
  return launch.commands.empty() ? base::ok() : run_quietly(launch);
}

// What a run waits for: the checks, or nothing where the run before passed them minutes ago.
enum class Checks { kFirst, kRemembered };

Launch phalanx_run(const Setting& setting, int hosts, const std::string& runtime, Checks checks = Checks::kRemembered) {
  Words words = {setting.phalanx, "run"};
  if (checks == Checks::kFirst) words = joined(words, {"--reuse-checks", "0"});
  if (hosts > 0) words = joined(words, {"-H", host_list(hosts)});
  words = joined(words, {"--nproc-per-node", "1", "--", setting.rank});
  return {{words}, {"XDG_RUNTIME_DIR=" + runtime}};
}

// A launch that finds no shared connections: every trial has a folder of its own for them.
struct Fresh {
  std::string folder;
  int count = 0;
  std::string current() const { return fmt::format("{}/{}", folder, count); }
  base::Status next() {
    ++count;
    return os::make_folders(current(), 0700);
  }
};

Method cold_phalanx(const Setting& setting, const std::string& name, Checks checks, bool deploys) {
  auto fresh = std::make_shared<Fresh>(Fresh{setting.folder + (deploys ? "/d" : checks == Checks::kFirst ? "/f" : "/c")});
  std::string warm = setting.folder + "/w";
  Method method{.name = name, .group = Group::kCold, .launch = {}};
  method.launch = [=](int hosts) { return phalanx_run(setting, hosts, fresh->current(), checks); };
  method.before = [=](int hosts) -> base::Status {
    if (deploys) TRY(run_quietly(ssh_all(hosts, through(warm), "rm -rf .cache/phalanx")));
    return fresh->next();
  };
  method.after = [=](int) { return close_masters(fresh->current() + "/phalanx"); };
  return method;
}

Method warm_phalanx(const Setting& setting, const std::string& name, Checks checks) {
  std::string runtime = setting.folder + (checks == Checks::kFirst ? "/q" : "/p");
  Method method{.name = name, .group = Group::kWarm, .launch = {}};
  method.launch = [=](int hosts) { return phalanx_run(setting, hosts, runtime, checks); };
  method.open = [=](int hosts) -> base::Status {
    TRY(os::make_folders(runtime, 0700));
    // The login, and the first run that finds it kept, beside which ssh is asked for what later ones need to know.
    for (int i = 0; i < 2; ++i) TRY(run_quietly(phalanx_run(setting, hosts, runtime)));
    return base::ok();
  };
  method.close = [=](int) { return close_masters(runtime + "/phalanx"); };
  return method;
}

// Debian 12's torchrun fails under Python 3.11, whose IntFlag iterates without the zero member: Std.from_str("0") gives None.
constexpr const char* kTorchrun =
    "import torch.distributed.elastic.multiprocessing.api as a, torch.distributed.run as r; f = a.Std.from_str; "
    "a.Std.from_str = classmethod(lambda c, s: a.Std.NONE if s == \"0\" else f(s)); r.main()";

std::string torchrun(const Setting& setting, int hosts, int index) {
  return fmt::format(
      "/usr/bin/python3 -c '{}' --nnodes {} --node_rank {} --nproc_per_node 1 --master_addr {} --master_port 29501 --no_python {}",
      kTorchrun, std::max(1, hosts), index, hosts == 0 ? "127.0.0.1" : host(0), setting.rank);
}

Launch torchrun_all(const Setting& setting, int hosts) {
  if (hosts == 0) return {{{"sh", "-c", "exec " + torchrun(setting, 0, 0)}}, {}};
  Launch launch = ssh_all(hosts, {}, "");
  for (int i = 0; i < hosts; ++i) launch.commands[static_cast<size_t>(i)].back() = torchrun(setting, hosts, i);
  return launch;
}

Launch mpirun(const Setting& setting, int hosts) {
  Words words = {"mpirun", "--allow-run-as-root"};
  if (hosts > 0) words = joined(words, {"--host", host_list(hosts, ":1")});
  return {{joined(words, {"-np", std::to_string(std::max(1, hosts)), setting.rank})}, {}};
}

// A second of processor time per host, for its imports alone: on one machine more than eight say nothing new.
constexpr int kMostTorchrunHosts = 8;

}  // namespace

std::vector<Method> methods(const Setting& setting) {
  std::string warm = setting.folder + "/w";
  Method ssh_warm{.name = "ssh all at once, connections kept", .group = Group::kWarm, .floor = true, .launch = [=](int hosts) {
                    return ssh_all(hosts, through(warm), setting.rank);
                  }};
  ssh_warm.open = [=](int hosts) { return open_masters(warm, hosts); };
  ssh_warm.close = [=](int) { return close_masters(warm); };

  std::vector<Method> all;
  all.push_back({.name = "ssh all at once", .group = Group::kCold, .floor = true, .launch = [=](int hosts) {
                   return ssh_all(hosts, {}, setting.rank);
                 }});
  all.push_back(cold_phalanx(setting, "phalanx", Checks::kRemembered, false));
  all.push_back(cold_phalanx(setting, "phalanx, checks first", Checks::kFirst, false));
  all.push_back({.name = "pdsh -R ssh", .group = Group::kCold, .launch = [=](int hosts) {
                   return Launch{{{"pdsh", "-R", "ssh", "-f", "64", "-w", host_list(hosts), setting.rank}}, {}};
                 }});
  all.push_back({.name = "clush", .group = Group::kCold, .launch = [=](int hosts) {
                   return Launch{{{"clush", "--nostdin", "-f", "64", "-w", host_list(hosts), setting.rank}}, {}};
                 }});
  all.push_back({.name = "mpirun", .group = Group::kCold, .launch = [=](int hosts) { return mpirun(setting, hosts); }});
  all.push_back({.name = "torchrun by ssh", .group = Group::kCold, .most_hosts = kMostTorchrunHosts, .launch = [=](int hosts) {
                   return torchrun_all(setting, hosts);
                 }});
  all.push_back(cold_phalanx(setting, "phalanx, the very first time", Checks::kFirst, true));
  all.push_back(std::move(ssh_warm));
  all.push_back(warm_phalanx(setting, "phalanx, connections kept", Checks::kRemembered));
  all.push_back(warm_phalanx(setting, "phalanx, kept, checks first", Checks::kFirst));
  all.push_back(
      {.name = "fork and exec", .group = Group::kLocal, .floor = true, .launch = [=](int) { return Launch{{{setting.rank}}, {}}; }});
  all.push_back({.name = "phalanx", .group = Group::kLocal, .launch = [=](int) { return phalanx_run(setting, 0, setting.folder); }});
  all.push_back({.name = "mpirun", .group = Group::kLocal, .launch = [=](int) { return mpirun(setting, 0); }});
  all.push_back({.name = "torchrun", .group = Group::kLocal, .launch = [=](int) { return torchrun_all(setting, 0); }});
  std::string path = os::environment_value("PATH", "/usr/bin:/bin");
  for (const char* peer : {"pdsh", "clush", "mpirun"})
    if (!os::find_program(peer, path, "").ok()) {
      fmt::print(stderr, "bench start: {} is not installed and left out\n", peer);
      std::erase_if(all, [&](const Method& m) { return m.name.starts_with(peer); });
    }
  if (run_quietly({{{"/usr/bin/python3", "-c", "import torch"}}, {}}).ok()) return all;
  fmt::print(stderr, "bench start: /usr/bin/python3 has no torch (Debian: python3-torch): torchrun is left out\n");
  std::erase_if(all, [](const Method& m) { return m.name.starts_with("torchrun"); });
  return all;
}

}  // namespace phalanx::bench
