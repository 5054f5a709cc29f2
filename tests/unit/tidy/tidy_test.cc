// Every rule of the style test, with a text that must trip it and one that must not.
#include <gtest/gtest.h>

#include <algorithm>

#include "base/try.h"
#include "tidy/rules.h"

namespace phalanx::tidy {
namespace {

std::vector<std::string> rules(const std::vector<Finding>& findings) {
  std::vector<std::string> out;
  for (const Finding& finding : findings) out.push_back(finding.rule);
  return out;
}
using Rules = std::vector<std::string>;

std::string repeat(const std::string& text, int times) {
  std::string out;
  for (int i = 0; i < times; ++i) out += text;
  return out;
}

Rules text_rules(const std::string& path, const std::string& text) { return rules(check_text(Source(path, text))); }
Rules function_rules(const std::string& text) { return rules(check_functions(Source("src/os/x.cc", text))); }

TEST(Blank, CommentsStringsAndCharacters) {
  EXPECT_EQ(blank_comments_and_strings("a // b\nc"), "a     \nc");
  EXPECT_EQ(blank_comments_and_strings("a /* b\n */ c"), "a     \n    c");
  EXPECT_EQ(blank_comments_and_strings(R"(f("x\"{", '{');)"), R"(f("    ", ' ');)");
  EXPECT_EQ(blank_comments_and_strings("R\"x({\")})x\";"), "           ;");
  EXPECT_EQ(blank_comments_and_strings("1'000'000 {"), "1'000'000 {");
  EXPECT_EQ(blank_comments_and_strings("\"// not a comment\" x"), "\"                \" x");
}

TEST(Text, LineLength) {
  EXPECT_EQ(text_rules("x", std::string(140, 'a') + "\n"), Rules{});
  EXPECT_EQ(text_rules("x", std::string(141, 'a') + "\n"), Rules{"line-length"});
  EXPECT_EQ(text_rules("x", repeat("é", 140) + "\n"), Rules{});
  EXPECT_EQ(text_rules("README.md", std::string(500, 'a') + "\n"), Rules{});
}

TEST(Text, FileLength) {
  EXPECT_EQ(text_rules("src/os/a.h", repeat("\n", 200)), Rules{});
  EXPECT_EQ(text_rules("src/os/a.h", repeat("\n", 201)), Rules{"file-length"});
  EXPECT_EQ(text_rules("src/os/a.cc", repeat("\n", 400)), Rules{});
  EXPECT_EQ(text_rules("src/os/a.cc", repeat("\n", 401)), Rules{"file-length"});
  EXPECT_EQ(text_rules("src/main_phalanx.cc", repeat("\n", 100)), Rules{});
  EXPECT_EQ(text_rules("src/main_phalanx.cc", repeat("\n", 101)), Rules{"file-length"});
  EXPECT_EQ(text_rules("docs/a.md", repeat("\n", 1000)), Rules{});
}

TEST(Text, WhiteSpace) {
  EXPECT_EQ(text_rules("x", "a\n"), Rules{});
  EXPECT_EQ(text_rules("x", "a \n"), Rules{"white-space"});
  EXPECT_EQ(text_rules("x", "a\t\n"), Rules{"white-space"});
  EXPECT_EQ(text_rules("x", "a\r\n"), Rules{"crlf"});
  EXPECT_EQ(text_rules("x", "a"), Rules{"newline"});
  EXPECT_EQ(text_rules("x", ""), Rules{});
}

TEST(Names, FilesAndFolders) {
  EXPECT_EQ(rules(check_names(Source("src/utils/fd.h", ""))), Rules{"name"});
  EXPECT_EQ(rules(check_names(Source("src/os/fd_helpers.h", ""))), Rules{"name"});
  EXPECT_EQ(rules(check_names(Source("src/os/misc.cc", ""))), Rules{"name"});
  EXPECT_EQ(rules(check_names(Source("src/os/fd.h", ""))), Rules{});
  EXPECT_EQ(rules(check_names(Source("src/os/uncommon.h", ""))), Rules{});
}

TEST(Names, Types) {
  EXPECT_EQ(rules(check_names(Source("src/os/a.h", "class HostManager {};"))), Rules{"name"});
  EXPECT_EQ(rules(check_names(Source("src/os/a.h", "enum class CommonKind {};"))), Rules{"name"});
  EXPECT_EQ(rules(check_names(Source("src/os/a.h", "struct [[nodiscard]] Misc {};"))), Rules{"name"});
  EXPECT_EQ(rules(check_names(Source("src/os/a.h", "namespace utils {}"))), Rules{"name"});
  EXPECT_EQ(rules(check_names(Source("src/os/a.h", "class Host {};  // class HostManager"))), Rules{});
}

TEST(Functions, Length) {
  std::string body = repeat("  x();\n", 67);
  EXPECT_EQ(function_rules("int f() {\n" + body + "}\n"), Rules{});
  EXPECT_EQ(function_rules("int f() {\n" + body + "  x();\n}\n"), Rules{"function-length"});
}

TEST(Functions, AreFoundInTheirSurroundings) {
  std::string body = repeat("  x();\n", 80);
  EXPECT_EQ(function_rules("namespace a {\nclass B : public C {\n void f() const {\n" + body + "}\n};\n}\n"), Rules{"function-length"});
  EXPECT_EQ(function_rules("A::A(int x)\n : a_{x}, b_(x) {\n" + body + "}\n"), Rules{"function-length"});
  EXPECT_EQ(function_rules("template <class T, int n = 3>\nvoid f(T t = {}) {\n" + body + "}\n"), Rules{"function-length"});
  EXPECT_EQ(function_rules("struct stat f(int fd) {\n" + body + "}\n"), Rules{"function-length"});
  EXPECT_EQ(function_rules("TEST(A, B) {\n" + body + "}\n"), Rules{"function-length"});
  EXPECT_EQ(function_rules("int f() {\n auto g = [] {\n" + body + "};\n}\n"), Rules{"function-length"});
}

TEST(Functions, OtherBlocksAreNotFunctions) {
  std::string body = repeat("  int x = f();\n", 80);
  EXPECT_EQ(function_rules("struct A {\n" + body + "};\n"), Rules{});
  EXPECT_EQ(function_rules("namespace a {\n" + body + "}\n"), Rules{});
  EXPECT_EQ(function_rules("struct alignas(64) A : B {\n" + body + "};\n"), Rules{});
  EXPECT_EQ(function_rules("const T kTable[] = {\n" + repeat("{1, 2},\n", 90) + "};\n"), Rules{});
  EXPECT_EQ(function_rules("// f() {\n" + body + "// }\n"), Rules{});
  EXPECT_EQ(function_rules("#define F(x) \\\n  do { \\\n  (x)\n" + body), Rules{});
}

TEST(Header, PragmaOnceAndUsingNamespace) {
  EXPECT_EQ(rules(check_header(Source("src/os/a.h", "#pragma once\nint f();\n"))), Rules{});
  EXPECT_EQ(rules(check_header(Source("src/os/a.h", "// #pragma once\nint f();\n"))), Rules{"pragma-once"});
  EXPECT_EQ(rules(check_header(Source("src/os/a.h", "#pragma once\nusing namespace std;\n"))), Rules{"using-namespace"});
  EXPECT_EQ(rules(check_header(Source("src/os/a.cc", "using namespace std;\n"))), Rules{});
}

TEST(Banned, Markers) {
  EXPECT_EQ(rules(check_banned(Source("tests/a.cc",
                                      "// TO"
                                      "DO: later\n"))),
            Rules{"marker"});
  EXPECT_EQ(rules(check_banned(Source("docs/a.md",
                                      "FIX"
                                      "ME\n"))),
            Rules{"marker"});
  EXPECT_EQ(rules(check_banned(Source("src/os/a.cc",
                                      "// XX"
                                      "X\n"))),
            Rules{"marker"});
  EXPECT_EQ(rules(check_banned(Source("src/os/a.cc", "mkdtemp(\"/tmp/phalanx-XXXXXX\");\n"))), Rules{});
}

TEST(Banned, PhrasesThatAMessageCannotGoOnWith) {
  auto phrase = [](const char* text) { return rules(check_banned(Source("src/engine/a.cc", text))); };
  EXPECT_EQ(phrase("TRY(agree(group, open(), \"the log was opened\"));\n"), Rules{"agree-phrase"});
  EXPECT_EQ(phrase("TRY(agree(group, open(),\n          \"opening the log\"));\n"), Rules{});
  EXPECT_EQ(phrase("Status agree(Group& group, Status mine);\nconst char* a = \"the log\";\n"), Rules{});
}

TEST(Words, OfStringsInOurSources) {
  auto words = [](const std::string& line) { return rules(check_words(Source("src/os/x.cc", line + "\n"))); };
  EXPECT_EQ(words("say(\"resumed after step {}\");"), Rules{});
  EXPECT_EQ(words("say(\"resumed behind step {}\");"), Rules{"words"});
  EXPECT_EQ(words("say(\"killed {} processes left behind by the ranks\");"), Rules{});
  EXPECT_EQ(words("// behind this, please"), Rules{});
  EXPECT_EQ(words("say(R\"(#please wait)\");"), Rules{});
  EXPECT_EQ(words("say(\"please wait\");"), Rules{"words"});
  EXPECT_EQ(words("say(\"the run goes \"\n    \"on without it\");"), Rules{"words"});  // over two literals
  EXPECT_EQ(words("say(\"a frame that makes no sense\");"), Rules{"words"});
  EXPECT_EQ(words("say(\"it works! really\");"), Rules{"words"});
  EXPECT_EQ(words("say(\"#!/bin/sh -e\");"), Rules{});
  EXPECT_EQ(words("say(\"two  spaces\");"), Rules{"words"});
  EXPECT_EQ(words("say(\"step {}  loss {}\\n  because\");"), Rules{});
  EXPECT_EQ(rules(check_words(Source("tests/x.cc", "say(\"please wait\");\n"))), Rules{});
  EXPECT_EQ(words("say(fmt::format(\"killed {} processes\", n));"), Rules{"words"});
  EXPECT_EQ(words("say(base::counted(\"killed {} processes\", n));"), Rules{});
  EXPECT_EQ(words("say(fmt::format(\"rank {} starts\", n));"), Rules{});
}

TEST(Words, NoFullStopAtTheEndOfAnErrorsLine) {
  auto words = [](const std::string& line) { return rules(check_words(Source("src/os/x.cc", line + "\n"))); };
  EXPECT_EQ(words("fail(ErrorKind::kUsage, \"no verb given.\");"), Rules{"words"});
  EXPECT_EQ(words("e.because(fmt::format(\"rank {} has exited.\", 1));"), Rules{"words"});
  EXPECT_EQ(words("e.with_hint(\"phalanx run ...\");"), Rules{});
  EXPECT_EQ(words("page(\"Prints the version and the hash.\");"), Rules{});
}

TEST(Banned, MachinesAndSleep) {
  EXPECT_EQ(rules(check_banned(Source("src/os/a.cc",
                                      "\"/ro"
                                      "ot/x\"\n"))),
            Rules{"machine"});
  EXPECT_EQ(rules(check_banned(Source("src/os/a.cc",
                                      "\"/wo"
                                      "rk/x\"\n"))),
            Rules{"machine"});
  EXPECT_EQ(rules(check_banned(Source("src/os/a.cc",
                                      "\"net"
                                      "work/x\"\n"))),
            Rules{});
  EXPECT_EQ(rules(check_banned(Source("tests/a.cc",
                                      "\"/ro"
                                      "ot/x\"\n"))),
            Rules{});
  EXPECT_EQ(rules(check_banned(Source("src/job/a.cc", "usleep(3);\n"))), Rules{"sleep"});
  EXPECT_EQ(rules(check_banned(Source("src/job/a.cc", "// no usleep here\n"))), Rules{});
  EXPECT_EQ(rules(check_banned(Source("src/os/a.cc", "nanosleep(&t, nullptr);\n"))), Rules{});
}

constexpr const char* kPicture = "phalanx_folder(base)\nphalanx_folder(os base)\nphalanx_folder(wire os)\nphalanx_folder(cli wire)\n";

Rules include_rules(const std::string& path, const std::string& included) {
  return rules(check_includes(Source(path, "#include \"" + included + "\"\n"), parse_layers(kPicture)));
}

TEST(Layers, PictureIsReadBottomUp) {
  Layers layers = parse_layers(kPicture);
  EXPECT_TRUE(layers.findings.empty());
  EXPECT_EQ(layers.below["cli"], (std::set<std::string>{"base", "cli", "os", "wire"}));
  EXPECT_EQ(rules(parse_layers("phalanx_folder(os base)\nphalanx_folder(base)\n").findings), Rules{"layer"});
}

TEST(Layers, LauncherIncludesPointDown) {
  EXPECT_EQ(include_rules("src/os/fd.h", "base/result.h"), Rules{});
  EXPECT_EQ(include_rules("src/os/fd.h", "os/clock.h"), Rules{});
  EXPECT_EQ(include_rules("src/os/fd.h", "wire/frame.h"), Rules{"layer"});
  EXPECT_EQ(include_rules("src/cli/run.cc", "base/result.h"), Rules{});
  EXPECT_EQ(include_rules("src/cli/run.cc", "engine/train/loop.h"), Rules{"layer"});
  EXPECT_EQ(include_rules("src/os/fd.h", "result.h"), Rules{"layer"});
  EXPECT_EQ(include_rules("src/unknown/fd.h", "base/result.h"), (Rules{"layer", "layer"}));
  EXPECT_EQ(include_rules("src/main_phalanx.cc", "cli/main.h"), Rules{});
  EXPECT_EQ(include_rules("src/main_phalanx.cc", "engine/train/loop.h"), Rules{"layer"});
  EXPECT_EQ(include_rules("tests/unit/os/fd_test.cc", "cli/main.h"), Rules{});
  EXPECT_TRUE(check_includes(Source("src/os/fd.h", "// #include \"cli/main.h\"\n"), parse_layers(kPicture)).empty());
}

TEST(Layers, Engine) {
  EXPECT_EQ(include_rules("src/engine/train/loop.cc", "engine/parallel/ddp.h"), Rules{});
  EXPECT_EQ(include_rules("src/engine/train/loop.cc", "wire/rank_event.h"), Rules{});
  EXPECT_EQ(include_rules("src/engine/train/loop.cc", "cli/flags/flags.h"), Rules{"layer"});
  EXPECT_EQ(include_rules("src/engine/model/gpt.cc", "engine/parallel/ddp.h"), Rules{"layer"});
  EXPECT_EQ(include_rules("src/engine/model/gpt.cc", "engine/model/linear.h"), Rules{});
  EXPECT_EQ(include_rules("src/engine/parallel/ddp.cc", "engine/comm/group.h"), Rules{});
  EXPECT_EQ(include_rules("src/engine/comm/group.cc", "engine/parallel/ddp.h"), Rules{"layer"});
  EXPECT_EQ(include_rules("src/engine/comm/group.cc", "engine/compat.h"), Rules{});
  EXPECT_EQ(include_rules("src/main_train.cc", "engine/train/loop.h"), Rules{});
  EXPECT_EQ(include_rules("src/main_train.cc", "cli/flags/flags.h"), Rules{"layer"});
}

TEST(Header, DeclaresInOurNamespaceAndWithOurPrefix) {
  EXPECT_EQ(rules(check_namespace(Source("src/os/a.cc", "#include <x>\nnamespace phalanx::os {\n}\nnamespace re2 {\n}\n"))), Rules{});
  EXPECT_EQ(rules(check_namespace(Source("src/os/a.cc", "#include <x>\nnamespace os {\n}\n"))), Rules{"namespace"});
  EXPECT_EQ(rules(check_namespace(Source("src/os/a.h", "#pragma once\n#define PHALANX_A 1\n"))), Rules{});
  EXPECT_EQ(rules(check_namespace(Source("src/os/a.h", "#pragma once\n#define A 1\n"))), Rules{"macro"});
  EXPECT_EQ(rules(check_namespace(Source("src/os/a.cc", "#include <x>\n#define A 1\n"))), Rules{});
}

TEST(House, NoFolderIsTooFull) {
  std::set<std::string> paths = {"src/os", "docs"};
  for (int i = 0; i < kMaxFolderFiles; ++i) paths.insert("src/os/file" + std::to_string(i) + ".cc");
  for (int i = 0; i < 3 * kMaxFolderFiles; ++i) paths.insert("docs/page" + std::to_string(i) + ".md");
  EXPECT_EQ(rules(check_folder_sizes(paths)), Rules{});
  paths.insert("src/os/loop/one.h");
  EXPECT_EQ(rules(check_folder_sizes(paths)), Rules{});
  paths.insert("src/os/one_more.h");
  EXPECT_EQ(rules(check_folder_sizes(paths)), Rules{"folder-size"});
}

TEST(House, EveryFolderIsInThePictureWithAWord) {
  std::string picture = "# x\n```\nsrc/\n  os/     system calls\n  engine/  tensors\n    comm/  groups\ntests/\n  unit/os/  one\n```\n";
  std::set<std::string> folders = {"src/os", "src/engine", "src/engine/comm", "tests/unit/os"};
  EXPECT_EQ(rules(check_house(Source("HACKING.md", picture), folders)), Rules{});
  EXPECT_EQ(rules(check_house(Source("HACKING.md", "```\nsrc/\n  os/\n```\n"), {"src/os"})), Rules{"house"});
  EXPECT_EQ(rules(check_house(Source("HACKING.md", "```\nsrc/\n  os/ x\n```\n"), {"src/os", "src/wire"})), Rules{"house"});
  EXPECT_EQ(rules(check_house(Source("HACKING.md", "```\nsrc/\n  os/ x\n  gone/ x\n```\n"), {"src/os"})), Rules{"house"});
}

TEST(Readmes, StayInStep) {
  Source english("README.md", "# A\n## B\n```sh\nls\n# not a heading\n```\n");
  EXPECT_EQ(rules(check_readmes(english, Source("zh", "# 甲\n## 乙\n```sh\nls\n# not a heading\n```\n"))), Rules{});
  EXPECT_EQ(rules(check_readmes(english, Source("zh", "# 甲\n### 乙\n```sh\nls\n# not a heading\n```\n"))), Rules{"readme"});
  EXPECT_EQ(rules(check_readmes(english, Source("zh", "# 甲\n```sh\nls\n# not a heading\n```\n"))), Rules{"readme"});
  EXPECT_EQ(rules(check_readmes(english, Source("zh", "# 甲\n## 乙\n```sh\nls -l\n# not a heading\n```\n"))), Rules{"readme"});
}

TEST(Links, LeadSomewhere) {
  std::set<std::string> paths = {"docs", "docs/a.md", "docs/design/b.md", "README.md"};
  auto links = [&paths](const std::string& text) { return rules(check_links(Source("docs/design/b.md", text), paths)); };
  EXPECT_EQ(links("[a](../a.md) [a](../a.md#part) ![r](../../README.md) [d](..)\n"), Rules{});
  EXPECT_EQ(links("[site](https://example.org/x) [here](#part)\n"), Rules{});
  EXPECT_EQ(links("[gone](../gone.md)\n"), Rules{"link"});
  EXPECT_EQ(rules(check_links(Source("src/os/a.cc", "a[0](gone)"), paths)), Rules{});
}

}  // namespace
}  // namespace phalanx::tidy
