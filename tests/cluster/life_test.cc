// Runs one can come back to, as a person does it: a real shell in a real terminal that is closed, an ssh session that ends, a launcher
// that is killed; and the proof that nothing is left on any host.
#include <fmt/format.h>

#include "base/json.h"
#include "base/text.h"
#include "gpu_tree.h"
#include "launcher_fixture.h"

using namespace phalanx;

namespace {

using namespace phalanx::testbed;
using namespace std::chrono_literals;

class Life : public Launcher {
 protected:
  static Words typed(const Words& words) { return with({PHALANX_PROGRAM}, words); }
  Outcome phalanx(const Words& words, milliseconds most = 30s, const std::string& host = "ctl") {
    return cluster().run_on(host, {.argv = typed(words), .cwd = "/tmp"}, most);
  }
  Process in_terminal(const Words& words, const std::string& host = "ctl") {
    auto process = cluster().start_on(host, {.argv = words, .cwd = "/tmp", .stdio = Command::kTerminal});
    if (!process.ok()) ADD_FAILURE() << process.error().render();
    return std::move(process).value();
  }
  // A run of scripts/obey.sh that has left its terminal, and whose ranks listen; its id.
  std::string detached(const std::string& hosts, const std::vector<std::string>& host_of_rank) {
    Outcome outcome = phalanx({"run", "-d", "-H", hosts, "--", script("obey.sh")});
    EXPECT_EQ(outcome.exit_code, 0) << outcome;
    std::string id(base::trim(outcome.out));
    EXPECT_EQ(id.size(), 20u) << outcome;
    host_of_rank_ = host_of_rank;
    for (size_t rank = 0; rank < host_of_rank.size(); ++rank) await(id, fmt::format("rank {} ready", rank));
    return id;
  }
  // Until a rank has printed the text, as `logs -f` shows it.
  void await(const std::string& id, const std::string& text) {
    auto logs = cluster().start_on("ctl", {.argv = typed({"logs", "-f", id})});
    ASSERT_TRUE(logs.ok());
    EXPECT_TRUE(logs->wait_output(text, 20s)) << "no \"" << text << "\" in " << logs->out() << logs->err();
  }
  void tell(size_t rank, const std::string& line) {
    Outcome outcome = cluster().run_on(host_of_rank_[rank],
                                       {.argv = {"sh", "-c", "printf '%s\\n' \"$1\" > /tmp/tell-$0", std::to_string(rank), line}}, 5s);
    EXPECT_EQ(outcome.exit_code, 0) << "rank " << rank << " does not listen: " << outcome;
  }
  base::Json only_run(const Words& flags = {}) {
    Outcome outcome = phalanx(with({"ps", "--json"}, flags));
    auto json = base::parse_json(outcome.out);
    EXPECT_TRUE(json.ok()) << outcome;
    if (!json.ok() || (*json)["runs"].size() != 1) return base::Json::object();
    return (*json)["runs"][0];
  }
  std::string state(const Words& flags = {}) { return base::get_string(only_run(flags), "state").value_or("(none)"); }
  pid_t launcher() {
    for (const HostProcess& process : cluster().processes("ctl"))
      if (process.command.starts_with(std::string(PHALANX_PROGRAM) + " run -d")) return process.pid;
    return -1;
  }
  void expect_stopped(const std::string& id, const std::vector<std::string>& hosts, const std::string& left = "nothing left") {
    Outcome outcome = phalanx({"stop", id}, 40s);
    EXPECT_EQ(outcome.exit_code, 0) << outcome;
    for (const std::string& host : hosts) EXPECT_HAS(outcome.err, host + ": " + left);
    EXPECT_EQ(leftovers(1s), "");
  }

 private:
  std::vector<std::string> host_of_rank_;
};

TEST_F(Life, ARunOutlivesItsTerminal) {
  start();
  Process shell = in_terminal({"bash", "--norc", "--noprofile", "-i"});
  shell.type(std::string(PHALANX_PROGRAM) + " run -d -H h1,h2 -- " + script("obey.sh") + "; echo code=$?\n");
  ASSERT_TRUE(shell.wait_output("code=0", 20s)) << shell.out();
  EXPECT_HAS(shell.out(), "phalanx logs -f ");
  EXPECT_HAS(shell.out(), "phalanx stop ");
  base::Json run = only_run();
  std::string id = base::get_string(run, "id").value_or("");
  EXPECT_HAS(shell.out(), id);
  EXPECT_EQ(base::get_string(run, "state"), "running");
  EXPECT_EQ(base::get_int(run, "world_size"), 2);
  pid_t pid = launcher();
  ASSERT_GT(pid, 0);

  shell.hang_up();
  ASSERT_TRUE(shell.wait(10s));
  EXPECT_EQ(shell.finish(0ms).signal, SIGHUP);
  ::kill(pid, SIGHUP);  // whoever else wants to hang up
  say("h1", "printf 'echo still here\\n' > /tmp/tell-0");
  await(id, "[h1:0] still here");
  EXPECT_EQ(launcher(), pid);
  EXPECT_EQ(state(), "running");
  EXPECT_EQ(say("ctl", "ps -o tty= -p $(pgrep -of 'phalanx run -d') | tr -d ' '"), "?\n");
  expect_stopped(id, {"h1", "h2"});
  EXPECT_EQ(state({"-a"}), "interrupted");
  EXPECT_EQ(state(), "(none)");
  EXPECT_HAS(phalanx({"why"}).out, "error: interrupted by the operator");
}

TEST_F(Life, TheSshSessionOfTheUserEnds) {
  start({.hosts = 1});
  Process session = in_terminal(
      {"ssh", "-tt", "h1", std::string("cd /tmp; ") + PHALANX_PROGRAM + " run -d -- " + script("obey.sh") + "; echo code=$?; sleep 1000"});
  ASSERT_TRUE(session.wait_output("code=0", 20s)) << session.out();
  session.signal_group(SIGKILL);
  ASSERT_TRUE(session.wait(5s));
  auto logs = cluster().start_on("h1", {.argv = typed({"logs", "-f"})});
  ASSERT_TRUE(logs.ok());
  // Told before it listens, it would read a plain file to its end, and the run would be over.
  ASSERT_TRUE(logs->wait_output("[h1:0] rank 0 ready", 10s)) << logs->out() << logs->err();
  say("h1", "printf 'echo after the session\\n' > /tmp/tell-0");
  EXPECT_TRUE(logs->wait_output("[h1:0] after the session", 10s)) << logs->out() << logs->err();
  Outcome stopped = phalanx({"stop"}, 30s, "h1");
  EXPECT_EQ(stopped.exit_code, 0) << stopped;
  EXPECT_HAS(stopped.err, "h1: nothing left");
  EXPECT_EQ(logs->finish(5s).exit_code, 0);
  EXPECT_EQ(leftovers(1s), "");
}

TEST_F(Life, WhatFailsBeforeTheStartIsSaidAtTheTerminal) {
  start({.hosts = 1});
  Outcome nowhere = phalanx({"run", "-d", "-H", "h1,nowhere", "--", "true"});
  EXPECT_EQ(nowhere.exit_code, 4) << nowhere;
  EXPECT_EQ(nowhere.out, "");
  EXPECT_HAS(nowhere.err, "nowhere");
  Outcome missing = phalanx({"run", "-d", "-H", "h1", "--", "/no/such/program"});
  EXPECT_EQ(missing.exit_code, 3) << missing;
  EXPECT_EQ(missing.out, "");
  EXPECT_HAS(missing.err, "error: h1: ");
  EXPECT_EQ(phalanx({"run", "-d", "--dry-run", "--", "true"}).exit_code, 2);
  EXPECT_HAS(phalanx({"why"}).out, "/no/such/program");
  EXPECT_HAS(phalanx({"logs"}).err, ": no output; phalanx why ");
  EXPECT_EQ(phalanx({"attach"}).exit_code, 2);
  EXPECT_EQ(phalanx({"logs", "--rank", "7"}).exit_code, 2);
  EXPECT_EQ(phalanx({"stop"}).exit_code, 2) << "there is nothing to stop";
  EXPECT_EQ(leftovers(1s), "");
}

TEST_F(Life, CtrlCBeforeTheRanksHaveStartedEndsIt) {
  start({.hosts = 1});
  ASSERT_TRUE(cluster().freeze("h1").ok());
  Process terminal = in_terminal(typed({"run", "-d", "-H", "h1", "--", "true"}));
  ASSERT_TRUE(terminal.wait_output("still connecting", 15s)) << terminal.out();
  terminal.type("\x03");
  EXPECT_EQ(terminal.finish(10s).exit_code, 130) << terminal.out();
  ASSERT_TRUE(cluster().thaw("h1").ok());
  EXPECT_EQ(leftovers(2s), "");
}

TEST_F(Life, AttachShowsTheRunAndCtrlCLeavesIt) {
  start();
  std::string id = detached("h1,h2", {"h1", "h2"});
  {
    Process terminal = in_terminal(typed({"attach", id}));
    ASSERT_TRUE(terminal.wait_output("attached", 10s)) << terminal.out();
    tell(1, "echo hello from 1");
    ASSERT_TRUE(terminal.wait_output("hello from 1", 10s)) << terminal.out();
    terminal.type("\x03");
    Outcome left = terminal.finish(10s);
    EXPECT_EQ(left.exit_code, 0) << left;
    EXPECT_HAS(left.out, "the run continues");
  }
  EXPECT_EQ(state(), "running");
  Process again = in_terminal(typed({"attach", id.substr(id.size() - 4)}));
  ASSERT_TRUE(again.wait_output("attached", 10s));
  tell(0, "echo boom >&2; exit 7");
  Outcome ended = again.finish(20s);
  EXPECT_EQ(ended.exit_code, 7) << ended;
  std::string error = "error: rank 0 (h1, local 0) exited with code 7";
  EXPECT_HAS(ended.out, error);
  Outcome why = phalanx({"why"});
  EXPECT_HAS(why.out, error);
  EXPECT_HAS(why.out, "boom");
  EXPECT_HAS(why.out, "rank 0 (h1) exited with code 7");
  EXPECT_HAS(cluster().run_on("ctl", {.argv = typed({"why"}), .env = {{"PHALANX_LANG", "zh"}}}).out, "以退出码 7 结束");
  EXPECT_EQ(state({"-a"}), "failed");
  EXPECT_EQ(leftovers(1s), "");
}

TEST_F(Life, LogsAreThoseOfTheRanksAskedFor) {
  start();
  std::string id = detached("h1:2,h2:1", {"h1", "h1", "h2"});
  auto follower = cluster().start_on("ctl", {.argv = typed({"logs", "-f", "--tail", "0", id})});
  ASSERT_TRUE(follower.ok());
  for (size_t rank : {0, 1, 2}) tell(rank, fmt::format("for i in 1 2 3; do echo rank {} line $i; done", rank));
  for (size_t rank : {0, 1, 2}) await(id, fmt::format("rank {} line 3", rank));
  Outcome some = phalanx({"logs", "--rank", "1-2", "--tail", "2", id});
  EXPECT_EQ(some.exit_code, 0);
  EXPECT_EQ(some.out, "[h1:1] rank 1 line 2\n[h1:1] rank 1 line 3\n[h2:2] rank 2 line 2\n[h2:2] rank 2 line 3\n") << some;
  EXPECT_EQ(phalanx({"logs", "--host", "h2", id}).out,
            "[h2:2] rank 2 ready\n[h2:2] rank 2 line 1\n[h2:2] rank 2 line 2\n[h2:2] rank 2 line 3\n");
  Outcome head = cluster().run_on("ctl", {.argv = {"sh", "-c", std::string(PHALANX_PROGRAM) + " logs -f " + id + " | head -n 1"}}, 10s);
  EXPECT_EQ(head.exit_code, 0) << "a reader that goes away ends it: " << head;
  for (size_t rank : {0, 1, 2}) tell(rank, "exit 0");
  Outcome followed = follower->finish(20s);
  EXPECT_EQ(followed.exit_code, 0) << followed;
  EXPECT_HAS(followed.out, "[h2:2] rank 2 line 3\n");
  EXPECT_EQ(state({"-a"}), "done");
}

TEST_F(Life, ALauncherThatIsKilledIsLostAndTheHostsAreProvedEmpty) {
  start();
  std::string id = detached("h1,h2", {"h1", "h2"});
  tell(0, "exec sleep 1000");
  ::kill(launcher(), SIGSTOP);
  EXPECT_EQ(state(), "silent");
  EXPECT_HAS(phalanx({"why", id}).out, "does not answer");
  ::kill(launcher(), SIGKILL);
  Outcome followed = phalanx({"logs", "-f", id});
  EXPECT_EQ(followed.exit_code, 0);
  EXPECT_HAS(followed.err, "phalanx stop " + id);
  EXPECT_EQ(state(), "lost");
  EXPECT_EQ(phalanx({"attach", id}).exit_code, 4);
  EXPECT_HAS(phalanx({"why", id}).out, "the launcher was killed");
  expect_stopped(id, {"h1", "h2"});
  EXPECT_EQ(state(), "(none)");
  EXPECT_EQ(state({"-a"}), "lost");
}

// The driver says that a rank which is gone still has memory: no `stop` may call that host clean.
TEST_F(Life, GpuMemoryThatIsStillHeldIsNamed) {
  HostOptions h1;
  h1.sshd_config = {"SetEnv LD_LIBRARY_PATH=/tmp/nvml"};
  start({.hosts = 1, .host = {h1}});
  std::string id = detached("h1", {"h1"});
  std::string pid(base::trim(
      say("ctl", "sed -n 's/.*rank_started.*\"pid\":\\([0-9]*\\).*/\\1/p' ~/.local/state/phalanx/runs/" + id + "/events.jsonl")));
  ::phalanx::machine::test::TreeGpu gpu;
  gpu.uuid = "GPU-h1-0";
  gpu.pci = "0000:01:00.0";
  std::string nvml = "driver 535.129.03\ncuda 12020\n" + ::phalanx::machine::test::description(gpu);
  auto install = [&](const std::string& more) {
    say("h1", "mkdir -p /tmp/nvml && cp " PHALANX_NVML_STANDIN " /tmp/nvml/libnvidia-ml.so.1 && cat > /tmp/nvml/nvml.txt <<'END'\n" + nvml +
                  more + "END\n");
  };
  install("process " + pid + " 2048\n");
  Outcome stopped = phalanx({"stop", id}, 30s);
  EXPECT_EQ(stopped.exit_code, 3) << stopped;
  EXPECT_HAS(stopped.err, "h1: GPU 0 still holds 2 GiB of process " + pid);
  EXPECT_HAS_NOT(stopped.err, "nothing left");
  install("");
  expect_stopped(id, {"h1"}, "nothing left, including on its GPUs");
}

// Agent and guard of h1 die together while a process of a rank has left its session: nobody on the host knows it any more.
TEST_F(Life, StopFindsWhatNobodyKnowsOfAnyMore) {
  start();
  std::string id = detached("h1,h2", {"h1", "h2"});
  tell(0, "setsid sleep 1234 < /dev/null > /dev/null 2>&1 &");
  tell(0, "echo daemon $!");
  await(id, "daemon ");
  for (int signal : {SIGSTOP, SIGKILL})
    for (const char* name : {"phalanx-guard", "phalanx-agent"}) cluster().kill_processes("h1", name, signal);
  Outcome ended = phalanx({"logs", "-f", id}, 30s);
  EXPECT_HAS(say("h1", "pgrep -fc '[s]leep 1234' || true"), "1");
  expect_stopped(id, {"h1"}, "killed 1 process of the run");
  EXPECT_EQ(say("h1", "pgrep -fc '[s]leep 1234' || true"), "0\n");
}

// What vLLM and Ray do with setproctitle: the name of the process stands where its environment was.
constexpr const char* kRenamed =
    "setsid perl -e '$0 = \"worker\" . \"-\" x 9000; sleep 1234' < /dev/null > /dev/null 2>&1 & echo renamed $!";
constexpr const char* kAlive = "pgrep -fc '^[w]orker---' || true";

TEST_F(Life, StopFindsAProcessThatHasOverwrittenItsEnvironment) {
  start();
  std::string id = detached("h1,h2", {"h1", "h2"});
  tell(0, kRenamed);
  await(id, "renamed ");
  say("h1", "until grep -q \"^process $(pgrep -f '^[w]orker---') \" /tmp/phalanx-run-*/family; do sleep 0.1; done");
  for (int signal : {SIGSTOP, SIGKILL})
    for (const char* name : {"phalanx-guard", "phalanx-agent"}) cluster().kill_processes("h1", name, signal);
  Outcome ended = phalanx({"logs", "-f", id}, 30s);
  EXPECT_EQ(say("h1", kAlive), "1\n");
  expect_stopped(id, {"h1"}, "killed 1 process of the run");
  EXPECT_EQ(say("h1", kAlive), "0\n");
  EXPECT_EQ(say("h1", "ls -d /tmp/phalanx-run-* 2>/dev/null || true"), "");
}

// It was started after the agent last wrote down its family, and agent and guard are killed at once: nobody can tell whose it is.
TEST_F(Life, StopNeverSaysNothingLeftWhenItCannotTell) {
  start();
  std::string id = detached("h1,h2", {"h1", "h2"});
  for (const char* name : {"phalanx-guard", "phalanx-agent"}) cluster().kill_processes("h1", name, SIGSTOP);
  tell(0, kRenamed);
  say("h1", "until pgrep -f '^[w]orker---'; do sleep 0.05; done");
  for (const char* name : {"phalanx-guard", "phalanx-agent"}) cluster().kill_processes("h1", name, SIGKILL);
  Outcome ended = phalanx({"logs", "-f", id}, 30s);
  std::string pid(base::trim(say("h1", "pgrep -f '^[w]orker---'")));
  Outcome stopped = phalanx({"stop", id}, 30s);
  EXPECT_EQ(stopped.exit_code, 3) << stopped;
  EXPECT_HAS(stopped.err, "h1: cannot tell whether this process belongs to the run: process " + pid + " (worker---");
  EXPECT_HAS(stopped.err, "it has overwritten its environment");
  EXPECT_HAS(stopped.err, "hint: ssh h1 ps -o pid,user,lstart,args -p " + pid);
  EXPECT_HAS_NOT(stopped.err, "h1: nothing left");
  EXPECT_HAS(stopped.err, "h2: nothing left");
  EXPECT_EQ(say("h1", kAlive), "1\n") << "it may be somebody else's";
  say("h1", "kill -9 " + pid);
  expect_stopped(id, {"h1"}, "nothing left");
}

// As before, but the host's control group was given to this user: the process cannot leave the group of the run, so there is no doubt.
TEST_F(Life, WhereAControlGroupIsDelegatedStopFindsWhatNobodyCouldTell) {
  start();
  const std::string made = say("h1",
                               "g=$(awk '$3 == \"cgroup2\" { print $2; exit }' /proc/mounts)$(sed -n 's/^0:://p' /proc/self/cgroup); "
                               "/usr/bin/python3 -c \"import os; os.setxattr('$g', 'trusted.delegate', b'1')\" 2>&1 || true; "
                               "ls \"$g\" | grep -c cgroup.kill || true");
  if (made != "1\n") GTEST_SKIP() << "no control group of version 2 with cgroup.kill that can be marked as delegated here: " << made;
  std::string id = detached("h1,h2", {"h1", "h2"});
  const std::string groups = "find /sys/fs/cgroup -maxdepth 6 -type d -name 'phalanx-run-" + id + "*'";
  EXPECT_NE(say("h1", groups), "");
  for (const char* name : {"phalanx-guard", "phalanx-agent"}) cluster().kill_processes("h1", name, SIGSTOP);
  tell(0, kRenamed);
  say("h1", "until pgrep -f '^[w]orker---'; do sleep 0.05; done");
  for (const char* name : {"phalanx-guard", "phalanx-agent"}) cluster().kill_processes("h1", name, SIGKILL);
  Outcome ended = phalanx({"logs", "-f", id}, 30s);
  EXPECT_EQ(say("h1", kAlive), "1\n");
  expect_stopped(id, {"h1"}, "killed 1 process of the run");
  EXPECT_EQ(say("h1", kAlive), "0\n");
  EXPECT_EQ(say("h1", groups), "") << "the group is removed when it is empty";
}

TEST_F(Life, ABoundedLogIsFollowedAcrossItsTurns) {
  start({.hosts = 1});
  // 40 turns of a log of 32 KiB each way; `logs -f` reads as it grows.
  auto run =
      cluster().start_on("ctl", {.argv = typed({"run", "-H", "h1", "--preflight", "off", "-q", "--log-max", "64KiB", "--", "sh", "-c",
                                                "for i in $(seq 200); do seq -f \"$i-%g filling text\" 300; sleep 0.05; done"})});
  ASSERT_TRUE(run.ok());
  while (phalanx({"logs", "--tail", "1"}).out.empty()) ASSERT_FALSE(run->wait(100ms));
  Outcome followed = phalanx({"logs", "-f"}, 60s);
  ASSERT_EQ(run->finish(10s).exit_code, 0);
  for (const char* line : {"100-300 filling text", "150-1 filling text", "200-300 filling text"}) EXPECT_HAS(followed.out, line);
  EXPECT_LE(std::stol(say("ctl", "cat ~/.local/state/phalanx/runs/latest/ranks/0.log* | wc -c")), 65 << 10);
  Outcome tail = phalanx({"logs", "--tail", "2000"});
  EXPECT_EQ(std::count(tail.out.begin(), tail.out.end(), '\n'), 2000) << "across both files";
}

TEST_F(Life, ASlowOrHostileClientDelaysNothing) {
  start({.hosts = 1});
  std::string id = detached("h1", {"h1"});
  auto slow = cluster().start_on("ctl", {.argv = typed({"attach", id})});  // nobody reads what it prints
  ASSERT_TRUE(slow.ok());
  ASSERT_TRUE(slow->wait_output("attached", 10s));
  std::string attack =
      "import os,socket,glob\n"
      "path=glob.glob(os.path.expanduser('~/.local/state/phalanx/runs/*/control'))[0]\n"
      "held=[]\n"
      "for i in range(100):\n"
      "  s=socket.socket(socket.AF_UNIX); s.connect(path); held.append(s)\n"
      "  try: s.sendall([b'GET / HTTP/1.0\\r\\n\\r\\n', b'\\0PHALANX-1\\n'+b'\\xff'*4096, b'\\0PHALANX-1\\n\\0\\0\\0\\0\\xa0', b''][i%4])\n"
      "  except OSError: pass\n"
      "print('attacked')\n";
  Outcome attacked = cluster().run_on("ctl", {.argv = {"python3", "-c", attack}}, 10s);
  EXPECT_HAS(attacked.out, "attacked") << attacked;
  tell(0, "seq 3000000; echo flooded; exit 0");
  Outcome logs = phalanx({"logs", "-f", "--tail", "1", id}, 60s);
  EXPECT_HAS(logs.out, "flooded") << "the run waited for its slow reader";
  EXPECT_EQ(state({"-a"}), "done");
  Outcome attach = slow->finish(20s);
  EXPECT_EQ(attach.exit_code, 0);
  EXPECT_HAS(attach.err, "were not shown");
}

TEST_F(Life, TheReportHoldsNoSecret) {
  start({.hosts = 1});
  Outcome run = phalanx(
      {"run", "-H", "h1", "--env", "WANDB_API_KEY=topsecret", "--", "sh", "-c",
       "echo the key is $WANDB_API_KEY; echo HF_TOKEN=hf_abcdefghijklmnopqrstuvwxyz012345; echo https://me:hunter2@example.org/x; echo "
       "'<script>alert(1)</script>' >&2; "
       "for i in 1 2 3; do echo '{\"v\":1,\"type\":\"progress\",\"step\":'$i',\"total\":3,\"loss\":'$i'.5}' >&3; sleep 0.1; done; exit 3",
       "--token", "sesame"});
  EXPECT_EQ(run.exit_code, 3) << run;
  Outcome report = phalanx({"report", "-o", "/tmp/r.tar.gz"});
  EXPECT_EQ(report.exit_code, 0) << report;
  std::string listed = say("ctl", "cd /tmp && tar xzf r.tar.gz && mv phalanx-report-* r && cd r && find . -type f | sort");
  for (const char* name : {"./report.html", "./run.json", "./events.jsonl", "./progress.jsonl", "./ranks/0.log", "./facts/0.json"})
    EXPECT_HAS(listed, name);
  EXPECT_EQ(say("ctl", "cd /tmp/r && grep -rlE 'hf_abc|hunter2|sesame|topsecret' . || true"), "");
  EXPECT_HAS(say("ctl", "cat /tmp/r/facts/0.json"), "environment_names");
  std::string page = say("ctl", "cat /tmp/r/report.html");
  EXPECT_HAS(page, "rank 0 (h1, local 0) exited with code 3");
  EXPECT_HAS(page, "&lt;script&gt;alert(1)");
  EXPECT_HAS_NOT(page, "<script");
  EXPECT_HAS(page, "<svg");
  EXPECT_EQ(say("ctl", "stat -c %a /tmp/r.tar.gz"), "600\n");
}

}  // namespace
