// `phalanx run --container`: real podman on the hosts of the cluster, containers that run already and images, and a line of the user's with
// chroot. What runs in a container sees the image's files, and nothing of it is left when the run has ended.
#include <fmt/format.h>

#include "base/text.h"
#include "launcher_fixture.h"
#include "os/files.h"

using namespace phalanx;

namespace {

using namespace phalanx::testbed;
using namespace std::chrono_literals;

constexpr const char* kPodman = "export CONTAINERS_CONF=/tmp/pod/containers.conf CONTAINERS_STORAGE_CONF=/tmp/pod/storage.conf; podman ";
// A rank with a child of its own, which says where it is.
constexpr const char* kRank = "echo rank $RANK in $(cat /etc/mark) on $(hostname); sleep 7777 & sleep 7778";

class Podman : public Launcher {
 protected:
  void SetUp() override {
    Launcher::SetUp();
    if (IsSkipped()) return;
    if (!os::exists("/usr/bin/podman")) GTEST_SKIP() << "/usr/bin/podman is missing (package podman, with crun or runc)";
    HostOptions host;
    host.sshd_config = {"SetEnv CONTAINERS_CONF=/tmp/pod/containers.conf CONTAINERS_STORAGE_CONF=/tmp/pod/storage.conf"};
    start({.hosts = 2, .host = {host, host}});
    for (const std::string& name : cluster().hosts()) {
      const std::string made = say(name, script("podman_host.sh") + " in-" + name + " " TESTBED_PROJECT " " TESTBED_BUILD);
      if (made.starts_with("cannot: ")) GTEST_SKIP() << "podman cannot start containers here: " << made.substr(8);
    }
  }
  void TearDown() override {
    if (!IsSkipped())
      for (const std::string& name : cluster().hosts()) say(name, std::string(kPodman) + "rm --all --force --time 0 >/dev/null");
    // What podman itself leaves in the controllers of version 1.
    (void)std::system("find /sys/fs/cgroup -depth -type d -path '*/libpod_parent*' -exec rmdir {} + 2>/dev/null");
    Launcher::TearDown();
  }

  static Words both() { return {"-H", "h1,h2", "--container", "h1=podman:in-h1", "--container", "h2=podman:in-h2"}; }
  // more: arguments of the engine's, and a blank.
  static Words image(const std::string& more = "") {
    const std::string mounts = "-v /usr:/usr:ro -v /etc/alternatives:/etc/alternatives:ro -v " TESTBED_PROJECT ":" TESTBED_PROJECT
                               ":ro -v " TESTBED_BUILD ":" TESTBED_BUILD ":ro";
    return {"-H",
            "h1,h2",
            "-C",
            "/tmp",
            "--container",
            "podman-image:world",
            "--container-args",
            more + "--ulimit nofile=1024:1024 --ulimit nproc=4096:4096 " + mounts};
  }
  static Words shell(const std::string& line) { return {"--", "sh", "-c", line}; }

  // "h1: sleep 7777 …": what ranks have started and is still there.
  std::string sleepers(milliseconds most = 3s) {
    const auto end = std::chrono::steady_clock::now() + most;
    std::string left;
    do {
      left.clear();
      for (const std::string& host : cluster().hosts())
        for (const HostProcess& process : cluster().processes(host))
          if (process.command.find("sleep 777") != std::string::npos || process.name.starts_with("phalanx-"))
            left += host + ": " + process.command + "\n";
      std::this_thread::sleep_for(left.empty() ? 0ms : 20ms);
    } while (!left.empty() && std::chrono::steady_clock::now() < end);
    return left;
  }
  void expect_torch(const Words& where) {
    if (std::system("/usr/bin/python3 -c 'import torch.distributed' 2>/dev/null") != 0) return;
    const Outcome outcome = run_now(with(where, {"--fold", "off", "--", "/usr/bin/python3", script("ddp.py")}), 90s);
    EXPECT_EQ(outcome.exit_code, 0) << outcome;
    for (const char* line : {"rank 0 of 2: sum 3", "rank 1 of 2: sum 3", "rank 1 step 4 loss"}) EXPECT_HAS(outcome.out, line);
  }
  void expect_ctrl_c(const Words& where) {
    Process run = run_later(with(where, shell(kRank)));
    for (const char* line : {"rank 0 in world", "rank 1 in world"}) ASSERT_TRUE(run.wait_output(line, 20s)) << run.finish(0ms);
    run.signal(SIGINT);
    const Outcome outcome = run.finish(20s);
    EXPECT_EQ(outcome.exit_code, 130) << outcome;
    EXPECT_EQ(sleepers(), "");
  }
};

TEST_F(Podman, RunningContainersOfTwoHosts) {
  Outcome outcome = run_now(with(both(), shell("echo rank $RANK in $(cat /etc/mark) on $(hostname) ${PHALANX_OUTSIDE-clean}")));
  EXPECT_EQ(outcome.exit_code, 0) << outcome;
  for (const char* line : {"rank 0 in world on h1 clean", "rank 1 in world on h2 clean"}) EXPECT_HAS(outcome.out, line);
  outcome = run_now(with(both(), shell("test $RANK = 1 && exit 7; sleep 7777")));
  EXPECT_EQ(outcome.exit_code, 7) << outcome;
  EXPECT_HAS(outcome.err, "rank 1 (h2, local 0) exited with code 7");
  EXPECT_EQ(sleepers(), "");
  expect_ctrl_c(both());

  // The death of the engine's client does not kill what it has started.
  Process run = run_later(with(with(both(), {"--lease", "3s"}), shell(kRank)));
  ASSERT_TRUE(run.wait_output("rank 1 in world", 20s)) << run.finish(0ms);
  EXPECT_GT(cluster().kill_processes("h2", "podman exec"), 0);
  outcome = run.finish(20s);
  EXPECT_HAS(outcome.err, "h2: lost contact with the host");
  EXPECT_EQ(sleepers(), "");
}

// A launcher that is killed leaves no rank in the container, and `stop` looks for them inside.
TEST_F(Podman, AKilledLauncherAndASyncedDirectory) {
  Process run = run_later(with(both(), shell(kRank)));
  ASSERT_TRUE(run.wait_output("rank 1 in world", 20s)) << run.finish(0ms);
  EXPECT_GT(cluster().kill_processes("ctl", "phalanx run"), 0);
  run.finish(5s);
  EXPECT_EQ(sleepers(), "");
  Outcome outcome = cluster().run_on("ctl", {.argv = {PHALANX_PROGRAM, "stop", "latest"}, .cwd = "/tmp"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome;
  for (const char* line : {"h1: nothing left", "h2: nothing left"}) EXPECT_HAS(outcome.err, line);

  say("ctl", "mkdir -p /tmp/code && echo 'echo synced $RANK in $(cat /etc/mark)' > /tmp/code/go.sh");
  Command synced = Launcher::run(with(both(), {"--sync", "--", "sh", "go.sh"}));
  synced.cwd = "/tmp/code";
  outcome = cluster().run_on("ctl", synced);
  EXPECT_EQ(outcome.exit_code, 0) << outcome;
  for (const char* line : {"synced 0 in world", "synced 1 in world"}) EXPECT_HAS(outcome.out, line);
}

TEST_F(Podman, TheRunEndsWithItsContainerAndWhatCannotRunIsRefused) {
  Process run = run_later(with(both(), shell(kRank)));
  ASSERT_TRUE(run.wait_output("rank 1 in world", 20s)) << run.finish(0ms);
  say("h2", std::string(kPodman) + "kill in-h2");
  Outcome outcome = run.finish(20s);
  EXPECT_EQ(outcome.exit_code, 4) << outcome;
  EXPECT_HAS(outcome.err, "h2: the container in-h2 has stopped (state: ");
  EXPECT_HAS(outcome.err, "because phalanx-agent: the container has stopped; 3 processes were killed\n\nhint: ssh h2 podman start in-h2\n");
  EXPECT_EQ(sleepers(), "");

  outcome = run_now(with(both(), {"--", "true"}));
  EXPECT_EQ(outcome.exit_code, 4) << outcome;
  EXPECT_HAS(outcome.err, "h2: the container in-h2 is not running (state: exited)");
  outcome = run_now({"-H", "h1", "--container", "podman:in-h7", "--", "true"});
  EXPECT_EQ(outcome.exit_code, 4) << outcome;
  EXPECT_HAS(outcome.err, "h1: podman has no container in-h7\n  because running containers: in-h1\n\nhint: ssh h1 podman ps --all\n");
  outcome = run_now({"-H", "h1", "--container", "podman-image:nosuch:1", "--", "true"});
  EXPECT_HAS(outcome.err,
             "h1: podman has no image nosuch:1\n  because its images: localhost/world:latest\n\nhint: ssh h1 podman pull nosuch:1\n");
  if (!os::exists("/usr/bin/apptainer") && !os::exists("/usr/local/bin/apptainer")) {
    outcome = run_now({"-H", "h1", "--container", "apptainer:/tmp/x.sif", "--", "true"});
    EXPECT_HAS(outcome.err, "h1: apptainer is not installed, or not in the PATH of the login");
  }
  outcome = run_now({"-H", "h1", "--container", "h3=podman:x", "--", "true"});
  EXPECT_EQ(outcome.exit_code, 2) << outcome;
  EXPECT_HAS(outcome.err, "\"h3\" is not one of the hosts");
}

TEST_F(Podman, ImagesAreStartedForTheRunAndGoneAfterIt) {
  Outcome outcome =
      run_now(with(image(), shell("echo rank $RANK in $(cat /etc/mark); touch from-$RANK; grep -c phalanx-guard /proc/*/comm")));
  EXPECT_HAS(outcome.out, "rank 1 in world");
  EXPECT_EQ(say("h2", "ls /tmp/from-1"), "/tmp/from-1\n");  // the working directory is the host's
  expect_torch(image());
  expect_ctrl_c(image());
  outcome = run_now(with(with(image(), {"--dry-run"}), {"--", "sh"}));
  EXPECT_EQ(outcome.exit_code, 0) << outcome;
  EXPECT_HAS(outcome.out, "podman run --rm --interactive --pull never --network host --ipc host --pid host");
  EXPECT_HAS(outcome.out, "--mount type=bind,source=/tmp,target=/tmp");
  // Podman removes a container after its end, in a process of its own.
  for (const std::string& host : cluster().hosts())
    EXPECT_EQ(say(host, std::string(kPodman) +
                            "ps >/dev/null; for i in $(seq 100); do n=$(podman ps --all --format '{{.Names}}'); test \"$n\" = in-" + host +
                            " && break; sleep 0.1; done; echo $n"),
              "in-" + host + "\n");
}

TEST_F(Podman, WhatAContainerHidesIsAFinding) {
  auto check = [&](const Words& where) {
    return cluster().run_on("ctl", {.argv = with({PHALANX_PROGRAM, "check"}, where), .cwd = "/tmp"}).out;
  };
  std::string page = check(image("--network none --pid private --ipc private --shm-size 1m "));
  for (const char* line : {"CONT-NETWORK", "CONT-PID", "the container has a process namespace of its own", "FS-SHM-SMALL"})
    EXPECT_HAS(page, line);
  page = check(image());
  for (const char* line : {"CONT-", "FS-SHM-SMALL"}) EXPECT_HAS_NOT(page, line);
}

using OwnCommand = Launcher;

TEST_F(OwnCommand, ALineOfTheUsersOwnStartsTheAgent) {
  start({.hosts = 2});
  for (const std::string& host : cluster().hosts())
    say(host,
        "mkdir -p '/tmp/a root'/{usr,proc,dev,root,tmp,etc} && cd '/tmp/a root' && echo it\\'s >etc/mark && for l in bin lib lib64; do ln "
        "-s "
        "usr/$l $l; done");
  const std::string line =
      "unshare --mount sh -c 'cd \"/tmp/a root\" && for d in usr dev proc; do mount --rbind /$d $d; done && exec chroot . \"$@\"' - {}";
  const Words where = {"-H", "h1,h2", "-C", "/tmp", "--container", "command:" + line};
  Outcome outcome = run_now(with(where, {"--", "sh", "-c", "echo rank $RANK in $(cat /etc/mark)"}));
  for (const char* part : {"rank 0 in it's", "rank 1 in it's"}) EXPECT_HAS(outcome.out, part);
  outcome = run_now(with(where, {"--", "sh", "-c", "test $RANK = 0 || exit 5; sleep 100"}));
  EXPECT_EQ(outcome.exit_code, 5) << outcome;
  EXPECT_HAS(outcome.err, "rank 1 (h2, local 0) exited with code 5");
  EXPECT_EQ(leftovers(2s), "");
  outcome = run_now({"-H", "h1", "--container", "command:nosuchprogram {}", "--", "true"});
  EXPECT_EQ(outcome.exit_code, 4) << outcome;
  EXPECT_HAS(outcome.err, "h1: the agent could not be started in command:nosuchprogram {} (exit code 127)");
}

}  // namespace
