// push: a directory to a path on hosts, and what can come in between.
#include <thread>

#include "base/json.h"
#include "base/text.h"
#include "launcher_fixture.h"

using namespace phalanx;

namespace {

using namespace phalanx::testbed;
using namespace std::chrono_literals;

class Push : public Launcher {
 protected:
  void data(int parts) {
    say("ctl",
        "mkdir -p /root/data/sub && cd /root/data && printf '*\\n' > .gitignore && for i in $(seq 30); do echo $i > sub/f$i; done && "
        "ln -s sub/f1 link && for i in $(seq " +
            std::to_string(parts) +
            "); do head -c 2000000 /dev/urandom > part$i; done && "
            "touch -d '1 hour ago' part* sub/f*");
  }
  static Command typed(const Words& args) {
    Command command;
    command.argv = testbed::with({PHALANX_PROGRAM, "push"}, args);
    command.env = {{"PHALANX_LANG", "en"}};
    return command;
  }
  Outcome push(const Words& args) { return cluster().run_on("ctl", typed(args)); }
  Process push_later(const Words& args) {
    base::Result<Process> process = cluster().start_on("ctl", typed(args));
    EXPECT_TRUE(process.ok());
    return std::move(*process);
  }
  std::string sum(const std::string& host, const std::string& folder) {
    return say(host, "cd " + folder + " && find . -name .phalanx-push -o -type f -print0 | sort -z | xargs -0 sha256sum | sha256sum");
  }
  // Until so many whole parts are on the host.
  bool wait_parts(const std::string& host, int parts) {
    const auto deadline = std::chrono::steady_clock::now() + 20s;
    const std::string count = "find /root/data/.phalanx-push.part/blobs -type f ! -name 'new.*' -size +1M 2>/dev/null | wc -l";
    while (std::chrono::steady_clock::now() < deadline)
      if (base::parse_int(base::trim(say(host, count)), 0, 1000).value() >= parts) return true;
    return false;
  }
  // What ctl has sent over the network, in bytes.
  int64_t sent_by_ctl() {
    return base::parse_int(base::trim(say("ctl", "cat /sys/class/net/eth0/statistics/tx_bytes")), 0, INT64_MAX).value();
  }
  // Hosts that got some of it from another host.
  static std::string passed_on(const base::Json& json) {
    std::string names;
    for (const base::Json& host : json.value("hosts", base::Json::array()))
      if (host.value("passed_on", false)) names += host.value("host", "") + " ";
    return names;
  }
  base::Json json_of(const Outcome& outcome) {
    base::Result<base::Json> json = base::parse_json(outcome.out);
    return json.ok() ? *json : base::Json::object();
  }
};

TEST_F(Push, HostsGetEverythingAndLaterOnlyWhatChanged) {
  start({.hosts = 2});
  data(1);
  Outcome first = push({"/root/data", "h1,h2"});
  ASSERT_EQ(first.exit_code, 0) << first;
  EXPECT_HAS(first.out, "h[1-2]: 32 files, 1.91 MiB sent in ");
  for (const char* host : {"h1", "h2"}) EXPECT_EQ(sum(host, "/root/data"), sum("ctl", "/root/data")) << host;
  EXPECT_EQ(say("h2", "readlink /root/data/link && ls -A /root/data | tr '\\n' ' '"), "sub/f1\n.gitignore .phalanx-push link part1 sub ");
  say("ctl", "rm /root/data/sub/f1 && echo two > /root/data/sub/f2");
  Outcome second = push({"/root/data", "-H", "h1,h2", "--delete", "--json"});
  ASSERT_EQ(second.exit_code, 0) << second;
  for (const base::Json& host : json_of(second).value("hosts", base::Json::array())) {
    EXPECT_EQ(host.value("bytes", 0), 4);
    EXPECT_EQ(host.value("removed", 0), 1);
  }
  EXPECT_EQ(sum("h1", "/root/data"), sum("ctl", "/root/data"));
}

// Replaced by copies of themselves, files would be lost for those who have them open, and hard links would break.
TEST_F(Push, AHostThatSharesTheDirectoryLeavesItAsItIs) {
  start({.hosts = 1});
  const std::string data = shared_folder("pushed").on_hosts + "/data";
  say("ctl", "mkdir -p '" + data + "' && cd '" + data + "' && echo one > f && ln f again");
  const std::string look = "cd '" + data + "' && ls -A && stat -c '%i %h %z' f";
  const std::string before = say("ctl", look);
  Outcome outcome = push({data, "h1", "--yes"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome;
  EXPECT_HAS(outcome.out, "h1: this is the directory that is pushed; nothing to do: " + data);
  EXPECT_EQ(say("ctl", look), before);
}

TEST_F(Push, OneHostThatRefusesDoesNotHinderAnother) {
  start({.hosts = 2});
  data(1);
  say("h2", "mkdir /root/data && echo mine > /root/data/mine");
  Outcome outcome = push({"/root/data", "h1,h2"});
  EXPECT_EQ(outcome.exit_code, 3) << outcome;
  EXPECT_HAS(outcome.out, "h1: 32 files, ");
  EXPECT_HAS(outcome.err, "error: h2: /root/data holds what no push has put there, such as mine");
  EXPECT_HAS(outcome.err, "hint: choose another directory with --to; or add --yes: files of the same names are then replaced");
  EXPECT_EQ(push({"/root/data", "h2", "--to", "/root/new/data"}).exit_code, 0);
  EXPECT_EQ(sum("h2", "/root/new/data"), sum("ctl", "/root/data"));
  say("h2", "mkdir -p /srv/open && chmod 777 /srv/open");
  Outcome open = push({"/root/data", "h2", "--to", "/srv/open/data"});
  EXPECT_EQ(open.exit_code, 3) << open;
  EXPECT_HAS(open.err, "because /srv/open belongs to another user, or others may write to it");
  EXPECT_EQ(say("h2", "ls -A /srv/open"), "");
}

TEST_F(Push, AFullDiskIsSaidBeforeAnythingIsWritten) {
  Options options{.hosts = 2};
  options.host.resize(2);
  options.host[1].home.size_kib = 48 << 10;
  start(options);
  data(1);
  ASSERT_EQ(push({"/root/data", "h1,h2"}).exit_code, 0);
  say("ctl", "head -c 45000000 /dev/urandom > /root/data/large");
  Outcome full = push({"/root/data", "h1,h2"});
  EXPECT_EQ(full.exit_code, 3) << full;
  EXPECT_HAS(full.err, "error: h2: the disk of /root/data/.phalanx-push.part has too little free space: ");
  EXPECT_EQ(sum("h1", "/root/data"), sum("ctl", "/root/data"));
  say("ctl", "rm /root/data/large");
  Outcome again = push({"/root/data", "h2"});
  EXPECT_EQ(again.exit_code, 0) << again;
  EXPECT_HAS(again.out, "h2: everything was there");
}

TEST_F(Push, AKilledReceiverAndACutLinkLoseNothing) {
  start({.hosts = 1});
  data(10);
  ASSERT_EQ(push({"/root/data/sub", "h1", "--to", "/root/sub"}).exit_code, 0);  // the agent is there
  ASSERT_TRUE(cluster().throttle("h1", "40mbit").ok());
  Process killed = push_later({"/root/data", "h1"});
  ASSERT_TRUE(wait_parts("h1", 2));
  say("h1", "pkill -KILL -f 'phalanx.*agent'");
  Outcome first = killed.finish(30s);
  EXPECT_NE(first.exit_code, 0) << first;
  EXPECT_HAS(first.err, "hint: ");
  EXPECT_EQ(say("h1", "ls -A /root/data"), ".phalanx-push.part\n") << "no file is there before all are";
  Process cut = push_later({"/root/data", "h1", "--connect-timeout", "3s"});
  ASSERT_TRUE(wait_parts("h1", 5));
  ASSERT_TRUE(cluster().cut("h1").ok());
  EXPECT_NE(cut.finish(60s).exit_code, 0);
  ASSERT_TRUE(cluster().heal("h1").ok());
  Outcome rest = push({"/root/data", "h1", "--json"});
  ASSERT_EQ(rest.exit_code, 0) << rest;
  const base::Json hosts = json_of(rest).value("hosts", base::Json::array());
  ASSERT_EQ(hosts.size(), 1U);
  EXPECT_LE(hosts[0].value("bytes", 99'000'000), 10'500'000) << "five parts of ten were there";
  EXPECT_EQ(sum("h1", "/root/data"), sum("ctl", "/root/data"));
}

TEST_F(Push, TwoPushesTakeTurnsAndAChangeMeanwhileIsSaid) {
  start({.hosts = 1});
  data(4);
  ASSERT_EQ(push({"/root/data/sub", "h1", "--to", "/root/sub"}).exit_code, 0);  // the agent is there
  ASSERT_TRUE(cluster().throttle("h1", "40mbit").ok());
  Process changed = push_later({"/root/data", "h1"});
  ASSERT_TRUE(wait_parts("h1", 1));
  say("ctl", "echo other > /root/data/part4");
  Outcome outcome = changed.finish(30s);
  EXPECT_EQ(outcome.exit_code, 3) << outcome;
  EXPECT_HAS(outcome.err, "error: h1: part4 was changed while it was copied");
  EXPECT_HAS(outcome.err, "hint: run the same command again; files that have arrived are not sent again");
  say("ctl", "head -c 3000000 /dev/urandom > /root/data/part4");
  Process one = push_later({"/root/data", "h1"});
  Process two = push_later({"/root/data", "h1"});
  Outcome a = one.finish(30s), b = two.finish(30s);
  EXPECT_EQ(a.exit_code, 0) << a;
  EXPECT_EQ(b.exit_code, 0) << b;
  EXPECT_NE(a.out.find("everything was there") == std::string::npos, b.out.find("everything was there") == std::string::npos) << a << b;
  EXPECT_EQ(sum("h1", "/root/data"), sum("ctl", "/root/data"));
}

TEST_F(Push, CtrlCLeavesTheOldFilesAndTheNextPushGoesOn) {
  start({.hosts = 1});
  data(1);
  ASSERT_EQ(push({"/root/data", "h1"}).exit_code, 0);
  const std::string before = sum("h1", "/root/data");
  say("ctl", "cd /root/data && echo new > sub/f1 && for i in 2 3 4; do head -c 2000000 /dev/urandom > part$i; done");
  ASSERT_TRUE(cluster().throttle("h1", "40mbit").ok());
  Process stopped = push_later({"/root/data", "h1"});
  ASSERT_TRUE(wait_parts("h1", 1));
  stopped.signal(SIGINT);
  Outcome outcome = stopped.finish(20s);
  EXPECT_EQ(outcome.exit_code, 130) << outcome;
  EXPECT_HAS(outcome.err, "h1: interrupted before everything was in its place");
  EXPECT_EQ(say("h1", "cat /root/data/sub/f1"), "1\n");
  EXPECT_EQ(push({"/root/data", "h1"}).exit_code, 0);
  EXPECT_NE(sum("h1", "/root/data"), before);
  EXPECT_EQ(sum("h1", "/root/data"), sum("ctl", "/root/data"));
}

// Four hosts that lack the same: what leaves this machine is sent once, whoever gets it.
TEST_F(Push, HostsPassOnWhatTheyLack) {
  start({.hosts = 4});
  data(15);
  ASSERT_EQ(push({"/root/data/sub", "h[1-4]", "--to", "/root/sub"}).exit_code, 0);  // the agents are there
  const int64_t before = sent_by_ctl();
  Outcome outcome = push({"/root/data", "h[1-4]", "--json"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome;
  const int64_t sent = sent_by_ctl() - before;
  EXPECT_EQ(passed_on(json_of(outcome)), "h2 h3 h4 ");
  EXPECT_GT(sent, 30'000'000);
  EXPECT_LT(sent, 45'000'000) << "four streams are 120 MB";
  for (const char* host : {"h1", "h2", "h3", "h4"}) EXPECT_EQ(sum(host, "/root/data"), sum("ctl", "/root/data")) << host;
  EXPECT_EQ(say("h2", "ss -Htln | grep -v :22 || true"), "") << "nothing listens any more";
  for (const base::Json& host : json_of(outcome).value("hosts", base::Json::array())) {
    EXPECT_EQ(host.value("files", 0), 46);
    EXPECT_GT(host.value("bytes", 0), 30'000'000);
  }
}

// A firewall between two hosts: the one behind it begins a chain of its own.
TEST_F(Push, AHostThatNoOtherReachesIsServedFromHere) {
  start({.hosts = 4});
  data(10);
  ASSERT_EQ(push({"/root/data/sub", "h[1-4]", "--to", "/root/sub"}).exit_code, 0);
  ASSERT_TRUE(cluster().separate("h2", "h3").ok());
  Outcome outcome = push({"/root/data", "h[1-4]", "--json"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome;
  EXPECT_EQ(passed_on(json_of(outcome)), "h2 h4 ");
  for (const char* host : {"h1", "h2", "h3", "h4"}) EXPECT_EQ(sum(host, "/root/data"), sum("ctl", "/root/data")) << host;
}

// One in the middle is killed, two others stand still for a while: those behind them get the rest from here.
TEST_F(Push, AHostInTheMiddleThatFailsHoldsNobodyUp) {
  start({.hosts = 4});
  data(15);
  ASSERT_EQ(push({"/root/data/sub", "h[1-4]", "--to", "/root/sub"}).exit_code, 0);
  for (const char* host : {"h1", "h2", "h3", "h4"}) ASSERT_TRUE(cluster().throttle(host, "60mbit").ok());
  Process killed = push_later({"/root/data", "h[1-4]", "--json"});
  ASSERT_TRUE(wait_parts("h4", 2));
  say("h2", "pkill -KILL -f 'phalanx.*agent'");
  Outcome first = killed.finish(60s);
  EXPECT_EQ(first.exit_code, 4) << first;
  EXPECT_HAS(first.err, "error: h2: lost contact with the host");
  for (const char* host : {"h1", "h3", "h4"}) EXPECT_EQ(sum(host, "/root/data"), sum("ctl", "/root/data")) << host;
  EXPECT_EQ(push({"/root/data", "h[1-4]"}).exit_code, 0);
  EXPECT_EQ(sum("h2", "/root/data"), sum("ctl", "/root/data"));

  say("ctl", "cd /root/data && for i in $(seq 12); do head -c 2000000 /dev/urandom > part$i; done");
  Process slow = push_later({"/root/data", "h[1-4]", "--json"});
  ASSERT_TRUE(wait_parts("h4", 2));
  for (const char* host : {"h2", "h3"}) say(host, "pkill -STOP -f '^phalanx-(guard|agent)'");
  const auto deadline = std::chrono::steady_clock::now() + 40s;
  while (std::chrono::steady_clock::now() < deadline && sum("h4", "/root/data") != sum("ctl", "/root/data"))
    std::this_thread::sleep_for(500ms);
  for (const char* host : {"h1", "h4"}) EXPECT_EQ(sum(host, "/root/data"), sum("ctl", "/root/data")) << host;
  std::this_thread::sleep_for(12s);  // longer in all than an agent waits for a launcher that says nothing
  for (const char* host : {"h2", "h3"}) say(host, "pkill -CONT -f '^phalanx-(guard|agent)'");
  Outcome second = slow.finish(60s);
  EXPECT_EQ(second.exit_code, 0) << second;
  for (const char* host : {"h2", "h3"}) EXPECT_EQ(sum(host, "/root/data"), sum("ctl", "/root/data")) << host;
}

}  // namespace
