// The deploy script on a host where another user prepares, and keeps exchanging, what it may find.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>

#include "base/text.h"
#include "hosts/connect/deploy.h"
#include "os/fd.h"
#include "os/files.h"
#include "os/process.h"
#include "os/program.h"

namespace phalanx::hosts {
namespace {

namespace fs = std::filesystem;
constexpr const char* kBuild = "0123abcd";
// Users without any process or file; they need no entry in /etc/passwd.
constexpr uid_t kVictim = 61'201, kAttacker = 61'202;
// PHALANX_ATTACK_LOGINS=1000 for a run by hand.
int logins() { return std::atoi(os::environment_value("PHALANX_ATTACK_LOGINS", "40").c_str()); }

void write_program(const std::string& path, const std::string& text) {
  std::ofstream(path) << "#!/bin/sh\n" << text << "\n";
  ASSERT_EQ(::chmod(path.c_str(), 0755), 0);
}

class Attack : public testing::Test {
 protected:
  void SetUp() override {
    top_ = fs::temp_directory_path() / "phalanx-deploy-attack-XXXXXX";
    ASSERT_TRUE(::mkdtemp(top_.data()));
    ASSERT_EQ(::chmod(top_.c_str(), 0755), 0);
    for (const char* shared : {"var", "tmp", "shm", "loot"}) {
      fs::create_directory(top_ + "/" + shared);
      ASSERT_EQ(::chmod((top_ + "/" + shared).c_str(), 01777), 0);
    }
    home_ = top_ + "/home";
    fs::create_directory(home_);
    user_ = ::getuid() == 0 ? kVictim : ::getuid();
    ASSERT_TRUE(::getuid() != 0 || ::chown(home_.c_str(), user_, user_) == 0);
    if (::getuid() == 0 && !others_reach(top_)) GTEST_SKIP() << "other users cannot reach " << fs::temp_directory_path();
  }
  void TearDown() override { fs::remove_all(top_); }

  static bool others_reach(fs::path folder) {
    struct stat s{};
    while (folder.has_relative_path() && ::stat(folder.c_str(), &s) == 0 && (s.st_mode & S_IXOTH) != 0) folder = folder.parent_path();
    return !folder.has_relative_path();
  }

  // The script itself; only the shared places are those of this test.
  std::string command() const {
    std::string text = remote_command(kBuild, "aa");
    for (auto [from, to] : {std::pair{"/var/tmp", "/var"}, {"/tmp", "/tmp"}, {"/dev/shm", "/shm"}})
      text = base::replace_all(text, "\"" + std::string(from) + "/phalanx-$u\"", "\"" + top_ + to + "/phalanx-$u\"");
    return text;
  }
  std::string shared(const std::string& place) const { return top_ + "/" + place + "/phalanx-" + std::to_string(user_); }

  // One login of the victim that gives no program when asked for one. What the script printed.
  std::string login(const std::vector<std::string>& shell, const std::vector<std::string>& environment) const {
    os::PipeEnds out = os::make_pipe().value();
    std::string program = os::find_program(shell[0], "/usr/bin:/bin:" + os::environment_value("PATH"), "").value();
    pid_t pid = ::fork();
    if (pid == 0) {
      os::Fd null(::open("/dev/null", O_RDWR));
      ::dup2(null.get(), 0);
      ::dup2(out.write.get(), 1);
      ::dup2(null.get(), 2);
      if (::getuid() == 0 && (::setresgid(user_, user_, user_) != 0 || ::setresuid(user_, user_, user_) != 0)) ::_exit(98);
      std::vector<std::string> words = shell, variables = environment;
      words.insert(words.end(), {"-c", command()});
      variables.push_back("PATH=/usr/bin:/bin");
      std::vector<char*> argv, envp;
      for (std::string& word : words) argv.push_back(word.data());
      for (std::string& variable : variables) envp.push_back(variable.data());
      argv.push_back(nullptr);
      envp.push_back(nullptr);
      if (::chdir("/") == 0) ::execve(program.c_str(), argv.data(), envp.data());
      ::_exit(99);
    }
    out.write.reset();
    std::string text;
    char block[4096];
    for (ssize_t n = 0; (n = ::read(out.read.get(), block, sizeof(block))) > 0;) text.append(block, static_cast<size_t>(n));
    ::waitpid(pid, nullptr, 0);
    return text;
  }
  std::string login(const std::vector<std::string>& environment) const { return login({"sh"}, environment); }
  std::vector<std::string> at_home() const { return {"HOME=" + home_}; }
  // A home that cannot be written to, so that the shared places are tried.
  std::vector<std::string> homeless() const { return {"HOME=/proc/1/nothing"}; }

  void own(const std::string& path, uid_t user) const { ASSERT_TRUE(::getuid() != 0 || ::lchown(path.c_str(), user, user) == 0); }
  // A folder of the build with a program in it, all of `user`, as the script makes them.
  void install(const std::string& folder, uid_t user, const std::string& says, mode_t mode = 01700) const {
    ASSERT_TRUE(os::make_folders(folder + "/" + kBuild).ok());
    write_program(folder + "/" + kBuild + "/phalanx", "echo " + says + " $1");
    for (const std::string& path : {folder + "/" + kBuild + "/phalanx", folder + "/" + kBuild, folder}) own(path, user);
    for (const std::string& path : {folder, folder + "/" + kBuild}) ASSERT_EQ(::chmod(path.c_str(), mode), 0);
  }
  static mode_t mode_of(const std::string& path) {
    struct stat s{};
    return ::lstat(path.c_str(), &s) == 0 ? s.st_mode & 07777 : 0;
  }

  std::string top_, home_;
  uid_t user_ = 0;
};

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> out;
  for (std::string_view line : base::split_lines(text)) out.emplace_back(line);
  return out;
}

TEST_F(Attack, SharedPlacesAreLookedAtOnlyAfterOurOwnHaveFailed) {
  install(shared("var"), user_, "shared");
  std::string cold = login(at_home());
  EXPECT_TRUE(cold.starts_with("PHALANX-NEED ") && cold.ends_with(home_ + "/.cache/phalanx\n")) << cold;
  EXPECT_TRUE(login(homeless()).ends_with("shared agent\n"));
}

TEST_F(Attack, AFolderThatOthersCanWriteToIsRepairedAndItsProgramIsNotRun) {
  std::string ours = home_ + "/.cache/phalanx", build = ours + "/" + kBuild;
  for (mode_t wide : {0770, 0707, 0777}) {
    install(ours, user_, "planted");
    own(home_ + "/.cache", user_);
    ASSERT_EQ(::chmod(build.c_str(), wide), 0);
    std::string said = login(at_home());
    EXPECT_TRUE(said.starts_with("PHALANX-NEED ")) << said;
    EXPECT_EQ(mode_of(build), 01700u);
    EXPECT_FALSE(fs::exists(build + "/phalanx"));
  }
  install(ours, user_, "sound", 0755);
  EXPECT_EQ(login(at_home()), "sound agent\n");
  EXPECT_EQ(mode_of(ours), 01700u);
  EXPECT_EQ(mode_of(build), 01700u);
}

TEST_F(Attack, AFolderOfTheUsersChoiceIsRefusedIfOthersCanWriteToItAndIsNeverChanged) {
  std::string chosen = top_ + "/chosen";
  install(chosen, user_, "planted", 0777);
  std::string said = login({"HOME=/proc/1/nothing", "PHALANX_CACHE=" + chosen});
  EXPECT_EQ(lines_of(said).front(), "PHALANX-BAD " + chosen + " cannot be made, is a link, is not ours, or others can write to it");
  EXPECT_EQ(mode_of(chosen), 0777u);
  ASSERT_EQ(::chmod(chosen.c_str(), 0755), 0);
  ASSERT_EQ(::chmod((chosen + "/" + kBuild).c_str(), 0755), 0);
  EXPECT_EQ(login({"HOME=/proc/1/nothing", "PHALANX_CACHE=" + chosen}), "planted agent\n");
  EXPECT_EQ(mode_of(chosen), 0755u);
}

TEST_F(Attack, ALinkIsNotFollowed) {
  install(top_ + "/elsewhere", user_, "linked", 0700);
  for (const char* place : {"var", "tmp", "shm"}) fs::create_directory_symlink(top_ + "/elsewhere", shared(place));
  std::string said = login(homeless());
  EXPECT_EQ(lines_of(said).back(), "PHALANX-NOPLACE") << said;
  EXPECT_EQ(mode_of(top_ + "/elsewhere"), 0700u);
}

TEST_F(Attack, AFolderOfSomebodyElseIsNotUsedNorWrittenTo) {
  if (::getuid() != 0) GTEST_SKIP() << "needs root, to make files of a second user";
  for (const char* place : {"var", "tmp", "shm"}) {
    fs::create_directory(shared(place));
    own(shared(place), kAttacker);
    ASSERT_EQ(::chmod(shared(place).c_str(), 0777), 0);
  }
  EXPECT_EQ(lines_of(login(homeless())).back(), "PHALANX-NOPLACE");
  for (const char* place : {"var", "tmp", "shm"}) EXPECT_TRUE(fs::is_empty(shared(place)));
}

// Every shell that may be a login shell finds the program, without the script where the folders are as the script makes them.
TEST_F(Attack, EveryLoginShellRunsTheProgramAndFallsBackToTheScript) {
  std::string path = "/usr/bin:/bin:" + os::environment_value("PATH");
  for (const char* name : {"dash", "bash", "busybox", "ksh93", "mksh", "zsh", "tcsh", "bsd-csh", "fish"}) {
    if (!os::find_program(name, path, "").ok()) continue;
    SCOPED_TRACE(name);
    std::vector<std::string> shell = {name};
    if (shell[0] == "busybox") shell.push_back("sh");
    fs::remove_all(home_ + "/.cache");
    std::string cold = login(shell, at_home());
    EXPECT_TRUE(cold.starts_with("PHALANX-NEED ") && cold.ends_with(home_ + "/.cache/phalanx\n")) << cold;
    install(home_ + "/.cache/phalanx", user_, "found");
    EXPECT_EQ(login(shell, at_home()), "found agent\n");
    // Made by an older build: no sticky bit. The script looks closely, and runs it.
    install(home_ + "/.cache/phalanx", user_, "found", 0700);
    EXPECT_EQ(login(shell, at_home()), "found agent\n");
    EXPECT_EQ(mode_of(home_ + "/.cache/phalanx/" + kBuild), 01700u);
  }
}

void exchange_names(const std::string& a, const std::string& b) { ::renameat2(AT_FDCWD, a.c_str(), AT_FDCWD, b.c_str(), RENAME_EXCHANGE); }

// The attacker keeps exchanging, in each shared place, one step of the path with a link to something of the victim: the program, the
// folder, and the folder of the build. Whatever the script looks at by name and then uses by name will be another thing at some time.
pid_t start_attacker(const std::string& top, const std::string& victim, const std::string& of_victim) {
  pid_t pid = ::fork();
  if (pid != 0) return pid;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::setresgid(kAttacker, kAttacker, kAttacker) != 0 || ::setresuid(kAttacker, kAttacker, kAttacker) != 0) ::_exit(98);
  ::umask(0);
  for (const char* place : {"var", "tmp", "shm"}) {
    std::string build = top + "/" + place + "/" + victim + "/" + kBuild;
    if (!os::make_folders(build, 0777).ok()) ::_exit(97);
    write_program(build + "/phalanx", "echo executed >>" + top + "/loot/by-$(id -u)");
  }
  std::string program = top + "/var/" + victim + "/" + kBuild + "/phalanx", folder = top + "/tmp/" + victim;
  std::string build = top + "/shm/" + victim + "/" + kBuild;
  for (const std::string& step : {program, folder, build})
    if (::symlink(of_victim.c_str(), (step + "-link").c_str()) != 0) ::_exit(96);
  for (;;)
    for (const std::string& step : {program, folder, build}) exchange_names(step, step + "-link");
}

TEST_F(Attack, NothingForeignIsRunWhileAnAttackerExchangesWhatTheScriptLooksAt) {
  if (::getuid() != 0) GTEST_SKIP() << "needs root, to be two other users";
  // What the links point at: a folder of the victim with a program in it, as any user has.
  install(home_ + "/mine", user_, "mine", 0755);
  ASSERT_EQ(::chmod(home_.c_str(), 0755), 0);
  pid_t attacker = start_attacker(top_, "phalanx-" + std::to_string(kVictim), home_ + "/mine");
  std::string last = shared("shm") + "/" + kBuild + "-link";
  while (::access(last.c_str(), F_OK) != 0 && ::waitpid(attacker, nullptr, WNOHANG) == 0) ::usleep(1000);
  int count = logins(), no_place = 0;
  for (int i = 0; i < count; ++i) {
    fs::remove_all(home_ + "/.cache");
    std::string said = login(i % 2 == 0 ? homeless() : at_home());
    if (i % 2 == 0) no_place += said.ends_with("PHALANX-NOPLACE\n");
    else EXPECT_TRUE(said.starts_with("PHALANX-NEED ")) << said;
  }
  ASSERT_EQ(::kill(attacker, SIGKILL), 0);
  int status = 0;
  ::waitpid(attacker, &status, 0);
  EXPECT_TRUE(WIFSIGNALED(status)) << "the attacker gave up";
  EXPECT_FALSE(fs::exists(top_ + "/loot/by-" + std::to_string(kVictim)));
  EXPECT_EQ(no_place, (count + 1) / 2);
  EXPECT_EQ(mode_of(home_ + "/mine"), 0755u) << "a folder of the victim was taken for one of the script";
}

}  // namespace
}  // namespace phalanx::hosts
