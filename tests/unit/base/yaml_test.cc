// YAML as other programs' readers take it, and text that means harm.
#include "base/yaml.h"

#include <gtest/gtest.h>

namespace phalanx::base {
namespace {

Json value(std::string_view text) {
  auto yaml = parse_yaml(text);
  EXPECT_TRUE(yaml.ok()) << (yaml.ok() ? "" : yaml.error().message);
  return yaml.ok() ? yaml->value : Json();
}
std::string error(const std::string& text) {
  auto yaml = parse_yaml(text);
  return yaml.ok() ? "" : yaml.error().message;
}

TEST(Yaml, PlainWordsBecomeWhatPyYamlMakesOfThem) {
  Json v = value(
      "a: 1\nb: -2.5\nc: yes\nd: 'yes'\ne: ~\nf:\ng: 1e-4\nh: 0x1f\ni: 017\nj: \"10\"\nk: NO\nl: 1_000\nm: 10.1.0.1\nn: .inf\no: 1.\n");
  EXPECT_EQ(v["a"], 1);
  EXPECT_EQ(v["b"], -2.5);
  EXPECT_EQ(v["c"], true);
  EXPECT_EQ(v["d"], "yes");
  EXPECT_TRUE(v["e"].is_null());
  EXPECT_TRUE(v["f"].is_null());
  EXPECT_EQ(v["g"], 1e-4);
  EXPECT_EQ(v["h"], 31);
  EXPECT_EQ(v["i"], 15);
  EXPECT_EQ(v["j"], "10");
  EXPECT_EQ(v["k"], false);
  EXPECT_EQ(v["l"], 1000);
  EXPECT_EQ(v["m"], "10.1.0.1");
  EXPECT_EQ(v["n"], ".inf");
  EXPECT_EQ(v["o"], 1.0);
  EXPECT_EQ(value("x: 0\ny: '2'\nz: 08\nw: 99999999999999999999\n")["x"], 0);
  EXPECT_EQ(value("t: 00:10:00\n")["t"], "00:10:00");
}

TEST(Yaml, TheTrainerOfAFieldNote) {
  auto yaml = parse_yaml(
      "trainer:\n  accelerator: gpu\n  strategy:\n    class_path: a.DDPStrategy\n    init_args:\n      timeout: \"00:10:00\"\n"
      "  devices: [0]\n  num_nodes: 2\n");
  ASSERT_TRUE(yaml.ok());
  EXPECT_EQ(yaml->value["trainer"]["devices"], Json::array({0}));
  EXPECT_EQ(yaml->value["trainer"]["num_nodes"], 2);
  EXPECT_EQ(yaml->lines["trainer.strategy.init_args.timeout"], 6);
  EXPECT_EQ(yaml->lines["trainer.num_nodes"], 8);
}

TEST(Yaml, KeysGivenTwiceAreNamedAndTheLastCounts) {
  auto yaml = parse_yaml("a: 1\nb:\n  c: 1\n  c: 2\na: 3\n");
  ASSERT_TRUE(yaml.ok());
  EXPECT_EQ(yaml->twice, (std::vector<std::string>{"b.c", "a"}));
  EXPECT_EQ(yaml->value["a"], 3);
  EXPECT_EQ(yaml->value["b"]["c"], 2);
}

TEST(Yaml, AliasesAndMerges) {
  Json v = value("base: &b {x: 1, y: [1, 2]}\nmine:\n  <<: *b\n  x: 2\nlist: *b\n");
  EXPECT_EQ(v["mine"]["x"], 2);
  EXPECT_EQ(v["mine"]["y"], Json::array({1, 2}));
  EXPECT_EQ(v["list"]["x"], 1);
  EXPECT_TRUE(parse_yaml("base: &b {x: 1}\nmine:\n  <<: *b\n  x: 2\n")->twice.empty());
}

TEST(Yaml, AnAliasBombIsRefused) {
  std::string bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 10; ++i) {
    std::string above = "*a" + std::to_string(i - 1);
    bomb += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" + above;
    for (int k = 0; k < 9; ++k) bomb += ", " + above;
    bomb += "]\n";
  }
  EXPECT_NE(error(bomb).find("more than 100000 values"), std::string::npos) << error(bomb);
  EXPECT_NE(error("a: &a [*a]\n"), "");
}

TEST(Yaml, DepthBytesAndBrokenText) {
  EXPECT_NE(error(std::string(2000, '[')), "");
  EXPECT_NE(error(std::string(100, '[') + std::string(100, ']')).find("nested deeper"), std::string::npos);
  EXPECT_NE(error(std::string((1 << 20) + 1, 'a')).find("larger than the limit"), std::string::npos);
  EXPECT_NE(error("a: [1, 2\nb: 3\n").find("line "), std::string::npos);
  EXPECT_NE(error("a: 1\n\tb: 2\n"), "");
  EXPECT_NE(error("? [x, y]\n: 1\n").find("key must be one word"), std::string::npos);
}

TEST(Yaml, EmptyAndManyDocuments) {
  EXPECT_TRUE(value("").is_null());
  EXPECT_TRUE(value("# nothing\n").is_null());
  EXPECT_EQ(value("just words\n"), "just words");
  auto two = parse_yaml("a: 1\n---\na: 2\n");
  ASSERT_TRUE(two.ok());
  EXPECT_TRUE(two->more_documents);
  EXPECT_EQ(two->value["a"], 1);
}

TEST(YamlTree, WordsAsTheyStandWithTheirPlaces) {
  auto root = parse_yaml_tree("# c\na: 1.10\nb:\n  - yes\n  - {c: '0x1f'}\nd: ~\n");
  ASSERT_TRUE(root.ok()) << root.error().message;
  ASSERT_EQ(root->keys.size(), 3u);
  EXPECT_EQ(root->items[0].text, "1.10");
  EXPECT_EQ(root->items[1].items[0].text, "yes");
  EXPECT_EQ(root->items[1].items[0].line, 4);
  EXPECT_EQ(root->items[1].items[0].column, 5);
  EXPECT_EQ(root->items[1].items[1].keys[0].text, "c");
  EXPECT_EQ(root->items[1].items[1].items[0].text, "0x1f");
  EXPECT_EQ(root->items[2].kind, YamlNode::Kind::kNull);
  EXPECT_EQ(parse_yaml_tree("")->kind, YamlNode::Kind::kNull);
}

TEST(YamlTree, RefusesWhatParseYamlTolerates) {
  auto refusal = [](std::string_view text) {
    auto root = parse_yaml_tree(text);
    return root.ok() ? "none" : root.error().message;
  };
  EXPECT_EQ(refusal("a: 1\na: 2\n"), "line 2, column 1: \"a\" is given twice");
  EXPECT_EQ(refusal("a: &b 1\n"), "line 1, column 4: anchors (&name) are not supported here");
  EXPECT_EQ(refusal("a: !!int 1\n"), "line 1, column 4: tags (!name) are not supported here");
  EXPECT_EQ(refusal("a: 1\nb: 'x\nc: 2\n"), "line 2, column 4: the quote is not closed");
  EXPECT_EQ(refusal("a: 1\n---\nb: 2\n"), "there is a second document (after '---'); one is expected");
  EXPECT_EQ(refusal(std::string_view("a: 1\n\0", 6)), "line 2: a zero byte: this is no text in UTF-8");
  EXPECT_EQ(refusal("a: [[[[[[[[[x]]]]]]]]]"), "line 1, column 11: nested deeper than 8 levels");
}

}  // namespace
}  // namespace phalanx::base
