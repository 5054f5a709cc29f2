#include "view/explain_view.h"

#include <gtest/gtest.h>

#include "base/text.h"
#include "base/unicode.h"

namespace view {
namespace {

using base::Language;

constexpr doctor::Row kRow{
    "NET-TEST",
    doctor::Severity::kError,
    doctor::Group::kNetwork,
    {"a port the job needs is taken", "任务所需的端口已被占用"},
    {"Is MASTER_PORT free on the host of rank 0?", "rank 0 所在主机的 MASTER_PORT 是否空闲？"},
    {"Rank 0 cannot bind: \"RuntimeError: The server socket has failed to listen on any local network address\".\nOthers wait.",
     "rank 0 无法绑定端口：“RuntimeError: The server socket has failed to listen on any local network address”。\n其余 rank 一直等待。"},
    {"End what holds it:\n$ ss -ltnp 'sport = :29500' and a command that is longer than any line\nor take another port.",
     "结束占用者：\n$ ss -ltnp 'sport = :29500' and a command that is longer than any line\n或换一个端口。"},
    "torch/csrc/distributed/c10d/socket.cpp",
    nullptr};

TEST(ExplainPage, SaysAllOfARow) {
  EXPECT_EQ(explain_page(kRow, Language::kEnglish, 60),
            "NET-TEST: a port the job needs is taken\n"
            "error (a job will fail or hang); interfaces, addresses and\n"
            "links\n"
            "\n"
            "Question\n"
            "  Is MASTER_PORT free on the host of rank 0?\n"
            "\n"
            "Why it matters\n"
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
  std::string chinese = explain_page(kRow, Language::kChinese, 60);
  EXPECT_TRUE(chinese.starts_with("NET-TEST: 任务所需的端口已被占用\n错误（任务必定失败或挂起）；网卡、地址与链路\n")) << chinese;
}

// Of every code there is, in both languages: only a command may be wider than the terminal.
TEST(ExplainPage, FitsTheTerminal) {
  std::vector<const doctor::Row*> rows = doctor::catalogue();
  rows.push_back(&kRow);
  for (const doctor::Row* row : rows)
    for (Language language : {Language::kEnglish, Language::kChinese})
      for (size_t columns : {40u, 60u, 80u, 100u}) {
        std::string page = explain_page(*row, language, columns);
        EXPECT_TRUE(base::is_utf8(page)) << row->code;
        for (std::string_view line : base::split_lines(page)) {
          // A name or message without a blank cannot be broken.
          bool one_word = base::split_words(line).size() <= 1;
          if (line.starts_with("  $ ") || one_word) continue;
          EXPECT_LE(base::display_width(line), columns) << row->code << ": " << line;
        }
      }
}

TEST(ExplainPage, SaysAllOfACause) {
  constexpr diagnosis::Cause kCause{
      "RUN-TEST", {"it broke", "坏了"}, {"It fell.", "摔了。"}, {"Lift it:\n$ lift it", "扶起：\n$ lift it"}, "gravity(7)"};
  EXPECT_EQ(explain_page(kCause, Language::kEnglish, 60),
            "RUN-TEST: it broke\n\nWhy\n  It fell.\n\nWhat to do\n  Lift it:\n  $ lift it\n\nSource\n  gravity(7)\n");
  for (const diagnosis::Cause* cause : diagnosis::causes())
    for (Language language : {Language::kEnglish, Language::kChinese})
      EXPECT_TRUE(base::is_utf8(explain_page(*cause, language, 60))) << cause->code;
}

TEST(ExplainList, HasEveryCodeOnceAndFits) {
  for (Language language : {Language::kEnglish, Language::kChinese})
    for (size_t columns : {40u, 80u, 100u}) {
      std::string list = explain_list("", language, columns);
      for (std::string_view line : base::split_lines(list)) EXPECT_LE(base::display_width(line), columns) << line;
      for (const doctor::Row* row : doctor::catalogue())
        EXPECT_NE(list.find("  " + std::string(row->code)), std::string::npos) << row->code;
      for (const diagnosis::Cause* cause : diagnosis::causes())
        EXPECT_NE(list.find("  " + std::string(cause->code)), std::string::npos) << cause->code;
    }
  EXPECT_EQ(explain_list("NO-SUCH-", Language::kEnglish, 80), "");
}

TEST(CodesMarkdown, HasAPageForEveryCode) {
  for (Language language : {Language::kEnglish, Language::kChinese}) {
    std::string page = codes_markdown(language);
    EXPECT_TRUE(base::is_utf8(page));
    EXPECT_EQ(page.find("\n\n\n"), std::string::npos);
    for (const doctor::Row* row : doctor::catalogue())
      EXPECT_NE(page.find("\n### " + std::string(row->code) + "\n"), std::string::npos) << row->code;
    for (const diagnosis::Cause* cause : diagnosis::causes())
      EXPECT_NE(page.find("\n### " + std::string(cause->code) + "\n"), std::string::npos) << cause->code;
  }
}

}  // namespace
}  // namespace view
