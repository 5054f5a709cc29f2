#include "cli/launch.h"

#include <sys/random.h>

#include "base/try.h"
#include "cli/agent_image.h"
#include "hosts/connect/network_place.h"
#include "hosts/connect/openssh.h"
#include "hosts/connect/slurm.h"
#include "os/apart.h"
#include "os/clock.h"
#include "os/files.h"

namespace phalanx::cli {
namespace {

constexpr os::milliseconds kForgetPatience{500};  // for the disk that the sockets of shared connections lie on

base::Result<std::string> random_token() {
  std::string token(16, '\0');
  if (::getrandom(token.data(), token.size(), 0) != static_cast<ssize_t>(token.size())) return base::system_error("getrandom", "16 bytes");
  return token;
}

hosts::OpensshOptions ssh_options(const RunOptions& options) {
  hosts::OpensshOptions ssh;
  ssh.program = os::environment_value("PHALANX_SSH", "ssh");
  ssh.build = agent_image().build;
  ssh.extra = options.ssh_options;
  ssh.connect_timeout_s = static_cast<int>(std::max<int64_t>(1, options.connect_timeout.count() / 1000));
  ssh.control_folder = hosts::control_folder();
  ssh.place = hosts::network_place();
  return ssh;
}

// How each host is reached; they live as long as the connections.
class Transports {
 public:
  explicit Transports(const RunOptions& options, hosts::JoinedNodes* joined = nullptr)
      : local_(os::self_executable(), agent_image().build),
        ssh_(ssh_options(options)),
        slurm_({.build = agent_image().build}),
        joined_(joined),
        by_hand_(joined) {}
  const hosts::Transport* to(const hosts::Target& target) const {
    if (target.destination.empty()) return &local_;
    if (joined_ && target.node_rank > 0) return &by_hand_;
    return target.slurm_job.empty() ? static_cast<const hosts::Transport*>(&ssh_) : &slurm_;
  }
  std::vector<const hosts::Transport*> to(const std::vector<hosts::Target>& targets) const {
    std::vector<const hosts::Transport*> out;
    for (const hosts::Target& target : targets) out.push_back(to(target));
    return out;
  }
  void forget(const hosts::Target& target) const { to(target)->forget(target); }

 private:
  hosts::LocalTransport local_;
  hosts::OpensshTransport ssh_;
  hosts::SlurmTransport slurm_;
  hosts::JoinedNodes* joined_;
  hosts::JoinedTransport by_hand_;
};

hosts::OpenerOptions opener_options(const RunOptions& options) {
  hosts::OpenerOptions opener;
  if (options.fanout) opener.fanout = *options.fanout;
  opener.timeout = options.connect_timeout;
  return opener;
}

}  // namespace

base::Result<job::Verdict> run_on_hosts(job::Runner& runner, job::Job job, const RunOptions& options, hosts::JoinedNodes* joined) {
  TRY_ASSIGN(job.token, random_token());
  job.build = agent_image().build;
  job.boot_id = os::boot_id();
  const Transports reach(options, joined);
  hosts::Payload payload(agent_image());
  std::vector<const hosts::Transport*> transports;
  for (const std::vector<job::HostRequest>* list : {&job.hosts, &job.spares})
    for (const job::HostRequest& host : *list) transports.push_back(reach.to(host.target));
  base::Result<job::Verdict> verdict = runner.run(std::move(job), transports, payload, opener_options(options));
  std::vector<hosts::Target> stale;
  for (const doctor::Finding& finding : runner.state().survey.examination.findings)
    if (!finding.accepted && finding.row->code.starts_with("LIM-") && finding.row->severity != doctor::Severity::kNote)
      for (size_t h : finding.hosts)
        if (const hosts::Target& target = runner.state().job.hosts[h].target; !target.destination.empty()) stale.push_back(target);
  auto forget = [&] {
    for (const hosts::Target& target : stale) reach.forget(target);
  };
  if (!stale.empty()) (void)os::run_apart("phalanx-copy", forget, kForgetPatience);
  return verdict;
}

base::Result<std::vector<job::SweptHost>> sweep_hosts(os::Loop& loop, const std::vector<hosts::Target>& hosts, const RunOptions& options,
                                                      job::SweepRequest wish) {
  const Transports reach(options);
  hosts::Payload payload(agent_image());
  job::HostSweep sweep(loop, hosts, reach.to(hosts), payload, opener_options(options), std::move(wish));
  return sweep.run();
}

base::Result<std::vector<job::CopiedHost>> copy_to_hosts(const std::vector<hosts::Target>& hosts, const RunOptions& options,
                                                         job::CopyRequest request) {
  TRY_ASSIGN(std::unique_ptr<os::Loop> loop, os::Loop::create());
  const Transports reach(options);
  hosts::Payload payload(agent_image());
  job::CopyToHosts copy(*loop, hosts, reach.to(hosts), payload, opener_options(options), std::move(request));
  return copy.run();
}

}  // namespace phalanx::cli
