#include "view/explain_view.h"

#include <gtest/gtest.h>

#include "base/text.h"
#include "base/unicode.h"

namespace phalanx::view {
namespace {

using base::Language;

constexpr codes::Group kGroup{codes::Part::kRuns, "network", {"interfaces, addresses and links", "网卡、地址与链路"}};
constexpr codes::Code kCode{
    "NET-TEST",
    &kGroup,
    {"a port the job needs is taken", "任务所需的端口已被占用"},
    {"Is MASTER_PORT free on the host of rank 0?", "rank 0 所在主机的 MASTER_PORT 是否空闲？"},
    {"Rank 0 cannot bind: \"RuntimeError: The server socket has failed to listen on any local network address\".\nOthers wait.",
     "rank 0 无法绑定端口：“RuntimeError: The server socket has failed to listen on any local network address”。\n其余 rank 一直等待。"},
    {"End what holds it:\n$ ss -ltnp 'sport = :29500' and a command that is longer than any line\nor take another port.",
     "结束占用者：\n$ ss -ltnp 'sport = :29500' and a command that is longer than any line\n或换一个端口。"},
    "torch/csrc/distributed/c10d/socket.cpp"};

TEST(ExplainPage, SaysAllOfACode) {
  EXPECT_EQ(explain_page(kCode, Language::kEnglish, 60),
            "NET-TEST: a port the job needs is taken\n"
            "\n"
            "Question\n"
            "  Is MASTER_PORT free on the host of rank 0?\n"
            "\n"
            "Why\n"
            "  Rank 0 cannot bind: \"RuntimeError: The server socket has\n"
            "  failed to listen on any local network address\".\n"
            "  Others wait.\n"
            "\n"
            "What to do\n"
            "  End what holds it:\n"
            "  $ ss -ltnp 'sport = :29500' and a command that is longer than any line\n"
            "  or take another port.\n"
            "\n"
            "Source\n"
            "  torch/csrc/distributed/c10d/socket.cpp\n");
  std::string chinese = explain_page(kCode, Language::kChinese, 60);
  EXPECT_TRUE(chinese.starts_with("NET-TEST: 任务所需的端口已被占用\n\n检查内容\n")) << chinese;
}

TEST(ExplainPage, SaysHowGraveACheckTakesItsCode) {
  std::string page = explain_page(codes::get("GPU-NONE"), Language::kEnglish, 80);
  EXPECT_TRUE(page.starts_with("GPU-NONE: a host has no GPU\nerror (a job will fail or hang); GPUs and their driver\n\nQuestion\n"))
      << page;
  EXPECT_NE(page.find("\nWhy it matters\n"), std::string::npos);
}

// Of every code there is, in both languages: only a command may be wider than the terminal.
TEST(ExplainPage, FitsTheTerminal) {
  std::vector<codes::Code> every(codes::all().begin(), codes::all().end());
  every.push_back(kCode);
  for (const codes::Code& code : every)
    for (Language language : {Language::kEnglish, Language::kChinese})
      for (size_t columns : {40u, 60u, 80u, 100u}) {
        std::string page = explain_page(code, language, columns);
        EXPECT_TRUE(base::is_utf8(page)) << code.name;
        for (std::string_view line : base::split_lines(page)) {
          // A name or message without a blank cannot be broken.
          bool one_word = base::split_words(line).size() <= 1;
          if (line.starts_with("  $ ") || one_word) continue;
          EXPECT_LE(base::display_width(line), columns) << code.name << ": " << line;
        }
      }
}

TEST(ExplainList, HasEveryCodeOnceAndFits) {
  for (Language language : {Language::kEnglish, Language::kChinese})
    for (size_t columns : {40u, 80u, 100u}) {
      std::string list = explain_list("", language, columns);
      for (std::string_view line : base::split_lines(list)) EXPECT_LE(base::display_width(line), columns) << line;
      for (const codes::Code& code : codes::all()) EXPECT_NE(list.find("  " + std::string(code.name)), std::string::npos) << code.name;
    }
  EXPECT_EQ(explain_list("NO-SUCH-", Language::kEnglish, 80), "");
}

TEST(CodesMarkdown, HasAPageForEveryCode) {
  for (Language language : {Language::kEnglish, Language::kChinese}) {
    std::string page = codes_markdown(language);
    EXPECT_TRUE(base::is_utf8(page));
    EXPECT_EQ(page.find("\n\n\n"), std::string::npos);
    for (const codes::Code& code : codes::all())
      EXPECT_NE(page.find("\n### " + std::string(code.name) + "\n"), std::string::npos) << code.name;
  }
}

}  // namespace
}  // namespace phalanx::view
