// What is replaced, what stays, and what is left when it is interrupted.
#include "envmove/rehome.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <random>

#include "os/fd.h"
#include "os/files.h"
#include "scratch.h"
#include "small_venv.h"

using namespace phalanx;
using namespace phalanx::small_venv;

namespace {

TEST(Rehome, AMovedVenvIsTheOneMadeThere) {
  const fs::path folder = scratch::folder("rehome-test");
  const std::string here = folder / "envs" / "llm";
  make_venv(here, "/far/away/envs/llm", 3);
  make_venv(folder / "reference", here, 3);
  // What only looks like the prefix, bytecode and other formats stay.
  for (const std::string& root : {here, std::string(folder / "reference")}) {
    write(fs::path(root) / "etc/list", "/far/away/envs/llm2 /mnt/far/away/envs/llm\n");
    write(fs::path(root) / kSite / "other.pyc", "/far/away/envs/llm/x");
    write(fs::path(root) / "share/cache.db", std::string("SQLite\0", 7) + "/far/away/envs/llm");
  }
  envmove::Plan plan = repair(here);
  EXPECT_EQ(plan.changes.size(), 5u);
  EXPECT_EQ(plan.untouched, std::vector<std::string>{"share/cache.db"});
  EXPECT_EQ(content_of(here), content_of(folder / "reference"));
  EXPECT_TRUE(repair(here).changes.empty()) << "a second one finds nothing to do";
}

// And back: one of the places lies in the other.
TEST(Rehome, IntoTheDirectoryAboveAndBack) {
  const fs::path folder = scratch::folder("rehome-test");
  const std::string above = folder / "llm", below = above + "/env", aside = folder / "aside";
  fs::create_directories(above);
  make_venv(below, below, 3);
  make_venv(folder / "reference", above, 3);
  for (const fs::path& root : {fs::path(below), folder / "reference"}) {  // other formats stay as they are
    fs::remove(root / kSite / "other.pyc");
    fs::remove(root / "share/cache.db");
  }
  const auto made = content_of(below);
  fs::rename(below, aside);
  fs::remove(above);
  fs::rename(aside, above);
  EXPECT_FALSE(repair(above).changes.empty());
  EXPECT_EQ(content_of(above), content_of(folder / "reference"));
  EXPECT_TRUE(repair(above).changes.empty()) << "a second one finds nothing to do";
  fs::rename(above, aside);
  fs::create_directories(above);
  fs::rename(aside, below);
  EXPECT_FALSE(repair(below).changes.empty());
  EXPECT_EQ(content_of(below), made);
}

// And so is what was moved away from there.
TEST(Rehome, APlaceThatAShellHasToQuoteIsActivated) {
  for (const char* name : {"o'brien", "a\"b", "a$HOME", "a`id`", "a\\b", "a b"}) {
    const fs::path folder = scratch::folder("rehome-test");
    const std::string root = folder / name, plain = folder / "plain";
    make_venv(root, "/far/env", 1);
    write(fs::path(root) / "bin/activate", "VIRTUAL_ENV=/far/env\n");  // as Python's own; that of small_venv.h is as virtualenv's
    write(fs::path(root) / "etc/profile.sh", "TOOL='/far/env/tool'\n");
    write(fs::path(root) / kSite / "_editable_tool.py", "MAP = {'tool': '/far/env/src', \"other\": \"/far/env\"}\n");
    for (const std::string& place : {root, plain}) {
      if (place == plain) fs::rename(root, plain);
      repair(place);
      ::setenv("ROOT", place.c_str(), 1);
      EXPECT_EQ(std::system(R"(sh -c '. "$ROOT/bin/activate" && test "$VIRTUAL_ENV" = "$ROOT"')"), 0) << name << " " << place;
      EXPECT_EQ(std::system(R"(sh -c '. "$ROOT/etc/profile.sh" && test "$TOOL" = "$ROOT/tool"')"), 0) << name << " " << place;
      EXPECT_EQ(std::system(R"(cd "$ROOT"/lib/python3*/site-packages && /usr/bin/python3 -c 'import os, _editable_tool as e
assert e.MAP == {"tool": os.environ["ROOT"] + "/src", "other": os.environ["ROOT"]}')"),
                0)
          << name << " " << place;
      fs::remove_all(fs::path(place) / kSite / "__pycache__");
    }
  }
  ::unsetenv("ROOT");
}

TEST(Rehome, OnlyPythonsOwnScriptsOfActivationVote) {
  const std::string root = fs::path(scratch::folder("rehome-test")) / "env";
  make_venv(root, root, 1);
  write(fs::path(root) / "bin/lint", "#!/x/tools/bin/python\n");
  write(fs::path(root) / "bin/activate-tools", "export VIRTUAL_ENV=/x/tools\n");
  write(fs::path(root) / "bin/template", "#!/$PREFIX/bin/python\n");
  const auto environment = envmove::read_environment(root);
  ASSERT_TRUE(environment.ok());
  EXPECT_EQ(envmove::old_prefixes(*environment, envmove::vote(*environment)), std::vector<std::string>{});
}

TEST(Rehome, OtherNamesOfAFileKeepTheirContent) {
  const fs::path folder = scratch::folder("rehome-test");
  const fs::path root = folder / "env";
  make_venv(root, "/far/env", 1);
  fs::create_hard_link(root / "bin/tool0", folder / "cache");
  fs::create_hard_link(root / "bin/tool0", root / "bin/tool-alias");
  fs::permissions(root / "bin/tool0", fs::perms(0755));
  const std::string before = read(folder / "cache");
  const auto time = fs::last_write_time(root / "bin/tool0");
  repair(root);
  EXPECT_EQ(read(folder / "cache"), before) << "the cache was changed through a hard link";
  EXPECT_EQ(read(root / "bin/tool-alias"), read(root / "bin/tool0"));
  EXPECT_TRUE(fs::equivalent(root / "bin/tool-alias", root / "bin/tool0")) << "two names of one file became two files";
  EXPECT_EQ(fs::status(root / "bin/tool0").permissions(), fs::perms(0755));
  EXPECT_EQ(fs::last_write_time(root / "bin/tool0"), time);
}

TEST(Rehome, LinksToTheFormerPlace) {
  const fs::path root = fs::path(scratch::folder("rehome-test")) / "env";
  make_venv(root, "/far/env", 1);
  fs::create_symlink("/far/env/bin/tool0", root / "bin/short");
  fs::create_symlink("/far/env2/bin/tool0", root / "bin/foreign");
  repair(root);
  EXPECT_EQ(fs::read_symlink(root / "bin/short"), root / "bin/tool0");
  EXPECT_EQ(fs::read_symlink(root / "bin/foreign"), "/far/env2/bin/tool0");
}

// Who may write in a folder of the environment puts a link in its place after it was read. Root that repairs a user's environment would
// write where the user wants it.
TEST(Rehome, ALinkThatTookThePlaceOfAFolderLeadsNowhere) {
  const fs::path folder = scratch::folder("rehome-test");
  const fs::path root = folder / "env", outside = folder / "outside";
  make_venv(root, "/far/env", 2);
  write(root / "share/tool/conf", "/far/env/share\n");
  write(outside / "conf", "/far/env/share\n");
  auto environment = envmove::read_environment(root);
  ASSERT_TRUE(environment.ok());
  auto plan = plan_of(*environment);
  ASSERT_TRUE(plan.ok());
  fs::remove_all(root / "share/tool");
  fs::create_symlink(outside, root / "share/tool");
  EXPECT_FALSE(envmove::carry_out(*environment, *plan, {}).ok());
  EXPECT_EQ(read(outside / "conf"), "/far/env/share\n");
  EXPECT_EQ(std::distance(fs::directory_iterator(outside), {}), 1);
  fs::rename(root, folder / "away");
  fs::create_symlink(outside, root);
  EXPECT_FALSE(envmove::carry_out(*environment, *plan, {}).ok()) << "the same for the whole environment";
  EXPECT_EQ(std::distance(fs::directory_iterator(outside), {}), 1);
}

TEST(Rehome, NewContentGetsNoRightsOfTheOld) {
  const fs::path root = fs::path(scratch::folder("rehome-test")) / "env";
  make_venv(root, "/far/env", 1);
  ASSERT_EQ(::chmod((root / "bin/tool0").c_str(), 06755), 0);
  repair(root);
  EXPECT_EQ(fs::status(root / "bin/tool0").permissions(), fs::perms(0755));
}

TEST(Rehome, ARecordOfWhatWasChangedByHandStays) {
  const fs::path root = fs::path(scratch::folder("rehome-test")) / "env";
  make_venv(root, "/far/env", 2);
  write(root / "bin/tool1", "#!/far/env/bin/python\nedited()\n");
  repair(root);
  const std::string record = read(root / kSite / "tool-1.0.dist-info/RECORD");
  EXPECT_NE(record.find(envmove::record_hash(base::sha256_hex(read(root / "bin/tool0")))), std::string::npos);
  EXPECT_EQ(record.find(envmove::record_hash(base::sha256_hex(read(root / "bin/tool1")))), std::string::npos);
}

TEST(Votes, OfPlacesThatAreGoneAndOfTheirOtherNames) {
  const fs::path folder = scratch::folder("rehome-test"), root = folder / "env", former = folder / "mnt/env", linked = folder / "home/env";
  make_venv(former, linked, 1);
  fs::create_directory_symlink(folder / "mnt", folder / "home");
  write(former / "bin/real", "#!" + former.string() + "/bin/python\n");
  fs::copy(former, root, fs::copy_options::recursive | fs::copy_options::copy_symlinks);
  auto old = [&] {
    auto environment = envmove::read_environment(root);
    std::vector<std::string> all = envmove::old_prefixes(*environment, envmove::vote(*environment));
    std::sort(all.begin(), all.end());
    return all;
  };
  EXPECT_EQ(old(), (std::vector<std::string>{linked, former}));
  fs::remove_all(former);
  EXPECT_EQ(old(), (std::vector<std::string>{linked, former})) << "one that only scripts name, and that is gone";
}

TEST(Votes, ABaseThatCameAlongIsNoReasonToForgetThePlace) {
  const fs::path root = fs::path(scratch::folder("rehome-test")) / "env";
  make_venv(root, "/far/env", 1);
  write(root / "pyvenv.cfg", "home = /far/env/.python/bin\nversion = 3.11.7\ncommand = /far/env/.python/bin/python3 -m venv /far/env\n");
  auto environment = envmove::read_environment(root);
  EXPECT_EQ(envmove::old_prefixes(*environment, envmove::vote(*environment)), std::vector<std::string>{"/far/env"});
}

TEST(Rehome, WhatPythonHasCompiledOfAnOldPathGoes) {
  const fs::path root = fs::path(scratch::folder("rehome-test")) / "env";
  make_venv(root, "/far/env", 1);
  const fs::path package = root / kSite / "tool";
  write(package / "conf.py", "HERE = '/far/env/share'\n");
  for (const char* name : {"conf.cpython-311.pyc", "conf.cpython-311.opt-2.pyc", "__init__.cpython-311.pyc", "confer.cpython-311.pyc"})
    write(package / "__pycache__" / name, "compiled");
  repair(root);
  std::vector<std::string> left;
  for (const auto& entry : fs::directory_iterator(package / "__pycache__")) left.push_back(entry.path().filename());
  std::sort(left.begin(), left.end());
  EXPECT_EQ(left, (std::vector<std::string>{"__init__.cpython-311.pyc", "confer.cpython-311.pyc"}));
}

TEST(Rehome, APlaceholderThatWasLeftForAnotherProgramToReplace) {
  const fs::path root = fs::path(scratch::folder("rehome-test")) / "env";
  const std::string placeholder = "/build/" + std::string(80, 'p'), content = "libdir=" + placeholder + "/share\n";
  write(root / "lib/pkgconfig/x.pc", content);
  write(root / "conda-meta/x-1-0.json",
        R"({"name": "x", "version": "1", "build": "0", "paths_data": {"paths": [{"_path": "lib/pkgconfig/x.pc",
    "prefix_placeholder": ")" +
            placeholder + R"(", "file_mode": "text", "sha256": ")" + base::sha256_hex(content) + R"(", "sha256_in_prefix": ")" +
            base::sha256_hex("as it was installed elsewhere") + "\"}]}}");
  repair(root);
  EXPECT_EQ(read(root / "lib/pkgconfig/x.pc"), "libdir=" + root.string() + "/share\n");
  EXPECT_EQ(flaws_of(root), std::vector<std::string>{}) << "its record follows";
}

TEST(Rehome, OtherSpellingsOfThePlace) {
  const fs::path root = fs::path(scratch::folder("rehome-test")) / "env";
  make_venv(root, "/far/用户/env", 1);
  write(root / "share/kernel.json", "{\"argv\": [\"/far/\\u7528\\u6237/env/bin/python\"]}\n");
  const std::string archive("\nPK\x03\x04\0\0/far/x", 14);
  write(root / "bin/app.pyz", "#!/far/用户/env/bin/python -I" + archive);
  write(root / "bin" / std::string(240, 'n'), "#!/far/用户/env/bin/python\n");
  repair(root);
  EXPECT_EQ(read(root / "share/kernel.json"), "{\"argv\": [\"" + root.string() + "/bin/python\"]}\n");
  EXPECT_EQ(read(root / "bin/app.pyz"), "#!" + root.string() + "/bin/python -I" + archive);
  EXPECT_EQ(read(root / "bin" / std::string(240, 'n')), "#!" + root.string() + "/bin/python\n") << "a name that leaves no room for another";
}

TEST(Rehome, AProblemIsFoundBeforeAnythingChanges) {
  const fs::path root = fs::path(scratch::folder("rehome-test")) / "env";
  make_venv(root, "/e", 1);
  write(root / "lib/libx.so", std::string("\x7f"
                                          "ELF\0/e/share\0",
                                          14));
  const auto before = content_of(root);
  auto environment = envmove::read_environment(root);
  ASSERT_TRUE(environment.ok());
  auto plan = plan_of(*environment);
  ASSERT_TRUE(plan.ok());
  ASSERT_EQ(plan->problems.size(), 1u);
  EXPECT_EQ(plan->problems[0].path, "lib/libx.so");
  EXPECT_NE(plan->problems[0].text.find("no room to grow"), std::string::npos);
  EXPECT_EQ(content_of(root), before);
}

// Killed after each file in turn: the same command ends what was begun, and the result is that of an undisturbed one.
TEST(Rehome, InterruptedAtEveryFile) {
  const fs::path folder = scratch::folder("rehome-test");
  constexpr int kScripts = 6;
  const fs::path root = folder / "env";
  make_venv(folder / "reference", root, kScripts);
  write(folder / "reference" / kSite / "other.pyc", "/far/env/x");
  write(folder / "reference" / "share/cache.db", std::string("SQLite\0", 7) + "/far/env");
  for (int last = 1; last <= kScripts + 2; ++last) {
    fs::remove_all(root);
    make_venv(root, "/far/env", kScripts);
    const pid_t child = fork();
    if (child == 0) {
      auto environment = envmove::read_environment(root);
      auto plan = plan_of(*environment);
      std::atomic<int> files = 0;
      (void)envmove::carry_out(*environment, *plan, [&](size_t, size_t) {
        if (++files >= last) kill(getpid(), SIGKILL);
      });
      _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    ASSERT_TRUE(WIFSIGNALED(status)) << last;
    ASSERT_TRUE(fs::exists(root / envmove::kJournal)) << last;
    write(root / "bin/.phalanx-rehome-tool0", "half");  // what a kill within a write leaves
    EXPECT_TRUE(repair(root).resumed);
    auto now = content_of(root);
    now.erase("bin/.phalanx-rehome-tool0");
    EXPECT_EQ(now, content_of(folder / "reference")) << last;
  }
}

TEST(Rehome, AJournalOfAnotherIsRefused) {
  const fs::path root = fs::path(scratch::folder("rehome-test")) / "env";
  make_venv(root, "/far/env", 1);
  for (const char* text :
       {"", "[]", "{\"new_prefix\": \"/\"}", R"({"new_prefix": "/a", "old_prefixes": ["/b"], "changes": [{"path": "../x"}]})",
        R"({"new_prefix": "/a", "old_prefixes": [3], "changes": []})"}) {
    write(root / envmove::kJournal, text);
    fs::permissions(root / envmove::kJournal, fs::perms(0600));
    auto environment = envmove::read_environment(root);
    ASSERT_TRUE(environment.ok());
    EXPECT_FALSE(plan_of(*environment).ok()) << text;
  }
  write(root / envmove::kJournal, R"({"new_prefix": "/a", "old_prefixes": ["/b"], "changes": []})");
  fs::permissions(root / envmove::kJournal, fs::perms(0666));
  auto environment = envmove::read_environment(root);
  EXPECT_NE(plan_of(*environment).error().message.find("could be written by another user"), std::string::npos);
}

TEST(Environment, WhatIsNoneIsRefused) {
  const std::string folder = scratch::folder("rehome-test");
  EXPECT_NE(envmove::read_environment(folder).error().message.find("is no environment of Python"), std::string::npos);
  EXPECT_NE(envmove::read_environment(folder + "/none").error().message.find("no such folder"), std::string::npos);
}

}  // namespace
