// --check-data as a whole: from a config to a report and an exit code.
#include "engine/train/check_data.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "ranks.h"

using namespace phalanx;

namespace {

using namespace engine::train;

std::string write(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
  return path;
}

base::Result<DataReport> check(const std::string& yaml, const CheckDataOptions& options = {}) {
  auto config = read_config(yaml, "c.yaml", {});
  EXPECT_TRUE(config.ok()) << (config.ok() ? "" : config.error().render());
  return check_data(*config, options);
}

TEST(CheckData, CountsStepsForEveryNumberOfRanks) {
  ranks::TempFolder folder;
  const std::string text = write(folder / "a.txt", ranks::golden_text(8 * 50 + 1));
  CheckDataOptions options;
  options.worlds = {1, 2, 3, 4, 16};
  const std::string yaml =
      "data: {files: " + text + ", validation: 0, remainder: keep}\nmodel: {context: 8}\ntrain: {batch: 16, accumulate: 2}\n";
  auto report = check(yaml, options);
  ASSERT_TRUE(report.ok()) << report.error().render();
  EXPECT_TRUE(report->clean());
  EXPECT_EQ(report->sets[0].report.items, 50);
  EXPECT_EQ(report->sets[0].report.tokens, 400);
  ASSERT_EQ(report->worlds.size(), 5u);
  EXPECT_EQ(report->worlds[0].steps, 4) << "16 + 16 + 16 + 2";
  EXPECT_EQ(report->worlds[3].fewest_own, 3);
  EXPECT_EQ(report->worlds[3].most_own, 4);
  EXPECT_EQ(report->worlds[2].steps, 0) << "3 × 2 does not divide 16";
  const std::string shown = to_text(*report);
  EXPECT_NE(shown.find("4 ranks: 4 steps per epoch, some ranks have rows in 3; batch: 2 sequences × 4 ranks × 2 passes = 16"),
            std::string::npos)
      << shown;
  EXPECT_NE(shown.find("3 ranks: impossible: 3 ranks × train.accumulate 2 make 6 parts"), std::string::npos);
  const base::Json json = to_json(*report);
  EXPECT_EQ(json["schema"], 1);
  EXPECT_EQ(json["clean"], true);
  EXPECT_EQ(json["worlds"][3]["fewest_own"], 3);
  EXPECT_EQ(json["findings"][0]["code"], "batch_not_shared");
}

TEST(CheckData, ExitsWithTwoWhenSomethingIsWrong) {
  ranks::TempFolder folder;
  write(folder / "a.jsonl", "{\"text\": \"some words\"}\n{\"text\": \"more words\"}\n");
  write(folder / "v.jsonl", "{\"txt\": \"some words\"}\n");
  const std::string config = write(folder / "c.yaml", "data: {files: " + folder / "a.jsonl" + ", validation: 0}\ntrain: {batch: 2}\n");
  auto code = [&](std::vector<std::string> arguments) {
    testing::internal::CaptureStdout();
    auto result = check_data_command(arguments);
    const std::string shown = testing::internal::GetCapturedStdout();
    return result.ok() ? std::to_string(*result) + shown : result.error().render();
  };
  EXPECT_EQ(code({config, "--worlds", "1,2"}).substr(0, 1), "0");
  const std::string bad = code({"--json", config, "data.validation_files=" + folder / "v.jsonl", "--threads", "3"});
  EXPECT_EQ(bad.substr(0, 1), "2");
  const base::Json json = base::parse_json(bad.substr(1)).value();
  EXPECT_EQ(json["sets"][1]["name"], "validation");
  EXPECT_EQ(json["sets"][1]["findings"][0]["places"][0].get<std::string>(),
            folder / "v.jsonl" + ":1: it has no field \"text\"; its fields are \"txt\"");
  EXPECT_NE(code({config, "train.batch=64"}).find("error: an epoch has no steps [too_few_items]"), std::string::npos);
  EXPECT_NE(code({config, "data.files=" + folder / "none"}).find("no such file"), std::string::npos);
  EXPECT_NE(code({config, "--worlds", "0"}).find("whole number from 1"), std::string::npos);
  EXPECT_NE(code({config, "--worlds"}).find("--worlds needs a value"), std::string::npos);
  EXPECT_NE(code({config, "--fast"}).find("unknown option"), std::string::npos);
  EXPECT_NE(code({}).find("no config file given"), std::string::npos);
}

TEST(CheckData, TokenizedFilesAreWhole) {
  ranks::TempFolder folder;
  write(folder / "a.txt", "hello world, hello");
  write(folder / "b.txt", "second document");
  ASSERT_TRUE(tokenize_command({"--tokenize", folder / "t.tokens", folder / "a.txt", folder / "b.txt"}).ok());
  auto report =
      check("data: {files: " + folder / "t.tokens" + ", documents: apart, validation: 0}\nmodel: {context: 8}\ntrain: {batch: 1}\n");
  ASSERT_TRUE(report.ok());
  EXPECT_TRUE(report->clean());
  EXPECT_EQ(report->sets[0].report.targets, 17 + 14);
  EXPECT_EQ(report->files[0].vocabulary, 256u);
  EXPECT_FALSE(tokenize_command({"--tokenize", folder / "t.tokens"}).ok());
}

}  // namespace
