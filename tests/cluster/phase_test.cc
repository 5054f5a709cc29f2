// Every fault of what a run stands on, in every phase of it: something on a host stands still, or something of the launcher's own does.
// What must hold in each case: the command ends, two rank 0s never run at once, nobody blames a host for what the launcher's machine did,
// and nothing is left.
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>

#include <fmt/format.h>

#include "launcher_fixture.h"

namespace phalanx::testbed {

using namespace std::chrono_literals;

namespace {

enum class Phase { kOpening, kChecks, kRunning, kStopping, kBetween };
constexpr const char* kPhases[] = {"Opening", "Checks", "Running", "Stopping", "Between"};

struct FaultInPhase {
  const char* name;
  bool of_host;          // h1 is to be replaced or to come back; else the launcher's own machine
  milliseconds lasts{};  // of those that pass; 0: until the run has ended
};
constexpr FaultInPhase kAgent{"AgentStopped", true, 0ms}, kGuard{"GuardStopped", true, 0ms}, kSilent{"OnlyPingsAnswered", true, 0ms},
    kHostile{"AgentSendsHostileValues", true, 0ms}, kBanner{"SshSendsItsBannerOnly", true, 0ms},
    kAgentFiles{"AgentHasNoDescriptors", true, 0ms}, kNap{"LauncherNaps", false, 1500ms}, kSleep{"LauncherSleeps", false, 4500ms},
    kDisk{"DiskAndReaderStop", false, 3500ms}, kMinute{"DiskAndReaderStopForAMinute", false, 60'000ms},
    kFiles{"LauncherHasNoDescriptors", false, 3500ms};

struct Case {
  FaultInPhase fault;
  Phase phase;
};
void PrintTo(const Case& c, std::ostream* stream) { *stream << c.fault.name << " while " << kPhases[static_cast<int>(c.phase)]; }

class InEveryPhase : public Launcher, public testing::WithParamInterface<Case> {
 protected:
  void SetUp() override {
    Launcher::SetUp();
    if (IsSkipped()) return;
    shared_ = shared_folder("phases");
    Options options{.hosts = 3};
    options.host.resize(3);
    for (HostOptions& host : options.host) host.sshd_config = {"SetEnv PHALANX_CACHE=" + shared_.on_hosts + "/cache"};
    start(options);
  }
  void TearDown() override {
    if (mounted_) (void)cluster().run_on("ctl", {.argv = {"sh", "-c", "fsfreeze -u /tmp/logs; umount -l /tmp/logs"}});
    run_.reset();
    Launcher::TearDown();
    // A host that was frozen until just now may still be putting something there.
    std::error_code failed;
    for (Instant end = std::chrono::steady_clock::now() + 10s; std::filesystem::remove_all(shared_.here, failed), failed; ::usleep(50'000))
      ASSERT_LT(std::chrono::steady_clock::now(), end) << failed.message();
  }
  bool is(const FaultInPhase& fault) const { return GetParam().fault.name == fault.name; }
  bool during(Phase phase) const { return GetParam().phase == phase; }

  void mount_logs() {
    Outcome made = cluster().run_on(
        "ctl", {.argv = {"sh", "-c",
                         "truncate -s 64M /tmp/disk && mkfs.ext4 -q /tmp/disk && mkdir /tmp/logs && mount -o loop /tmp/disk /tmp/logs"}});
    if (made.exit_code != 0) GTEST_SKIP() << "no file system on a loop device here: " << made.err;
    mounted_ = true;
  }
  void launch() {
    Words words = {"--lease", "3s",  "--grace", "2500ms", "--max-restarts",    "2",  "--spares", "h3",
                   "--fold",  "off", "-H",      "h1,h2",  "--connect-timeout", "4s", "--env",    "SHARED=" + shared_.on_hosts};
    if (during(Phase::kStopping)) words = with(words, {"--env", "STUBBORN=1"});
    if (mounted_) words = with(words, {"--log-dir", "/tmp/logs"});
    Command command = run(with(words, {"--", script("once.sh")}));
    if (is(kHostile)) command.env = {{"PHALANX_SSH", script("hostile_ssh.py")}, {"HOSTILE", shared_.on_hosts + "/hostile"}};
    auto process = cluster().start_on("ctl", command);
    ASSERT_TRUE(process.ok()) << process.error().render();
    run_ = std::make_unique<Process>(std::move(process).value());
  }
  // Port 22 of h1 then accepts connections, sends what an sshd sends first, and nothing more.
  void replace_sshd() {
    say("h1", "kill $(cat /run/testbed/sshd.pid)");
    auto server = cluster().start_on("h1", {.argv = {"python3", "-c",
                                                     "import socket\n"
                                                     "s = socket.create_server(('', 22), backlog=64)\n"
                                                     "print('listening', flush=True)\n"
                                                     "kept = []\n"
                                                     "while True:\n"
                                                     "  kept.append(s.accept()[0])\n"
                                                     "  kept[-1].sendall(b'SSH-2.0-OpenSSH_9.2\\r\\n')\n"}});
    ASSERT_TRUE(server.ok());
    sshd_ = std::make_unique<Process>(std::move(server).value());
    ASSERT_TRUE(sshd_->wait_output("listening", 5s)) << sshd_->finish(0ms);
  }
  // What the process has open it keeps; it gets nothing more.
  static void forbid_descriptors(const std::vector<HostProcess>& processes, rlim_t most) {
    ASSERT_FALSE(processes.empty());
    for (const HostProcess& process : processes) {
      rlimit limit{};
      ASSERT_EQ(::prlimit(process.pid, RLIMIT_NOFILE, nullptr, &limit), 0);
      limit.rlim_cur = std::min(most, limit.rlim_max);
      ASSERT_EQ(::prlimit(process.pid, RLIMIT_NOFILE, &limit, nullptr), 0);
    }
  }
  void say_to_ranks(const char* word) { std::filesystem::create_directory(shared_.here + "/" + word); }

  // Returns in the middle of the phase.
  void await_phase() {
    switch (GetParam().phase) {
      case Phase::kOpening:
        if (is(kBanner)) return;
        for (Instant end = std::chrono::steady_clock::now() + 20s; named("h1", is(kGuard) ? "phalanx-guard" : "phalanx-agent").empty();)
          ASSERT_LT(std::chrono::steady_clock::now(), end);
        return;
      case Phase::kChecks: {
        const std::string runs = mounted_ ? "/tmp/logs" : "~/.local/state/phalanx/runs";
        say("ctl", "until [ $(grep -s -c host_open " + runs + "/latest/events.jsonl) = 2 ]; do :; done");
        return;
      }
      case Phase::kRunning: return await_ranks("0");
      case Phase::kStopping:
        await_ranks("0");
        say_to_ranks("fail");
        ASSERT_TRUE(run_->wait_output("stubborn", 15s)) << run_->out() << run_->err();
        return;
      case Phase::kBetween:
        await_ranks("0");
        say_to_ranks("fail");
        ASSERT_TRUE(run_->wait_output("restarting in", 15s)) << run_->out() << run_->err();
        return;
    }
  }
  void await_ranks(const std::string& attempt) {
    for (const char* rank : {"rank 0 of try ", "rank 1 of try "})
      ASSERT_TRUE(run_->wait_output(rank + attempt, 20s)) << run_->out() << run_->err();
  }
  void strike() {
    bool done = true;
    if (is(kAgent)) done = cluster().kill_processes("h1", "phalanx-agent", SIGSTOP) > 0;
    if (is(kGuard)) done = cluster().kill_processes("h1", "phalanx-guard", SIGSTOP) > 0;
    if (is(kSilent)) done = cluster().freeze("h1").ok();
    ASSERT_TRUE(done);
    if (is(kHostile)) say_to_ranks("hostile");
    if (is(kAgentFiles)) forbid_descriptors(named("h1", "phalanx-agent"), 0);
    if (is(kFiles)) forbid_descriptors(named("ctl", "phalanx"), 0);
    if (is(kNap) || is(kSleep)) run_->signal(SIGSTOP);
    if (freezes()) say("ctl", "fsfreeze -f /tmp/logs");
    // Nobody reads what the launcher says meanwhile: the output of a Process is taken only by its wait functions.
    ::usleep(static_cast<useconds_t>(std::chrono::microseconds(GetParam().fault.lasts).count()));
    if (is(kNap) || is(kSleep)) run_->signal(SIGCONT);
    if (freezes()) say("ctl", "fsfreeze -u /tmp/logs");
    if (is(kFiles)) forbid_descriptors(named("ctl", "phalanx"), RLIM_INFINITY);
  }
  bool freezes() const { return is(kDisk) || is(kMinute); }

  Shared shared_;
  std::unique_ptr<Process> run_, sshd_;
  bool mounted_ = false;
};

TEST_P(InEveryPhase, TheRunEndsAndNothingRunsTwice) {
  if (freezes()) mount_logs();
  if (IsSkipped()) return;
  if (is(kBanner)) replace_sshd();
  launch();
  await_phase();
  if (HasFatalFailure()) return;
  strike();
  // It has to be noticed while the run could still end well.
  if (is(kHostile)) { EXPECT_TRUE(run_->wait_output("malformed frame", 20s)) << run_->out() << run_->err(); }
  say_to_ranks("go");
  Instant lifted = std::chrono::steady_clock::now();
  Outcome outcome = run_->finish(25s);
  auto after = std::chrono::duration_cast<milliseconds>(std::chrono::steady_clock::now() - lifted);
  EXPECT_TRUE(outcome.ended) << outcome << say("ctl", "tail -n 30 ~/.local/state/phalanx/runs/latest/events.jsonl");
  // The frozen rank of a host of which nothing runs still has its lock; its guard ends it when the host runs again.
  if (!is(kSilent)) { EXPECT_FALSE(std::filesystem::exists(shared_.here + "/two")) << say("ctl", "cat " + shared_.on_hosts + "/two"); }
  // More than a lease without the launcher costs the attempt whose ranks run, and that is said; nothing else costs more than a restart.
  const bool may_end = is(kSleep) && outcome.err.find("the launcher was suspended for ") != std::string::npos;
  EXPECT_TRUE(outcome.exit_code == 0 || may_end) << outcome;
  if (!GetParam().fault.of_host) {
    for (const char* blame : {"lost contact", "does not answer", "replaces", "no response", "continuing without"})
      EXPECT_HAS_NOT(outcome.err, blame);
  }
  if (is(kSilent)) { EXPECT_TRUE(cluster().thaw("h1").ok()); }
  sshd_.reset();
  EXPECT_EQ(leftovers(10s), "") << outcome;
  std::printf("%-18s %-9s exit code %d after %4.1f s\n", GetParam().fault.name, kPhases[static_cast<int>(GetParam().phase)],
              outcome.exit_code, static_cast<double>(after.count()) / 1e3);
}

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (Phase phase : {Phase::kOpening, Phase::kChecks, Phase::kRunning, Phase::kStopping, Phase::kBetween})
    for (const FaultInPhase& fault : {kAgent, kGuard, kSilent, kHostile, kAgentFiles, kNap, kSleep, kDisk, kFiles}) {
      const std::string name = fault.name;
      const bool of_agent = name.starts_with("Agent") || name == kGuard.name;
      if (phase != Phase::kBetween || !of_agent) cases.push_back({fault, phase});  // no agent runs then
    }
  cases.push_back({kBanner, Phase::kOpening});
  cases.push_back({kMinute, Phase::kRunning});
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Faults, InEveryPhase, testing::ValuesIn(all_cases()), [](const auto& parameter) {
  return std::string(parameter.param.fault.name) + "While" + kPhases[static_cast<int>(parameter.param.phase)];
});

}  // namespace
}  // namespace phalanx::testbed
