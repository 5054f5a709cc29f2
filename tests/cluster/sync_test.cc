// run --sync: code on hosts that share no file system.
#include <algorithm>

#include "base/json.h"
#include "base/text.h"
#include "launcher_fixture.h"

using namespace phalanx;

namespace {

using namespace phalanx::testbed;
using namespace std::chrono_literals;

const std::string kCopies = "~/.cache/phalanx/sync/copies";

class Sync : public Launcher {
 protected:
  void project() {
    say("ctl",
        "mkdir -p ~/project/src ~/project/data && cd ~/project && printf 'data/\\n' > .gitignore && echo big > data/x && "
        "echo 'echo rank $RANK on $(hostname): $(cat ../text) in $(pwd)' > src/train.sh && echo hello > text && "
        "for i in $(seq 50); do echo $i > src/f$i; done && touch -d '1 hour ago' src/* text .gitignore");
  }
  Outcome sync(const Words& args, milliseconds deadline = 30s, const Words& command = {"sh", "train.sh"}) {
    return run_now(testbed::with(testbed::with({"--preflight", "off", "--sync=/root/project", "-C", "/root/project/src"}, args),
                                 testbed::with({"--"}, command)),
                   deadline);
  }
  // Of the newest run: what --sync sent to each host.
  base::Json recorded() {
    const std::string events = say("ctl", "cat $(ls -d ~/.local/state/phalanx/runs/*-* | tail -n 1)/events.jsonl");
    for (std::string_view line : base::split_lines(events))
      if (base::Result<base::Json> json = base::parse_json(line); json.ok() && json->value("event", "") == "synced") return *json;
    return base::Json::object();
  }
};

TEST_F(Sync, ThreeHostsGetTheCodeAndLaterOnlyWhatChanged) {
  start({.hosts = 3});
  project();
  Outcome first = sync({"-H", "h1,h2,h3"});
  ASSERT_EQ(first.exit_code, 0) << first;
  for (int h = 1; h <= 3; ++h)
    EXPECT_HAS(first.out, "rank " + std::to_string(h - 1) + " on h" + std::to_string(h) + ": hello in /root/.cache/phalanx/sync/copies/");
  EXPECT_HAS(first.err, "copied /root/project (53 files");
  Command why;
  why.argv = {PHALANX_PROGRAM, "why"};
  EXPECT_HAS(cluster().run_on("ctl", why).out, "  copied /root/project (53 files, ");
  const base::Json cold = recorded();
  ASSERT_EQ(cold.value("hosts", base::Json::array()).size(), 3U) << base::to_text(cold);
  EXPECT_EQ(cold["hosts"][0]["files"], 53);
  EXPECT_EQ(say("h1", "find ~/.cache/phalanx/sync -name x | wc -l"), "0\n") << "data/ is ignored";
  EXPECT_EQ(say("h2", "ls " + kCopies + " | wc -l"), "0\n") << "nobody wrote into the copy";

  say("ctl", "echo goodbye > ~/project/text");
  Outcome second = sync({"-H", "h1,h2,h3"});
  ASSERT_EQ(second.exit_code, 0) << second;
  EXPECT_HAS(second.out, "rank 2 on h3: goodbye in ");
  const base::Json warm = recorded();
  for (const base::Json& host : warm["hosts"]) {
    EXPECT_EQ(host["files"], 1);
    EXPECT_EQ(host["bytes"], 8);
    EXPECT_LT(host["list_bytes"], 200) << "of 53 files, only the one that changed";
  }
  EXPECT_EQ(say("h1", "find ~/.cache/phalanx/sync ! -type l -perm /077 | wc -l"), "0\n");
}

// What changed of the list is sent to all; who has no copy of the last list asks for the whole, and who has one that somebody wrote into
// builds another.
TEST_F(Sync, AHostWithoutTheLastListGetsTheWhole) {
  start({.hosts = 3});
  project();
  ASSERT_EQ(sync({"-H", "h1,h2,h3"}).exit_code, 0);
  say("h1", "rm -rf ~/.cache/phalanx/sync");
  say("h2", "echo worse > ~/.cache/phalanx/sync/free/tree/text");
  say("ctl", "echo goodbye > ~/project/text");
  Outcome outcome = sync({"-H", "h1,h2,h3"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome;
  for (int h = 1; h <= 3; ++h) EXPECT_HAS(outcome.out, "on h" + std::to_string(h) + ": goodbye in ");
  const base::Json warm = recorded();
  const base::Json& hosts = warm["hosts"];
  EXPECT_GT(hosts[0]["list_bytes"], 3000);
  EXPECT_EQ(hosts[0]["files"], 53);
  for (size_t h : {1U, 2U}) {
    EXPECT_LT(hosts[h]["list_bytes"], 200);
    EXPECT_EQ(hosts[h]["files"], 1);
  }
  EXPECT_EQ(say("h2", "cat " + kCopies + "/late-*/tree/text"), "worse\n");
}

TEST_F(Sync, ACopyThatRanksWroteIntoStaysAndIsNamed) {
  start();
  project();
  Outcome outcome = sync({"-H", "h1,h2"}, 30s, {"sh", "-c", "[ $RANK = 0 ] || echo weights > checkpoint"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome;
  EXPECT_HAS(outcome.err, "the run wrote into its copy, which stays for 30 days after its last use: /root/.cache/phalanx/sync/copies/");
  EXPECT_EQ(say("h1", "ls " + kCopies + " | wc -l"), "0\n");
  EXPECT_EQ(say("h2", "cat " + kCopies + "/*/tree/src/checkpoint"), "weights\n");
  say("h2", "touch -d '3 days ago' " + kCopies + "/*");
  Command clean;
  clean.argv = {PHALANX_PROGRAM, "clean", "-H", "h2"};
  Outcome listed = cluster().run_on("ctl", clean);
  EXPECT_HAS(listed.out, "copied code");
  EXPECT_EQ(say("h2", "ls " + kCopies + " | wc -l"), "1\n");
  clean.argv.push_back("--yes");
  EXPECT_EQ(cluster().run_on("ctl", clean).exit_code, 0);
  EXPECT_EQ(say("h2", "ls " + kCopies + " | wc -l"), "0\n");
}

TEST_F(Sync, ACutLinkLosesNothingAndTheNextTrySendsTheRest) {
  start({.hosts = 1});
  project();
  say("ctl", "cd ~/project && for i in $(seq 40); do head -c 250000 /dev/urandom > src/part$i; done && touch -d '1 hour ago' src/part*");
  ASSERT_EQ(sync({"-H", "h1"}, 60s, {"true"}).exit_code, 0);  // the agent is there, and ssh has been used
  say("h1", "rm -rf ~/.cache/phalanx/sync");
  ASSERT_TRUE(cluster().throttle("h1", "16mbit").ok());
  Process cut = run_later(
      {"--preflight", "off", "--connect-timeout", "3s", "--sync=/root/project", "-C", "/root/project/src", "-H", "h1", "--", "true"});
  const std::string count = "find ~/.cache/phalanx/sync/blobs -type f ! -name 'new.*' -size +200k 2>/dev/null | wc -l";
  const auto deadline = std::chrono::steady_clock::now() + 20s;
  int64_t there = 0;
  while (there < 5 && std::chrono::steady_clock::now() < deadline) there = base::parse_int(base::trim(say("h1", count)), 0, 100).value();
  ASSERT_GE(there, 5);
  ASSERT_LT(there, 40);
  ASSERT_TRUE(cluster().cut("h1").ok());
  Outcome failed = cut.finish(60s);
  EXPECT_NE(failed.exit_code, 0) << failed;
  EXPECT_EQ(say("h1", "ls " + kCopies + " | grep -vc '^new' || true"), "0\n") << "no copy has a final name";
  ASSERT_TRUE(cluster().heal("h1").ok());
  const int64_t kept = base::parse_int(base::trim(say("h1", count)), 0, 100).value();
  EXPECT_GE(kept, there);
  ASSERT_EQ(sync({"-H", "h1"}).exit_code, 0);
  EXPECT_EQ(recorded()["hosts"][0]["files"], 42 - kept) << "of 93 files, 51 small ones go before the first part";
}

TEST_F(Sync, CtrlCWhileCopyingLeavesNoCopyBehind) {
  start({.hosts = 2});
  project();
  say("ctl", "cd ~/project && head -c 12000000 /dev/urandom > src/large && touch -d '1 hour ago' src/large");
  ASSERT_EQ(sync({"-H", "h1,h2"}, 60s, {"true"}).exit_code, 0);  // the agent is there
  say("h1", "rm -rf ~/.cache/phalanx/sync");
  say("ctl", "echo changed > ~/project/text");
  ASSERT_TRUE(cluster().throttle("h1", "16mbit").ok());
  Process cut = run_later({"--preflight", "off", "--sync=/root/project", "-C", "/root/project/src", "-H", "h1,h2", "--", "true"});
  const std::string ready = "ls ~/.cache/phalanx/sync/copies 2>/dev/null | grep -c '^2' || true";
  const auto deadline = std::chrono::steady_clock::now() + 20s;
  while (say("h2", ready) != "1\n" && std::chrono::steady_clock::now() < deadline) {}
  ASSERT_EQ(say("h2", ready), "1\n");
  ASSERT_EQ(say("h1", ready), "0\n");
  cut.signal(SIGINT);
  Outcome outcome = cut.finish(30s);
  EXPECT_EQ(outcome.exit_code, 130) << outcome;
  EXPECT_HAS(outcome.err, "interrupted while the code was copied; nothing has been started");
  for (const char* host : {"h1", "h2"}) EXPECT_EQ(say(host, "ls -A " + kCopies), "") << host;
  EXPECT_EQ(say("h2", "cat ~/.cache/phalanx/sync/free/tree/text"), "changed\n");
}

TEST_F(Sync, AFullDiskIsSaidBeforeAnythingIsLost) {
  Options options{.hosts = 2};
  options.host.resize(2);
  options.host[1].home.size_kib = 48 << 10;
  start(options);
  project();
  Outcome small = sync({"-H", "h1,h2"});
  ASSERT_EQ(small.exit_code, 0) << small;
  say("ctl", "head -c 40000000 /dev/urandom > ~/project/src/large");
  Outcome full = sync({"-H", "h1,h2"});
  EXPECT_EQ(full.exit_code, 3) << full;
  EXPECT_HAS(full.err, "h2: the disk of /root/.cache/phalanx/sync has too little free space: 92.");
  EXPECT_HAS(full.err, " are needed, ");
  say("ctl", "rm ~/project/src/large");
  Outcome again = sync({"-H", "h1,h2"});
  ASSERT_EQ(again.exit_code, 0) << again;
  EXPECT_EQ(recorded()["hosts"][1]["files"], 0) << "everything from before is still there";
}

TEST_F(Sync, ASpareHasTheCodeBeforeItsRanksStart) {
  start({.hosts = 3});
  project();
  Process run = run_later({"--preflight", "off", "--sync=/root/project", "-C", "/root/project/src", "-H", "h1,h2", "--spares", "h3",
                           "--lease", "5s", "--", "sh", "-c", "sh train.sh; [ -e /tmp/end ] || sleep 20"});
  ASSERT_TRUE(run.wait_output("rank 1 on h2: hello", 20s)) << run.err();
  EXPECT_EQ(say("h3", "find " + kCopies + " -mindepth 1 -maxdepth 1 -newermt '20 days' | wc -l"), "1\n") << "clean leaves it alone";
  say("h3", "touch /tmp/end");
  ASSERT_TRUE(cluster().power_off("h2").ok());
  forget_bystander("h2");
  say("h1", "touch /tmp/end");
  Outcome outcome = run.finish(60s);
  EXPECT_EQ(outcome.exit_code, 0) << outcome;
  EXPECT_HAS(outcome.out, "on h3: hello in ");
}

TEST_F(Sync, ADetachedRunWorksInItsCopy) {
  start({.hosts = 1});
  project();
  Outcome outcome = sync({"-H", "h1", "-d"}, 30s, {"sh", "-c", "sh train.sh > /tmp/said; sleep 1"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome;
  EXPECT_EQ(say("h1", "for i in $(seq 50); do [ -s /tmp/said ] && break; sleep 0.1; done; grep -c 'hello in /root/.cache' /tmp/said"),
            "1\n");
  EXPECT_EQ(say("h1", "for i in $(seq 100); do [ -d ~/.cache/phalanx/sync/free ] && break; sleep 0.1; done; ls " + kCopies + " | wc -l"),
            "0\n");
}

TEST_F(Sync, TheHomeDirectoryIsNotCopied) {
  start({.hosts = 1});
  say("ctl", "mkdir -p /root/.ssh && echo secret > /root/.ssh/key");
  for (const char* folder : {"/root", "/"}) {
    Outcome outcome = run_now({std::string("--sync=") + folder, "-C", "/root", "-H", "h1", "--", "true"});
    EXPECT_EQ(outcome.exit_code, 2) << outcome;
    EXPECT_HAS(outcome.err, std::string("--sync would copy ") + folder + ", which holds your home directory");
  }
  EXPECT_EQ(say("h1", "ls ~/.cache/phalanx/sync 2>/dev/null | wc -l"), "0\n");
}

TEST_F(Sync, ADirectoryThatIsGoneIsNotTheRoot) {
  start({.hosts = 1});
  for (const char* words : {"--sync -- pwd", "-- pwd"}) {
    const std::string outcome = say("ctl", std::string("mkdir -p /root/gone && cd /root/gone && rmdir /root/gone && { ") + PHALANX_PROGRAM +
                                               " run -H h1 " + words + " 2>&1; echo code $?; }");
    EXPECT_HAS(outcome, "the current directory does not exist any more");
    EXPECT_HAS(outcome, "code 2");
  }
}

TEST_F(Sync, ADirectoryThatDoesNotHoldTheWorkingDirectoryIsRefused) {
  start({.hosts = 1});
  project();
  Outcome outcome = run_now({"--sync=/root/project", "-H", "h1", "--", "true"});
  EXPECT_EQ(outcome.exit_code, 2) << outcome;
  EXPECT_HAS(outcome.err, "the working directory /tmp is not in /root/project, which --sync copies");
}

}  // namespace
