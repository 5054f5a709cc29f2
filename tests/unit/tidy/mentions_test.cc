#include <gtest/gtest.h>

#include "tidy/rules.h"

namespace phalanx::tidy {
namespace {

using Rules = std::vector<std::string>;

const std::set<std::string> kPaths = {"README.md",
                                      "src",
                                      "src/job",
                                      "src/job/runner.cc",
                                      "src/job/runner.h",
                                      "src/engine/comm/group.h",
                                      "docs",
                                      "docs/guides",
                                      "docs/guides/train.md",
                                      "tests/data/logs",
                                      "tests/fuzz/yaml.cc",
                                      "codes/checks/network/NET-MTU-HOLE.md",
                                      "codes/checks/network/NET-MTU-HOLE.zh-CN.md",
                                      "codes/runs/hang/HANG-MISMATCH.md"};

std::vector<std::string> named(const std::string& path, const std::string& text) {
  const Source tests("tests/docs/CMakeLists.txt", "add_test(NAME docs/readme COMMAND x)\n");
  std::vector<std::string> out;
  for (const Finding& finding : check_mentions(Source(path, text), known_of(kPaths, {tests}))) out.push_back(finding.what);
  return out;
}
bool clean(const std::string& text) { return named("docs/a.md", text).empty(); }

TEST(Mentions, FilesAndFoldersExist) {
  EXPECT_TRUE(clean("src/job/runner.cc, `runner.h`, job/runner.h (job/runner), docs/guides/ and docs/guides/train. tests/data/logs/"));
  EXPECT_EQ(named("docs/a.md", "see `src/job/walker.cc`"), Rules{"src/job/walker.cc does not exist"});
  EXPECT_EQ(named("docs/a.md", "(job/walker)"), Rules{"job/walker does not exist"});
  EXPECT_EQ(named("docs/a.md", "walker.h."), Rules{"walker.h does not exist"});
  EXPECT_EQ(named("docs/a.md", "nner.h"), Rules{"nner.h does not exist"}) << "a name begins where a part of a path does";
  EXPECT_EQ(named("docs/a.md", "in docs/guide/"), Rules{"docs/guide does not exist"});
  EXPECT_EQ(named("docs/a.md", "comm/team.h 和 docs/无"), (Rules{"comm/team.h does not exist"}));
}

TEST(Mentions, WhatStandsForAnything) {
  EXPECT_TRUE(clean("src/job/*.cc src/<folder>/runner.h src/job/runner.{cc,h} tests/fuzz/NAME.cc tests/fuzz/<名字>.cc"));
  EXPECT_EQ(named("docs/a.md", "src/*/walker.h"), Rules{"src/*/walker.h does not exist"});
  EXPECT_EQ(named("docs/a.md", "tests/fuss/NAME.cc"), Rules{"tests/fuss/NAME.cc does not exist"});
}

TEST(Mentions, WhatIsNoFileOfOurs) {
  EXPECT_TRUE(clean("https://example.org/src/a.cc /usr/src/a.cc ~/src/a.cc $HOME/src/x ../src/a.cc <name>.h?"));
  EXPECT_TRUE(clean("NCCL's src/transport/net_ib.cc and torch/csrc/autograd/engine.h, docs/readme is a test; and/or, jobs/walker"));
}

TEST(Mentions, CodesExist) {
  EXPECT_TRUE(clean("NET-MTU-HOLE, NET-MTU, NET-*, HANG-MISMATCH; UTF-8, NET-x and A-NET-LOSS are no codes"));
  EXPECT_EQ(named("docs/a.md", "NET-LOSS"), Rules{"there is no code NET-LOSS"});
  EXPECT_EQ(named("docs/a.md", "NET-MT"), Rules{"there is no code NET-MT"}) << "codes begin with whole parts";
}

TEST(Mentions, OnlyProseCounts) {
  EXPECT_EQ(named("src/job/a.cc", "auto x = \"walker.h\"; // see walker.h\n/* job/walker */ f(\"NET-LOSS\");\n"),
            (Rules{"walker.h does not exist", "job/walker does not exist"}));
  EXPECT_EQ(named("tests/a.sh", "cat walker.h  # not hawker.h\necho ${x#walker.h}\n"), Rules{"hawker.h does not exist"});
  EXPECT_EQ(check_mentions(Source("src/job/a.cc", "int x;\n// walker.h\n"), known_of(kPaths, {}))[0].line, 2);
}

TEST(LayersPicture, ArrowsSayWhatTheBuildFileSays) {
  const Layers layers = parse_layers(
      "phalanx_folder(base)\nphalanx_folder(words base)\nphalanx_folder(tune base)\nphalanx_folder(os base)\nphalanx_folder(wire "
      "os)\nphalanx_folder(cli wire os "
      "base)\n");
  const std::string engine =
      "engine/finetune → engine/tuning engine/train\n"
      "engine/train → engine/parallel engine/data engine/model engine/checkpoint\nengine/parallel → engine/optim\n"
      "engine/data engine/checkpoint engine/optim → engine/comm\nengine/model engine/comm → wire words\nwords tune → base\n"
      "engine/tuning → engine/parallel engine/model engine/checkpoint tune\n";
  const auto lines_of = [&](const std::string& launcher) {
    std::vector<std::string> out;
    for (const Finding& finding : check_layers_picture(Source("A.md", "# A\n## Layers\n```\n" + launcher + engine + "```\n"), layers))
      out.push_back(finding.what);
    return out;
  };
  EXPECT_EQ(lines_of("cli → wire\nwire → os\nos → base\n"), Rules{});
  EXPECT_EQ(lines_of("cli wire → os\nos → base\n").size(), 1u) << "cli does not reach wire";
  EXPECT_EQ(lines_of("cli → wire\nwire → os\nos → base wire\n").size(), 1u) << "os reaches wire";
  EXPECT_EQ(lines_of("cli → wire\nwire → os\nos → base\nhost → os\n"), Rules{"there is no folder host"});
}

}  // namespace
}  // namespace phalanx::tidy
