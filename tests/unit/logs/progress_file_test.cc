// Figures in the files of LLaMA-Factory and Lightning, and in files that only look like them.
#include "logs/progress_file.h"

#include <gtest/gtest.h>

#include <string>

namespace phalanx::logs {
namespace {

std::string figures(const std::optional<wire::RankProgress>& progress) { return progress ? wire::encode(*progress) : "none"; }

TEST(ProgressFile, TheLastLineOfLlamaFactory) {
  const std::string log =
      R"({"current_steps": 5, "total_steps": 30, "loss": 1.25, "lr": 0.0001, "epoch": 0.5, "percentage": 16.67, "elapsed_time": "0:00:10"})"
      "\n"
      R"({"current_steps": 10, "total_steps": 30, "loss": 1.125, "lr": 9e-05, "epoch": 1.0, "throughput": 903.5, "total_tokens": 9035})"
      "\n"
      R"({"current_steps": 10, "total_steps": 30, "eval_loss": 1.5, "epoch": 1.0})"
      "\n"
      R"({"current_steps": 15, "total_steps": 30, "lo)";
  EXPECT_EQ(figures(progress_in_json_lines(log)),
            "{\"v\":1,\"type\":\"progress\",\"step\":10,\"total\":30,\"loss\":1.125,\"tokens_per_s\":903.5}\n");
  EXPECT_EQ(figures(progress_in_json_lines(log.substr(4))),  // cut at its beginning, as the end of a long file is
            figures(progress_in_json_lines(log)));
}

TEST(ProgressFile, LinesThatAreNoneOfLlamaFactorysAreLeftOut) {
  for (const char* line :
       {"", "\n", "{}\n", "[1]\n", "\"current_steps\"\n", "{\"current_steps\": -1, \"loss\": 1}\n",
        "{\"current_steps\": 1e300, \"loss\": 1}\n", "{\"current_steps\": 9007199254740993000, \"loss\": 1}\n",
        "{\"current_steps\": \"5\", \"loss\": 1}\n", "{\"current_steps\": 5, \"loss\": \"nan\"}\n",
        "{\"current_steps\": 5, \"loss\": NaN}\n", "{\"current_steps\": 5, \"loss\": null}\n", "{\"current_steps\": 5, \"loss\": 1}"})
    EXPECT_EQ(figures(progress_in_json_lines(line)), "none") << line;
  EXPECT_EQ(figures(progress_in_json_lines("{\"current_steps\": 5, \"loss\": 1, \"x\": \"" + std::string(5000, 'a') + "\"}\n")), "none");
  EXPECT_EQ(figures(progress_in_json_lines("{\"current_steps\": 5, \"total_steps\": 3, \"loss\": 1, \"throughput\": -1}\n")),
            "{\"v\":1,\"type\":\"progress\",\"step\":5,\"loss\":1.0}\n");
  std::string deep = "{\"current_steps\": 5, \"loss\": 1, \"x\": ";
  EXPECT_EQ(figures(progress_in_json_lines(deep + std::string(1000, '[') + std::string(1000, ']') + "}\n")), "none");
}

TEST(ProgressFile, TheLastTrainingRowOfLightning) {
  const std::string csv =
      "epoch,step,train_loss_epoch,train_loss_step,val_loss\r\n"
      "0,49,,0.75,\r\n"
      "0,62,,,0.9\r\n"
      "0,62,0.8,,\r\n"
      "1,99,,0.5,\r\n"
      "1,124,,,0.7\r\n";
  EXPECT_EQ(figures(progress_in_csv(csv, csv)), "{\"v\":1,\"type\":\"progress\",\"step\":100,\"loss\":0.5}\n");
  EXPECT_EQ(figures(progress_in_csv(csv, csv.substr(0, csv.size() - 40))), figures(progress_in_csv(csv, csv.substr(0, 70))));
  const std::string quoted = "\"a,\"\"b\",step,train/loss\n\"x,1\",4,2.5\n";
  EXPECT_EQ(figures(progress_in_csv(quoted, quoted)), "{\"v\":1,\"type\":\"progress\",\"step\":5,\"loss\":2.5}\n");
}

TEST(ProgressFile, RowsThatAreNoneOfLightningsAreLeftOut) {
  for (const char* csv :
       {"", "\n", "step\n", "step,loss", "step,loss\n", "step,loss\n1,2", "step,val_loss\n1,2\n", "step,test_loss\n1,2\n",
        "step,acc\n1,2\n", "loss,acc\n1,2\n", "step,loss\n1\n", "step,loss\n1,2,3\n", "step,loss\n,2\n", "step,loss\n1,\n",
        "step,loss\n-1,2\n", "step,loss\n1e300,2\n", "step,loss\n1,nan\n", "step,loss\n1,inf\n", "step,loss\n1,2x\n"})
    EXPECT_EQ(figures(progress_in_csv(csv, csv)), "none") << csv;
  const std::string wide = std::string(100'000, ',') + "step,loss\n1,2\n";
  EXPECT_EQ(figures(progress_in_csv(wide, wide)), "none");
}

}  // namespace
}  // namespace phalanx::logs
