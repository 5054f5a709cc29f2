// The project file and the command line together: which wins, for which verb.
#include "cli/project/project.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "cli/flags/run_options.h"
#include "cli/make_job.h"
#include "cli/passed_on.h"
#include "cli/project/find_project.h"
#include "cli/project/write_project.h"
#include "os/files.h"
#include "scratch.h"

namespace phalanx::cli {
namespace {

using Words = std::vector<std::string>;

Invocation merged(const Words& words, std::string_view text, const std::map<std::string, std::string>& variables = {}) {
  auto invocation = parse_command_line(words);
  EXPECT_TRUE(invocation.ok()) << invocation.error().message;
  auto file = parse_project_file(text, "/p/phalanx.yaml");
  EXPECT_TRUE(file.ok()) << file.error().message;
  auto lookup = [&](const std::string& name) {
    auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional<std::string>(found->second);
  };
  auto status = merge_project(*file, lookup, *invocation);
  EXPECT_TRUE(status.ok()) << status.error().message;
  return *invocation;
}

RunOptions options(const Words& words, std::string_view text) {
  auto out = run_options(merged(words, text));
  EXPECT_TRUE(out.ok()) << out.error().message;
  return *out;
}

const Words kRun = {"run", "--", "true"};

TEST(Project, FillsWhatTheCommandLineLeavesOpen) {
  RunOptions o = options({"run", "--iface", "ib0", "--", "true"}, "hosts: gpu01,gpu02\niface: eth0\ngrace: 3s\npython-hook: true\n");
  EXPECT_EQ(o.hosts, "gpu01,gpu02");
  EXPECT_EQ(o.gpus.interface, "ib0");
  EXPECT_EQ(o.grace, std::chrono::seconds(3));
  EXPECT_TRUE(o.python_hook);
  ASSERT_EQ(o.project.values.size(), 3u);
  EXPECT_EQ(o.project.file, "/p/phalanx.yaml");
  EXPECT_EQ(o.project.values[0].key, "hosts");
  EXPECT_EQ(o.project.values[1].line, 3);
}

TEST(Project, SyncTakesTheDirectoryOfTheFile) {
  EXPECT_TRUE(options(kRun, "sync: .\n").sync);
  EXPECT_EQ(options(kRun, "sync: .\n").sync_directory, "/p");
  EXPECT_EQ(options({"run", "--sync=/elsewhere", "--", "true"}, "sync: .\n").sync_directory, "/elsewhere");
}

TEST(Project, ASwitchIsTurnedOff) {
  EXPECT_FALSE(options({"run", "--python-hook=false", "--", "true"}, "python-hook: true\n").python_hook);
  EXPECT_FALSE(options(kRun, "python-hook: false\n").python_hook);
  EXPECT_EQ(merged(kRun, "python-hook: false\n").project, "") << "nothing came from the file";
  EXPECT_FALSE(parse_command_line(Words{"run", "--dry-run=false", "--", "true"}).ok()) << "only of switches that a file can turn on";
  EXPECT_FALSE(parse_command_line(Words{"run", "--python-hook=maybe", "--", "true"}).ok());
}

TEST(Project, HostsOfTheCommandLineReplaceTheWholeList) {
  constexpr std::string_view kFile = "hosts: [a, b, c]\ninclude: a@b\nspares: d\nnnodes: 2\ngpus: a:0\niface: eth0\n";
  RunOptions typed = options({"run", "-H", "x,y", "--", "true"}, kFile);
  EXPECT_EQ(typed.hosts, "x,y");
  EXPECT_EQ(typed.include + typed.spares, "");
  EXPECT_FALSE(typed.nnodes);
  EXPECT_TRUE(typed.gpus.lists.empty());
  EXPECT_EQ(typed.gpus.interface, "eth0");
  EXPECT_EQ(options({"run", "--hostfile", "h", "--", "true"}, kFile).hosts, "");
  EXPECT_EQ(options({"check", "x", "y"}, kFile).hosts, "x,y");
  EXPECT_EQ(options({"check"}, kFile).hosts, "a,b,c");
  EXPECT_EQ(options({"bench", "fabric", "x", "y"}, kFile).hosts, "x,y");
  EXPECT_EQ(options({"bench", "fabric"}, kFile).hosts, "a,b,c");
  RunOptions excluded = options({"run", "--exclude", "c", "--", "true"}, kFile);
  EXPECT_EQ(excluded.hosts, "a,b,c");
  EXPECT_EQ(excluded.include, "");
  EXPECT_EQ(excluded.exclude, "c");
  EXPECT_EQ(options({"fit", "--params", "7B", "--gpu-memory", "24GiB"}, kFile).hosts, "");
  EXPECT_EQ(options({"train", "c.yaml", "--check-data"}, kFile).spares, "");
}

TEST(Project, VerbsTakeWhatTheyHaveAnOptionFor) {
  constexpr std::string_view kFile =
      "hosts: a\niface: e\nlog-dir: runs\ntimeout: 5m\nssh-option: Port=22\ngrace: 1s\nkeep-runs: 3\nenv: {A: 1}\nfold: on\n";
  auto taken = [&](const Words& words) { return taken_from_project(merged(words, kFile)); };
  EXPECT_EQ(taken(kRun), "hosts, iface, log-dir, timeout, ssh-option, grace, keep-runs, fold, env (A)");
  EXPECT_EQ(taken({"plan", "--", "true"}), taken(kRun));
  EXPECT_EQ(taken({"train", "c.yaml"}), taken(kRun));
  EXPECT_EQ(taken({"exec", "--", "true"}), "hosts, timeout, ssh-option, env (A)");
  EXPECT_EQ(taken({"check"}), "hosts, iface, ssh-option, env (A)");
  EXPECT_EQ(taken({"bench", "fabric"}), "hosts, iface, ssh-option");
  EXPECT_EQ(taken({"ps"}), "log-dir");
  EXPECT_EQ(taken({"wait"}), "log-dir") << "the limit of a run is not that of waiting for it";
  EXPECT_EQ(taken({"stop"}), "log-dir, ssh-option");
  EXPECT_EQ(taken({"clean"}), "log-dir, keep-runs") << "what is removed on hosts is named on the command line";
  EXPECT_EQ(merged({"logs"}, kFile).value(Flag::kLogDir), "/p/runs");
}

TEST(Project, PathsStartAtTheFile) {
  RunOptions o = options(kRun, "hosts: ./hosts\nenv-file: [.env, /etc/x]\nworkdir: .\nlog-dir: ~/runs\n");
  EXPECT_EQ(o.hostfile, "/p/hosts");
  EXPECT_EQ(o.project_env_files, (Words{"/p/.env", "/etc/x"}));
  EXPECT_EQ(o.workdir, "/p");
  EXPECT_EQ(merged(kRun, "log-dir: ~/runs\n", {{"HOME", "/h"}}).value(Flag::kLogDir), "/h/runs");
}

// ssh uses the first of two options of one name.
TEST(Project, SshOptionsOfTheCommandLineComeFirst) {
  EXPECT_EQ(options({"run", "--ssh-option", "Port=1", "--", "true"}, "ssh-option: [Port=2, User=x]\n").ssh_options,
            (Words{"Port=1", "Port=2", "User=x"}));
}

// The value each rank gets, and where it is said to come from.
TEST(Project, VariablesByPrecedence) {
  const std::string folder = scratch::folder("project");
  ASSERT_TRUE(os::make_folders(folder).ok());
  ASSERT_TRUE(os::write_file_atomic(folder + "/typed.env", "C=typed file\n").ok());
  const char* environment[] = {"NCCL_DEBUG=shell", "MY_D=shell", "MY_E=shell", nullptr};
  Here here{"ctl", {}, "/", environment};
  RunOptions o = options({"run", "--env", "B=typed", "--env-file", folder + "/typed.env", "--export", "MY_D", "--", "true"},
                         "env: {NCCL_DEBUG: file, A: file, B: file, C: file, MY_D: file}\nexport: 'MY_*'\n");
  auto job = make_job(o, here);
  ASSERT_TRUE(job.ok()) << job.error().message;
  std::map<std::string, std::string> last, from;
  for (const auto& [name, value] : job->set) last[name] = value;
  for (const PassedOn& one : passed_on(*job)) from[one.name] = one.from;
  EXPECT_EQ(last["NCCL_DEBUG"], "file") << "not this terminal's: the file is the same for everyone";
  EXPECT_EQ(from["NCCL_DEBUG"], "project file /p/phalanx.yaml");
  EXPECT_EQ(last["A"], "file");
  EXPECT_EQ(last["B"], "typed");
  EXPECT_EQ(from["B"], "--env");
  EXPECT_EQ(last["C"], "typed file");
  EXPECT_EQ(last["MY_D"], "shell");
  EXPECT_EQ(from["MY_D"], "--export");
  EXPECT_EQ(last["MY_E"], "shell");
  EXPECT_EQ(from["MY_E"], "project file /p/phalanx.yaml");
}

TEST(Project, AVariableWithoutValueIsTakenFromHere) {
  EXPECT_EQ(merged(kRun, "env:\n  HF_TOKEN:\n", {{"HF_TOKEN", "x=y"}}).values(Flag::kEnv), Words{"HF_TOKEN=x=y"});
  EXPECT_EQ(merged({"run", "--env", "HF_TOKEN=z", "--", "true"}, "env:\n  HF_TOKEN:\n").values(Flag::kEnv), Words{"HF_TOKEN=z"});
  EXPECT_EQ(merged({"ps"}, "env:\n  HF_TOKEN:\n").flags.size(), 0u) << "no verb but those that set it needs it";
  auto invocation = parse_command_line(kRun);
  auto status =
      merge_project(*parse_project_file("env:\n  HF_TOKEN:\n", "/p/phalanx.yaml"), [](auto&) { return std::nullopt; }, *invocation);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().message, "/p/phalanx.yaml:2:3: HF_TOKEN has no value here, and is not set on this machine either");
  for (const char* verb : {"plan", "check"}) {  // they report it (ENV-UNSET)
    const Invocation looks = merged({verb, "-H", "a", "--", "true"}, "env:\n  HF_TOKEN:\n");
    EXPECT_EQ(looks.unset, Words{"phalanx.yaml:2:3: HF_TOKEN"}) << verb;
    EXPECT_EQ(looks.values(Flag::kEnv), Words{}) << verb;
  }
}

TEST(Project, ColourOfTheEnvironmentWins) {
  EXPECT_EQ(merged(kRun, "color: always\n").value(Flag::kColor), "always");
  EXPECT_EQ(merged(kRun, "color: always\n", {{"NO_COLOR", "1"}}).value(Flag::kColor), std::nullopt);
}

TEST(Project, RecordsNameVariablesAndKeepTheirValues) {
  RunOptions o = options(kRun, "iface: eth0\nenv: {HF_TOKEN: hf_secret}\naccept: FS-SHM-SMALL\n");
  const std::string text = base::to_text(describe_project(o.project));
  EXPECT_EQ(text.find("hf_secret"), std::string::npos);
  EXPECT_NE(text.find(R"({"key":"env.HF_TOKEN","line":2})"), std::string::npos) << text;
  EXPECT_NE(text.find(R"("value":"eth0")"), std::string::npos) << text;
  job::ProjectUse again = project_in(describe_project(o.project));
  EXPECT_EQ(project_line(again), "/p/phalanx.yaml: iface, accept, env.HF_TOKEN");
  EXPECT_EQ(project_line(project_in(base::Json::array())), "");
}

TEST(Project, ErrorsOfCombinationsNameTheFile) {
  auto both = run_options(merged({"run", "--preflight", "off", "--", "true"}, "iface: eth0\n"));
  EXPECT_FALSE(both.ok());
  auto pair = run_options(merged(kRun, "include: a\nexclude: b\nhosts: a,b\n"));
  ASSERT_FALSE(pair.ok());
  EXPECT_EQ(pair.error().message.rfind("phalanx.yaml:1: include and phalanx.yaml:2: exclude cannot be combined", 0), 0u)
      << pair.error().message;
}

// What init writes is read back as what was typed.
TEST(WriteProject, ReadsBackToTheSameValues) {
  auto round = [](const Words& options) {
    auto typed = parse_command_line(options);
    EXPECT_TRUE(typed.ok()) << typed.error().message;
    const WrittenProject written = project_text(*typed, base::Language::kEnglish);
    auto file = parse_project_file(written.text, "/p/phalanx.yaml");
    EXPECT_TRUE(file.ok()) << file.error().message << "\n" << written.text;
    Words all;
    if (!file.ok()) return all;
    for (const ProjectValue& one : file->values) all.push_back(fmt::format("{}={}", one.flag->name, one.value));
    for (const ProjectVariable& one : file->env) all.push_back(fmt::format("env.{}={}", one.name, one.value.value_or("(here)")));
    return all;
  };
  EXPECT_EQ(round({"init"}), Words{});
  EXPECT_EQ(round({"init", "--sync"}), Words{"sync=."});
  EXPECT_EQ(round({"init", "-H", "gpu[01-04]:8,[fd00::1]:2", "--iface", "bond0", "--nnodes", "2:4", "--no-store", "--python-hook=false",
                   "--ssh-option", "ProxyCommand=ssh -W %h:%p 'a b' # \"x\"", "--ssh-option", "Port=22", "--log-dir", "null"}),
            (Words{"hosts=gpu[01-04]:8,[fd00::1]:2", "nnodes=2:4", "no-store=true", "python-hook=false", "iface=bond0",
                   "ssh-option=ProxyCommand=ssh -W %h:%p 'a b' # \"x\"", "ssh-option=Port=22", "log-dir=null"}));
  for (const char* value :
       {"",  " ",  "yes", "~",    "null", "a: b", "a #b", "- a",  "*x", "&x", "!x", "{a}",          "[a]", "|",   ">",  "@", "%",   "`",
        "'", "\"", "\\",  "a\nb", "\t",   "\x01", "0x1f", "1.10", "a:", ":a", "?",  "\xe4\xb8\xad", "---", "...", "<<", "=", "a,b", "#"}) {
    SCOPED_TRACE(value);
    EXPECT_EQ(round({"init", "--env", fmt::format("A={}", value)}), Words{fmt::format("env.A={}", value)});
  }
  EXPECT_EQ(round({"init", "--env", "A=1", "--env", "A=2"}), Words{"env.A=2"});
  const WrittenProject secret = project_text(*parse_command_line(Words{"init", "--env", "HF_TOKEN=hf_abc"}), base::Language::kEnglish);
  EXPECT_EQ(secret.secrets, Words{"HF_TOKEN"});
  EXPECT_EQ(secret.text.find("hf_abc"), std::string::npos);
  EXPECT_FALSE(parse_command_line(Words{"init", "--dry-run"}).ok()) << "not an option that a file can hold";
}

class FindProject : public ::testing::Test {
 protected:
  void SetUp() override {
    // Below a folder that everyone can write to and that is sticky, as /tmp is.
    root_ = fmt::format("/tmp/phalanx-project.{}", ::getpid());
    ASSERT_TRUE(os::make_folders(root_ + "/a/b/c", 0755).ok());
    write(root_ + "/phalanx.yaml", "iface: eth0\n");
  }
  void TearDown() override { [[maybe_unused]] int done = ::system(("rm -rf " + root_).c_str()); }
  static void write(const std::string& path, const std::string& text) { ASSERT_TRUE(os::write_file_atomic(path, text, 0644).ok()); }
  std::string found(const std::string& folder, const std::string& home = "") {
    auto file = find_project(root_ + folder, home);
    if (!file.ok()) return file.error().cause;
    return *file ? (*file)->path.substr(root_.size()) : "none";
  }
  std::string root_;
};

TEST_F(FindProject, UpwardsUntilHome) {
  EXPECT_EQ(found("/a/b/c"), "/phalanx.yaml");
  EXPECT_EQ(found(""), "/phalanx.yaml");
  EXPECT_EQ(found("/a/b/c", root_), "/phalanx.yaml") << "home itself is looked at";
  EXPECT_EQ(found("/a/b/c", root_ + "/a"), "none") << "what is above home is not";
  ASSERT_EQ(::symlink("a", (root_ + "/link").c_str()), 0);
  EXPECT_EQ(found("/a/b/c", root_ + "/link/"), "none") << "however HOME is written";
  write(root_ + "/a/b/phalanx.yaml", "");
  EXPECT_EQ(found("/a/b/c"), "/a/b/phalanx.yaml") << "the nearest";
  EXPECT_EQ(found("/a"), "/phalanx.yaml");
}

TEST_F(FindProject, RefusesWhatOthersCanChange) {
  const std::string file = root_ + "/phalanx.yaml";
  ::chmod(file.c_str(), 0646);
  EXPECT_NE(found("/a").find(file + " can be written by other users"), std::string::npos) << found("/a");
  ::chmod(file.c_str(), 0644);
  ::chmod(root_.c_str(), 0777);
  EXPECT_NE(found("/a").find(root_ + " can be written by other users (mode 0777)"), std::string::npos) << found("/a");
  ::chmod(root_.c_str(), 01777);
  EXPECT_EQ(found("/a"), "/phalanx.yaml") << "the sticky bit keeps its entries";
  ::chmod((root_ + "/a").c_str(), 0777);
  EXPECT_EQ(found("/a"), "/phalanx.yaml") << "only what is above the file counts";
  auto error = find_project(root_, "");
  ::chmod(root_.c_str(), 0757);
  error = find_project(root_, "");
  ASSERT_FALSE(error.ok());
  EXPECT_EQ(error.error().kind, base::ErrorKind::kConfig);
  EXPECT_EQ(error.error().hint.rfind("chmod go-w " + root_ + "    # or: --project " + file, 0), 0u) << error.error().hint;
}

// With a umask of 002, everything that a user makes can be written by the user's own group.
TEST_F(FindProject, AGroupOfNobodyElseIsNoOtherUser) {
  constexpr std::string_view kUsers = "root:x:0:0::/root:/bin/sh\nme:x:1000:1000::/h:/bin/sh\nyou:x:1001:100::/y:/bin/sh\nshort\n";
  auto own = [&](gid_t group, std::string_view groups) { return is_private_group(group, 1000, kUsers, groups); };
  EXPECT_TRUE(own(1000, "me:x:1000:\n"));
  EXPECT_TRUE(own(1000, "users:x:100:me\nme:x:1000:me\n"));
  EXPECT_FALSE(own(1000, "me:x:1000:you\n"));
  EXPECT_FALSE(own(1000, "me:x:1000:me,you\n"));
  EXPECT_FALSE(own(1000, "team:x:1000:\n")) << "not this user's name";
  EXPECT_FALSE(own(1000, "")) << "not listed";
  EXPECT_FALSE(own(1000, "me:x:1000:\nme:x:1000:you\n"));
  EXPECT_FALSE(own(100, "me:x:100:\n")) << "the first group of another user";
  EXPECT_FALSE(is_private_group(1000, 2000, kUsers, "me:x:1000:\n"));
  if (::geteuid() != 0) GTEST_SKIP() << "needs root";
  const std::string file = root_ + "/phalanx.yaml";
  ASSERT_EQ(::chown(file.c_str(), 0, 61303), 0);
  ::chmod(file.c_str(), 0664);
  EXPECT_NE(found("/a").find(file + " can be written by other users (mode 0664)"), std::string::npos) << found("/a");
}

TEST_F(FindProject, RefusesLinksAndOtherKinds) {
  const std::string link = root_ + "/a/phalanx.yaml";
  ASSERT_EQ(::symlink("../phalanx.yaml", link.c_str()), 0);
  EXPECT_NE(found("/a/b").find("symbolic link"), std::string::npos);
  ::unlink(link.c_str());
  ASSERT_EQ(::mkfifo(link.c_str(), 0600), 0);
  EXPECT_EQ(found("/a"), "it is not a regular file") << "and nothing waits for its writer";
  ::unlink(link.c_str());
  ASSERT_EQ(::mkdir(link.c_str(), 0700), 0);
  EXPECT_EQ(found("/a"), "it is not a regular file");
}

TEST_F(FindProject, AnotherUsersFile) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root";
  ASSERT_EQ(::chown((root_ + "/phalanx.yaml").c_str(), 61303, 61303), 0);
  EXPECT_NE(found("/a/b").find("/phalanx.yaml belongs to another user (uid 61303)"), std::string::npos) << found("/a/b");
  ASSERT_EQ(::chown((root_ + "/phalanx.yaml").c_str(), 0, 0), 0);
  ASSERT_EQ(::chown(root_.c_str(), 61303, 61303), 0);
  EXPECT_NE(found("/a/b").find(root_ + " belongs to another user (uid 61303)"), std::string::npos) << found("/a/b");
}

TEST_F(FindProject, AFileThatOnlyThisUserAndRootCanChange) {
  const std::string file = root_ + "/a/b/.deepspeed_env";
  write(file, "A=1\n");
  EXPECT_TRUE(only_ours(file));
  EXPECT_FALSE(only_ours(file + "x"));
  ::chmod(file.c_str(), 0666);
  EXPECT_FALSE(only_ours(file));
  ::chmod(file.c_str(), 0600);
  ::chmod((root_ + "/a").c_str(), 0777);
  EXPECT_FALSE(only_ours(file));
  ::chmod((root_ + "/a").c_str(), 0700);
  ASSERT_EQ(::symlink(root_.c_str(), (root_ + "/way").c_str()), 0);
  EXPECT_TRUE(only_ours(root_ + "/way/a/b/.deepspeed_env"));
  ASSERT_EQ(::symlink(file.c_str(), (root_ + "/link").c_str()), 0);
  EXPECT_FALSE(only_ours(root_ + "/link"));
  if (::geteuid() != 0) GTEST_SKIP() << "needs root";
  ASSERT_EQ(::chown(file.c_str(), 61303, 61303), 0);
  EXPECT_FALSE(only_ours(file));
}

// As in /tmp: else a stranger's file there would refuse every start below it.
TEST_F(FindProject, WhatOthersLeaveWhereEveryoneMayIsPassedOver) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root";
  ASSERT_EQ(::mkdir((root_ + "/a/b/open").c_str(), 0700), 0);
  ASSERT_EQ(::mkdir((root_ + "/a/b/open/mine").c_str(), 0700), 0);
  ::chmod((root_ + "/a/b/open").c_str(), 01777);
  const std::string file = root_ + "/a/b/open/phalanx.yaml";
  write(file, "iface: eth9\n");
  EXPECT_EQ(found("/a/b/open/mine"), "/a/b/open/phalanx.yaml") << "of this user";
  ASSERT_EQ(::chown(file.c_str(), 61303, 61303), 0);
  EXPECT_EQ(found("/a/b/open/mine"), "/phalanx.yaml");
  EXPECT_EQ(found("/a/b/open"), "/phalanx.yaml");
  ::chmod((root_ + "/a/b/open").c_str(), 0755);
  EXPECT_NE(found("/a/b/open/mine").find("belongs to another user"), std::string::npos);
}

TEST_F(FindProject, ANamedFileIsConsent) {
  ::chmod((root_ + "/phalanx.yaml").c_str(), 0666);
  auto file = read_project("phalanx.yaml", root_);
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(file->path, root_ + "/phalanx.yaml");
  EXPECT_EQ(file->text, "iface: eth0\n");
  EXPECT_FALSE(read_project("missing.yaml", root_).ok());
}

}  // namespace
}  // namespace phalanx::cli
