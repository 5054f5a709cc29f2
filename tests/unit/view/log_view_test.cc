#include "view/log_view.h"

#include <gtest/gtest.h>

#include "base/text.h"
#include "base/unicode.h"

namespace phalanx::view {
namespace {

using base::Language;
using diagnosis::LogVerdict;

LogVerdict verdict() {
  LogVerdict out;
  out.files = {{.name = "a.log", .host = {}, .lines = 12345, .bytes = 99, .cut = 2}, {.name = "-", .host = {}, .lines = 10, .bytes = 9}};
  out.cause = diagnosis::LogCause{.code = "RUN-OOM-GPU",
                                  .ranks = {3},
                                  .host = "gpu02",
                                  .detail = {"at train.py:42 (step)", "位于 train.py:42 (step)"},
                                  .evidence = {{0, 1234, "torch.OutOfMemoryError: CUDA out of memory.\x1b[0m"}}};
  out.others = {{.code = "HANG-TIMEOUT", .host = {}, .detail = {}, .evidence = {{1, 7, "Watchdog caught"}}}};
  out.cascades = {{.code = "LOG-PEER-GONE", .count = 1400, .ranks = {0, 1, 2}, .first = {1, 9, "Connection closed"}}};
  out.ranks = {0, 1, 2, 3};
  out.missing = {4, 5, 6, 7};
  out.world = 8;
  out.sections = {{{"NCCL's topology", "NCCL 拓扑"}, {{"2 hosts, sockets only", "2 台主机，仅 socket"}}}};
  return out;
}

TEST(LogReport, SaysAllThatWasFound) {
  std::string text = log_report(verdict(), {{"a.log: the gzip data is truncated", "a.log：gzip 数据被截断"}}, Language::kEnglish, 100);
  EXPECT_TRUE(
      text.starts_with("RUN-OOM-GPU: a GPU ran out of memory\n  rank 3 on gpu02; at train.py:42 (step)\n\nEvidence\n"
                       "  a.log:1234: torch.OutOfMemoryError: CUDA out of memory.\\x1b[0m\n\nWhy\n"))
      << text;
  for (const char* part :
       {"\nWhat to do\n", "\nAlso seen\n  HANG-TIMEOUT: ", "  stdin:7: Watchdog caught\n", "\nConsequences\n",
        "  1,400× LOG-PEER-GONE: a peer closed its connection (rank 0–2), stdin:9\n", "\nNCCL's topology\n  2 hosts, sockets only\n",
        "\nRead\n  2 files, 12,355 lines\n  lines of rank 0–3\n  no lines of rank 4–7 (of 8)\n  2 lines longer than 64 KiB",
        "  a.log: the gzip data is truncated\n"})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
}

// What the lines did not name stays an obvious placeholder.
TEST(LogReport, CommandsAreFilledWithWhatTheLinesNamed) {
  diagnosis::LogVerdict seen;
  seen.cause = diagnosis::LogCause{.code = "RUN-EXIT-CODE", .ranks = {3}, .observed = {{"rank", "3"}}};
  EXPECT_NE(log_report(seen, {}, Language::kEnglish, 100).find("phalanx logs latest --rank 3\n"), std::string::npos);
  EXPECT_NE(log_json(seen, {})["cause"]["fix"].get<std::string>().find("--rank 3"), std::string::npos);
  seen.cause->observed.clear();
  EXPECT_NE(log_report(seen, {}, Language::kChinese, 100).find("phalanx logs latest --rank <rank>\n"), std::string::npos);
}

TEST(LogReport, BothLanguagesAndNarrowTerminals) {
  std::string chinese = log_report(verdict(), {}, Language::kChinese, 80);
  EXPECT_NE(chinese.find("GPU 显存耗尽"), std::string::npos) << chinese;
  EXPECT_NE(chinese.find("\n证据\n"), std::string::npos);
  EXPECT_TRUE(base::is_utf8(chinese));
  EXPECT_EQ(log_report({.cause = {}, .files = {{.name = "x", .host = {}, .lines = 3}}}, {}, Language::kEnglish, 80),
            "no cause of failure was found\n\nRead\n  1 file, 3 lines\n");
}

TEST(LogJson, HasASchemaAndIsEnglish) {
  base::Json json = log_json(verdict(), {{"a note", "备注"}});
  EXPECT_EQ(json["schema"], 1);
  EXPECT_EQ(json["cause"]["code"], "RUN-OOM-GPU");
  EXPECT_EQ(json["cause"]["ranks"][0], 3);
  EXPECT_EQ(json["cause"]["evidence"][0]["line"], 1234);
  EXPECT_EQ(json["cascades"][0]["count"], 1400);
  EXPECT_EQ(json["missing_ranks"].size(), 4u);
  EXPECT_EQ(json["sections"][0]["lines"][0], "2 hosts, sockets only");
  EXPECT_EQ(json["notes"][0], "a note");
  EXPECT_TRUE(log_json({}, {})["cause"].is_null());
}

}  // namespace
}  // namespace phalanx::view
