// Merged models, read back by Python and compared bit for bit; and what may go wrong.
#include "engine/checkpoint/merge.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <set>

#include "engine/checkpoint/hf_index.h"
#include "engine/checkpoint/interrupt.h"
#include "engine/checkpoint/reader.h"
#include "os/files.h"
#include "pieces.h"
#include "sanitized.h"

using namespace phalanx;

namespace {

using namespace engine::checkpoint;
namespace fs = std::filesystem;

const Interrupt kNever;

std::set<std::string> names(const std::string& folder) {
  std::set<std::string> found;
  for (const std::string& name : pieces::value(names_in(folder))) found.insert(name);
  return found;
}

base::Json expected(int64_t step, std::optional<at::ScalarType> type) {
  base::Json json = base::Json::object();
  for (const auto& [name, value] : pieces::state(step)) {
    if (!name.starts_with("model.")) continue;
    const bool convert = type && at::isFloatingType(value.scalar_type());
    const at::Tensor tensor = (convert ? value.to(*type) : value).contiguous();
    std::string hex;
    for (size_t i = 0; i < tensor.nbytes(); ++i) hex += fmt::format("{:02x}", static_cast<const uint8_t*>(tensor.data_ptr())[i]);
    const char* dtype = tensor.scalar_type() == at::kFloat      ? "float32"
                        : tensor.scalar_type() == at::kBFloat16 ? "bfloat16"
                        : tensor.scalar_type() == at::kHalf     ? "float16"
                        : tensor.scalar_type() == at::kLong     ? "int64"
                                                                : "bool";
    json[name.substr(6)] = {{"dtype", dtype}, {"shape", tensor.sizes().vec()}, {"hex", hex}};
  }
  return json;
}

TEST(Merge, PythonReadsTheSameBits) {
  struct Case {
    int world;
    const char* dtype;
    std::optional<at::ScalarType> type;
    uint64_t max_bytes;
    size_t files;
  };
  std::string command = fmt::format("/usr/bin/python3 '{}/checkpoint/merged.py'", PHALANX_TRAIN_TESTS);
  pieces::Folder folder;
  int64_t step = 0;
  for (const Case& c : {Case{3, "", {}, 5'000'000'000, 1}, Case{2, "BF16", at::kBFloat16, 5'000'000'000, 1},
                        Case{4, "F16", at::kHalf, 100, 3}, Case{1, "F32", at::kFloat, 1, 5}}) {
    const std::string expected_file = folder / fmt::format("expected{}.json", ++step);
    MergeOptions options{.checkpoint = pieces::save(folder.path(), step, c.world), .folder = folder / fmt::format("merged{}", step)};
    options.dtype = c.dtype;
    options.max_file_bytes = c.max_bytes;
    auto merged = merge(options, kNever);
    ASSERT_TRUE(merged.ok()) << merged.error().render();
    EXPECT_EQ(merged->files.size(), c.files);
    EXPECT_EQ(merged->tensors, 6u);
    std::ofstream(expected_file) << base::to_text(expected(step, c.type));
    command += fmt::format(" '{}' '{}'", options.folder, expected_file);
  }
  EXPECT_EQ(std::system(command.c_str()), 0) << command;
}

TEST(Merge, ATakenFolderIsNotTouched) {
  pieces::Folder folder;
  MergeOptions options{.checkpoint = pieces::save(folder.path(), 1, 2), .folder = folder / "merged"};
  ASSERT_TRUE(merge(options, kNever).ok());
  auto again = merge(options, kNever);
  ASSERT_FALSE(again.ok());
  EXPECT_EQ(again.error().kind, base::ErrorKind::kUsage);
  EXPECT_NE(again.error().hint.find("--replace"), std::string::npos);
  options.replace = true;
  options.max_file_bytes = 100;
  ASSERT_TRUE(merge(options, kNever).ok());
  EXPECT_TRUE(names(options.folder).contains("model.safetensors.index.json"));
  EXPECT_FALSE(names(options.folder).contains("model.safetensors"));
  std::ofstream(options.folder + "/notes.txt") << "mine";
  EXPECT_NE(merge(options, kNever).error().render().find("more than a merged model"), std::string::npos);
  EXPECT_EQ(names(folder.path()), (std::set<std::string>{".owner", "merged", "step-00000001"}));
}

TEST(Merge, WhatLiesBesideTheModelIsReplacedWithIt) {
  pieces::Folder folder;
  MergeOptions options{.checkpoint = pieces::save(folder.path(), 1, 2), .folder = folder / "merged"};
  std::string text = "{}";
  options.beside = [&](const Reader& reader) -> base::Result<std::vector<SmallFile>> {
    EXPECT_EQ(reader.step(), 1);
    return std::vector<SmallFile>{{std::string(kConfigFile), text}, {std::string(kPythonFile), "pass"}};
  };
  auto merged = merge(options, kNever);
  ASSERT_TRUE(merged.ok()) << merged.error().render();
  EXPECT_TRUE(merged->described);
  EXPECT_EQ(names(options.folder), (std::set<std::string>{"config.json", "model.safetensors", "phalanx_gpt.py"}));
  options.replace = true;
  text = "{\"new\": 1}";
  ASSERT_TRUE(merge(options, kNever).ok());
  EXPECT_EQ(os::read_file(options.folder + "/config.json", 100).value(), text);
  // A config.json alone is somebody else's.
  fs::remove(options.folder + "/model.safetensors");
  EXPECT_NE(merge(options, kNever).error().render().find("more than a merged model"), std::string::npos);
  options.folder = folder / "other";
  options.beside = [](const Reader&) -> base::Result<std::vector<SmallFile>> { return base::fail(base::ErrorKind::kConfig, "no"); };
  EXPECT_FALSE(merge(options, kNever).ok());
  EXPECT_FALSE(fs::exists(options.folder));
}

TEST(Merge, ADamagedShardIsNamedAndNothingIsLeft) {
  pieces::Folder folder;
  MergeOptions options{.checkpoint = pieces::save(folder.path(), 1, 2), .folder = folder / "merged"};
  std::string bytes = os::read_file(options.checkpoint + "/shard-00001-of-00002.safetensors", 1 << 20).value();
  bytes.back() ^= 1;
  std::ofstream(options.checkpoint + "/shard-00001-of-00002.safetensors", std::ios::binary) << bytes;
  EXPECT_NE(merge(options, kNever).error().render().find("shard-00001-of-00002.safetensors"), std::string::npos);
  EXPECT_EQ(names(folder.path()), (std::set<std::string>{".owner", "step-00000001"}));
}

TEST(Merge, ADiskThatIsTooSmallIsFoundBefore) {
  pieces::Folder folder;
  MergeOptions options{.checkpoint = pieces::save(folder.path(), 1, 2), .folder = folder / "small/merged"};
  fs::create_directory(folder / "small");
  if (mount("tmpfs", (folder / "small").c_str(), "tmpfs", 0, "size=64k") != 0) GTEST_SKIP() << "needs the right to mount";
  options.stage = [](std::string_view) { ADD_FAILURE() << "work was begun"; };
  auto merged = merge(options, kNever);
  const bool empty = names(folder / "small").empty();
  umount2((folder / "small").c_str(), MNT_DETACH);
  ASSERT_FALSE(merged.ok());
  EXPECT_EQ(merged.error().kind, base::ErrorKind::kUnfit);
  EXPECT_NE(merged.error().render().find("does not fit"), std::string::npos) << merged.error().render();
  EXPECT_TRUE(empty);
}

// Killed at every stage and at random moments: the folder is whole or not there, and the next merge clears up.
TEST(Merge, AKillLeavesNothingThatLooksWhole) {
  pieces::Folder folder;
  MergeOptions options{.checkpoint = pieces::save(folder.path(), 1, 2), .folder = folder / "merged"};
  options.max_file_bytes = 100;
  auto killed_at = [&](const std::function<void(std::string_view)>& stage, std::chrono::microseconds moment) {
    const pid_t child = fork();
    if (child == 0) {
      options.stage = stage;
      _exit(merge(options, kNever).ok() ? 0 : 1);
    }
    timespec rest{0, moment.count() * 1000};
    if (!stage) {
      nanosleep(&rest, nullptr);
      kill(child, SIGKILL);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WIFSIGNALED(status);
  };
  auto check = [&](bool killed) {
    if (os::exists(options.folder)) { EXPECT_EQ(names(options.folder).size(), 4u) << "3 files and an index"; }
    EXPECT_TRUE(killed || os::exists(options.folder));
    fs::remove_all(options.folder);
  };
  for (const std::string_view fatal : {"verify", "file", "index", "rename"}) {
    EXPECT_TRUE(killed_at(
        [&](std::string_view stage) {
          if (stage == fatal) raise(SIGKILL);
        },
        {}));
    EXPECT_FALSE(os::exists(options.folder)) << fatal;
  }
  std::mt19937 random(std::random_device{}());
  for (int i = 0; i < 40; ++i) check(killed_at({}, std::chrono::microseconds(random() % 15'000)));
  ASSERT_TRUE(merge(options, kNever).ok());
  EXPECT_EQ(names(folder.path()), (std::set<std::string>{".owner", "merged", "step-00000001"})) << "leftovers";
}

TEST(Merge, InTheBackgroundWhileTheCheckpointGoes) {
  pieces::Folder folder;
  MergeOptions options{.checkpoint = pieces::save(folder.path(), 1, 3), .folder = folder / "merged"};
  uint64_t last = 0;
  options.progress = [&](uint64_t done, uint64_t all) {
    EXPECT_GE(done, last);
    EXPECT_LE(done, all);
    last = done;
  };
  auto under_way = merge_in_background(options, kNever);
  ASSERT_TRUE(remove_checkpoint(options.checkpoint).ok());
  auto merged = under_way.get();
  ASSERT_TRUE(merged.ok()) << merged.error().render();
  EXPECT_EQ(last, merged->bytes);
  Interrupt stop;
  stop.raise();
  options.checkpoint = pieces::save(folder.path(), 2, 1);
  options.folder = folder / "second";
  EXPECT_EQ(merge_in_background(options, stop).get().error().kind, base::ErrorKind::kInterrupted);
  EXPECT_FALSE(os::exists(options.folder));
}

// 256 MiB of parameters in a few MiB of memory.
TEST(Merge, MemoryDoesNotGrowWithTheModel) {
  if (ranks::kAddressSanitizer) GTEST_SKIP() << "measures memory, and AddressSanitizer keeps what is freed";
  pieces::Folder folder;
  const SaveId id{folder.path(), 1, "token", 0, 1};
  const Interrupt interrupt;
  {
    std::vector<Piece> all;
    for (int i = 0; i < 4; ++i) all.push_back({fmt::format("model.w{}", i), {16 << 20}, 0, at::zeros({16 << 20}, at::kFloat)});
    ASSERT_TRUE(write_shard(id, 0, {all, base::Json::object()}, interrupt).ok());
  }
  ASSERT_TRUE(claim(folder.path(), "token").ok());
  auto finished = finish(id, {}, interrupt);
  ASSERT_TRUE(finished.ok());
  const pid_t child = fork();
  if (child == 0) {
    MergeOptions options{.checkpoint = finished->path, .folder = folder / "merged"};
    options.dtype = "BF16";
    rusage before{}, after{};
    getrusage(RUSAGE_SELF, &before);
    const bool good = merge(options, interrupt).ok();
    getrusage(RUSAGE_SELF, &after);
    _exit(good && after.ru_maxrss - before.ru_maxrss < 40 * 1024 ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(fs::file_size(folder / "merged/model.safetensors") >> 20, 128u);
}

TEST(ModelIndex, ReadsWhatItWritesAndRefusesTheRest) {
  ModelIndex index{12, {{"a", "model-00001-of-00002.safetensors"}, {"b \"q\"", "model-00002-of-00002.safetensors"}}};
  auto back = parse_model_index(to_text(index));
  ASSERT_TRUE(back.ok()) << back.error().render();
  EXPECT_EQ(back->weight_map, index.weight_map);
  EXPECT_EQ(back->total_size, 12u);
  EXPECT_TRUE(parse_model_index(to_text(ModelIndex{})).ok());
  for (const char* bad : {"", "[]", "{}", R"({"weight_map":[]})", R"({"weight_map":{"a":1}})", R"({"weight_map":{"a":"../x"}})",
                          R"({"weight_map":{"a":".."}})", R"({"weight_map":{"a":"/etc/passwd"}})", R"({"weight_map":{"a":""}})",
                          R"({"weight_map":{},"metadata":{"total_size":-1}})"})
    EXPECT_FALSE(parse_model_index(bad).ok()) << bad;
  EXPECT_EQ(split_by_size({5, 5, 5, 20, 1}, 10), (std::vector<size_t>{0, 2, 3, 4}));
  EXPECT_EQ(split_by_size({}, 10), (std::vector<size_t>{}));
}

}  // namespace
