// `phalanx explain` over tests/data/logs: excerpts of real messages among what stands around them, and healthy logs. index.tsv says which
// code must be named, and which ranks. Precision and recall are printed per code.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <iterator>
#include <map>

#include "base/json.h"
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

std::string changed(const std::string& text, const std::function<std::string(const std::string&)>& change) {
  std::string out;
  for (std::string_view line : base::split(text, '\n')) out += change(std::string(line)) + "\n";
  return out;
}

std::string as_json(const std::string& line) {
  base::Json object;
  object["log"] = line;
  object["stream"] = "stderr";
  return base::to_text(object);
}

std::string broken(const std::string& line, size_t columns) {
  std::string out;
  for (size_t at = 0; at < line.size(); at += columns) out += (at > 0 ? "\n" : "") + line.substr(at, columns);
  return out;
}

// Whole cases as collectors and terminals hand them on: the same verdict.
TEST(Corpus, TheSameVerdictHoweverTheLogWasHandedOn) {
  const std::vector<std::pair<std::string, std::function<std::string(const std::string&)>>> changes = {
      {"as JSON", as_json},
      {"with a tag", [](const std::string& line) { return "(RayTrainWorker pid=4021, ip=10.0.0.2) " + line; }},
      {"broken at 100", [](const std::string& line) { return broken(line, 100); }},
      {"broken at 80", [](const std::string& line) { return broken(line, 80); }},
  };
  std::vector<Case> named_as_written;
  for (const Case& one : cases())
    if (one.path.ends_with(".log") && one.code != "-")
      if (LogVerdict verdict = explain(kFolder + "/" + one.path); verdict.cause && verdict.cause->code == one.code)
        named_as_written.push_back(one);
  LogScan scan;
  for (const auto& [name, change] : changes) {
    int right = 0, all = 0;
    for (const Case& one : named_as_written) {
      std::string path = kFolder + "/" + one.path;
      std::ifstream file(path, std::ios::binary);
      std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
      LogFile named;
      named.name = path;
      scan.begin_file(std::move(named));
      scan.feed(changed(text, change));
      scan.end_file();
      LogFacts facts = scan.finish();
      logs::NcclTopology nccl = std::move(facts.nccl);
      LogVerdict verdict = judge_logs(std::move(facts));
      add_nccl(verdict, nccl);
      bool same = verdict.cause && verdict.cause->code == one.code;
      if (!same) std::printf("  %s: %s: %s\n", name.c_str(), one.path.c_str(), verdict.cause ? verdict.cause->code.c_str() : "-");
      right += same;
      ++all;
    }
    std::printf("%s: %d of %d\n", name.c_str(), right, all);
    EXPECT_GE(ratio(right, all - right), 0.97) << name;
  }
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
