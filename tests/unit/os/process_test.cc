#include "os/process.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>

#include "os/build_id.h"
#include "os/descriptor_limit.h"
#include "os/family.h"
#include "os/fd.h"
#include "os/files.h"
#include "os/program.h"
#include "scratch.h"

namespace phalanx::os {
namespace {

std::string new_folder() { return scratch::folder("os-test"); }

std::string run(SpawnSpec spec, int* status = nullptr) {
  PipeEnds out = make_pipe().value();
  spec.fds.emplace_back(out.write.get(), 1);
  base::Result<pid_t> pid = spawn(spec);
  if (!pid.ok()) return "spawn failed: " + pid.error().message;
  out.write.reset();
  std::string text;
  char buffer[65536];
  for (ssize_t n; (n = ::read(out.read.get(), buffer, sizeof(buffer))) > 0;) text.append(buffer, static_cast<size_t>(n));
  int ignored = 0;
  ::waitpid(*pid, status ? status : &ignored, 0);
  return text;
}

SpawnSpec shell(const std::string& script) {
  SpawnSpec spec;
  spec.program = "/bin/sh";
  spec.arguments = {"sh", "-c", script};
  spec.environment = {"PATH=/usr/bin:/bin"};
  return spec;
}

TEST(Spawn, ArgumentsAndEnvironmentArriveByteExact) {
  SpawnSpec spec;
  spec.program = "/usr/bin/printf";
  spec.arguments = {"printf", "%s|", "a b", "$HOME", "'q\"", "line\nbreak", "", "\xff\xfe", "训练"};
  EXPECT_EQ(run(spec), "a b|$HOME|'q\"|line\nbreak||\xff\xfe|训练|");
}

TEST(Spawn, TheChildHasOnlyTheDescriptorsItWasGiven) {
  PipeEnds extra = make_pipe().value();
  SpawnSpec spec = shell("for f in /proc/self/fd/*; do echo ${f##*/}; done | sort -n | tr '\\n' ' '");
  spec.fds.emplace_back(extra.write.get(), 7);
  std::string fds = run(spec);
  EXPECT_EQ(fds.find("8 "), std::string::npos) << fds;
  EXPECT_NE(fds.find("7 "), std::string::npos) << fds;
}

TEST(Spawn, FailuresNameTheStepAndOperand) {
  SpawnSpec spec = shell("true");
  spec.directory = "/no/such/folder";
  EXPECT_EQ(spawn(spec).error().message, "chdir /no/such/folder: No such file or directory");
  spec.directory = "";
  spec.program = "/no/such/program";
  EXPECT_EQ(spawn(spec).error().message, "exec /no/such/program: No such file or directory");
}

TEST(Spawn, ABlockedSignalIsNotBlockedInTheChild) {
  sigset_t set, old;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  ::sigprocmask(SIG_BLOCK, &set, &old);
  int status = 0;
  run(shell("kill -TERM $$; sleep 5"), &status);
  ::sigprocmask(SIG_SETMASK, &old, nullptr);
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(WTERMSIG(status), SIGTERM);
}

TEST(FindProgram, SearchesThePathAndChecksTheInterpreter) {
  std::string folder = new_folder();
  auto script = [&](const std::string& name, const std::string& first_line, mode_t mode) {
    std::ofstream(folder + "/" + name) << first_line << "\n";
    ::chmod((folder + "/" + name).c_str(), mode);
  };
  script("good", "#!/bin/sh", 0755);
  script("my-torchrun", "#!/opt/gone/bin/python", 0755);
  script("crlf", "#!/bin/sh\r", 0755);
  script("plain", "text", 0644);
  std::string path = "/nonexistent:" + folder + ":/usr/bin:/bin";
  EXPECT_EQ(find_program("good", path, "").value(), folder + "/good");
  EXPECT_EQ(find_program("sh", path, "").value().substr(0, 5), "/usr/");
  EXPECT_EQ(find_program("./good", path, folder).value(), "./good");
  base::Error broken = find_program("my-torchrun", path, "").error();
  EXPECT_EQ(broken.kind, base::ErrorKind::kUnfit);
  EXPECT_NE(broken.message.find("#!/opt/gone/bin/python"), std::string::npos);
  EXPECT_NE(find_program("crlf", path, "").error().message.find("\\r"), std::string::npos);
  EXPECT_FALSE(find_program("plain", folder, "").ok());
  EXPECT_NE(find_program("nope", path, "").error().cause.find("PATH="), std::string::npos);
  EXPECT_FALSE(find_program("", path, "").ok());
  EXPECT_FALSE(find_program(folder, path, "").ok()) << "a folder is no program";
}

TEST(SignalProcess, ReachesOnlyTheOneThatWasStartedThen) {
  base::Result<pid_t> pid = spawn(shell("exec sleep 300"));
  ASSERT_TRUE(pid.ok());
  std::vector<ProcessInfo> mine = descendants(::getpid());
  ASSERT_EQ(mine.size(), 1u);
  EXPECT_FALSE(signal_process(*pid, mine[0].start + 1, SIGKILL)) << "another process that was given its pid";
  EXPECT_EQ(::waitpid(*pid, nullptr, WNOHANG), 0);
  EXPECT_TRUE(signal_process(*pid, mine[0].start, SIGKILL));
  int status = 0;
  EXPECT_EQ(::waitpid(*pid, &status, 0), *pid);
  EXPECT_FALSE(signal_process(*pid, mine[0].start, SIGKILL)) << "it was reaped";
}

// In a process of its own, whose descriptors run out: there is a child, and nobody can say which.
TEST(Descendants, CannotTellWhereProcCannotBeRead) {
  pid_t child = ::fork();
  if (child == 0) {
    base::Result<pid_t> sleeper = spawn(shell("exec sleep 300"));
    bool good = sleeper.ok();
    rlimit none{3, 3};
    good = good && ::setrlimit(RLIMIT_NOFILE, &none) == 0;
    std::string unseen;
    good = good && descendants(::getpid(), &unseen).empty() && unseen.find("Too many open files") != std::string::npos;
    KillOutcome outcome = kill_descendants(std::chrono::milliseconds(50));
    good = good && outcome.left == 1 && !outcome.unseen.empty();
    if (sleeper.ok()) ::kill(*sleeper, SIGKILL);  // nobody else can
    ::_exit(good ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

// Each process starts others for ever; where their number is bounded, whoever is killed makes room for another. As a user of its own: the
// bound is on a user's processes, and does not hold for root.
TEST(KillDescendants, EndsAForkBomb) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to become a user with a bound on its processes";
  pid_t child = ::fork();
  if (child == 0) {
    rlimit most{200, 200};
    bool good = ::setrlimit(RLIMIT_NPROC, &most) == 0 && ::setgid(65534) == 0 && ::setuid(65534) == 0 && become_subreaper().ok();
    const time_t over = ::time(nullptr) + 20;  // by itself, should it not be ended
    pid_t bomb = ::fork();
    while (bomb == 0 && ::time(nullptr) < over)
      if (::fork() < 0) ::usleep(500);
    if (bomb == 0) ::_exit(0);
    for (int i = 0; i < 500 && descendants(::getpid()).size() < 40; ++i) ::usleep(2000);
    KillOutcome outcome = kill_descendants(std::chrono::milliseconds(8000));
    if (!good || outcome.left > 0 || outcome.killed < 40)
      std::fprintf(stderr, "good %d, killed %d, left %d %s\n", good, outcome.killed, outcome.left, outcome.unseen.c_str());
    good = good && outcome.left == 0 && outcome.killed >= 40 && descendants(::getpid()).empty();
    ::_exit(good ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

// In a process of its own: it becomes a subreaper and kills all it has.
TEST(KillDescendants, ReachesWhatHasLeftItsSessionAndItsParent) {
  pid_t child = ::fork();
  if (child == 0) {
    bool good = become_subreaper().ok();
    SpawnSpec spec = shell("setsid sh -c 'sleep 300 & sleep 300' & (setsid sleep 300 &) ; exec sleep 300");
    good = good && spawn(spec).ok();
    for (int i = 0; i < 500 && descendants(::getpid()).size() < 5; ++i) ::usleep(2000);
    size_t before = descendants(::getpid()).size();
    KillOutcome outcome = kill_descendants(std::chrono::milliseconds(2000));
    good = good && before >= 5 && outcome.killed >= 5 && outcome.left == 0 && descendants(::getpid()).empty();
    ::_exit(good ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(Files, AtomicWriteLeavesTheOldContentOnFailure) {
  std::string folder = new_folder(), path = folder + "/run.json";
  ASSERT_TRUE(write_file_atomic(path, "one").ok());
  EXPECT_FALSE(write_file_atomic(folder + "/no/such/run.json", "two").ok());
  EXPECT_EQ(read_file(path, 100).value(), "one");
  EXPECT_FALSE(read_file(path, 2).ok()) << "larger than the limit";
  struct stat s{};
  ASSERT_EQ(::stat(path.c_str(), &s), 0);
  EXPECT_EQ(s.st_mode & 0777, 0600u);
}

TEST(Files, MakeFolders) {
  std::string folder = new_folder();
  ASSERT_TRUE(make_folders(folder + "/a/b/c").ok());
  ASSERT_TRUE(make_folders(folder + "/a/b/c").ok());
  EXPECT_TRUE(is_folder(folder + "/a/b/c"));
  std::ofstream(folder + "/file") << "x";
  EXPECT_FALSE(make_folders(folder + "/file/x").ok());
  EXPECT_FALSE(make_folders(folder + "/file").ok());
}

TEST(BuildId, IsTheSameTwiceAndHex) {
  EXPECT_EQ(build_id(), build_id());
  EXPECT_GE(build_id().size(), 12u);
}

TEST(Spawn, TheLimitOfDescriptorsIsTheOneThisProgramBeganWith) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  pid_t tester = ::fork();  // the limit is the process's
  if (tester == 0) {
    rlimit low{256, 512};
    if (::setrlimit(RLIMIT_NOFILE, &low) != 0) ::_exit(2);
    raise_descriptor_limit();
    rlimit raised{};
    ::getrlimit(RLIMIT_NOFILE, &raised);
    if (raised.rlim_cur != 512) ::_exit(3);
    SpawnSpec spec;
    spec.program = "/bin/sh";
    spec.arguments = {"sh", "-c", "test $(ulimit -Sn) = 256 && test $(ulimit -Hn) = 512"};
    base::Result<pid_t> pid = spawn(spec);
    int status = 0;
    if (!pid.ok() || ::waitpid(*pid, &status, 0) != *pid) ::_exit(4);
    ::_exit(status == 0 ? 0 : 5);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(tester, &status, 0), tester);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace phalanx::os
