// phalanx-train's verbs: their command lines, exit codes and JSON.
#include "engine/train/verbs.h"

#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/json.h"
#include "engine/checkpoint/sharded.h"
#include "os/files.h"
#include "ranks.h"

using namespace phalanx;

namespace {

using namespace engine::train;
namespace checkpoint = engine::checkpoint;

struct Said {
  int code = -1;
  std::string out, error;
};

Said run(const std::vector<std::string>& arguments) {
  testing::internal::CaptureStdout();
  auto code = run_verb(arguments);
  std::fflush(stdout);
  Said said{-1, testing::internal::GetCapturedStdout(), ""};
  EXPECT_TRUE(code.has_value());
  if (!code) return said;
  said.code = code->ok() ? **code : base::exit_code(code->error().kind);
  if (!code->ok()) said.error = code->error().render();
  return said;
}

void save(const std::string& out, int64_t step) {
  const checkpoint::SaveId id{out + "/checkpoints", step, "token", step, 1};
  const checkpoint::Interrupt never;
  ASSERT_TRUE(os::make_folders(id.folder).ok());
  ASSERT_TRUE(checkpoint::claim(id.folder, id.token).ok());
  const std::vector<checkpoint::Piece> pieces{{"model.w", {4, 100}, 0, at::ones({400})}, {"exp_avg.w", {4, 100}, 0, at::ones({400})}};
  ASSERT_TRUE(checkpoint::write_shard(id, 0, {pieces, base::Json::object()}, never).ok());
  checkpoint::FinishOptions how;
  if (step == 2) how.best = checkpoint::Best{2, "loss", 0.25};
  ASSERT_TRUE(checkpoint::finish(id, how, never).ok());
}

TEST(Verbs, MergesTheNewestOfARun) {
  ranks::TempFolder folder;
  save(folder.path(), 1);
  save(folder.path(), 2);
  Said said = run({"merge", folder.path() + "/", "--output=" + folder.path() + "/model", "--dtype", "fp16", "--json"});
  ASSERT_EQ(said.code, 0) << said.error;
  auto json = base::parse_json(said.out);
  ASSERT_TRUE(json.ok()) << said.out;
  EXPECT_EQ(base::get_int(*json, "version"), 1);
  EXPECT_EQ(base::get_int(*json, "tensors"), 1);
  EXPECT_EQ(base::get_int(*json, "bytes"), 800);
  EXPECT_EQ(base::get_string(*json, "checkpoint"), folder / "checkpoints/step-00000002");
  EXPECT_TRUE(os::exists(folder / "model/model.safetensors"));
  EXPECT_EQ(base::get_bool(*json, "described"), false);
  EXPECT_FALSE(os::exists(folder / "model/config.json")) << "no configuration of a GPT in this checkpoint";
  EXPECT_NE(run({"merge", folder / "checkpoints/step-00000001"}).out.find("no config.json"), std::string::npos);
  EXPECT_TRUE(os::exists(folder / "checkpoints/step-00000001-merged/model.safetensors"));
  EXPECT_EQ(run({"merge", folder / "checkpoints/step-00000001"}).code, 2) << "the folder is taken";
  EXPECT_EQ(run({"merge", folder / "checkpoints/step-00000001", "--replace", "--max-shard-size", "1KB"}).code, 0);
}

TEST(Verbs, ListsWhatARunHas) {
  ranks::TempFolder folder;
  save(folder.path(), 1);
  save(folder.path(), 2);
  EXPECT_EQ(run({"checkpoints", folder.path()}).code, 0);
  const std::string shard = folder / "checkpoints/step-00000001/shard-00000-of-00001.safetensors";
  std::string bytes = os::read_file(shard, 1 << 20).value();
  bytes.back() ^= 1;
  std::ofstream(shard, std::ios::binary) << bytes;
  EXPECT_EQ(run({"checkpoints", folder.path()}).code, 0) << "nothing was hashed";
  Said said = run({"checkpoints", folder / "checkpoints", "--verify", "--json"});
  EXPECT_EQ(said.code, 1);
  auto json = base::parse_json(said.out);
  ASSERT_TRUE(json.ok()) << said.out;
  const base::Json& found = (*json)["checkpoints"];
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(base::get_string(found[0], "state"), "damaged");
  EXPECT_NE(base::get_string(found[0], "damage")->find("SHA-256"), std::string::npos);
  EXPECT_EQ(base::get_string(found[1], "state"), "verified");
  EXPECT_EQ(base::get_bool(found[1], "best"), true);
  EXPECT_NE(run({"checkpoints", folder.path()}).out.find("best (loss 0.25)"), std::string::npos);
}

TEST(Verbs, WrongCommandLinesAreRefused) {
  EXPECT_FALSE(run_verb({}).has_value());
  EXPECT_FALSE(run_verb({"gpt.yaml", "merge"}).has_value());
  EXPECT_EQ(run({"merge", "--help"}).code, 0);
  ranks::TempFolder folder;
  const std::pair<std::vector<std::string>, const char*> cases[] = {
      {{"merge"}, "needs a folder"},
      {{"merge", "a", "b"}, "unexpected \"b\""},
      {{"merge", "a", "-o"}, "-o needs a value"},
      {{"merge", "a", "--json=1"}, "no option \"--json=1\""},
      {{"merge", "a", "--verify"}, "no option \"--verify\""},
      {{"checkpoints", "a", "-o", "b"}, "no option \"-o\""},
      {{"checkpoints", folder / "none"}, "no such folder"},
      {{"merge", folder / "none"}, "no such folder"},
      {{"merge", folder.path()}, "is not a checkpoint and contains none"},
  };
  for (const auto& [arguments, expected] : cases) {
    Said said = run(arguments);
    EXPECT_EQ(said.code, 2) << expected;
    EXPECT_NE(said.error.find(expected), std::string::npos) << said.error;
  }
  save(folder.path(), 1);
  EXPECT_NE(run({"merge", folder.path(), "--dtype", "int8"}).error.find("must be bf16, fp16 or fp32"), std::string::npos);
  EXPECT_EQ(run({"merge", folder.path(), "--max-shard-size", "much"}).code, 2);
  EXPECT_EQ(run({"merge", folder.path(), "-o", ""}).code, 2);
}

}  // namespace
