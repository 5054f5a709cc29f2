// Every command in the READMEs is executed: each ```sh block, as one shell session in a checkout, by a user on `ctl` with two
// other machines named gpu01 and gpu02. Both READMEs have the same commands (style/tidy), so the English one is read.
#include <gtest/gtest.h>

#include <fstream>
#include <set>

#include "cluster.h"

using namespace phalanx;

namespace {

// Executed elsewhere, and where.
const std::set<std::string> kElsewhere = {
    "./x test",  // contains this test
};

struct Block {
  int line = 0;  // of its first command
  std::vector<std::string> commands;
};

std::vector<Block> read_blocks(const std::string& path) {
  std::vector<Block> blocks;
  std::ifstream in(path);
  bool inside = false;
  int number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    if (inside && line == "```") inside = false;
    else if (inside) blocks.back().commands.push_back(line);
    else if (line == "```sh") {
      inside = true;
      blocks.push_back({number + 1, {}});
    }
  }
  return blocks;
}

std::string to_script(const Block& block) {
  std::string script = "set -eu -o pipefail\n";
  bool goes_on = false;  // from the line before
  for (const std::string& command : block.commands) {
    if (kElsewhere.contains(command)) continue;
    if (!goes_on) script += "echo 'README$ " + command + "' >&2\n";
    script += command + "\n";
    goes_on = command.ends_with('\\');
  }
  return script;
}

class Readme : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (testbed::unavailable()) return;
    testbed::Options options;
    for (const char* name : {"gpu01", "gpu02"}) options.host.emplace_back().name = name;
    auto cluster = testbed::Cluster::up(options);
    ASSERT_TRUE(cluster.ok()) << cluster.error().render();
    cluster_ = new testbed::Cluster(std::move(cluster).value());
  }
  static void TearDownTestSuite() {
    delete cluster_;
    cluster_ = nullptr;
  }
  void SetUp() override {
    if (auto why = testbed::unavailable()) GTEST_SKIP() << *why;
  }

  static testbed::Outcome run(const std::string& script, std::chrono::seconds deadline) {
    testbed::Command command{.argv = {"bash", "-c", script}, .cwd = README_SOURCE_DIR};
    command.env["PATH"] = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin";
    command.env["PHALANX_DEMO_OVERRIDES"] = README_DEMO_OVERRIDES;
    command.env["PHALANX_DOOR"] = README_SOURCE_DIR;  // the ./x test that this is part of has the clone to itself
    return cluster_->run_on("ctl", command, deadline);
  }
  static testbed::Cluster* cluster_;
};
testbed::Cluster* Readme::cluster_ = nullptr;

TEST_F(Readme, EveryCommandRuns) {
  std::vector<Block> blocks = read_blocks(README_SOURCE_DIR "/README.md");
  ASSERT_GE(blocks.size(), 4u);
  for (const Block& block : blocks) {
    // What an earlier block installed into the home folder is there; login shells find it.
    testbed::Outcome outcome = run("PATH=~/.local/bin:$PATH\n" + to_script(block), std::chrono::seconds(300));
    EXPECT_EQ(outcome.exit_code, 0) << "README.md:" << block.line << ": " << outcome;
    std::cout << "README.md:" << block.line << ": " << outcome.took.count() << " ms\n";
  }
}

TEST_F(Readme, InstalledFilesAreWhereShellsLook) {
  testbed::Outcome outcome =
      run("./x install ~/there\n"
          "cd ~/there\n"
          "bin/phalanx version\n"
          // Where the built program searches the empty libraries first, the installed one does, in its own folder.
          "! readelf -d \"$OLDPWD/build/train/phalanx-train\" | grep empty_libraries || ldd bin/phalanx-train | grep "
          "/there/lib/phalanx/empty/\n"
          "man --warnings -l share/man/man1/phalanx.1 2>&1 | grep -i hostfile\n"
          "bash -c 'source share/bash-completion/completions/phalanx && complete -p phalanx'\n"
          "test -s share/zsh/site-functions/_phalanx\n"
          "test -s share/fish/vendor_completions.d/phalanx.fish\n",
          std::chrono::seconds(60));
  EXPECT_EQ(outcome.exit_code, 0) << outcome;
  // The last block of the page about installing removes all of it.
  std::vector<Block> page = read_blocks(README_SOURCE_DIR "/docs/guides/install.md");
  ASSERT_FALSE(page.empty());
  ASSERT_EQ(page.back().commands.front(), "cd ~/.local");
  page.back().commands.front() = "cd ~/there";
  outcome = run("find ~/there -type f | wc -l\n" + to_script(page.back()) + "find ~/there -type f\n", std::chrono::seconds(60));
  EXPECT_EQ(outcome.exit_code, 0) << outcome;
  EXPECT_GT(outcome.out.size(), 2u) << "dozens of files were there: " << outcome;
  EXPECT_EQ(outcome.out.find("/"), std::string::npos) << "what is left: " << outcome;
}

}  // namespace
