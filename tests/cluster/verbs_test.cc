// The verbs around a run, on real hosts: exec, wait, inspect, clean, names, time limits, and the progress that lines tell.
#include <regex>

#include "base/json.h"
#include "launcher_fixture.h"

namespace {

using namespace phalanx;
using namespace phalanx::testbed;
using namespace std::chrono_literals;

class Verbs : public Launcher {
 protected:
  Outcome type(const Words& args, milliseconds deadline = 30s) {
    return cluster().run_on("ctl", {.argv = with({PHALANX_PROGRAM}, args), .cwd = "/tmp"}, deadline);
  }
};

TEST_F(Verbs, ExecRunsOncePerHostFoldsAndCompares) {
  start({.hosts = 3});
  Outcome same = type({"exec", "-H", "h1:4,h2:4", "--", "echo", "it's $HOME `id`"});
  EXPECT_EQ(same.exit_code, 0) << same;
  EXPECT_EQ(same.out, "h[1-2]\n  it's $HOME `id`\n");
  Outcome differs = type({"exec", "-H", "h1,h2,h3", "--", "sh", "-c", "echo same; test $(hostname) != h2"});
  EXPECT_EQ(differs.exit_code, 1) << differs;
  EXPECT_EQ(differs.out, "h[1,3]\n  same\nh2: exit code 1\n  same\n");
  EXPECT_HAS(differs.err, "the exit codes differ: 0 on h[1,3]; 1 on h2");
  Outcome missing = type({"exec", "-H", "h1", "--", "nosuchprog"});
  EXPECT_EQ(missing.exit_code, 127) << missing;
  const std::string before = say("h1", "ls /tmp");
  Outcome unreachable = type({"exec", "-H", "h1,h9", "--", "touch", "/tmp/was-here"});
  EXPECT_EQ(unreachable.exit_code, 4) << unreachable;
  EXPECT_HAS(unreachable.err, "h9: the host name cannot be resolved");
  EXPECT_EQ(say("h1", "ls /tmp"), before) << "on all hosts or on none";
  Outcome late = type({"exec", "-H", "h1,h2", "--timeout", "1s", "--", "sleep", "100"});
  EXPECT_EQ(late.exit_code, 124) << late;
  EXPECT_EQ(type({"ps", "-a"}).out.find("sleep"), std::string::npos) << "no run is recorded";
  EXPECT_EQ(leftovers(2s), "");
}

TEST_F(Verbs, ANamedRunIsWaitedForAndInspected) {
  start();
  Outcome run = type({"run", "-d", "--name", "llama-try", "-H", "h1:2,h2:2", "--env", "WANDB_API_KEY=verysecret", "--", "sh", "-c",
                      "for i in 1 2 3 4 5; do echo \"step $i/5 loss 2.$i\"; sleep 0.4; done; exit 3"});
  ASSERT_EQ(run.exit_code, 0) << run;
  Outcome early = type({"wait", "--timeout", "100ms", "llama-try"});
  EXPECT_EQ(early.exit_code, 5) << early;
  EXPECT_HAS(early.err, "has not ended within 100 ms");
  EXPECT_HAS(type({"ps"}).out, "  llama-try  running ");
  Outcome waited = type({"wait", "llama-try"});
  EXPECT_EQ(waited.exit_code, 3) << waited;
  EXPECT_HAS(waited.out, "  failed  3\n");
  Outcome inspected = type({"inspect", "llama-try"});
  EXPECT_EQ(inspected.exit_code, 0) << inspected;
  for (const char* part : {"name        llama-try\n", "ranks       4 on 2 hosts\n", "--env: WANDB_API_KEY\n",
                           "h2 (h2): ranks 2–3 (slots=2)", "rank 3    RANK=3 LOCAL_RANK=1 ROLE_RANK=3", "OMP_NUM_THREADS="})
    EXPECT_HAS(inspected.out, part);
  EXPECT_HAS_NOT(inspected.out, "verysecret");
  EXPECT_EQ(say("ctl", "grep -rl verysecret ~/.local/state/phalanx/runs || true"), "") << "no value is recorded";
  base::Result<base::Json> json = base::parse_json(type({"inspect", "--json"}).out);
  ASSERT_TRUE(json.ok());
  EXPECT_EQ((*json)["plan"]["ranks"][3]["environment"]["LOCAL_RANK"], "1");
}

// `step 5/300 loss 16.7` fills ps, why, the record and the last line.
TEST_F(Verbs, StopTakesTheRunOfThatNameThatGoesOn) {
  start({.hosts = 1});
  ASSERT_EQ(type({"run", "-d", "--name", "nightly", "-H", "h1", "--", "sleep", "100"}).exit_code, 0);
  ASSERT_EQ(type({"run", "--name", "nightly", "-H", "h1", "--", "true"}).exit_code, 0);
  ASSERT_EQ(type({"run", "-d", "--name", "nightly", "-H", "h1", "--", "sleep", "200"}).exit_code, 0);
  Outcome which = type({"stop", "nightly"});
  EXPECT_EQ(which.exit_code, 2) << which;
  EXPECT_HAS(which.err, "2 runs named \"nightly\" have not ended");
  EXPECT_EQ(type({"stop", "latest"}).exit_code, 0);
  ASSERT_EQ(type({"run", "--name", "nightly", "-H", "h1", "--", "true"}).exit_code, 0);
  Outcome stopped = type({"stop", "nightly"});
  EXPECT_EQ(stopped.exit_code, 0) << stopped;
  EXPECT_HAS_NOT(type({"ps", "-a"}).out, "running");
  EXPECT_EQ(leftovers(2s), "");
}

TEST_F(Verbs, LinesOfStepsAreProgress) {
  start();
  Outcome run = type({"run", "-H", "h1,h2", "--", "sh", "-c", "for i in 1 2 3; do echo \"step $i/3 loss 16.7$i\"; sleep 0.3; done"});
  EXPECT_EQ(run.exit_code, 0) << run;
  EXPECT_HAS(run.err, "phalanx: 2 ranks on 2 hosts finished in ");
  EXPECT_HAS(run.err, "; step 3/3, loss 16.73\n");
  EXPECT_HAS(type({"ps", "-a"}).out, "  3/3   16.73  sh -c");
  EXPECT_HAS(say("ctl", "cat ~/.local/state/phalanx/runs/latest/progress.jsonl"), "\"total\":3,\"loss\":16.73");
  Outcome quiet = type({"run", "-q", "-H", "h1", "--", "true"});
  EXPECT_EQ(quiet.err, "");
}

// A project of the user's: found from a folder below, shown, recorded without values of variables, and overridden.
TEST_F(Verbs, AProjectFileIsFoundFromASubfolder) {
  start();
  say("ctl",
      "mkdir -p ~/llm/src/deep && cd ~/llm && printf '%s\\n' 'hosts: [h1:2, h2:1]' 'workdir: /tmp' 'log-dir: runs' 'ssh-option: "
      "LogLevel=ERROR' "
      "'env:' '  WANDB_API_KEY: verysecret' '  MODE: fast' 'accept: [CMD-SCRIPT-MISSING]' > phalanx.yaml");
  auto in_project = [&](const Words& args) {
    return cluster().run_on("ctl", {.argv = with({PHALANX_PROGRAM}, args), .cwd = "/root/llm/src/deep"}, 30s);
  };
  Outcome run = in_project({"run", "--", "sh", "-c", "echo $(hostname) $RANK $MODE ${WANDB_API_KEY#very}"});
  EXPECT_EQ(run.exit_code, 0) << run;
  for (const char* line : {"[h1:0] h1 0 fast secret", "[h1:1] h1 1 fast secret", "[h2:2] h2 2 fast secret"}) EXPECT_HAS(run.out, line);
  EXPECT_HAS(run.err, "phalanx: /root/llm/phalanx.yaml sets hosts, workdir, log-dir, ssh-option, accept, env (WANDB_API_KEY MODE)\n");
  EXPECT_HAS(in_project({"ps", "-a"}).out, "  done ");
  EXPECT_HAS(in_project({"inspect"}).out,
             "project     /root/llm/phalanx.yaml: hosts, workdir, log-dir, ssh-option, accept, env.WANDB_API_KEY");
  const std::string record = say("ctl", "cat ~/llm/runs/latest/run.json");
  base::Result<base::Json> json = base::parse_json(record);
  ASSERT_TRUE(json.ok());
  EXPECT_EQ((*json)["project"]["file"], "/root/llm/phalanx.yaml");
  EXPECT_EQ((*json)["project"]["values"][0], (base::Json{{"key", "hosts"}, {"line", 1}, {"value", "h1:2,h2:1"}}));
  EXPECT_EQ((*json)["project"]["values"][5], (base::Json{{"key", "env.WANDB_API_KEY"}, {"line", 6}}));
  EXPECT_EQ(say("ctl", "grep -rl 'verysecret' ~/llm/runs/latest/*.json* || true"), "");

  Outcome plan = in_project({"plan", "-H", "h2", "--env", "MODE=slow", "--", "true"});
  EXPECT_HAS(plan.out, "ranks       1 on 1 host\n");
  EXPECT_HAS(plan.out, "--env: MODE\n");
  Outcome quiet = in_project({"run", "-q", "--", "true"});
  EXPECT_EQ(quiet.err, "");
  Outcome without = in_project({"run", "--no-project", "--", "hostname"});
  EXPECT_EQ(without.out, "[ctl:0] ctl\n") << without;
  EXPECT_EQ(in_project({"exec", "--", "hostname"}).out, "h1\n  h1\nh2\n  h2\n");
  Outcome config = in_project({"config", "show", "--origin", "--grace", "3s"});
  EXPECT_HAS(config.out, "/root/llm/phalanx.yaml:1\n");
  EXPECT_HAS(config.out, "--grace\n");
  EXPECT_HAS_NOT(config.out, "verysecret");

  // What is accepted no longer refuses the start: the program itself says what is wrong.
  Outcome accepted = in_project({"run", "--", "sh", "nosuch.sh"});
  EXPECT_HAS_NOT(accepted.err, "CMD-SCRIPT-MISSING");
  EXPECT_NE(accepted.exit_code, 3) << accepted;
  Outcome refused = in_project({"run", "--no-project", "-H", "h1,h2", "--workdir", "/tmp", "--", "sh", "nosuch.sh"});
  EXPECT_EQ(refused.exit_code, 3) << refused;
  EXPECT_HAS(refused.err, "CMD-SCRIPT-MISSING");

  say("ctl", "echo 'ifaces: eth0' >> ~/llm/phalanx.yaml");
  Outcome wrong = in_project({"run", "--", "true"});
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_EQ(wrong.err, "error: /root/llm/phalanx.yaml:9:1: unknown key \"ifaces\"\n\nhint: did you mean iface?\n");
  EXPECT_HAS(in_project({"ps"}).err, "phalanx.yaml:9:1: unknown key");

  // A file of its own, nearer than that one.
  Outcome init = in_project({"init", "-H", "h2", "--workdir", "/tmp", "--env", "API_KEY=verysecret"});
  EXPECT_EQ(init.exit_code, 0) << init;
  EXPECT_HAS(init.err, "phalanx: wrote /root/llm/src/deep/phalanx.yaml\nphalanx: API_KEY: a secret;");
  EXPECT_HAS_NOT(say("ctl", "cat ~/llm/src/deep/phalanx.yaml"), "verysecret");
  EXPECT_EQ(in_project({"init"}).exit_code, 2) << "nothing is overwritten";
  EXPECT_HAS(in_project({"run", "--", "true"}).err, "phalanx.yaml:7:3: API_KEY has no value here, and is not set on this machine either");
  EXPECT_EQ(in_project({"run", "--env", "API_KEY=1", "--", "hostname"}).out, "[h2:0] h2\n");
  EXPECT_EQ(leftovers(2s), "");
}

TEST_F(Verbs, ATimeLimitStopsTheRunAndSaysSo) {
  start();
  Outcome run = type({"run", "--timeout", "1s", "-H", "h1,h2", "--max-restarts", "3", "--", "sleep", "100"});
  EXPECT_EQ(run.exit_code, 124) << run;
  EXPECT_HAS(run.err, "error: the run reached its --timeout; phalanx stopped it");
  const Outcome why = type({"why"});
  EXPECT_HAS(why.out, "the run reached its --timeout; phalanx stopped it");
  EXPECT_HAS(why.out, "the time limit of 1 s (--timeout) was reached: phalanx stopped the run");
  EXPECT_HAS_NOT(why.out, "operator");
  EXPECT_HAS(type({"ps", "-a"}).out, "  timed out ");
  EXPECT_HAS(say("ctl", "cat ~/.local/state/phalanx/runs/latest/events.jsonl"), R"("event":"time_limit")");
  EXPECT_HAS(type({"help", "run"}).out + type({"help", "--markdown"}).out, "| 124 |");
  EXPECT_EQ(type({"wait"}).exit_code, 124);
  EXPECT_EQ(leftovers(2s), "");
}

// The rank that fails first ends the other: both have printed long before.
TEST_F(Verbs, LogsOfOneAttempt) {
  start();
  Outcome run = type({"run", "--max-restarts", "1", "-H", "h1,h2", "--", "sh", "-c",
                      "echo attempt $TORCHELASTIC_RESTART_COUNT; [ $TORCHELASTIC_RESTART_COUNT = 1 ] || { sleep 1; exit 1; }"});
  EXPECT_EQ(run.exit_code, 0) << run;
  EXPECT_HAS(run.err, ", after 1 restart");
  EXPECT_EQ(type({"logs", "--attempt", "0"}).out, "[h1:0] attempt 0\n[h2:1] attempt 0\n");
  Outcome second = type({"logs", "--attempt", "1", "--rank", "1"});
  EXPECT_HAS(second.out, "[h2:1] attempt 1\n");
  EXPECT_HAS_NOT(second.out, "attempt 0");
  EXPECT_EQ(type({"logs", "--attempt", "1", "-f"}).exit_code, 2);
  Outcome timed = type({"logs", "-t", "--attempt", "1"});
  EXPECT_TRUE(std::regex_search(timed.out, std::regex("^20[0-9-]{8}T[0-9:]{8}\\.[0-9]{3}Z \\[h1:0\\] --- phalanx: restart 1, "))) << timed;
  EXPECT_EQ(timed.err, "");
}

TEST_F(Verbs, CleanShowsBeforeItRemovesAndTakesOnlyWhatIsOurs) {
  start();
  for (int i = 0; i < 3; ++i) ASSERT_EQ(type({"run", "-H", "h1,h2", "--", "true"}).exit_code, 0);
  const std::string old = "0123456789abcdef0123456789abcdef01234567";
  for (const char* host : {"ctl", "h1"})
    say(host, "mkdir -p -m 700 ~/.cache/phalanx/" + old + " ~/.cache/phalanx/notes && cp /bin/true ~/.cache/phalanx/" + old +
                  "/phalanx && touch -d '9 days ago' ~/.cache/phalanx/" + old);
  // A file of the user's: this run stays.
  say("ctl", "cd ~/.local/state/phalanx/runs && touch $(ls -d 2* | grep -v $(readlink latest) | head -1)/mine.txt");
  Outcome listed = type({"clean", "--keep-runs", "1"});
  EXPECT_EQ(listed.exit_code, 0) << listed;
  EXPECT_HAS(listed.out, "old build       /root/.cache/phalanx/" + old + "\n");
  EXPECT_HAS(listed.out, "ended run ");
  EXPECT_HAS(listed.out, "ssh connection  /root/.cache/phalanx/ssh/");
  EXPECT_HAS(listed.out, "nothing was removed; phalanx clean --yes removes these");
  EXPECT_EQ(say("ctl", "ls ~/.cache/phalanx/" + old), "phalanx\n");
  EXPECT_EQ(say("ctl", "ls -d ~/.local/state/phalanx/runs/2* | wc -l"), "3\n");
  Outcome cleaned = type({"clean", "--keep-runs", "1", "--yes"});
  EXPECT_EQ(cleaned.exit_code, 0) << cleaned;
  EXPECT_EQ(say("ctl", "cd ~/.cache/phalanx && ls -d notes " + old + " 2>/dev/null || true"), "notes\n");
  EXPECT_EQ(say("ctl", "ls -d ~/.local/state/phalanx/runs/2* | wc -l"), "2\n") << "the newest, and the one with a file of the user's";
  EXPECT_EQ(say("ctl", "find ~/.cache/phalanx/ssh -type s | wc -l"), "0\n");
  Outcome again = type({"clean", "--keep-runs", "1"});
  EXPECT_EQ(again.out, "nothing to remove\n");
  Outcome hosts = type({"clean", "-H", "h1,h2"});
  EXPECT_EQ(hosts.exit_code, 0) << hosts;
  EXPECT_HAS(hosts.out, "h1\n  old build       /root/.cache/phalanx/" + old);
  EXPECT_HAS(hosts.out, "h2\n  nothing to remove");
  EXPECT_EQ(type({"clean", "-H", "h1,h2", "--yes"}).exit_code, 0);
  EXPECT_EQ(say("h1", "cd ~/.cache/phalanx && ls -d notes " + old + " 2>/dev/null || true"), "notes\n");
  EXPECT_EQ(type({"run", "-H", "h1,h2", "--", "true"}).exit_code, 0) << "the build in use stays";
}

// A connection that a run uses is closed only after the run.
TEST_F(Verbs, CleanDoesNotDisturbARunThatGoesOn) {
  start();
  Outcome run = type({"run", "-d", "-H", "h1,h2", "--", "sh", "-c", "sleep 2; echo finished"});
  ASSERT_EQ(run.exit_code, 0) << run;
  (void)type({"clean", "--all", "--yes"});
  Outcome waited = type({"wait"});
  EXPECT_EQ(waited.exit_code, 0) << waited;
  EXPECT_EQ(type({"logs", "--rank", "1"}).out, "[h2:1] finished\n");
}

}  // namespace
