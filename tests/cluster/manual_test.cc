// Nodes that are started by hand, the same line on every machine with a node rank of its own. No ssh is used.
#include <fmt/format.h>

#include "base/text.h"
#include "launcher_fixture.h"

using namespace phalanx;

namespace {

using namespace phalanx::testbed;
using namespace std::chrono_literals;

class Manual : public Launcher {
 protected:
  void SetUp() override {
    Launcher::SetUp();
    if (IsSkipped()) return;
    start({.hosts = 3});
    for (const std::string& host : cluster().hosts()) write_token(host, "one token that is long enough");
  }
  void write_token(const std::string& host, const std::string& token) { say(host, "umask 077; echo '" + token + "' > /tmp/token"); }
  // The line on host K + 1, as a process; `more` stands before the command.
  Process node(int rank, const Words& more = {}, const std::string& command = "echo rank $RANK of $WORLD_SIZE on $(hostname)",
               int host = -1) {
    Words words = {PHALANX_PROGRAM,  "run",
                   "--nnodes",       "3",
                   "--node-rank",    std::to_string(rank),
                   "--master-addr",  *cluster().address("h1"),
                   "--token-file",   "/tmp/token",
                   "--join-timeout", "5s",
                   "--fold",         "off"};
    words = with(with(words, more), {"--", "sh", "-c", command});
    base::Result<Process> process = cluster().start_on("h" + std::to_string(host < 0 ? rank + 1 : host),
                                                       {.argv = words, .env = {{"PHALANX_SSH", "/bin/false"}}, .cwd = "/tmp"});
    EXPECT_TRUE(process.ok());
    return std::move(process).value();
  }
  static void expect_run(const Outcome& node0, const std::vector<Outcome>& others) {
    EXPECT_EQ(node0.exit_code, 0) << node0;
    for (const char* line : {"rank 0 of 3 on h1", "rank 1 of 3 on h2", "rank 2 of 3 on h3"}) EXPECT_HAS(node0.out, line);
    for (const Outcome& other : others) {
      EXPECT_EQ(other.exit_code, 0) << other;
      EXPECT_HAS(other.err, "the run has ended well");
    }
  }
};

TEST_F(Manual, InAnyOrderTheyBecomeOneRun) {
  {
    Process n0 = node(0), n1 = node(1), n2 = node(2);
    const Outcome o0 = n0.finish(20s), o1 = n1.finish(15s), o2 = n2.finish(15s);
    expect_run(o0, {o1, o2});
  }
  Process n2 = node(2), n1 = node(1);
  say("h1", "sleep 1");
  Process n0 = node(0, {"--master-port", "29511"});
  const Outcome o0 = n0.finish(15s);
  EXPECT_EQ(o0.exit_code, 5) << o0;
  EXPECT_HAS(o0.err, "nodes 1, 2 did not join node 0");
  for (Process* one : {&n1, &n2}) {  // their port is another
    const Outcome outcome = one->finish(15s);
    EXPECT_EQ(outcome.exit_code, 4) << outcome;
    EXPECT_HAS(outcome.err, "found no node 0 at");
  }
  EXPECT_EQ(leftovers(2s), "");
}

TEST_F(Manual, ALateNodeIsWaitedForAndTheStorePortIsTheOneOfTheMeeting) {
  const Words port = {"--master-port", "29510"};
  Process n2 = node(2, port);
  say("h1", "sleep 1");
  Process n0 = node(0, port);
  say("h1", "sleep 3");
  Process n1 = node(1, port);
  const Outcome o0 = n0.finish(20s);
  expect_run(o0, {n1.finish(15s), n2.finish(15s)});
  EXPECT_HAS(o0.err, "waiting for node 1");
}

// torchrun's line, pasted on every machine with phalanx in front; node 2 has its rank in torchrun's variable.
TEST_F(Manual, ALineOfTorchrunWithItsOwnNodeRank) {
  auto pasted = [&](int rank) {
    Words words = {PHALANX_PROGRAM, "--token-file", "/tmp/token", "--join-timeout", "5s", "--fold", "off"};
    words = with(words, {"torchrun", "--nnodes", "3", "--master_addr", *cluster().address("h1"), "--master_port", "29512", "--no_python"});
    if (rank < 2) words = with(words, {"--node_rank", std::to_string(rank)});
    words = with(words, {"sh", "-c", "echo rank $RANK of $WORLD_SIZE on $(hostname)"});
    std::map<std::string, std::string> env = {{"PHALANX_SSH", "/bin/false"}};
    if (rank == 2) env["PET_NODE_RANK"] = "2";
    base::Result<Process> process = cluster().start_on("h" + std::to_string(rank + 1), {.argv = words, .env = env, .cwd = "/tmp"});
    EXPECT_TRUE(process.ok());
    return std::move(process).value();
  };
  Process n1 = pasted(1), n2 = pasted(2), n0 = pasted(0);
  const Outcome o0 = n0.finish(20s);
  expect_run(o0, {n1.finish(15s), n2.finish(15s)});
  EXPECT_HAS(o0.err, "phalanx run --node-rank 0 --nnodes 3");
  EXPECT_EQ(leftovers(2s), "");
}

// What the controllers of Kubernetes set in their pods is enough: no option of a start by hand is typed. The token is that of a Secret.
TEST_F(Manual, PodsOfKubernetesFindTheirPlaceInTheirVariables) {
  const std::string master = *cluster().address("h1");
  struct Kind {
    const char* name;
    std::map<std::string, std::string> variables;
    const char* rank;
    Words words;
  };
  const Words command = {"sh", "-c", "echo rank $RANK of $WORLD_SIZE on $(hostname) ${PHALANX_TOKEN:-without token}"};
  for (const Kind& kind : {
           Kind{"Indexed Job", {}, "JOB_COMPLETION_INDEX", {"run", "--nnodes", "3", "--master-addr", master, "--"}},
           Kind{"PyTorchJob", {{"WORLD_SIZE", "3"}, {"MASTER_ADDR", master}, {"MASTER_PORT", "29513"}}, "RANK", {"run", "--"}},
           Kind{"TrainJob",
                {{"PET_NNODES", "3"}, {"PET_MASTER_ADDR", master}, {"PET_MASTER_PORT", "29514"}, {"PET_NPROC_PER_NODE", "1"}},
                "PET_NODE_RANK",
                {"torchrun", "--no_python"}},
       }) {
    SCOPED_TRACE(kind.name);
    auto pod = [&](int index) {
      std::map<std::string, std::string> env = kind.variables;
      env[kind.rank] = std::to_string(index);
      env.insert({{"KUBERNETES_SERVICE_HOST", "10.96.0.1"}, {"PHALANX_TOKEN", "a token of the Secret"}, {"PHALANX_SSH", "/bin/false"}});
      base::Result<Process> process = cluster().start_on(
          fmt::format("h{}", index + 1), {.argv = with(with({PHALANX_PROGRAM}, kind.words), command), .env = env, .cwd = "/tmp"});
      EXPECT_TRUE(process.ok());
      return std::move(process).value();
    };
    Process n1 = pod(1), n2 = pod(2), n0 = pod(0);
    const Outcome o0 = n0.finish(20s);
    expect_run(o0, {n1.finish(15s), n2.finish(15s)});
    EXPECT_HAS(o0.out, "on h1 without token");
    EXPECT_HAS(o0.err, kind.words[0] == "run" ? "phalanx: this pod is node 0 of 3" : "phalanx run --node-rank 0 --nnodes 3");
  }
  EXPECT_EQ(leftovers(2s), "");
}

TEST_F(Manual, WhatContradictsIsRefusedOnEveryMachine) {
  struct Case {
    Words more;
    int rank;
    std::string command;
    std::string says;
  };
  const std::string same = "echo rank $RANK of $WORLD_SIZE on $(hostname)";
  for (const Case& one : {Case{{}, 1, same, "node rank 1 is given twice"},
                          Case{{"--nproc-per-node", "2"}, 2, same, "node 2 (h3) was started with --nproc-per-node 2, node 0 without"},
                          Case{{}, 2, "echo other", "node 2 (h3) was started with another command than node 0: word 3 differs"}}) {
    Process n0 = node(0), n1 = node(1);
    say("h1", "sleep 1");
    Process n2 = node(one.rank, one.more, one.command, 3);
    for (Process* process : {&n0, &n1, &n2}) {
      const Outcome outcome = process->finish(15s);
      EXPECT_EQ(outcome.exit_code, 2) << one.says << outcome;
      EXPECT_HAS(outcome.err, one.says);
      EXPECT_EQ(outcome.out, "");
    }
  }
}

TEST_F(Manual, AnotherTokenIsNotLetInAndAMissingNodeEndsTheWaiting) {
  write_token("h3", "a token of somebody else");
  Process n0 = node(0), n1 = node(1), n2 = node(2);
  const Outcome stranger = n2.finish(5s);
  EXPECT_EQ(stranger.exit_code, 4) << stranger;
  EXPECT_HAS(stranger.err, "has another token");
  for (Process* process : {&n0, &n1}) {
    const Outcome outcome = process->finish(15s);
    EXPECT_EQ(outcome.exit_code, 5) << outcome;
    EXPECT_HAS(outcome.err, "node 2 did not join node 0 at");
  }
  // Who comes after the others have stopped waiting (here after 5 s, else after minutes) is told so.
  write_token("h3", "one token that is long enough");
  const Outcome late = node(2).finish(15s);
  EXPECT_EQ(late.exit_code, 4) << late;
  EXPECT_HAS(late.err, "found no node 0 at");
  say("h1", "chmod 644 /tmp/token");
  const Outcome open = node(0).finish(5s);
  EXPECT_EQ(open.exit_code, 2) << open;
  EXPECT_HAS(open.err, "others may read or own this token");
  EXPECT_HAS(node(0, {}, "true", 2).finish(5s).err, "is no address of this machine, but this is node 0");
}

TEST_F(Manual, ExitCodesAndCtrlCReachEveryMachine) {
  {
    const std::string command = "test $RANK = 2 && exit 7; sleep 100";
    Process n0 = node(0, {}, command), n1 = node(1, {}, command), n2 = node(2, {}, command);
    for (Process* process : {&n0, &n1, &n2}) {
      const Outcome outcome = process->finish(20s);
      EXPECT_EQ(outcome.exit_code, 7) << outcome;
    }
  }
  for (int at : {0, 1}) {
    const std::string command = "echo ready > /tmp/ready; trap 'echo saved $RANK; exit 0' TERM; sleep 100 & wait";
    Process n0 = node(0, {}, command), n1 = node(1, {}, command), n2 = node(2, {}, command);
    for (const std::string& host : cluster().hosts())
      say(host, "for i in $(seq 150); do test -e /tmp/ready && break; sleep 0.1; done; rm /tmp/ready");
    (at == 0 ? n0 : n1).signal(SIGINT);
    const Outcome o0 = n0.finish(15s);
    EXPECT_EQ(o0.exit_code, 130) << o0;
    for (const char* line : {"saved 0", "saved 1", "saved 2"}) EXPECT_HAS(o0.out, line);
    for (Process* process : {&n1, &n2}) {
      const Outcome outcome = process->finish(10s);
      EXPECT_EQ(outcome.exit_code, 130) << outcome;
    }
  }
  EXPECT_EQ(leftovers(2s), "");
}

TEST_F(Manual, WhoLosesNode0EndsItsRanks) {
  const std::string command = "echo ready > /tmp/ready; sleep 100";
  Process n0 = node(0, {}, command), n1 = node(1, {}, command), n2 = node(2, {}, command);
  for (const std::string& host : cluster().hosts()) say(host, "for i in $(seq 150); do test -e /tmp/ready && break; sleep 0.1; done");
  n0.signal(SIGKILL);
  for (Process* process : {&n1, &n2}) {
    const Outcome outcome = process->finish(20s);
    EXPECT_EQ(outcome.exit_code, 4) << outcome;
    EXPECT_HAS(outcome.err, "the connection to node 0");
  }
  EXPECT_EQ(leftovers(5s), "");
}

}  // namespace
