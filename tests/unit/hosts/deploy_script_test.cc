// The deploy script, run by the shells that this machine has, against the launcher's own side of the talk.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/text.h"
#include "hosts/connect/deploy.h"
#include "hosts/packed_program.h"
#include "os/fd.h"
#include "os/files.h"
#include "os/process.h"
#include "os/program.h"

namespace phalanx::hosts {
namespace {

namespace fs = std::filesystem;
constexpr const char* kBuild = "0123abcd";

// A stand-in for the launcher: large enough not to fit into a pipe, and as hard to compress as a program.
std::string stand_in() {
  std::string text =
      "#!/bin/sh\nif [ \"$1\" = agent ]; then echo started as \"$(pwd -P)/${0##*/}\"; exit 0; fi\n"
      "[ \"$1\" = selfcheck ] && echo asked >>\"$PHALANX_TEST_LOG\" && [ \"$(sha256sum <\"$0\")\" = \"$2  -\" ]\nexit\n";
  uint32_t x = 1;
  while (text.size() < 600'000) text += static_cast<char>('0' + ((x = x * 1664525 + 1013904223) >> 26));
  return text;
}

struct Far {
  pid_t pid = 0;
  os::Fd in, out;
};

class ScriptRun : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / "phalanx-deploy-script-XXXXXX";
    ASSERT_TRUE(::mkdtemp(folder_.data()));
    ::signal(SIGPIPE, SIG_IGN);
  }
  void TearDown() override { fs::remove_all(folder_); }

  // A PATH with only these programs in it.
  std::string only(const std::vector<std::string>& programs) {
    std::string bin = folder_ + "/bin";
    fs::create_directory(bin);
    for (const std::string& name : programs) fs::create_symlink(os::find_program(name, "/usr/bin:/bin", "").value(), bin + "/" + name);
    return bin;
  }
  std::string message(Encoding encoding) { return std::string(payload_.message(encoding).value()); }

  // `shell`: words before -c. The folders are first/ and second/.
  Far start(const std::vector<std::string>& shell, const std::string& tag, const std::string& path = "/usr/bin:/bin",
            const std::string& before = "") {
    os::PipeEnds in = os::make_pipe().value(), out = os::make_pipe().value();
    os::SpawnSpec spec;
    spec.program = os::find_program(shell[0], "/usr/bin:/bin", "").value();
    spec.arguments = shell;
    // Every process has the same id here, as the first processes of two containers have.
    spec.arguments.insert(spec.arguments.end(), {"-c", before + base::replace_all(deploy_script(kBuild, tag), "$$", "77")});
    spec.environment = {"PATH=" + path, "PHALANX_CACHE=" + folder_ + "/first", "XDG_CACHE_HOME=" + folder_ + "/second",
                        "PHALANX_TEST_LOG=" + folder_ + "/asked"};
    spec.fds = {{in.read.get(), 0}, {out.write.get(), 1}};
    Far far{os::spawn(spec).value(), std::move(in.write), std::move(out.read)};
    return far;
  }
  static std::string line(Far& far) {
    std::string text;
    for (char c = 0; ::read(far.out.get(), &c, 1) == 1 && c != '\n';) text += c;
    return text;
  }
  static void write(Far& far, std::string_view bytes) {
    while (!bytes.empty()) {
      ssize_t n = ::write(far.in.get(), bytes.data(), bytes.size());
      if (n <= 0) return;
      bytes.remove_prefix(static_cast<size_t>(n));
    }
  }
  static int finish(Far& far) {
    far.in.reset();
    int status = 0;
    ::waitpid(far.pid, &status, 0);
    return status;
  }
  // The files of a cache, by name.
  std::vector<std::string> files(const std::string& cache) {
    std::vector<std::string> names;
    std::error_code none;
    for (const auto& entry : fs::directory_iterator(folder_ + "/" + cache + "/" + kBuild, none)) names.push_back(entry.path().filename());
    std::sort(names.begin(), names.end());
    return names;
  }
  std::string program(const std::string& cache) { return folder_ + "/" + cache + "/" + kBuild + "/phalanx"; }
  void expect_installed(const std::string& cache) {
    EXPECT_EQ(files(cache), std::vector<std::string>{"phalanx"});
    EXPECT_EQ(os::read_file(program(cache), 1 << 20).value(), stand_in());
    struct stat s{};
    ::stat(program(cache).c_str(), &s);
    EXPECT_EQ(s.st_mode & 07777, 0700U);
  }

  std::string folder_;
  const PackedProgram program_{stand_in()};
  Payload payload_{program_.image()};
};

const std::vector<std::string> kTools = {"id", "mkdir", "chmod", "ls", "head", "cat", "sha256sum", "mv", "rm", "wc", "sh"};
std::vector<std::string> with_gzip() {
  std::vector<std::string> tools = kTools;
  tools.push_back("gzip");
  return tools;
}

TEST_F(ScriptRun, EveryShellUnpacksVerifiesAndStarts) {
  int tried = 0;
  for (const std::vector<std::string>& shell : {std::vector<std::string>{"dash"}, {"bash"}, {"bash", "--posix"}, {"busybox", "sh"}}) {
    if (!os::find_program(shell[0], "/usr/bin:/bin", "").ok()) continue;
    ++tried;
    for (Encoding encoding : {Encoding::kGzip, Encoding::kRaw}) {
      SCOPED_TRACE(base::join(shell, " ") + (encoding == Encoding::kGzip ? " gzip" : " raw"));
      fs::remove_all(folder_ + "/first");
      fs::remove_all(folder_ + "/bin");
      // With the applets of busybox itself for every tool, as on a host that has nothing else.
      std::vector<std::string> tools = encoding == Encoding::kGzip ? with_gzip() : kTools;
      std::string path = only(shell[0] == "busybox" ? std::vector<std::string>{} : tools);
      if (shell[0] == "busybox")
        for (const std::string& name : tools)
          fs::create_symlink(os::find_program("busybox", "/usr/bin:/bin", "").value(), path + "/" + name);
      Far far = start(shell, "aa", path);
      // busybox finds its own applets before PATH, gzip too.
      bool gzip = encoding == Encoding::kGzip || shell[0] == "busybox";
      EXPECT_EQ(line(far), std::string("PHALANX-NEED ") + (gzip ? "gzip " : "raw ") + folder_ + "/first");
      write(far, message(encoding));
      EXPECT_EQ(line(far), "started as " + program("first"));
      EXPECT_EQ(finish(far), 0);
      expect_installed("first");
    }
  }
  if (tried == 0) GTEST_SKIP() << "none of dash, bash and busybox is here";
}

TEST_F(ScriptRun, WhatGzipUnpackedChecksItselfAndNoOtherProgramIsAsked) {
  std::vector<std::string> tools = with_gzip();
  Far far = start({"sh"}, "aa", only(tools));
  line(far);
  write(far, message(Encoding::kGzip));
  EXPECT_EQ(line(far), "started as " + program("first"));
  finish(far);
  EXPECT_EQ(os::read_file(folder_ + "/asked", 100).value(), "asked\n");
}

// A copy that is cut short, damaged, or does not fit is refused; the next folder gets it uncompressed.
TEST_F(ScriptRun, ADamagedCopyIsRefusedAndTheNextFolderGetsItPlain) {
  std::string damaged = message(Encoding::kGzip), wrong_program = damaged;
  damaged[damaged.size() / 2] ^= 1;
  wrong_program[0] = wrong_program[0] == '0' ? '1' : '0';  // sound gzip, but of another program than announced
  for (const std::string& bytes : {damaged, wrong_program}) {
    fs::remove_all(folder_ + "/second");
    Far far = start({"sh"}, "aa");
    EXPECT_EQ(line(far), "PHALANX-NEED gzip " + folder_ + "/first");
    write(far, bytes);
    EXPECT_EQ(line(far), "PHALANX-BAD " + folder_ + "/first the copy was not whole (is the disk or quota full?)");
    EXPECT_EQ(line(far), "PHALANX-NEED raw " + folder_ + "/second/phalanx");
    EXPECT_EQ(files("first"), std::vector<std::string>{});
    write(far, message(Encoding::kRaw));
    EXPECT_EQ(line(far), "started as " + program("second/phalanx"));
    finish(far);
    expect_installed("second/phalanx");
  }
}

TEST_F(ScriptRun, ACopyThatDoesNotFitIsRefusedAndTheStreamGoesOnBehindIt) {
  Far far = start({"sh"}, "aa", "/usr/bin:/bin", "ulimit -f 8; ");  // files of at most 4 or 8 KiB, as the shell counts
  EXPECT_EQ(line(far), "PHALANX-NEED gzip " + folder_ + "/first");
  write(far, message(Encoding::kGzip));
  EXPECT_EQ(line(far), "PHALANX-BAD " + folder_ + "/first the copy was not whole (is the disk or quota full?)");
  EXPECT_EQ(line(far), "PHALANX-NEED raw " + folder_ + "/second/phalanx");
  write(far, message(Encoding::kRaw));
  EXPECT_EQ(line(far), "PHALANX-BAD " + folder_ + "/second/phalanx the copy was not whole (is the disk or quota full?)");
  ::kill(far.pid, SIGTERM);
  finish(far);
  EXPECT_EQ(files("first"), std::vector<std::string>{});
  EXPECT_EQ(files("second/phalanx"), std::vector<std::string>{});
}

TEST_F(ScriptRun, AConnectionThatEndsInTheMiddleLeavesNothing) {
  for (Encoding encoding : {Encoding::kGzip, Encoding::kRaw}) {
    Far far = start({"sh"}, "aa", only(encoding == Encoding::kGzip ? with_gzip() : kTools));
    line(far);
    std::string whole = message(encoding);
    write(far, std::string_view(whole).substr(0, whole.size() / 2));
    far.in.reset();
    far.out.reset();
    EXPECT_NE(finish(far), 0);
    EXPECT_EQ(files("first"), std::vector<std::string>{});
    EXPECT_EQ(files("second/phalanx"), std::vector<std::string>{});
    fs::remove_all(folder_ + "/bin");
  }
}

// Hosts that share a home: equal process ids, one folder. Each has its own unfinished copy; whoever is last leaves the first one's
// program where it is, because others run it already.
TEST_F(ScriptRun, HostsWithOneFolderAndEqualProcessIdsDoNotMeet) {
  Far one = start({"sh"}, "aa"), two = start({"sh"}, "bb");
  line(one);
  line(two);
  EXPECT_EQ(files("first"), (std::vector<std::string>{".new.aa.77", ".new.bb.77"}));
  std::string whole = message(Encoding::kGzip);
  write(two, std::string_view(whole).substr(0, whole.size() / 2));
  write(one, whole);
  EXPECT_EQ(line(one), "started as " + program("first"));
  struct stat before{}, after{};
  ::stat(program("first").c_str(), &before);
  write(two, std::string_view(whole).substr(whole.size() / 2));
  EXPECT_EQ(line(two), "started as " + program("first"));
  finish(one);
  finish(two);
  ::stat(program("first").c_str(), &after);
  EXPECT_EQ(before.st_ino, after.st_ino);
  expect_installed("first");
}

}  // namespace
}  // namespace phalanx::hosts
