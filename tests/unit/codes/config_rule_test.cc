// Rules of configuration files: what the compiler of codes/ refuses. unit/doctor has the findings of the real rules.
#include "codes/config_rule.h"

#include <gtest/gtest.h>

#include "codes/code.h"
#include "codes/values.h"

namespace phalanx::codes {
namespace {

const std::set<std::string> kCodes = {"CMD-X"}, kSections = {"deepspeed"};
constexpr const char* kTexts = "english: 'a {at}'\n  chinese: 'b {at}'\n";

std::string rule(const std::string& fields) { return "- code: CMD-X\n  file: deepspeed\n  " + fields; }
std::string whole(const std::string& condition) { return rule("when: [" + condition + "]\n  " + kTexts); }

TEST(ConfigRule, IsReadWhole) {
  auto rules = parse_config_rules(
      rule("ranks: 2\n  default: a.b 0\n  when: [a.b below 3, c is true|x]\n  english: '{file}: {=a.b}, {seconds c}'\n  chinese: '{at}'\n"
           "  fix: 'echo {path}'\n") +
          "- code: CMD-X\n  file: lightning\n  keys: deepspeed\n  section: zero\n  english: '{key} {name} {meant}'\n  chinese: 'x'\n",
      kCodes, kSections);
  ASSERT_TRUE(rules.ok()) << rules.error().message;
  ASSERT_EQ(rules->size(), 2u);
  const WrittenRule& first = rules->front();
  EXPECT_EQ(first.when, "a.b below 3\nc is true|x");
  EXPECT_EQ(first.default_key, "a.b");
  EXPECT_EQ(first.ranks, 2);
  EXPECT_EQ(rules->back().section, "zero");
}

TEST(ConfigRule, RefusesWhatIsNotWhole) {
  const std::string texts = kTexts;
  struct Case {
    std::string text, error;
  };
  for (const Case& c : {
           Case{"a: b\n", "is a list of rules"},
           {"- [", "line "},
           {"- text\n", "rule 1: is no object"},
           {"- code: CMD-Y\n  file: deepspeed\n", "rule 1: CMD-Y has no page"},
           {"- code: CMD-X\n", "rule 1: file is missing, or is no text"},
           {"- code: 7\n", "rule 1: code is missing, or is no text"},
           {"- code: CMD-X\n  file: docker\n", "rule 1: \"docker\" is no kind of file"},
           {whole("a given") + "- code: CMD-X\n  file: x\n", "rule 2: \"x\" is no kind of file"},
           {rule(texts), "needs when, a list of conditions, or keys"},
           {rule("when: []\n  " + texts), "needs when"},
           {rule("when: a given\n  " + texts), "needs when"},
           {rule("when: [3]\n  " + texts), "a condition is a text"},
           {rule("when: [a given]\n  english: 'x'\n"), "chinese is missing"},
           {rule("when: [a given]\n  english: ' '\n  chinese: 'x'\n"), "english is missing"},
           {rule("wen: [a given]\n  " + texts), "wen is no field of a rule"},
           {rule("ranks: 1\n  when: [a given]\n  " + texts), "ranks is a number from 2"},
           {rule("ranks: two\n  when: [a given]\n  " + texts), "ranks is a number from 2"},
           {rule("default: a\n  when: [a given]\n  " + texts), "default is a key and a whole number"},
           {rule("default: a x\n  when: [a given]\n  " + texts), "default is a key and a whole number"},
           {rule("section: a\n  when: [a given]\n  " + texts), "section goes with keys"},
           {rule("keys: accelerate\n  " + texts), "\"accelerate\" is no section"},
           {rule("keys: deepspeed\n  when: [a given]\n  " + texts), "keys and conditions are two rules"},
           {rule("keys: deepspeed\n  section: a..b\n  " + texts), "\"a..b\" is no key"},
           {rule("when: [a given]\n  english: '{host}'\n  chinese: 'x'\n"), "{host} is no slot here"},
           {rule("when: [a given]\n  english: '{meant}'\n  chinese: 'x'\n"), "{meant} is no slot here"},
           {rule("keys: deepspeed\n  english: '{=a}'\n  chinese: 'x'\n"), "{=a} is no slot here"},
           {rule("when: [a given]\n  english: '{=}'\n  chinese: 'x'\n"), "{=} is no slot here"},
           {rule("when: [a given]\n  english: 'x'\n  chinese: '{at'\n"), "a bracket without its pair"},
           {rule("when: [a given]\n  english: 'x'\n  chinese: 'at}'\n"), "a bracket without its pair"},
           {rule("when: [a given]\n  english: 'x'\n  chinese: 'x'\n  fix: '{pid}'\n"), "{pid} is no slot here"},
           {whole("a"), "a condition is a key, a test and its value"},
           {whole("a b/c is x"), "a condition is a key"},
           {whole(".a given"), "a condition is a key"},
           {whole("a equals 3"), "no such test"},
           {whole("a is"), "the test needs a value"},
           {whole("a given now"), "the test has no value"},
           {whole("a is x||y"), "a value is empty"},
           {whole("a below three"), "not a number, or not a range"},
           {whole("a below 3.5"), "not a number, or not a range"},
           {whole("a seconds 5"), "not a number, or not a range"},
           {whole("a seconds 5..1"), "not a number, or not a range"},
           {whole("a seconds ..1"), "not a number, or not a range"},
       }) {
    auto rules = parse_config_rules(c.text, kCodes, kSections);
    ASSERT_FALSE(rules.ok()) << c.text;
    EXPECT_NE(rules.error().message.find(c.error), std::string::npos) << c.text << rules.error().message;
  }
}

TEST(ConfigRule, EveryRuleBelongsToACheck) {
  EXPECT_GT(config_rules().size(), 20u);
  for (const ConfigRule& rule : config_rules()) EXPECT_EQ(get(rule.code).group->part, Part::kChecks) << rule.code;
}

}  // namespace
}  // namespace phalanx::codes
