// Three people on every host: root, `worker`, who runs jobs there, and `stranger`, who has a shell there and tries to become worker, to
// read or change what is worker's, or to make worker's commands hang or believe what stranger wrote. See SECURITY.md.
#include <signal.h>

#include <algorithm>
#include <cstdlib>

#include <fmt/format.h>

#include "base/json.h"
#include "base/text.h"
#include "hosts/connect/deploy.h"
#include "launcher_fixture.h"
#include "state.h"
#include "users.h"

using namespace phalanx;

namespace {

using namespace phalanx::testbed;
using namespace std::chrono_literals;

const std::string kWorkerHome = home_of("worker"), kStrangerHome = home_of("stranger");

class Attack : public Launcher {
 protected:
  // The hosts, with the programs of both users. Where the project lies below a folder that only root can enter, neither could run what is
  // there.
  void begin() {
    start();
    std::vector<std::string> all = cluster().hosts();
    all.push_back("ctl");
    for (const std::string& host : all) {
      std::string install = "mkdir -m 1777 /tmp/loot; chmod 1777 /tmp/loot";
      for (const char* name : {"swap.py", "knock.py", "pry.py", "litter.py"})
        install += "; install -m 755 " + script(name) + " " + kStrangerHome;
      say(host, install + "; install -m 755 -o worker " + script("obey.sh") + " " + kWorkerHome);
    }
    say("ctl", "install -m 755 -o worker " PHALANX_PROGRAM " " + program_);
  }
  Command as(const std::string& user, const Words& argv) { return {.argv = argv, .cwd = "/tmp", .user = user}; }
  Outcome phalanx(const Words& words, milliseconds most = 30s) {
    return cluster().run_on("ctl", as("worker", with({program_}, words)), most);
  }
  Outcome run_worker(const Words& words, milliseconds most = 60s) { return phalanx(with({"run", "--lease", "6s"}, words), most); }
  std::string say_as(const std::string& user, const std::string& host, const std::string& text, milliseconds most = 30s) {
    Outcome outcome = cluster().run_on(host, as(user, {"/bin/bash", "-c", text}), most);
    EXPECT_EQ(outcome.exit_code, 0) << user << " on " << host << ": " << text << "\n" << outcome;
    return outcome.out;
  }
  Process stranger(const std::string& host, const Words& words, const std::string& first) {
    auto process = cluster().start_on(host, as("stranger", with({kStrangerHome + "/" + words[0]}, Words(words.begin() + 1, words.end()))));
    if (!process.ok()) ADD_FAILURE() << process.error().render();
    EXPECT_TRUE(process->wait_output(first, 20s)) << process->out() << process->err();
    return std::move(process).value();
  }
  // What a stranger that is asked to end said last.
  std::string last_of(Process& process) {
    process.signal(SIGTERM);
    Outcome outcome = process.finish(20s);
    EXPECT_EQ(outcome.exit_code, 0) << outcome;
    auto lines = base::split_lines(base::trim(outcome.out));
    return lines.empty() ? "" : std::string(lines.back());
  }
  std::string loot(const std::string& host) { return say(host, "ls /tmp/loot"); }

  const std::string program_ = kWorkerHome + "/phalanx";
};

// Worker logs in everywhere, stranger nowhere; neither can enter the home of the other; the machine knows neither.
TEST_F(Attack, EveryHostHasTwoMoreUsersAndTheMachineHasNone) {
  auto accounts = [] { return read_text("/etc/passwd").value() + read_text("/etc/group").value() + read_text("/etc/shadow").value(); };
  const std::string machine = accounts();
  start();
  auto as_user = [&](const std::string& user, const std::string& host, const std::string& text) {
    return cluster().run_on(host, as(user, {"/bin/bash", "-c", text}));
  };
  EXPECT_EQ(say_as("worker", "ctl", "id -un; echo ~; ssh h1 'id -un; hostname'; ssh h2 ssh h1 id -u"),
            "worker\n" + kWorkerHome + "\nworker\nh1\n61301\n");
  EXPECT_EQ(say_as("stranger", "h2", "id -un; id -G; grep CapEff /proc/self/status"), "stranger\n61302\nCapEff:\t0000000000000000\n");
  EXPECT_EQ(as_user("stranger", "h2", "ssh -o BatchMode=yes -o StrictHostKeyChecking=no worker@h1 true").exit_code, 255);
  for (const std::string& secret : {std::string("/etc/shadow"), std::string("/run/testbed/host_key"), kWorkerHome + "/.ssh/id_ed25519"})
    EXPECT_HAS(as_user("stranger", "h1", "cat " + secret).err, "Permission denied");
  EXPECT_HAS(as_user("worker", "h1", "ls " + kStrangerHome).err, "Permission denied");
  EXPECT_EQ(accounts(), machine);
  EXPECT_HAS_NOT(machine, "worker:x:61301");
}

// 1000 by hand: PHALANX_ATTACK_LOGINS=1000.
int logins() {
  const char* text = std::getenv("PHALANX_ATTACK_LOGINS");
  return text != nullptr ? std::max(2, std::atoi(text)) : 200;
}

// Half of the logins find their own place in the home directory; half have none, and look into the shared ones, where stranger exchanges
// everything that can be looked at for something of worker's. Eight at a time, with the very command that the launcher sends.
TEST_F(Attack, ColdLoginsBesideASwappingLoopExecuteNothingForeign) {
  begin();
  Outcome first = run_worker({"-H", "h1", "--", "true"});
  ASSERT_EQ(first.exit_code, 0) << first;
  const std::string build(base::trim(say("h1", "cd " + kWorkerHome + "/.cache/phalanx; ls -d ????????????????????*")));
  say("h1", "mv " + kWorkerHome + "/.cache " + kWorkerHome + "/mine");
  say("h2", "mkdir -p " + kWorkerHome + "/mine && chown worker " + kWorkerHome + "/mine && chown root " + kWorkerHome + " && chmod 755 " +
                kWorkerHome);
  const std::string id = std::to_string(kUsers[0].id);
  std::vector<Process> swappers;
  for (const char* host : {"h1", "h2"})
    swappers.push_back(stranger(host, {"swap.py", id, build, kWorkerHome + "/mine", "/var/tmp", "/tmp", "/dev/shm"}, "swapping"));

  const std::string remote = hosts::remote_command(build, "0123456789abcdef");
  for (const char* host : {"h1", "h2"})
    say_as("worker", "ctl", "ssh -o ControlMaster=yes -o ControlPath=/tmp/master-%n -o ControlPersist=60 " + std::string(host) + " true");
  const int count = logins();
  Command many = as("worker", {"sh", "-c",
                               "seq " + std::to_string(count) +
                                   " | xargs -P 8 -I{} sh -c 'ssh -o ControlPath=/tmp/master-%n h$(({} % 2 + 1)) \"$0\" </dev/null"
                                   " 2>/dev/null | tail -n 1' \"$0\"",
                               base::replace_all(remote, "%", "%%")});
  many.argv.back() = remote;
  Instant began = std::chrono::steady_clock::now();
  Outcome all = cluster().run_on("ctl", many, 300s);
  auto took = std::chrono::duration_cast<milliseconds>(std::chrono::steady_clock::now() - began);
  int home = 0, nowhere = 0, other = 0;
  for (auto line : base::split_lines(base::trim(all.out))) {
    bool asks = line.starts_with("PHALANX-NEED ") && line.ends_with(" " + kWorkerHome + "/.cache/phalanx");
    ++(asks ? home : line == "PHALANX-NOPLACE" ? nowhere : other);
  }
  EXPECT_EQ(home, count / 2) << all;
  EXPECT_EQ(nowhere, (count + 1) / 2);
  EXPECT_EQ(other, 0);

  // Whole deployments: one that is made, one that has no place and says so, one into the place that stranger has left alone.
  say("h1", "rm -rf " + kWorkerHome + "/.cache");
  Outcome made = run_worker({"-H", "h1", "--preflight", "off", "--", "sh", "-c", "echo here $(hostname)"});
  EXPECT_EQ(made.exit_code, 0) << made;
  EXPECT_HAS(made.out, "here h1");
  Outcome refused = run_worker({"-H", "h2", "--preflight", "off", "--", "true"});
  EXPECT_EQ(refused.exit_code, 3) << refused;
  for (const char* place : {"/var/tmp/phalanx-", "/tmp/phalanx-", "/dev/shm/phalanx-"}) EXPECT_HAS(refused.err, place + id);
  int64_t swaps = 0;
  for (Process& swapper : swappers) swaps += std::atoll(last_of(swapper).c_str());
  say("h2", "rm -rf /dev/shm/phalanx-* /tmp/phalanx-* /var/tmp/phalanx-*");
  swappers.clear();
  Process two = stranger("h2", {"swap.py", id, build, kWorkerHome + "/mine", "/var/tmp", "/tmp"}, "swapping");
  Outcome shared = run_worker({"-H", "h2", "--preflight", "off", "--", "sh", "-c", "readlink /proc/$PPID/exe"});
  EXPECT_EQ(shared.exit_code, 0) << shared;
  EXPECT_HAS(shared.out, "/dev/shm/phalanx-" + id + "/" + build + "/phalanx");
  swaps += std::atoll(last_of(two).c_str());

  EXPECT_EQ(loot("h1") + loot("h2"), "") << "a program of stranger's was executed";
  EXPECT_GT(swaps, 10 * count);
  std::printf("%d cold logins in %.1f s beside %ld exchanges, 0 foreign programs executed\n", count,
              static_cast<double>(took.count()) / 1e3, static_cast<long>(swaps));
  // The trap works: worker would execute it.
  say_as("worker", "h1",
         "for p in /var/tmp /tmp /dev/shm; do for f in $p/phalanx-*/*/phalanx*; do [ -f $f ] && $f agent; done; done; true");
  EXPECT_EQ(loot("h1"), "by-worker\n");
}

// Everything worker has while a run goes on, as root lists it for stranger: "path P" and "pid N".
constexpr const char* kBelongings =
    "{ find /tmp/phalanx-run-* /tmp/shared/2* $HOME_OF/.cache $HOME_OF/.local -mindepth 0 2>/dev/null | sed 's/^/path /'; "
    "pgrep -u worker -f phalanx | sed 's/^/pid /'; pgrep -u worker -f obey.sh | sed 's/^/pid /'; }";

TEST_F(Attack, AStrangerReadsAndWritesNoByteOfARun) {
  begin();
  say("ctl", "mkdir -m 1777 /tmp/shared; chmod 1777 /tmp/shared");
  // At the ports from before the start: those of the mesh test are open for moments only.
  const std::string id = std::to_string(kUsers[0].id);
  std::vector<Process> knockers;
  for (const char* host : {"h1", "h2", "ctl"}) knockers.push_back(stranger(host, {"knock.py", id}, "knocking"));
  auto run = cluster().start_on("ctl", as("worker", {program_, "run", "--lease", "6s", "--preflight", "strict", "--log-dir", "/tmp/shared",
                                                     "-H", "h1,h2", "--", kWorkerHome + "/obey.sh"}));
  ASSERT_TRUE(run.ok());
  for (const char* word : {"rank 0 ready", "rank 1 ready"}) ASSERT_TRUE(run->wait_output(word, 30s)) << run->out() << run->err();

  size_t paths = 0, pids = 0, attempts = 0;
  for (const char* host : {"ctl", "h1", "h2"}) {
    Command pry = as("stranger", {kStrangerHome + "/pry.py"});
    pry.input = say(host, base::replace_all(kBelongings, "$HOME_OF", kWorkerHome));
    for (auto line : base::split_lines(pry.input)) ++(line.starts_with("path ") ? paths : pids);
    Outcome pried = cluster().run_on(host, pry, 30s);
    EXPECT_EQ(pried.exit_code, 0) << pried;
    for (auto line : base::split_lines(base::trim(pried.out))) {
      if (line.starts_with("GONE pid ")) {
        --pids;
        continue;
      }
      ++attempts;
      // EISDIR: a folder that is visible in /tmp was to be opened for writing.
      bool refused = line.starts_with("EACCES ") || line.starts_with("EPERM ") || line.starts_with("EISDIR append to ");
      EXPECT_TRUE(refused) << host << ": " << line;
    }
  }
  EXPECT_GT(paths, 20u);
  EXPECT_GE(pids, 8u) << "launcher, writer, connections; agent, guard and rank of two hosts";

  // The store's own host refuses stranger, whatever is said; so does a host that is not of the run. What users of the run's other hosts can
  // do is what SECURITY.md says of them.
  for (int rank : {0, 1}) say_as("worker", rank == 0 ? "h1" : "h2", fmt::format("echo 'echo still here; exit 0' > /tmp/tell-{}", rank));
  Outcome outcome = run->finish(20s);
  EXPECT_EQ(outcome.exit_code, 0) << outcome;
  EXPECT_HAS(outcome.out, "still here");
  for (Process& knocker : knockers) {
    std::string last = last_of(knocker);
    EXPECT_HAS(last, " connections");
    EXPECT_HAS_NOT(knocker.out(), "heard") << "an answer for another user";
    EXPECT_EQ(&knocker == &knockers[2], last.starts_with("0 ports")) << last;  // only ctl has none
  }
  std::printf("%zu attempts on %zu paths and %zu processes were refused\n", attempts, paths, pids);
  EXPECT_EQ(leftovers(2s), "");
}

// A project file decides which program ssh starts here and what is preloaded into the ranks. Of stranger's making, or where stranger could
// exchange it, it is refused before anything of it is used.
TEST_F(Attack, AProjectFileOfAStrangerIsRefused) {
  begin();
  say("ctl", "mkdir -m 1777 /tmp/open; mkdir -m 0777 /tmp/loose; install -d -o worker /tmp/open/job /tmp/loose/job");
  const std::string bait =
      "printf 'hosts: h1\\nssh-option: ProxyCommand=touch /tmp/loot/by-project\\nenv: {LD_PRELOAD: /tmp/evil.so}\\n' > ";
  auto type = [&](const std::string& cwd, const Words& words) {
    Command command = as("worker", with({program_}, words));
    command.cwd = cwd;
    return cluster().run_on("ctl", command, 30s);
  };
  auto refused = [&](const std::string& cwd, const std::string& why) {
    for (const Words& words : {Words{"run", "--", "true"}, Words{"exec", "--", "true"}, Words{"check"}, Words{"config", "show"}}) {
      Outcome outcome = type(cwd, words);
      EXPECT_EQ(outcome.exit_code, 2) << outcome;
      EXPECT_HAS(outcome.err, "phalanx.yaml: this project file is not used");
      EXPECT_HAS(outcome.err, why);
    }
    Outcome listed = type(cwd, {"ps", "-a"});
    EXPECT_EQ(listed.exit_code, 0) << "runs can be looked at all the same" << listed;
    EXPECT_HAS(listed.err, "this project file is not used");
  };
  // Where everyone may leave files, nobody can keep worker from starting either: what stranger leaves is passed over.
  auto passed_over = [&] {
    Outcome alone = type("/tmp/open/job", {"run", "--", "echo", "alone"});
    EXPECT_EQ(alone.exit_code, 0) << alone;
    EXPECT_HAS(alone.out, "alone");
    EXPECT_HAS_NOT(alone.err, "phalanx.yaml");
  };
  say_as("stranger", "ctl", bait + "/tmp/open/phalanx.yaml");
  passed_over();
  // In a folder of stranger's own, where worker happens to be, it is a project, and of stranger's making.
  say_as("stranger", "ctl", "umask 022; mkdir /tmp/open/theirs; " + bait + "/tmp/open/theirs/phalanx.yaml");
  refused("/tmp/open/theirs", "/tmp/open/theirs/phalanx.yaml belongs to another user (uid 61302)");
  Outcome without = type("/tmp/open/theirs", {"run", "--no-project", "--", "echo", "alone"});
  EXPECT_EQ(without.exit_code, 0) << without;
  EXPECT_HAS(without.out, "alone");

  // Worker's own file, in a folder where stranger could put another in its place.
  say_as("worker", "ctl", "umask 022; echo 'hosts: localhost' > /tmp/loose/phalanx.yaml");
  refused("/tmp/loose/job", "/tmp/loose can be written by other users (mode 0777)");
  // Stranger's link to a file of worker's: which of worker's files is used is not for stranger to say.
  say_as("worker", "ctl", "umask 022; mkdir -p ~/private; echo 'hosts: localhost' > ~/private/phalanx.yaml");
  say_as("stranger", "ctl", "rm /tmp/open/phalanx.yaml; ln -s " + kWorkerHome + "/private/phalanx.yaml /tmp/open/phalanx.yaml");
  passed_over();
  say_as("stranger", "ctl",
         "rm /tmp/open/theirs/phalanx.yaml; ln -s " + kWorkerHome + "/private/phalanx.yaml /tmp/open/theirs/phalanx.yaml");
  refused("/tmp/open/theirs", "it is a symbolic link");
  // A FIFO has no writer: nothing waits for one.
  say_as("stranger", "ctl", "rm /tmp/open/phalanx.yaml; mkfifo -m 666 /tmp/open/phalanx.yaml");
  passed_over();
  say_as("stranger", "ctl", "rm /tmp/open/theirs/phalanx.yaml; mkfifo -m 666 /tmp/open/theirs/phalanx.yaml");
  refused("/tmp/open/theirs", "it is not a regular file");
  EXPECT_EQ(loot("ctl") + loot("h1"), "");
  EXPECT_EQ(leftovers(2s), "");
}

class SharedLogs : public Attack {
 protected:
  // A folder that everybody may write to, full of what stranger made.
  Process litter(const std::string& mode) {
    begin();
    say("ctl", "mkdir /tmp/shared && chmod " + mode + " /tmp/shared");
    say_as("worker", "ctl",
           "umask 077; mkdir ~/private; cd ~/private; for f in secret 0.log 0.json events.jsonl; do echo '{\"top\":\"TOP-SECRET\"}' > $f; "
           "done");
    return stranger("ctl", {"litter.py", "/tmp/shared", kWorkerHome + "/private"}, "littered");
  }
  Outcome in_shared(const Words& words, milliseconds most = 15s) {
    Words all = with({words[0], "--log-dir", "/tmp/shared"}, Words(words.begin() + 1, words.end()));
    Outcome outcome = phalanx(all, most);
    EXPECT_TRUE(outcome.ended) << base::join(words, " ") << " hangs\n" << outcome;
    for (const std::string& text : {outcome.out, outcome.err}) {
      EXPECT_HAS_NOT(text, "\x1b");
      EXPECT_HAS_NOT(text, "TOP-SECRET");
    }
    return outcome;
  }
  static std::string id(int number) { return fmt::format("20301231-0000{:02}-beef", number); }
};

TEST_F(SharedLogs, WhatAStrangerPutThereIsNeitherWaitedForNorExecutedNorBelieved) {
  Process litterer = litter("1777");
  // Folders only; every one with the name of its owner.
  Outcome table = in_shared({"ps", "-a"});
  EXPECT_EQ(table.exit_code, 0) << table;
  auto lines = base::split_lines(base::trim(table.out));
  ASSERT_EQ(lines.size(), 10u) << table;
  for (size_t i = 1; i < lines.size(); ++i) EXPECT_HAS(lines[i], "beef  stranger  ");
  Outcome listed = in_shared({"ps", "-a", "--json"});
  auto json = base::parse_json(listed.out);
  ASSERT_TRUE(json.ok()) << listed;
  for (const auto& run : (*json)["runs"]) EXPECT_EQ(run["ours"], false);

  EXPECT_HAS(in_shared({"stop"}).err, "there is no run to stop");
  for (int number = 1; number <= 13; ++number) {
    SCOPED_TRACE(id(number));
    for (const char* verb : {"stop", "attach"}) {
      Outcome refused = in_shared({verb, id(number)});
      EXPECT_EQ(refused.exit_code, 2) << refused;
      EXPECT_HAS(refused.err, number < 10 ? "is not yours" : "no such run");
    }
    for (const char* verb : {"why", "logs"}) {
      Outcome shown = in_shared({verb, id(number)});
      EXPECT_HAS(shown.err,
                 number < 10 ? "is not your run: everything in it may have been written by another user (stranger)" : "no such run");
      EXPECT_HAS_NOT(shown.out, "hint: ");
      EXPECT_HAS_NOT(shown.out, "ssh ");
    }
    in_shared({"report", id(number), "-o", fmt::format("/tmp/report-{}.tar.gz", number)});
  }
  EXPECT_EQ(say_as("worker", "ctl", "for f in /tmp/report-*.tar.gz; do tar xzOf $f; done | grep -c TOP-SECRET || true"), "0\n");

  // Beside all that, a run of worker's own.
  Outcome detached = in_shared({"run", "-d", "-H", "h1,h2", "--lease", "6s", "--", kWorkerHome + "/obey.sh"}, 40s);
  ASSERT_EQ(detached.exit_code, 0) << detached;
  const std::string own(base::trim(detached.out).substr(0, 20));
  Outcome beside = in_shared({"ps"});
  EXPECT_HAS(beside.out, own + "  -         running");
  EXPECT_HAS(in_shared({"why"}).out, own);
  Outcome stopped = in_shared({"stop"}, 30s);
  EXPECT_EQ(stopped.exit_code, 0) << stopped;
  EXPECT_HAS(stopped.err, own);
  EXPECT_HAS(stopped.err, "h2: nothing left");
  litterer.signal(SIGKILL);
  litterer.finish(5s);
  EXPECT_EQ(loot("ctl") + loot("h1"), "");
  EXPECT_EQ(leftovers(2s), "");
}

// A log folder of a group, without the sticky bit: whoever may write there may move worker's run away while it goes on, and put links to
// worker's files in its place. Nothing of worker's is written through them.
TEST_F(SharedLogs, ARunFolderThatIsExchangedLeadsNowhere) {
  Process litterer = litter("0777");
  Outcome detached = in_shared({"run", "-d", "-H", "h1", "--lease", "6s", "--", kWorkerHome + "/obey.sh"}, 40s);
  ASSERT_EQ(detached.exit_code, 0) << detached;
  const std::string own(base::trim(detached.out).substr(0, 20)), folder = "/tmp/shared/" + own;
  say_as("worker", "ctl", "while ! grep -qs 'rank 0 ready' " + folder + "/ranks/0.log; do sleep 0.05; done");
  say_as("stranger", "ctl", "cd /tmp/shared; mv " + own + " away; ln -s " + kWorkerHome + "/private " + own);
  const std::string state = "cd " + kWorkerHome + "/private; ls -A; cat *";
  const std::string before = say_as("worker", "ctl", state);
  say_as("worker", "h1", "echo 'echo afterwards; exit 7' > /tmp/tell-0");
  for (Instant end = std::chrono::steady_clock::now() + 20s; !named("ctl", "phalanx").empty() && std::chrono::steady_clock::now() < end;)
    ::usleep(50'000);
  EXPECT_EQ(say_as("worker", "ctl", state), before) << "the run wrote through stranger's link";
  EXPECT_HAS(say_as("worker", "ctl", "cat /tmp/shared/away/ranks/0.log /tmp/shared/away/run.json"), "afterwards");
  EXPECT_HAS(say_as("worker", "ctl", "cat /tmp/shared/away/run.json"), "\"exit_code\": 7");
  litterer.signal(SIGKILL);
  litterer.finish(5s);
  EXPECT_EQ(loot("ctl") + loot("h1"), "");
  EXPECT_EQ(leftovers(2s), "");
}

}  // namespace
