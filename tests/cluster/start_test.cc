// What a start waits for, and what is looked at while the program starts: the real launcher on hosts with real faults.
#include "base/json.h"
#include "launcher_fixture.h"

namespace {

using namespace phalanx::testbed;
using namespace std::chrono_literals;

class Start : public Launcher {
 protected:
  void wall(const std::string& host) {
    say(host,
        "nft add table inet wall; nft add chain inet wall input '{ type filter hook input priority 0; }'; "
        "nft add rule inet wall input iifname eth0 ct state new tcp dport 1024-65535 drop");
  }
};

TEST_F(Start, ASlowLinkIsToldWhileTheProgramRuns) {
  start({.hosts = 3});
  ASSERT_TRUE(cluster().throttle("h2", "50mbit").ok());
  Outcome outcome = run_now({"-H", "h1,h2,h3", "--nproc-per-node", "1", "--", "sleep", "4"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome;
  EXPECT_NE(outcome.err.find("NET-SLOW-LINK"), std::string::npos) << outcome;
  EXPECT_NE(outcome.err.find("h2"), std::string::npos) << outcome;
  EXPECT_EQ(leftovers(1s), "");
}

TEST_F(Start, AProgramThatEndsAtOnceWaitsForNoMeasurement) {
  start({.hosts = 3});
  Outcome outcome = run_now({"-H", "h1,h2,h3", "--nproc-per-node", "1", "--", "true"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome;
  EXPECT_EQ(outcome.err.find("NET-"), std::string::npos) << outcome;
  EXPECT_EQ(leftovers(1s), "");
}

TEST_F(Start, AFirewallRefusesTheFirstRunAndStopsOneThatStartedByMemory) {
  start({.hosts = 3});
  // The same command each time, which ends at once or after ten seconds.
  Words job = {"-H", "h1,h2,h3", "--nproc-per-node", "1", "--", "sh", "-c", "echo started; [ -e /tmp/brief ] || sleep 10"};
  for (const std::string& host : cluster().hosts()) say(host, "touch /tmp/brief");
  for (int i = 0; i < 2; ++i) EXPECT_EQ(run_now(job).exit_code, 0);
  EXPECT_EQ(say("ctl", "ls $HOME/.cache/phalanx/checks | wc -l; stat -c %a $HOME/.cache/phalanx/checks/*").substr(0, 5), "1\n600");
  for (const std::string& host : cluster().hosts()) say(host, "rm /tmp/brief");
  wall("h2");
  auto begin = std::chrono::steady_clock::now();
  Outcome by_memory = run_now(job);
  EXPECT_EQ(by_memory.exit_code, 3) << by_memory;
  EXPECT_NE(by_memory.out.find("started"), std::string::npos) << "it did not wait\n" << by_memory;
  EXPECT_NE(by_memory.err.find("NET-PORT-DROPPED"), std::string::npos) << by_memory;
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 9s);
  EXPECT_EQ(leftovers(2s), "");
  Outcome refused = run_now(job);
  EXPECT_EQ(refused.exit_code, 3) << refused;
  EXPECT_EQ(refused.out.find("started"), std::string::npos) << "what was found wrong is not remembered as right\n" << refused;
  EXPECT_NE(refused.err.find("NET-PORT-DROPPED"), std::string::npos) << refused;
}

TEST_F(Start, MemoryIsNotUsedWhereAnInterfaceHasChangedOrTheUserForbidsIt) {
  start({.hosts = 2});
  Words brief = {"-H", "h1,h2", "--nproc-per-node", "1", "--", "sh", "-c", "echo started; sleep 1"};
  EXPECT_EQ(run_now(brief).exit_code, 0);
  wall("h2");
  Words fresh = with({"--reuse-checks", "0"}, brief);
  Outcome forbidden = run_now(fresh);
  EXPECT_EQ(forbidden.exit_code, 3) << forbidden;
  EXPECT_EQ(forbidden.out.find("started"), std::string::npos) << forbidden;
  say("h1", "ip addr add 10.78.0.1/24 dev eth0");
  Outcome changed = run_now(brief);
  EXPECT_EQ(changed.exit_code, 3) << changed;
  EXPECT_EQ(changed.out.find("started"), std::string::npos) << changed;
}

}  // namespace
