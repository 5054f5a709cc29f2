// run, plan and train: parse → open hosts → probe → check → plan → launch → supervise → report.
#include <sys/random.h>

#include <fmt/format.h>

#include "base/language.h"
#include "cli/make_job.h"
#include "cli/show.h"
#include "cli/verbs.h"
#include "cluster/openssh.h"
#include "job/narrate.h"
#include "os/build_id.h"
#include "os/files.h"

namespace cli {
namespace {

base::Result<std::string> random_token() {
  std::string token(16, '\0');
  if (::getrandom(token.data(), token.size(), 0) != static_cast<ssize_t>(token.size())) return base::system_error("getrandom", "16 bytes");
  return token;
}

// `train CONFIG …` is `run` of the engine, which lies beside this binary or in PATH.
void put_engine_in_front(RunOptions& options) {
  std::string self = os::self_executable();
  std::string beside = self.substr(0, self.rfind('/') + 1) + "phalanx-train";
  options.command.insert(options.command.begin(), os::exists(beside) ? beside : "phalanx-train");
}

cluster::OpensshOptions ssh_options(const RunOptions& options) {
  cluster::OpensshOptions ssh;
  ssh.program = os::environment_value("PHALANX_SSH", "ssh");
  ssh.build = os::build_id();
  ssh.extra = options.ssh_options;
  ssh.connect_timeout_s = static_cast<int>(std::max<int64_t>(1, options.connect_timeout.count() / 1000));
  ssh.control_folder = cluster::control_folder();
  return ssh;
}

cluster::OpenerOptions opener_options(const RunOptions& options) {
  cluster::OpenerOptions opener;
  if (options.fanout) opener.fanout = *options.fanout;
  opener.timeout = options.connect_timeout;
  return opener;
}

}  // namespace

base::Result<int> run_verb(const Invocation& invocation) {
  TRY_ASSIGN(RunOptions options, run_options(invocation));
  if (invocation.verb == Verb::kTrain) put_engine_in_front(options);
  TRY_ASSIGN(job::Job job, make_job(options, look_around()));
  TRY_ASSIGN(job.token, random_token());
  // From here on it is known what is asked for, on which hosts.

  TRY_ASSIGN(std::unique_ptr<os::Loop> loop, os::Loop::create());
  TRY_ASSIGN(Show show, Show::open(*loop, options));
  job.run_id = show.run_id();
  // From here on the run has an id and, unless it is only planned, a directory.

  cluster::LocalTransport local(os::self_executable());
  cluster::OpensshTransport ssh(ssh_options(options));
  cluster::Payload payload(os::self_executable());
  std::vector<const cluster::Transport*> transports;
  for (const job::HostRequest& host : job.hosts)
    transports.push_back(host.target.destination.empty() ? static_cast<const cluster::Transport*>(&local) : &ssh);
  job::Runner runner(*loop, show.audience());
  show.on_ready([&runner] { runner.resume(); });
  TRY_ASSIGN(job::Verdict verdict, runner.run(std::move(job), transports, payload, opener_options(options)));
  // Every rank has ended, every host has said that nothing is left.

  return show.report(runner.state(), verdict);
}

}  // namespace cli
