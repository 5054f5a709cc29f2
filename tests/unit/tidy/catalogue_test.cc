// The Chinese texts: what compile_words refuses, and what the style test finds between src/ and words/.
#include <gtest/gtest.h>

#include "compile_words/catalogue.h"
#include "tidy/rules.h"

namespace phalanx::tidy {
namespace {

constexpr const char* kYaml = "- en: \"{} is down\"\n  zh: \"{} 未启用\"\n";

std::vector<std::string> findings(const std::string& source, const std::string& yaml = kYaml) {
  std::vector<std::string> out;
  for (const Finding& finding : check_catalogue({Source("src/os/x.cc", source), Source("words/zh-CN/os.yaml", yaml)}))
    out.push_back(finding.path + ": " + finding.what);
  return out;
}
using All = std::vector<std::string>;

TEST(Catalogue, EveryTextHasItsChineseAndEveryChineseItsText) {
  EXPECT_EQ(findings("a = tr(\"{} is down\", x);"), All{});
  EXPECT_EQ(findings("a = tr(language(), \"{} is \"\n   \"down\", x);"), All{});
  EXPECT_EQ(findings("Text{\"{} is down\"}; Text kNone{\"{}\"}; Text{};"), All{});
  EXPECT_EQ(findings("constexpr Phrase<int, std::string> kDown{\"{} is down\"};"), All{});
  EXPECT_EQ(findings("a = tr(\"{} is down\", x); b = tr(\"{} is up\", x);"),
            All{"src/os/x.cc: \"{} is up\" has no Chinese in words/zh-CN/"});
  EXPECT_EQ(findings("a = tr(\"{}\", x);"), All{"words/zh-CN/os.yaml: \"{} is down\" is not in src/"});
  EXPECT_EQ(findings("a = tr(\"{} is down\", x); b = tr(text, x);"),
            All{"src/os/x.cc: a text is a literal right here, where its Chinese can be looked for"});
}

// What is looked up when it is shown stands in src/ as well, but not in tr.
TEST(Catalogue, ATextOfAnErrorMayStandAnywhere) {
  auto findings_of = [](const std::string& file) {
    return check_catalogue({Source("src/os/x.cc", "fail(\"no such \"\n  \"folder: {}\");"),
                            Source(file, "- en: \"no such folder: {}\"\n  zh: \"没有 {}\"\n")});
  };
  EXPECT_EQ(findings_of("words/zh-CN/said.yaml").size(), 0u);
  EXPECT_EQ(findings_of("words/zh-CN/os.yaml").size(), 1u);
  EXPECT_EQ(check_catalogue({Source("src/os/x.cc", "fail(\"no\");"), Source("words/zh-CN/said.yaml", kYaml)}).size(), 1u);
}

TEST(Catalogue, AnArgumentOnlyForTheChineseIsGiven) {
  const std::string yaml = "- en: \" and {} more\"\n  zh: \" 等 {1} 台\"\n";
  EXPECT_EQ(findings("a = tr(\" and {} more\", x, chinese_only(y));", yaml), All{});
  EXPECT_EQ(findings("a = tr(\" and {} more\", x);", yaml),
            All{"src/os/x.cc: the Chinese of \" and {} more\" names an argument that is not given"});
}

TEST(Catalogue, TheChineseFitsTheArguments) {
  EXPECT_TRUE(words::fits("{} rank{} on {}", "{2} 上的 {0} 个 rank").ok());
  EXPECT_TRUE(words::fits("{:.1f} s", "{:.1f} 秒").ok());
  EXPECT_TRUE(words::fits("{{}} {}", "{{}} {}").ok());
  EXPECT_FALSE(words::fits("{} on {}", "{}").ok());
  EXPECT_FALSE(words::fits("{} on {}", "{3} {0}").ok());
  EXPECT_FALSE(words::fits("{:.1f} s", "{} 秒").ok());
  EXPECT_FALSE(words::fits("{} on {}", "{0} {}").ok());
  EXPECT_FALSE(words::fits("{}", "{").ok());
}

TEST(Catalogue, AFileIsAListOfPairs) {
  words::Catalogue all;
  EXPECT_TRUE(words::add_file("a.yaml", kYaml, &all).ok());
  EXPECT_EQ(all.at("{} is down").chinese, "{} 未启用");
  EXPECT_EQ(words::add_file("b.yaml", kYaml, &all).error().message, "\"{} is down\": is in a.yaml already");
  EXPECT_FALSE(words::add_file("c.yaml", "en: a\nzh: b\n", &all).ok());
  EXPECT_FALSE(words::add_file("c.yaml", "- en: a\n", &all).ok());
  ASSERT_TRUE(words::add_file("d.yaml", "- en: a\n  zh: 甲\n", &all).ok());
  EXPECT_EQ(words::table_text(all), std::string("a\0{} is down\0甲\0{} 未启用\0", 30));
}

TEST(Catalogue, EverySentenceOfAnErrorHasItsChinese) {
  auto missing = [](const std::string& source, const char* path = "src/os/x.cc") {
    std::string out;
    for (const Finding& finding : check_errors({Source(path, source), Source("words/zh-CN/said.yaml", kYaml)})) out += finding.what + "\n";
    return out;
  };
  constexpr const char* kNone = "\"unknown key {}\" has no Chinese in words/zh-CN/said.yaml\n";
  EXPECT_EQ(missing("return fail(kind, fmt::format(\"{} is down\", x));"), "");
  EXPECT_EQ(missing("return fail(kind, fmt::format(\"unknown key {}\", x));"), kNone);
  EXPECT_EQ(missing("return fail(kind, x).because(a ? \"{} is down\" : \"unknown key {}\");"), kNone);
  EXPECT_EQ(missing("base::Error wrong(std::string why) {}\nreturn wrong(\"unknown key {}\");"), kNone);
  EXPECT_EQ(missing("auto wrong = [&](auto why) { return base::fail(kind, why); };\nreturn wrong(\"unknown key {}\");"), kNone);
  EXPECT_EQ(missing("log(\"unknown key {}\"); // fail(\"unknown key {}\")"), "");
  EXPECT_EQ(missing("e.with_hint(\"phalanx help run\"); e.with_hint(\"ls -l /data\");"), "");
  EXPECT_EQ(missing("return fail(\"unknown key {}\");", "src/codes/page.cc"), "");
  // In the folders whose texts are for people, a longer sentence counts wherever it stands; commands do not.
  constexpr const char* kTable = "Row{\"{0}: the host key is unknown\", \"sudo ip link set dev {} mtu {}\"}";
  EXPECT_NE(missing(kTable, "src/hosts/x.cc"), "");
  EXPECT_EQ(missing(kTable, "src/machine/x.cc"), "");
}

TEST(Catalogue, ChineseIsNowhereElse) {
  auto count = [](const char* path, const char* text) { return check_chinese(Source(path, text)).size(); };
  EXPECT_EQ(count("src/os/x.cc", "say(\"超时\");\nsay(\"timeout\");\n"), 1u);
  EXPECT_EQ(count("src/os/x.cc", "a = \"：\";\n"), 1u);
  EXPECT_EQ(count("src/os/x.cc", "a = \"…–×\";\n"), 0u);
  EXPECT_EQ(count("src/base/wrap.cc", "a = \"，\";\n"), 0u);
  EXPECT_EQ(count("tests/x.cc", "say(\"超时\");\n"), 0u);
}

TEST(Catalogue, TheChineseOfTheCatalogueHasFullWidthPunctuation) {
  auto count = [](const std::string& zh) {
    return check_words(Source("words/zh-CN/os.yaml", "- en: \"a\"\n  zh: \"" + zh + "\"\n")).size();
  };
  EXPECT_EQ(count("超时，主机没有应答（{}）"), 0u);
  EXPECT_EQ(count("超时,主机没有应答"), 1u);
  EXPECT_EQ(count("您的运行"), 1u);
}

}  // namespace
}  // namespace phalanx::tidy
