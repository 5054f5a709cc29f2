// `phalanx run` in an allocation of a real Slurm: slurmctld on ctl, slurmd on every host. ssh is never used.
#include <fmt/format.h>

#include "base/text.h"
#include "launcher_fixture.h"
#include "os/files.h"

using namespace phalanx;

namespace {

using namespace phalanx::testbed;
using namespace std::chrono_literals;

constexpr const char* kConf = "SLURM_CONF=/run/slurm/slurm.conf";

class Slurm : public Launcher {
 protected:
  void SetUp() override {
    Launcher::SetUp();
    if (IsSkipped()) return;
    for (const char* program : {"/usr/sbin/slurmctld", "/usr/sbin/slurmd", "/usr/sbin/munged", "/usr/bin/sbatch"})
      if (!os::exists(program)) GTEST_SKIP() << program << " is missing (packages slurmctld, slurmd, slurm-client, munge)";
    start({.hosts = 3});
    std::string nodes;
    for (const std::string& host : cluster().hosts()) nodes += fmt::format(" {}={}", host, *cluster().address(host));
    Words hosts = cluster().hosts();
    hosts.insert(hosts.begin(), "ctl");
    for (const std::string& host : hosts) say(host, script("slurm_node.sh") + " " + host + nodes + " </dev/null >/tmp/slurm.out 2>&1");
    say("ctl",
        fmt::format("export {}; for i in $(seq 200); do test \"$(sinfo -h -t idle -o %D)\" = 3 && exit 0; sleep 0.1; done; sinfo; exit 1",
                    kConf));
  }

  // A line of sh on ctl, where the Slurm programs find their controller.
  Outcome sh(const std::string& line, milliseconds most = 30s) {
    return cluster().run_on("ctl", {.argv = {"sh", "-c", fmt::format("export {} PHALANX_SSH=/bin/false; {}", kConf, line)}, .cwd = "/tmp"},
                            most);
  }
  // sbatch, with the job script's output in /tmp/job.out of its first node.
  std::string submit(const std::string& command, const std::string& options = "-N3") {
    const std::string job = fmt::format("#!/bin/sh\n#SBATCH {} -o /tmp/job.out\n{}\n", options, command);
    return std::string(
        base::trim(say("ctl", fmt::format("export {}; cat > /tmp/job.sh <<'JOB'\n{}JOB\nsbatch --parsable /tmp/job.sh", kConf, job))));
  }
  // Waits until the job's output has `text` so many times.
  std::string output(const std::string& text, int times = 1) {
    return say(
        "h1",
        fmt::format("for i in $(seq 400); do test $(grep -c -- '{}' /tmp/job.out 2>/dev/null || true) -ge {} && break; sleep 0.1; done; "
                    "cat /tmp/job.out",
                    text, times));
  }
  std::string agents() {
    std::string left;
    for (const std::string& host : cluster().hosts())
      for (const HostProcess& process : named(host, "phalanx-agent")) left += host + ": " + process.command + "\n";
    return left;
  }
  const std::string phalanx_ = PHALANX_PROGRAM;
};

TEST_F(Slurm, OneCommandInTheJobScriptStartsAllNodesWithTheirTasks) {
  submit(phalanx_ + " run -- sh -c 'echo rank $RANK of $WORLD_SIZE on $(hostname)'", "-N3 --ntasks-per-node=2");
  const std::string out = output("finished in");
  for (int rank = 0; rank < 6; ++rank) EXPECT_HAS(out, fmt::format("rank {} of 6 on h{}\n", rank, rank / 2 + 1));
  // In salloc's shell and in the step of an interactive shell it is the same; fewer nodes and more ranks are the user's choice.
  Outcome outcome = sh("salloc -Q -N2 " + phalanx_ + " run -q -- hostname; salloc -Q -N3 srun -N1 -n1 " + phalanx_ +
                       " run -q --nnodes 2 --nproc-per-node 2 -- sh -c 'echo rank $RANK'");
  for (const char* line : {"[h1:0] h1", "[h2:1] h2", "rank 0", "rank 1", "rank 2", "rank 3"}) EXPECT_HAS(outcome.out, line);
  EXPECT_HAS_NOT(outcome.out, "rank 4");
  outcome = sh("salloc -Q -N2 " + phalanx_ + " run -- sh -c 'test $RANK = 1 && exit 3; sleep 100'");
  EXPECT_EQ(outcome.exit_code, 3) << outcome;
  EXPECT_HAS(outcome.err, "local 0) exited with code 3");
  EXPECT_EQ(agents(), "");
}

TEST_F(Slurm, CtrlCInAnAllocationsShellStopsTheRanksAndTheJob) {
  const std::string rank = R"(echo start $RANK; trap "echo saved $RANK; exit 0" TERM; sleep 100 & wait)";
  auto typed = cluster().start_on(
      "ctl", {.argv = {"sh", "-c",
                       fmt::format("export {} PHALANX_SSH=/bin/false; exec salloc -Q -N3 {} run -- sh -c '{}'", kConf, phalanx_, rank)},
              .cwd = "/tmp"});
  ASSERT_TRUE(typed.ok()) << typed.error().message;
  for (const char* line : {"start 0", "start 1", "start 2"}) ASSERT_TRUE(typed->wait_output(line, 30s)) << typed->out() << typed->err();
  const std::vector<HostProcess> launchers = named("ctl", "phalanx");  // salloc gives its command a process group of its own
  ASSERT_EQ(launchers.size(), 1u);
  ::kill(-launchers[0].pid, SIGINT);
  const Outcome outcome = typed->finish(20s);
  EXPECT_EQ(outcome.exit_code, 130) << outcome;
  for (const char* line : {"saved 0", "saved 1", "saved 2"}) EXPECT_HAS(outcome.out, line);
  EXPECT_HAS(outcome.err, "interrupted by the operator");
  EXPECT_EQ(agents(), "");
  EXPECT_EQ(sh("for i in $(seq 100); do test -z \"$(squeue -h)\" && exit; sleep 0.1; done; squeue").out, "") << "the allocation has ended";
}

TEST_F(Slurm, WhatCannotRunIsRefusedWithItsReason) {
  Outcome outcome = sh("salloc -Q -N2 srun -n2 " + phalanx_ + " run -- true");
  EXPECT_EQ(outcome.exit_code, 2) << outcome;
  EXPECT_HAS(outcome.err, "srun started 2 launchers; one launcher starts all ranks");
  outcome = sh("SLURM_JOB_ID=999 SLURM_JOB_NODELIST='h[1-2]' " + phalanx_ + " run -- true");
  EXPECT_EQ(outcome.exit_code, 4) << outcome;
  EXPECT_HAS(outcome.err, "its Slurm job has ended");
  EXPECT_HAS(outcome.err, "hint: squeue -j 999");
}

// scancel and a requeue signal the launcher, the agents and the ranks at once.
TEST_F(Slurm, CancelAndRequeueStopTheRanksInOrderAndLeaveNothing) {
  const std::string rank =
      R"(echo start $RANK again ${SLURM_RESTART_COUNT:-0}; trap "sleep 0.5; echo saved $RANK; exit 0" TERM; sleep 100 & wait)";
  std::string job = submit(phalanx_ + " run -- sh -c '" + rank + "'", "-N3 --requeue");
  output("start", 3);
  EXPECT_EQ(sh(fmt::format("scontrol update nodename=h3 state=drain reason=test; sleep 1; squeue -h -j {} -o %T", job)).out, "RUNNING\n");
  EXPECT_EQ(sh("scontrol update nodename=h3 state=resume; scontrol requeue " + job).exit_code, 0);
  std::string out = output("interrupted");
  EXPECT_HAS(out, "interrupted by the operator");
  for (const char* line : {"saved 0", "saved 1", "saved 2"}) EXPECT_HAS(out, line);
  EXPECT_EQ(agents(), "");
  EXPECT_HAS(sh("scontrol show job " + job).out, "Restarts=1");
  sh("scancel " + job);
}

// What the warning before the time limit does, at a time of our choice.
TEST_F(Slurm, ASubmittedJobThatIsWarnedSavesAndGoesBackIntoTheQueue) {
  const std::string rank = R"(echo start $RANK again ${SLURM_RESTART_COUNT:-0}; trap "echo saved $RANK; exit 0" TERM; sleep 100 & wait)";
  const std::string submitted =
      sh("cd /tmp && " + phalanx_ + " submit --nodes 3 --requeue --name again --sbatch output=/tmp/job.out -- sh -c '" + rank + "'").out;
  ASSERT_TRUE(submitted.starts_with("Submitted batch job ")) << submitted;
  const std::string job(base::trim(std::string_view(submitted).substr(20)));
  output("start", 3);
  EXPECT_EQ(sh("scancel --signal=USR1 --batch " + job).exit_code, 0);
  const std::string out = output("saved", 3);
  for (const char* line : {"saved 0", "saved 1", "saved 2"}) EXPECT_HAS(out, line);
  const std::string restarts = "for i in $(seq 100); do scontrol show job " + job + " | grep -o Restarts=1 && exit; sleep 0.1; done";
  EXPECT_EQ(sh(restarts).out, "Restarts=1\n");
  EXPECT_EQ(agents(), "");
  sh("scancel " + job);
  EXPECT_HAS(sh(phalanx_ + " submit --sbatch partition=nowhere -- true").err, "error: sbatch refused the job");
}

TEST_F(Slurm, ANodeThatGoesAwayIsNamedAndReplacedByOneInReserve) {
  const std::string rank = "echo start $RANK on $(hostname); test $TORCHELASTIC_RESTART_COUNT = 0 && sleep 100; true";
  submit(phalanx_ + " run --nnodes 2:2 --lease 6s -- sh -c '" + rank + "'");
  output("start", 2);
  forget_bystander("h2");
  ASSERT_TRUE(cluster().power_off("h2").ok());
  const std::string out = output("finished in");
  for (const char* line : {"error: h2: lost contact with the host", "h3 replaces h2", "start 1 on h3", "after 1 restart"})
    EXPECT_HAS(out, line);
}

}  // namespace
