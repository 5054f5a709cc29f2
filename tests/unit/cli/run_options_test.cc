#include "cli/flags/run_options.h"

#include <gtest/gtest.h>

#include "cli/flags/exported_env.h"

namespace phalanx::cli {
namespace {

using Words = std::vector<std::string>;
using std::chrono::milliseconds;

base::Result<RunOptions> read(const Words& words) {
  auto invocation = parse_command_line(words);
  EXPECT_TRUE(invocation.ok()) << (invocation.ok() ? "" : invocation.error().render());
  if (!invocation.ok()) return std::move(invocation).error();
  return run_options(*invocation);
}

TEST(RunOptions, Defaults) {
  auto options = read({"run", "python"});
  ASSERT_TRUE(options.ok());
  EXPECT_EQ(options->grace, milliseconds(10'000));
  EXPECT_EQ(options->connect_timeout, milliseconds(10'000));
  EXPECT_FALSE(options->nnodes || options->ranks_per_host || options->master_port || options->fanout);
  EXPECT_FALSE(options->dry_run || options->json || options->quiet || options->verbose || options->no_store || options->no_export);
  EXPECT_EQ(options->command, (Words{"python"}));
}

TEST(RunOptions, FlagsOfStallsArrive) {
  auto options = read({"run", "--stall", "90s", "--on-stall", "restart", "--python-hook", "x"});
  ASSERT_TRUE(options.ok());
  EXPECT_EQ(options->stall.threshold, milliseconds(90'000));
  EXPECT_EQ(options->stall.action, job::OnStall::kRestart);
  EXPECT_TRUE(options->python_hook);
}

TEST(RunOptions, SyncTakesItsDirectoryOnlyAttached) {
  auto options = read({"run", "--sync", "python", "train.py"});
  ASSERT_TRUE(options.ok());
  EXPECT_TRUE(options->sync);
  EXPECT_EQ(options->sync_directory, "");
  EXPECT_EQ(options->command, (Words{"python", "train.py"}));
  options = read({"plan", "--sync=../project", "--sync-max", "10GB", "python"});
  ASSERT_TRUE(options.ok());
  EXPECT_EQ(options->sync_directory, "../project");
  EXPECT_EQ(options->sync_max, 10'000'000'000);
  EXPECT_FALSE(read({"run", "python"})->sync);
  EXPECT_FALSE(read({"run", "--sync=false", "python"})->sync) << "against a project file that says sync: .";
  EXPECT_FALSE(read({"run", "--sync-max", "10GB", "python"}).ok());
  EXPECT_FALSE(parse_command_line(Words{"run", "--sync", "--sync=x", "python"}).ok());
}

TEST(RunOptions, PushTakesADirectoryThenHosts) {
  auto options = read({"push", "data", "h1", "h2,h3", "--to", "/data", "--delete"});
  ASSERT_TRUE(options.ok());
  EXPECT_EQ(options->push_directory, "data");
  EXPECT_EQ(options->hosts, "h1,h2,h3");
  EXPECT_EQ(options->push_to, "/data");
  EXPECT_TRUE(options->push_delete);
  EXPECT_EQ(read({"push", "data", "-H", "h1"})->hosts, "h1");
  EXPECT_FALSE(read({"push"}).ok());
  EXPECT_FALSE(read({"push", "", "h1"}).ok());
  EXPECT_FALSE(read({"push", "data", "h1", "-H", "h2"}).ok());
  EXPECT_FALSE(parse_command_line(Words{"run", "--delete", "x"}).ok());
}

TEST(RunOptions, NodesThatAreStartedByHand) {
  const Words line = {"run", "--nnodes", "3", "--node-rank", "2", "--master-addr", "gpu01", "--token-file", "t", "--join-timeout", "30s"};
  auto with = [&](const Words& more) {
    Words words = line;
    words.insert(words.end(), more.begin(), more.end());
    words.push_back("python");
    return read(words);
  };
  auto options = with({});
  ASSERT_TRUE(options.ok());
  EXPECT_EQ(options->node_rank, 2);
  EXPECT_EQ(options->token_file, "t");
  EXPECT_EQ(options->join_timeout, milliseconds(30'000));
  for (const Words& more : {Words{"-H", "a,b"}, Words{"--spares", "c"}, Words{"--detach"}, Words{"--sync"}, Words{"--max-restarts", "1"}})
    EXPECT_FALSE(with(more).ok()) << more[0];
  auto why = [](const Words& words) { return read(words).error().message; };
  EXPECT_EQ(why({"run", "--node-rank", "0", "x"}), "--node-rank needs --nnodes with the number of machines");
  EXPECT_EQ(why({"run", "--node-rank", "2", "--nnodes", "2", "x"}), "--node-rank 2: with --nnodes 2 the highest is 1");
  EXPECT_EQ(why({"run", "--node-rank", "1", "--nnodes", "2", "x"}), "--node-rank needs --master-addr: there the nodes meet");
  EXPECT_EQ(why({"run", "--node-rank", "1", "--nnodes", "2:4", "x"}), "--node-rank needs a fixed number of nodes");
  EXPECT_EQ(why({"run", "--token-file", "t", "x"}), "--token-file needs --node-rank: a run that is started once needs no token");
}

TEST(RunOptions, CheckDataIsOfTrainOnly) {
  auto options = read({"train", "c.yaml", "--check-data", "data.workers=2"});
  ASSERT_TRUE(options.ok());
  EXPECT_TRUE(options->check_data);
  EXPECT_EQ(options->command, (Words{"c.yaml", "data.workers=2"}));
  EXPECT_FALSE(parse_command_line(Words{"run", "--check-data", "x"}).ok());
  EXPECT_FALSE(read({"train", "c.yaml", "--check-data", "--spares", "h9"}).ok());
}

TEST(RunOptions, EveryFlagArrives) {
  auto options = read({"run",
                       "--hostfile",
                       "h",
                       "-i",
                       "a:0",
                       "--nnodes",
                       "2",
                       "--nproc-per-node",
                       "3",
                       "--master-addr",
                       "m",
                       "--master-port",
                       "29500",
                       "--no-store",
                       "-C",
                       "/w",
                       "--grace",
                       "1s",
                       "--dry-run",
                       "--env",
                       "A=b=c",
                       "--env-file",
                       "e",
                       "--env-file",
                       "f",
                       "--export",
                       "HF_*",
                       "--no-export",
                       "--connect-timeout",
                       "2s",
                       "--fanout",
                       "8",
                       "--ssh-option",
                       "Port=2",
                       "--log-dir",
                       "l",
                       "--fold",
                       "off",
                       "--color",
                       "never",
                       "--json",
                       "-v",
                       "--",
                       "python",
                       "x y",
                       ""});
  ASSERT_TRUE(options.ok());
  EXPECT_EQ(options->hostfile, "h");
  EXPECT_EQ(options->include, "a:0");
  EXPECT_EQ(options->nnodes, 2);
  EXPECT_EQ(options->ranks_per_host->kind, RanksPerHost::Kind::kCount);
  EXPECT_EQ(options->ranks_per_host->count, 3);
  EXPECT_EQ(options->master_addr, "m");
  EXPECT_EQ(options->master_port, 29500);
  EXPECT_TRUE(options->no_store && options->dry_run && options->no_export && options->json && options->verbose);
  EXPECT_EQ(options->workdir, "/w");
  EXPECT_EQ(options->grace, milliseconds(1000));
  EXPECT_EQ(options->env, (std::vector<std::pair<std::string, std::string>>{{"A", "b=c"}}));
  EXPECT_EQ(options->env_files, (Words{"e", "f"}));
  EXPECT_EQ(options->export_globs, (Words{"HF_*"}));
  EXPECT_EQ(options->connect_timeout, milliseconds(2000));
  EXPECT_EQ(options->fanout, 8);
  EXPECT_EQ(options->ssh_options, (Words{"Port=2"}));
  EXPECT_EQ(options->log_dir, "l");
  EXPECT_EQ(options->fold, Fold::kOff);
  EXPECT_EQ(options->color, Color::kNever);
  EXPECT_EQ(options->command, (Words{"python", "x y", ""}));
}

TEST(RunOptions, LogsAreBounded) {
  EXPECT_EQ(read({"run", "x"})->log_max, 1 << 30);
  EXPECT_EQ(read({"run", "--log-max", "64MiB", "x"})->log_max, 64 << 20);
  EXPECT_EQ(read({"run", "x"})->keep_runs.runs, 1000U);
  EXPECT_EQ(read({"run", "--keep-runs", "0", "x"})->keep_runs.runs, 0U);
}

TEST(RunOptions, TheLeaseHasADefault) {
  EXPECT_EQ(read({"run", "x"})->lease, milliseconds(30'000));
  EXPECT_EQ(read({"run", "--lease", "45s", "x"})->lease, milliseconds(45'000));
}

TEST(RunOptions, RanksPerHostByName) {
  EXPECT_EQ(read({"run", "--nproc-per-node", "gpu", "x"})->ranks_per_host->kind, RanksPerHost::Kind::kGpu);
  EXPECT_EQ(read({"run", "--nproc-per-node", "cpu", "x"})->ranks_per_host->kind, RanksPerHost::Kind::kCpu);
  EXPECT_EQ(read({"run", "--nproc-per-node", "auto", "x"})->ranks_per_host->kind, RanksPerHost::Kind::kAuto);
}

TEST(RunOptions, AcceptedFindings) {
  auto options = run_options(
      *parse_command_line(Words{"run", "--accept", "fs_shm_small,FS-SHM-FULL", "--accept", "NET-LOSS@gpu[01-02]", "--", "true"}));
  ASSERT_TRUE(options.ok());
  ASSERT_EQ(options->accepted.size(), 3u);
  EXPECT_EQ(options->accepted[0].code, "FS-SHM-SMALL");
  EXPECT_TRUE(options->accepted[0].hosts.empty());
  EXPECT_EQ(options->accepted[1].code, "FS-SHM-FULL");
  EXPECT_EQ(options->accepted[2].hosts, (Words{"gpu01", "gpu02"}));
  for (const char* wrong : {"FS-SHM", "NET-LOSS@", "NET-LOSS@gpu[", "RANK-EXIT", "@gpu01", ","})
    EXPECT_FALSE(run_options(*parse_command_line(Words{"run", "--accept", wrong, "--", "true"})).ok()) << wrong;
}

TEST(RunOptions, PlanIsADryRun) {
  EXPECT_TRUE(read({"plan", "x"})->dry_run);
  EXPECT_FALSE(read({"train", "c.yaml"})->dry_run);
}

TEST(RunOptions, RefusesContradictionsAndNothingToDo) {
  EXPECT_EQ(read({"run", "-H", "a", "--hostfile", "f", "x"}).error().message,
            "-H and --hostfile cannot be combined: each is the complete list of hosts");
  EXPECT_EQ(read({"run", "-e", "a", "--include", "b", "x"}).error().message,
            "-e and --include cannot be combined: name either the hosts to use or the hosts to skip");
  EXPECT_FALSE(read({"run", "-qv", "x"}).ok());
  EXPECT_EQ(read({"run"}).error().message, "run needs a command");
  EXPECT_EQ(read({"run", "--"}).error().message, "run needs a command");
  EXPECT_EQ(read({"plan"}).error().hint, "phalanx plan [options] -- python train.py");
  EXPECT_EQ(read({"run", "", "x"}).error().message, "the command is an empty string");
  EXPECT_EQ(read({"train"}).error().message, "train needs a configuration");
}

// Without the checks nobody would look for the interface: the flag must not be ignored.
TEST(RunOptions, AnInterfaceNeedsTheChecks) {
  auto refused = read({"run", "--iface", "eth1", "--preflight", "off", "x"});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().message, "--iface and --preflight off cannot be combined: the checks choose the addresses");
  EXPECT_TRUE(read({"run", "--iface", "eth1", "--preflight", "warn", "x"}).ok());
}

// A key such as WANDB_API_KEY travels unasked: the help says which names do.
TEST(RunOptions, HelpListsEveryVariableThatIsPassedOnByDefault) {
  std::string list;
  for (std::string_view name : default_exports()) list += (list.empty() ? "" : ", ") + std::string(name);
  const words::Text help = row(Flag::kExport).help;
  EXPECT_TRUE(help.in(base::Language::kEnglish).ends_with(list)) << list;
  EXPECT_TRUE(help.in(base::Language::kChinese).ends_with(list)) << list;
}

}  // namespace
}  // namespace phalanx::cli
