// `phalanx explain` over tests/data/logs: excerpts of real messages among what stands around them, and healthy logs. index.tsv says which
// code must be named, and which ranks. Precision and recall are printed per code.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>

#include "base/text.h"
#include "diagnosis/logs/evidence.h"
#include "diagnosis/logs/files.h"
#include "diagnosis/logs/verdict.h"

namespace phalanx::diagnosis {
namespace {

const std::string kFolder = std::string(PHALANX_TEST_DATA) + "/logs";

struct Case {
  std::string path, code, ranks;
};

std::vector<Case> cases() {
  std::vector<Case> out;
  std::ifstream index(kFolder + "/index.tsv");
  for (std::string line; std::getline(index, line);) {
    if (line.starts_with('#')) continue;
    std::vector<std::string_view> fields = base::split(line, '\t');
    EXPECT_EQ(fields.size(), 3u) << line;
    if (fields.size() == 3) out.push_back({std::string(fields[0]), std::string(fields[1]), std::string(fields[2])});
  }
  return out;
}

LogVerdict explain(const std::string& path) {
  LogScan scan;
  auto files = find_logs(path);
  EXPECT_TRUE(files.ok()) << path;
  if (!files.ok()) return {};
  for (const LogFile& file : *files) EXPECT_TRUE(read_log(scan, file).ok()) << file.name;
  LogFacts facts = scan.finish();
  logs::NcclTopology nccl = std::move(facts.nccl);
  LogVerdict verdict = judge_logs(std::move(facts));
  add_nccl(verdict, nccl);
  return verdict;
}

struct Score {
  int right = 0, missed = 0, wrong = 0;  // wrong: named where it is not
};

double ratio(int right, int others) { return right + others == 0 ? 1 : static_cast<double>(right) / (right + others); }

TEST(Corpus, NamesTheCauseAndNoneInHealthyLogs) {
  std::map<std::string, Score> scores;
  Score all;
  std::vector<Case> list = cases();
  ASSERT_GE(list.size(), 200u);
  int healthy = 0, ranked = 0, right_rank = 0;
  for (const Case& one : list) {
    LogVerdict verdict = explain(kFolder + "/" + one.path);
    std::string named = verdict.cause ? verdict.cause->code : "-";
    if (one.code == "-") {
      ++healthy;
      EXPECT_EQ(named, "-") << one.path << ": " << (verdict.cause ? verdict.cause->evidence.front().text : "");
      for (const LogCause& other : verdict.others) ADD_FAILURE() << one.path << ": " << other.code;
    }
    if (named == one.code) {
      if (one.code != "-") ++scores[one.code].right, ++all.right;
    } else {
      std::printf("  %s: %s was named, %s is right\n", one.path.c_str(), named.c_str(), one.code.c_str());
      if (one.code != "-") ++scores[one.code].missed, ++all.missed;
      if (named != "-") ++scores[named].wrong, ++all.wrong;
    }
    if (one.ranks == "-") continue;
    ++ranked;
    std::string ranks = verdict.cause ? base::format_ranges(verdict.cause->ranks) : "";
    if (ranks == one.ranks) ++right_rank;
    else std::printf("  %s: rank %s was named, rank %s is right\n", one.path.c_str(), ranks.c_str(), one.ranks.c_str());
  }
  std::printf("%-28s %6s %10s %7s\n", "code", "cases", "precision", "recall");
  for (const auto& [code, s] : scores)
    std::printf("%-28s %6d %10.2f %7.2f\n", code.c_str(), s.right + s.missed, ratio(s.right, s.wrong), ratio(s.right, s.missed));
  std::printf("%-28s %6d %10.3f %7.3f; %d healthy logs; rank right in %d of %d\n", "all", all.right + all.missed,
              ratio(all.right, all.wrong), ratio(all.right, all.missed), healthy, right_rank, ranked);
  EXPECT_GE(healthy, 20);
  EXPECT_GE(scores.size(), 80u);
  EXPECT_GE(ratio(all.right, all.wrong), 0.95);
  EXPECT_GE(ratio(all.right, all.missed), 0.95);
  EXPECT_GE(ratio(right_rank, ranked - right_rank), 0.95);
}

// The evidence is a line of the file, at the number that is told.
TEST(Corpus, EvidenceStandsWhereItIsSaidToStand) {
  for (const Case& one : cases()) {
    LogVerdict verdict = explain(kFolder + "/" + one.path);
    if (!verdict.cause || one.path.ends_with(".gz")) continue;
    for (const LogEvidence& evidence : verdict.cause->evidence) {
      std::ifstream file(verdict.files[evidence.file].name);
      std::string line;
      for (uint64_t i = 0; i < evidence.line; ++i) ASSERT_TRUE(std::getline(file, line)) << one.path << ":" << evidence.line;
      if (line.find('\x1b') != std::string::npos) continue;
      EXPECT_NE(line.find(evidence.text.substr(0, 40)), std::string::npos) << one.path << ":" << evidence.line << ": " << evidence.text;
    }
  }
}

}  // namespace
}  // namespace phalanx::diagnosis
