// How phalanx gets onto hosts (deployment of its own binary, logins, shared connections), and what it removes of older builds and runs.
#include <unistd.h>

#include <filesystem>

#include "base/text.h"
#include "launcher_fixture.h"

using namespace phalanx;

namespace {

using namespace phalanx::testbed;
using namespace std::chrono_literals;

using Deploy = Launcher;

const Words kHello = {"--", "sh", "-c", "echo rank $RANK on $(hostname)"};

using testbed::with;
Words with(Words args) { return with(std::move(args), kHello); }

TEST_F(Deploy, ColdHostsGetTheBinaryOnceAndKeepIt) {
  start();
  Outcome first = run_now(with({"-H", "h1,h2"}));
  ASSERT_EQ(first.exit_code, 0) << first;
  std::string listed = "find ~/.cache/phalanx -type f -printf '%f %m %T@\\n'";
  std::string before = say("h1", listed);
  EXPECT_EQ(base::split_lines(before).size(), 1U) << before;
  EXPECT_HAS(before, "phalanx 700");
  EXPECT_EQ(say("h1", "sha256sum < ~/.cache/phalanx/*/phalanx"), say("ctl", "sha256sum < " PHALANX_AGENT));
  EXPECT_EQ(run_now(with({"-H", "h1,h2"})).exit_code, 0);
  EXPECT_EQ(say("h1", listed), before);
}

// A deployed agent is started in the folder of its program; it must not stay there, nor hand that folder to the ranks.
TEST_F(Deploy, TheAgentRunsInTheHomeDirectory) {
  start();
  Outcome outcome =
      run_now({"-H", "h1", "--", "sh", "-c", "echo agent in $(readlink /proc/$PPID/cwd), $(tr '\\0' ' ' </proc/$PPID/cmdline)"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome;
  EXPECT_HAS(outcome.out, "agent in /root, ");
  EXPECT_EQ(say("h1", "stat -c %a ~/.cache/phalanx ~/.cache/phalanx/*"), "1700\n1700\n");
}

TEST_F(Deploy, TenLaunchesRaceForTwoColdHosts) {
  Options options{.hosts = 2};
  options.host.resize(2);
  options.host[1].sshd_config = {"MaxStartups 10:30:100"};  // as sshd comes: it drops logins when many come at once
  start(options);
  std::vector<Process> launches;
  for (int i = 0; i < 10; ++i) launches.push_back(run_later(with({"-H", "h1,h2"})));
  for (auto& launch : launches) {
    Outcome outcome = launch.finish(40s);
    EXPECT_EQ(outcome.exit_code, 0) << outcome;
    EXPECT_HAS(outcome.out, "rank 1 on h2");
  }
  EXPECT_EQ(say("h1", "find ~/.cache/phalanx -type f | wc -l"), "1\n");
  EXPECT_EQ(say("h2", "find ~/.cache/phalanx -type f | wc -l"), "1\n");
  EXPECT_EQ(leftovers(1s), "");
}

TEST_F(Deploy, BuildsOutOfUseAreRemovedFromTheCache) {
  start({.hosts = 1});
  const std::string old = "0000000000000000000000000000000000000009";
  say("h1",
      "mkdir -m 700 -p ~/.cache && mkdir -m 700 ~/.cache/phalanx && cd ~/.cache/phalanx && for i in 1 2 3 4 5 9; do "
      "mkdir -m 700 000000000000000000000000000000000000000$i && touch 000000000000000000000000000000000000000$i/phalanx; done && "
      "touch -d '1 day ago' *[1-5] && touch -d '100 days ago' *9");
  Outcome outcome = run_now({"-H", "h1", "--", "sh", "-c", "while [ -e ~/.cache/phalanx/" + old + " ]; do sleep 0.1; done; sleep 0.5"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome;
  EXPECT_HAS(outcome.err, "h1: removed the old build /root/.cache/phalanx/" + old);
  EXPECT_EQ(say("h1", "ls ~/.cache/phalanx | wc -l"), "7\n") << "five kept, the one in use, removed.log";
  EXPECT_HAS(say("h1", "cat ~/.cache/phalanx/removed.log"), " build " + old + ": not used for 99 days");
}

TEST_F(Deploy, OldRunsAreRemovedAtAStartWhichSaysSo) {
  start({.hosts = 1});
  const std::string runs = "~/.local/state/phalanx/runs";
  auto run = [&] { return run_now({"-H", "h1", "--preflight", "off", "-q", "--keep-runs", "2", "--", "sleep", "0.5"}).exit_code; };
  ASSERT_EQ(run(), 0);
  const std::string first = say("ctl", "readlink -n " + runs + "/latest");
  say("ctl", "touch " + runs + "/latest/notes.txt");
  for (int i = 0; i < 2; ++i) ASSERT_EQ(run(), 0);
  EXPECT_EQ(say("ctl", "ls -d " + runs + "/2* | wc -l"), "3\n") << "a file of the user's keeps the first";
  say("ctl", "rm " + runs + "/" + first + "/notes.txt");
  ASSERT_EQ(run(), 0);
  EXPECT_EQ(say("ctl", "ls -d " + runs + "/2* | wc -l"), "2\n");
  EXPECT_EQ(say("ctl", "grep -c '\"event\":\"run_removed\"' " + runs + "/latest/events.jsonl"), "2\n");
  EXPECT_HAS(say("ctl", "cat " + runs + "/latest/events.jsonl"), "\"run\":\"" + first + "\"");
}

// The build folder is the machine's own on every host, so it stands for a home that all of them mount. They boot alike, and their process
// ids are close to each other.
TEST_F(Deploy, HostsThatShareOneCacheDoNotDisturbEachOther) {
  const Shared shared = shared_folder("shared-cache");
  const std::string cache = shared.on_hosts + "/cache";
  Options options{.hosts = 8};
  options.host.resize(8);
  for (HostOptions& host : options.host) host.sshd_config = {"SetEnv PHALANX_CACHE=" + cache};
  start(options);
  for (int round = 0; round < 3; ++round) {
    std::filesystem::remove_all(shared.here + "/cache");
    Outcome outcome = run_now(with({"-H", "h[1-8]"}));
    EXPECT_EQ(outcome.exit_code, 0) << outcome;
    EXPECT_HAS(outcome.out, "rank 7 on h8");
    EXPECT_EQ(say("h1", "cd " + cache + "/* && ls -A && sha256sum <phalanx"), "phalanx\n" + say("ctl", "sha256sum <" PHALANX_AGENT));
  }
  EXPECT_EQ(leftovers(1s), "");
  std::filesystem::remove_all(shared.here);
}

TEST_F(Deploy, AHostWithoutGzipGetsTheAgentAsItIs) {
  Options options{.hosts = 2};
  options.host.resize(2);
  options.host[1].absent = {"/usr/bin/gzip"};
  start(options);
  Outcome outcome = run_now(with({"-H", "h1,h2"}));
  ASSERT_EQ(outcome.exit_code, 0) << outcome;
  std::string agent = say("ctl", "sha256sum < " PHALANX_AGENT);
  for (const char* host : {"h1", "h2"}) EXPECT_EQ(say(host, "sha256sum < ~/.cache/phalanx/*/phalanx"), agent) << host;
  EXPECT_EQ(say("ctl", "find ~/.cache/phalanx -type f \\( -name phalanx -o -name packed \\) | wc -l"), "0\n");
}

TEST_F(Deploy, AHomeThatCannotHoldItIsPassedOver) {
  Options options{.hosts = 3};
  options.host.resize(3);
  options.host[0].home.noexec = true;
  options.host[1].home.size_kib = 512;
  options.host[2].home.read_only = true;
  start(options);
  Outcome outcome = run_now(with({"-H", "h1,h2,h3"}));
  EXPECT_EQ(outcome.exit_code, 0) << outcome;
  EXPECT_HAS(outcome.out, "rank 2 on h3");
  for (const char* host : {"h1", "h2", "h3"}) {
    EXPECT_EQ(say(host, "ls /var/tmp/phalanx-0/*/ /tmp/phalanx-0/*/ /dev/shm/phalanx-0/*/ 2>/dev/null | grep -c '^phalanx$'"), "1\n")
        << host;
  }
  EXPECT_EQ(say("h2", "find ~/.cache -type f 2>/dev/null | wc -l"), "0\n");  // no half binary keeps the home full
}

TEST_F(Deploy, ACacheUnwritableEverywhereIsSaid) {
  Options options{.hosts = 2};
  options.host.resize(2);
  HostOptions& bad = options.host[1];
  bad.home.read_only = true;
  bad.tmp.noexec = true;
  bad.var_tmp = {.size_kib = 512};
  bad.shm.noexec = true;
  start(options);
  Outcome outcome = run_now(with({"-H", "h1,h2"}));
  EXPECT_EQ(outcome.exit_code, 3) << outcome;
  EXPECT_HAS(outcome.err, "h2: ");
  for (const char* folder : {"/root/.cache/phalanx", "/tmp", "/var/tmp", "/dev/shm"}) EXPECT_HAS(outcome.err, folder);
  EXPECT_HAS_NOT(outcome.out, "rank");
  EXPECT_LT(outcome.took, 8s);
  EXPECT_EQ(leftovers(1s), "");
}

TEST_F(Deploy, TheSecondRunSharesTheConnection) {
  start();
  auto logins = [&](const std::string& host) { return say(host, "grep -c 'Accepted publickey' /run/testbed/sshd.log"); };
  Outcome cold = run_now(with({"-H", "h1,h2"}));
  ASSERT_EQ(cold.exit_code, 0) << cold;
  std::string before = logins("h1");
  Outcome warm = run_now(with({"-H", "h1,h2"}));
  EXPECT_EQ(warm.exit_code, 0) << warm;
  EXPECT_EQ(logins("h1"), before);
  std::string sockets = say("ctl", "ss -Hlx | grep -o '/[^ ]*phalanx[^ ]*'");
  EXPECT_EQ(base::split_lines(sockets).size(), 2U) << sockets;
  EXPECT_EQ(say("ctl", "stat -c %a $(dirname " + std::string(base::split_lines(sockets)[0]) + ")"), "700\n");
  // A shared connection whose master was killed is replaced.
  cluster().kill_processes("ctl", "[mux]");
  EXPECT_EQ(run_now(with({"-H", "h1,h2"})).exit_code, 0);
}

// The sessions of later runs are asked for at the sockets of shared connections, once ssh has said what its configuration sends along.
class Sessions : public Launcher {
 protected:
  Outcome run_with(std::map<std::string, std::string> env) {
    env["LC_TEST"] = "sent";
    Command command = run({"-H", "h1,h2", "--", "sh", "-c", "echo rank $RANK on $(hostname), LC_TEST ${LC_TEST-none}"});
    command.env = std::move(env);
    return cluster().run_on("ctl", command, 30s);
  }
  // The login, and the first run that finds it kept: by ssh, which is asked meanwhile.
  void prepare() {
    say("ctl", "mkdir -p ~/.ssh /tmp/empty && echo 'SendEnv LC_TEST' >> ~/.ssh/config && chmod 600 ~/.ssh/config");
    for (int i = 0; i < 2; ++i) {
      const Outcome outcome = run_with({});
      ASSERT_EQ(outcome.exit_code, 0) << outcome;
      EXPECT_HAS(outcome.out, "rank 1 on h2, LC_TEST sent");
    }
    ASSERT_EQ(say("ctl",
                  "for i in $(seq 50); do n=$(ls ~/.cache/phalanx/ssh/*.environment | wc -l); [ $n = 2 ] && break; sleep .1; "
                  "done; echo $n"),
              "2\n");
  }
};

TEST_F(Sessions, OfLaterRunsNeedNoSsh) {
  start();
  prepare();
  const Outcome outcome = run_with({{"PATH", "/tmp/empty"}});
  EXPECT_EQ(outcome.exit_code, 0) << outcome;
  EXPECT_HAS(outcome.out, "rank 0 on h1, LC_TEST sent");
  EXPECT_HAS(outcome.out, "rank 1 on h2, LC_TEST sent");
  EXPECT_EQ(leftovers(1s), "");
}

// Where a connection takes no further session, ssh makes a login of its own.
TEST_F(Sessions, ThatAreRefusedAreLeftToSsh) {
  Options options{.hosts = 2};
  options.host.resize(2);
  options.host[1].sshd_config = {"MaxSessions 1"};
  start(options);
  prepare();
  auto logins = [&] { return say("h2", "grep -c 'Accepted publickey' /run/testbed/sshd.log"); };
  const std::string before = logins();
  Process first = run_later({"-H", "h1,h2", "--", "sh", "-c", "echo begun $RANK; exec sleep 60"});
  ASSERT_TRUE(first.wait_output("begun 1", 10s));
  EXPECT_EQ(logins(), before);
  const Outcome second = run_with({});
  EXPECT_EQ(second.exit_code, 0) << second;
  EXPECT_HAS(second.out, "rank 1 on h2, LC_TEST sent");
  EXPECT_NE(logins(), before);
}

TEST_F(Deploy, ASharedConnectionToAHostThatWentAwayIsNotWaitedForLong) {
  start();
  ASSERT_EQ(run_now(with({"-H", "h1,h2"})).exit_code, 0);
  forget_bystander("h2");
  ASSERT_TRUE(cluster().power_off("h2").ok());
  ASSERT_TRUE(cluster().boot("h2").ok());
  Outcome outcome = run_now(with({"-H", "h1,h2", "--connect-timeout", "2s"}));
  EXPECT_EQ(outcome.exit_code, 0) << outcome;
  EXPECT_LT(outcome.took, 12s);
}

// Every way in which a host can be out of reach: exit code, words, time, and no rank anywhere.
struct Refusal {
  const char* name;
  void (*arrange)(HostOptions&);
  const char* fault;  // "drop", "cold drop", "reject", "unknown" (the name) or nothing
  const char* says;
};
void PrintTo(const Refusal& refusal, std::ostream* stream) { *stream << refusal.name; }
class OutOfReach : public Launcher, public testing::WithParamInterface<Refusal> {};

TEST_P(OutOfReach, IsExitCode4WithTheHostNamed) {
  const Refusal& refusal = GetParam();
  Options options{.hosts = 2};
  options.host.resize(2);
  if (refusal.arrange != nullptr) refusal.arrange(options.host[1]);
  start(options);
  std::string fault = refusal.fault;
  // A neighbour known by its hardware address stays silent; one that does not even answer ARP has no route.
  if (fault == "drop") say("ctl", "exec 3<>/dev/tcp/h2/22; read -r line <&3");
  bool arranged = fault == "drop" || fault == "cold drop" ? cluster().drop("h2", Direction::kBoth).ok()
                  : fault == "reject"                     ? cluster().reject("h2", {22, 22}).ok()
                                                          : true;
  ASSERT_TRUE(arranged);
  std::string other = fault == "unknown" ? "nosuchhost" : "h2";
  Outcome outcome = run_now(with({"-H", "h1," + other, "--connect-timeout", "2s"}));
  EXPECT_EQ(outcome.exit_code, 4) << outcome;
  EXPECT_HAS(outcome.err, other + ": ");
  EXPECT_HAS(outcome.err, refusal.says);
  EXPECT_HAS(outcome.err, "hint: ");
  EXPECT_HAS_NOT(outcome.out, "rank");
  EXPECT_LT(outcome.took, 8s);
  EXPECT_EQ(leftovers(1s), "");
}

INSTANTIATE_TEST_SUITE_P(
    Ways, OutOfReach,
    testing::Values(
        Refusal{"Unreachable", nullptr, "drop", "does not answer"}, Refusal{"NoRoute", nullptr, "cold drop", "h2: "},
        Refusal{"NothingListens", nullptr, "reject", "nothing listens"}, Refusal{"NameUnknown", nullptr, "unknown", "cannot be resolved"},
        Refusal{"HostKeyUnknown", [](HostOptions& host) { host.host_key = HostKey::kUnknown; }, "", "host key is unknown"},
        Refusal{"HostKeyChanged", [](HostOptions& host) { host.host_key = HostKey::kChanged; }, "", "host key differs from the one"},
        Refusal{"AuthenticationRefused", [](HostOptions& host) { host.login = Login::kRefused; }, "", "authentication was refused"},
        Refusal{"PasswordOnly", [](HostOptions& host) { host.login = Login::kPasswordOnly; }, "", "authentication was refused"}),
    [](const auto& parameter) { return parameter.param.name; });

TEST_F(Deploy, APasswordPromptNeverHangsEvenOnATerminal) {
  Options options{.hosts = 1};
  options.host.resize(1);
  options.host[0].login = Login::kPasswordOnly;
  start(options);
  Command command = run(with({"-H", "h1"}));
  command.stdio = Command::kTerminal;
  Outcome outcome = cluster().run_on("ctl", command);
  EXPECT_EQ(outcome.exit_code, 4) << outcome;
  EXPECT_LT(outcome.took, 5s);
}

TEST_F(Deploy, EveryHostThatIsUnfitIsNamed) {
  Options options{.hosts = 4};
  options.host.resize(4);
  options.host[1].login = Login::kRefused;
  options.host[3].host_key = HostKey::kUnknown;
  start(options);
  Outcome outcome = run_now(with({"-H", "h[1-4]"}));
  EXPECT_EQ(outcome.exit_code, 4) << outcome;
  EXPECT_HAS(outcome.err, "h2: authentication");
  EXPECT_HAS(outcome.err, "h4: the host key");
}

TEST_F(Deploy, AMissingFolderOrInterpreterIsFoundBeforeAnyRankStarts) {
  Options options{.hosts = 2};
  options.host.resize(2);
  options.host[1].absent = {"/usr/bin/python3"};
  start(options);
  say("h1", "mkdir /tmp/work");
  Outcome outcome = run_now(with({"-H", "h1,h2", "--workdir", "/tmp/work"}));
  EXPECT_EQ(outcome.exit_code, 3) << outcome;
  EXPECT_HAS(outcome.err, "h2: the working directory does not exist");
  EXPECT_HAS_NOT(outcome.out, "rank");
  for (const Words& command : {Words{"--", "/usr/bin/python3", "-c", "print('rank')"}, Words{"--", script("flood.py"), "1"}}) {
    outcome = run_now(with({"-H", "h1,h2"}, command));
    EXPECT_EQ(outcome.exit_code, 3) << outcome;
    EXPECT_HAS(outcome.err, "h2: ");
    EXPECT_HAS(outcome.err, "/usr/bin/python3");
    EXPECT_EQ(outcome.out, "");
    EXPECT_LT(outcome.took, 5s);
  }
  EXPECT_EQ(leftovers(1s), "");
}

}  // namespace
