// What is wrong with an environment is found, and nothing where nothing is.
#include "envmove/verify.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <random>

#include "envmove/glibc.h"
#include "os/files.h"
#include "scratch.h"
#include "small_venv.h"

using namespace phalanx;
using namespace phalanx::small_venv;

namespace {

TEST(Verify, EachFlawIsFoundAndNoneWhereNothingIsWrong) {
  const fs::path root = fs::path(scratch::folder("rehome-test")) / "env";
  make_venv(root, root, 2);
  EXPECT_EQ(flaws_of(root), std::vector<std::string>{});
  write(root / "bin/tool1", "#!/no/such/bin/python\n");
  fs::create_symlink("/no/such/file", root / "share/link");
  write(root / kSite / "code.pth", "/no/such/source\nimport sys\n");
  write(root / envmove::kJournal, "{}");
  const std::vector<std::string> wrong = {"ENV-HALF-MOVED .phalanx-rehome.json", "ENV-SHEBANG bin/tool1",
                                          std::string("ENV-EDITABLE-GONE ") + kSite + "/code.pth", "ENV-FILE-CHANGED bin/tool1",
                                          "ENV-LINK-GONE share/link"};
  EXPECT_EQ(flaws_of(root), wrong);
  fs::remove(root / "bin/tool1");
  const std::vector<std::string> now = flaws_of(root);
  EXPECT_NE(std::find(now.begin(), now.end(), "ENV-FILE-GONE bin/tool1"), now.end());
}

TEST(Verify, AScriptThatRunsAnotherEnvironmentIsTold) {
  const fs::path folder = scratch::folder("rehome-test"), root = folder / "env", other = folder / "other";
  make_venv(root, root, 1);
  make_venv(other, other, 1);
  write(root / "bin/tool0", "#!" + other.string() + "/bin/python\n");
  EXPECT_EQ(flaws_of(root).front(), "ENV-FILE-CHANGED bin/tool0");
  EXPECT_NE(std::find(flaws_of(root).begin(), flaws_of(root).end(), "ENV-MOVED ."), flaws_of(root).end());
  write(root / "bin/tool0", "#!/no/such/ksh\n");
  EXPECT_EQ(flaws_of(root), std::vector<std::string>{"ENV-FILE-CHANGED bin/tool0"}) << "an interpreter of the machine's";
}

TEST(Verify, AMovedOneIsFoundAndARepairedOneIsNot) {
  const fs::path root = fs::path(scratch::folder("rehome-test")) / "env";
  make_venv(root, "/far/env", 2);
  const std::vector<std::string> moved = {"ENV-MOVED .", "ENV-SHEBANG bin/tool0", "ENV-SHEBANG bin/tool1"};
  EXPECT_EQ(flaws_of(root), moved);
  repair(root);
  EXPECT_EQ(flaws_of(root), std::vector<std::string>{});
}

TEST(Verify, ALibraryThatNeedsANewerCLibraryIsNamed) {
  const fs::path root = fs::path(scratch::folder("rehome-test")) / "env";
  make_venv(root, root, 1);
  const envmove::Glibc here = envmove::glibc_here();
  if (here == 0) GTEST_SKIP() << "this system has another C library";
  const os::Fd system(::open("/usr/bin/env", O_RDONLY | O_CLOEXEC));
  const envmove::Glibc needed = envmove::glibc_needed(system);
  ASSERT_GT(needed, 2000U);
  ASSERT_LE(needed, here) << "it starts here";
  base::Result<std::string> read = os::read_file("/usr/bin/env", 64 << 20);
  ASSERT_TRUE(read.ok());
  std::string program = *read;
  write(root / "bin/built", program);
  EXPECT_EQ(flaws_of(root), std::vector<std::string>{});
  const std::string name = envmove::glibc_text(needed);
  const size_t at = program.find(name + '\0');
  ASSERT_NE(at, std::string::npos);
  program.replace(at, name.size(), std::string(name).replace(name.size() - 2, 2, "99"));
  write(root / "bin/built", program);
  write(root / "lib/libtext.so", "GLIBC_2.99");
  EXPECT_EQ(flaws_of(root), std::vector<std::string>{"ENV-GLIBC bin/built"});
  // However it is cut off or damaged, it is read within its bounds.
  for (size_t size : {size_t{0}, size_t{16}, size_t{63}, size_t{64}, program.size() / 2, program.size() - 1}) {
    write(root / "bin/built", program.substr(0, size));
    (void)flaws_of(root);
  }
  std::mt19937 random(1);
  for (int i = 0; i < 200; ++i) {
    std::string damaged = program;
    for (int k = 0; k < 50; ++k) damaged[k % 2 ? random() % damaged.size() : random() % 64] = static_cast<char>(random());
    std::memcpy(damaged.data(), program.data(), 20);
    write(root / "bin/built", damaged);
    (void)envmove::glibc_needed(os::Fd(::open((root / "bin/built").c_str(), O_RDONLY | O_CLOEXEC)));
  }
}

// Who verifies an environment of somebody else must not run what that user calls its Python.
TEST(Verify, PythonIsNotStartedWhereAnotherUserCouldHavePutIt) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to give files to another user";
  const fs::path folder = scratch::folder("rehome-test");
  const fs::path root = folder / "env", started = folder / "started";
  make_venv(root, root, 1);
  fs::remove(root / "bin/python");
  write(root / "bin/python", "#!/bin/sh\n: > '" + started.string() + "'\necho '" + root.string() + "'\n");
  fs::permissions(root / "bin/python", fs::perms(0755));
  auto foreign = [&]() -> std::string {
    fs::remove(started);
    auto environment = envmove::read_environment(root);
    auto flaws = envmove::verify(*environment, {}, {});
    EXPECT_TRUE(flaws.ok()) << flaws.error().render();
    for (const envmove::Flaw& flaw : *flaws)
      if (flaw.code == "ENV-PYTHON-FOREIGN" && !flaw.fatal) return fs::path(flaw.path).lexically_relative(folder);
    return "";
  };
  EXPECT_EQ(foreign(), "");
  EXPECT_TRUE(fs::exists(started)) << "ours is";
  for (const char* path : {"env", "env/bin", "env/bin/python", "env/lib/python3.11/site-packages/tool/__init__.py"}) {
    ASSERT_EQ(::lchown((folder / path).c_str(), 65534, 65534), 0);
    EXPECT_EQ(foreign(), path);
    EXPECT_FALSE(fs::exists(started)) << path;
    ASSERT_EQ(::lchown((folder / path).c_str(), 0, 0), 0);
  }
  fs::permissions(root / kSite, fs::perms(0777));
  EXPECT_EQ(foreign(), std::string("env/") + kSite);
  fs::permissions(root / kSite, fs::perms(0755));
  fs::permissions(folder, fs::perms(0777));
  EXPECT_EQ(foreign(), ".") << "who can replace the whole of it";
  fs::permissions(folder, fs::perms(0700));
  fs::rename(root / "bin/python", folder / "other");
  fs::create_symlink(folder / "other", root / "bin/python");
  ASSERT_EQ(::chown((folder / "other").c_str(), 65534, 65534), 0);
  EXPECT_EQ(foreign(), "other") << "an interpreter elsewhere";
  EXPECT_FALSE(fs::exists(started));
}

}  // namespace
